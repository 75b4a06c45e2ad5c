"""Simulation of evenly spaced samples in blocks of K steps, mostly as matrix products.

The state is kept only at the ends of blocks:

    block ends     w_b = P^K w_{b−1} + [P^{K−1}Γ … Γ] u_b         a product, and a recurrence over T/K steps
    outputs        Y = [W_before, U_blocks] · weights             with one row for each block

The weights of the state before a block are [C P⁰ … C P^{K−1}]ᵀ, those of its inputs a block Toeplitz matrix of Markov
parameters. Half of that matrix is zero: the first half of the outputs does not depend on the second half of the
inputs. States that have decayed after K steps need no recurrence: their contribution is a product with the inputs of
the block before. In stiff systems most states are of this kind.

States at all samples come from narrower blocks within the wide ones, as products P^j w + … for j < K. Consecutive
steps err in the same direction since P is rounded once; a product with P^j has an error of a few units for every j.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet._util.floating_point import Array, Complex
from ltinet.simulation.modal import pack_states, unpack_states
from ltinet.simulation.recurrence import OVERFLOW_LIMIT, StepDecay, matrix_powers, max_abs, scan_states
from ltinet.simulation.step_model import ExactStep, SingleSteps, run_in_groups
from ltinet.systems.matrices import Matrix

Indices = NDArray[np.intp]
DECAYED = 2.0**-60  # fraction of a state below which it is lost in a sum in double precision
_MIN_HALVED_WIDTH = 32  # steps: products with fewer columns gain nothing from omitting zeros
_MAX_GROUP_NUMBERS = 2**17  # numbers in the rows of a group of batch members, which stay in the cache (1 MiB)


@dataclass(frozen=True)
class TimeBlocks:
    """A grid whose states are known at the ends of blocks only."""

    step: ExactStep
    width: int
    """K, the number of steps in a block."""
    weights: tuple[Matrix, ...]
    """Weights from the lasting states before a block and its inputs, as far as needed, to each half of its outputs."""
    lasting: Indices
    """Packed states that do not decay within a block."""
    inputs_to_lasting: Matrix
    """Weights from the inputs of a block to the lasting states at its end, (K m × lasting)."""
    decay: StepDecay
    """P^K of the lasting states."""
    decayed: Indices
    """Packed states that decay within a block."""
    inputs_to_decayed: Matrix
    """Weights from the inputs of a block to the decayed states at its end, (K m × decayed)."""
    decayed_to_outputs: Matrix
    """Weights from the decayed states at the beginning of a block to its outputs, (decayed × K p)."""
    previous_to_outputs: Matrix
    """Weights from the inputs of the block before, through the decayed states, to the outputs, (K m × K p)."""

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Return outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed w at the first."""
        batch, n_times, _ = u.shape
        n_blocks = -(-n_times // self.width)
        y = np.empty((batch, n_blocks * self.width, self.step.system.n_outputs))

        def work(group: slice) -> None:
            self._fill_outputs(y[group], self._rows(u[group], w[group]), w[group])

        at_once = _MAX_GROUP_NUMBERS // (n_blocks * len(self.weights[-1]) + 1)
        run_in_groups(work, batch, at_once=at_once, threads=threads)
        return y[:, :n_times]

    def longest_product(self, batch: int, n_times: int) -> float:
        """Return the multiplications of the longest product of a run; infinite if there is a recurrence."""
        if len(self.lasting):
            return math.inf
        return max(part.size for part in (self.previous_to_outputs, *self.weights)) * batch * -(-n_times // self.width)

    def outputs_and_state(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Return outputs of whole blocks, and packed w one step after the last sample."""
        rows = self._rows(u, w)
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))
        self._fill_outputs(y, rows, w)
        return y, self._state_after(rows, w)

    def starts(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Return packed w at the beginnings of whole blocks, `(batch, n_blocks, n)`, and one step after the last."""
        rows = self._rows(u, w)
        n_lasting = len(self.lasting)
        before = np.empty((*rows.shape[:2], w.shape[-1]))
        before[..., self.lasting] = rows[..., :n_lasting]
        before[:, 1:, self.decayed] = rows[:, :-1, n_lasting:] @ self.inputs_to_decayed
        before[:, 0, self.decayed] = w[:, self.decayed]
        return before, self._state_after(rows, w)

    def _state_after(self, rows: Array, w: Array) -> Array:
        """Return packed w one step after the last of whole blocks."""
        states, inputs = np.split(rows[:, -1], [len(self.lasting)], axis=-1)
        lasting = (inputs @ self.inputs_to_lasting)[:, None]
        scan_states(lasting, states, self.decay)
        after = np.empty_like(w)
        after[:, self.lasting], after[:, self.decayed] = lasting[:, 0], inputs @ self.inputs_to_decayed
        return after

    def _rows(self, u: Array, w: Array) -> Array:
        """Return the lasting states before each block and its inputs, `(batch, n_blocks, lasting + K m)`."""
        batch, n_times, _ = u.shape
        n_inputs, n_lasting = self.inputs_to_lasting.shape
        if not n_lasting and n_times % self.width == 0:
            return u.reshape(batch, n_times // self.width, n_inputs)
        rows = np.empty((batch, -(-n_times // self.width), n_lasting + n_inputs))
        _fill_inputs(rows[..., n_lasting:], u)
        if n_lasting:
            # One product for all members: what it takes from the last block of one to the next is overwritten.
            flat, states = rows.reshape(-1, n_lasting + n_inputs), rows[..., :n_lasting]
            np.matmul(flat[:-1, n_lasting:], self.inputs_to_lasting, out=flat[1:, :n_lasting])
            states[:, 0] = w[:, self.lasting]
            scan_states(states[:, 1:], states[:, 0], self.decay)
        return rows

    def _fill_outputs(self, y: Array, rows: Array, w: Array) -> None:
        batch, n_blocks, n_terms = rows.shape
        n_outputs = self.previous_to_outputs.shape[1]
        terms, flat = rows.reshape(batch * n_blocks, n_terms), y.reshape(batch * n_blocks, n_outputs)
        for half, weights in enumerate(self.weights):
            n_needed, n_half = weights.shape
            np.matmul(terms[:, :n_needed], weights, out=flat[:, half * n_half : (half + 1) * n_half])
        if len(self.decayed):
            outputs = y.reshape(batch, n_blocks, n_outputs)
            outputs[:, 0] += np.dot(w[:, self.decayed] if len(self.lasting) else w, self.decayed_to_outputs)
            for member, inputs in zip(outputs, rows[..., len(self.lasting) :], strict=True):
                _add_product(member[1:], inputs[:-1], self.previous_to_outputs)


def prepare_time_blocks(step: ExactStep, width: int, *, decayed_below: float = DECAYED) -> TimeBlocks | None:
    """Prepare a grid of blocks of K steps, K a power of two; None if a state overflows within a block.

    States of which less than the fraction `decayed_below` is left after a block are not carried further.
    """
    decay = step.decay(width)
    if not max(max_abs(decay.pairs), max_abs(decay.reals), *map(max_abs, decay.blocks)) < OVERFLOW_LIMIT:
        return None
    into, out = step.reachability_rows(step.Gamma, width)[::-1], step.observability_rows(width)
    markov = np.concatenate([step.direct[None], out[:-1] @ into[-1].T])
    to_states = into.reshape(-1, into.shape[-1])
    to_outputs = out.transpose(2, 0, 1).reshape(into.shape[-1], -1)
    lasting, decayed, decay = split_decayed_states(decay, decayed_below=decayed_below)
    inputs_to_decayed, decayed_to_outputs = to_states[:, decayed], to_outputs[decayed]
    return TimeBlocks(
        step=step,
        width=width,
        weights=_halves(np.vstack([to_outputs[lasting], block_toeplitz(markov)]), n_lasting=len(lasting), width=width),
        lasting=lasting,
        inputs_to_lasting=np.ascontiguousarray(to_states[:, lasting]),
        decay=decay,
        decayed=decayed,
        inputs_to_decayed=inputs_to_decayed,
        decayed_to_outputs=decayed_to_outputs,
        previous_to_outputs=inputs_to_decayed @ decayed_to_outputs,
    )


def split_decayed_states(decay: StepDecay, *, decayed_below: float = DECAYED) -> tuple[Indices, Indices, StepDecay]:
    """Return the indices of lasting and of decayed packed states, and the decay of the lasting ones."""
    pairs, reals = np.abs(decay.pairs) >= decayed_below, np.abs(decay.reals) >= decayed_below
    dense = [bool(np.linalg.norm(matrix) >= decayed_below) for matrix in decay.blocks]
    sizes = [len(matrix) for matrix in decay.blocks]
    mask = np.concatenate([np.repeat(pairs, 2), reals, np.repeat(np.array(dense, dtype=bool), sizes)])
    blocks = tuple(matrix for matrix, is_lasting in zip(decay.blocks, dense, strict=True) if is_lasting)
    return np.flatnonzero(mask), np.flatnonzero(~mask), StepDecay(decay.pairs[pairs], decay.reals[reals], blocks)


def _halves(weights: Matrix, *, n_lasting: int, width: int) -> tuple[Matrix, ...]:
    """Return the weights of each half of the outputs without the rows that are zero; short blocks stay whole."""
    if width < _MIN_HALVED_WIDTH:
        return (weights,)
    n_needed, middle = n_lasting + (len(weights) - n_lasting) // 2, weights.shape[1] // 2
    return np.ascontiguousarray(weights[:n_needed, :middle]), np.ascontiguousarray(weights[:, middle:])


def block_toeplitz(markov: Array) -> Matrix:
    """Return (K m × K p) with H_{k−j} from input j to output k, 0 where that index is negative; rows are inputs."""
    K, p, m = markov.shape
    padded = np.concatenate([np.zeros((K, p, m)), markov])
    lag = np.arange(K) - np.arange(K)[:, None]
    return np.asarray(padded[lag + K].transpose(0, 3, 1, 2).reshape(K * m, K * p))


def _fill_inputs(blocks: Array, u: Array) -> None:
    """Write inputs `(batch, T, m)` as rows of blocks, with zeros after the last."""
    batch, n_blocks, width = blocks.shape
    flat = u.reshape(batch, u.shape[1] * u.shape[2])
    n_missing = n_blocks * width - flat.shape[1]
    n_whole = n_blocks - 1 if n_missing else n_blocks
    blocks[:, :n_whole] = flat[:, : n_whole * width].reshape(batch, n_whole, width)
    if n_missing:
        blocks[:, -1, : width - n_missing], blocks[:, -1, width - n_missing :] = flat[:, n_whole * width :], 0.0


def _add_product(total: Array, left: Array, right: Matrix) -> None:
    """Add left · right to the total without a temporary array; the rows of the total must be contiguous."""
    if total.size and left.size:
        blas.dgemm(1.0, right.T, left.T, beta=1.0, c=total.T, overwrite_c=True)


def outputs_from_states(grid: SingleSteps | TimeBlocks, z: Array, u: Array, *, threads: int) -> Array:
    """Return outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed states at the first.

    Where states grow fast the first step is taken separately: w = z − G₁ u would lose the digits of z.
    """
    step = grid.step
    if not step.has_fast_growth:
        return grid.outputs(u, step.shifted_state(z, u[:, 0]), threads=threads)
    y = np.empty((*u.shape[:2], step.system.n_outputs))
    y[:, 0] = z @ step.observability_rows(1)[0].T + u[:, 0] @ step.system.D.T
    if u.shape[1] > 1:
        rest = np.ascontiguousarray(u[:, 1:])
        y[:, 1:] = grid.outputs(rest, step.after_first(z, u[:, 0]), threads=threads)
    return y


# States at all samples.


@dataclass(frozen=True, eq=False)
class BlockStates:
    """States at all samples of blocks of a few steps, from those at their beginnings."""

    step: ExactStep
    width: int
    scalar_powers: Complex
    """P⁰ … P^{K−1} of the scalars."""
    dense_powers: tuple[Array, ...]
    """P⁰ … P^{K−1} of the dense blocks, (K × n × n) each."""
    from_inputs: Matrix
    """Weights from the inputs of a block to its states, (K m × K n)."""

    def states(self, u: Array, w: Array) -> Array:
        """Return packed z `(blocks, K, n)` from inputs `(blocks, K, m)` and packed w `(blocks, n)` at the beginnings."""
        n_blocks, K, m = u.shape
        states = (u.reshape(n_blocks, K * m) @ self.from_inputs).reshape(n_blocks, K, w.shape[-1])
        v, dense = unpack_states(self.step.system, w)
        products = [  # P^j z for all j
            np.asarray(z @ powers.reshape(-1, z.shape[1]).T).reshape(n_blocks, K, z.shape[1])
            for powers, z in zip(self.dense_powers, dense, strict=True)
        ]
        states += pack_states(self.step.system, v[:, None] * self.scalar_powers, products)
        return states


def prepare_block_states(step: ExactStep, width: int) -> BlockStates:
    """Prepare states at all samples of blocks of `width` steps."""
    into = step.reachability_rows(step.Gamma, width).transpose(0, 2, 1)
    from_inputs = block_toeplitz(np.concatenate([step.shift[None], into[:-1]]))
    dense = tuple(matrix_powers(P, width) for P in step.dense)
    return BlockStates(step, width, step.scalar_powers(np.arange(width)), dense, from_inputs)


@dataclass(frozen=True, eq=False)
class NestedBlocks:
    """Blocks of the outputs, narrower blocks within them, and the states within those."""

    wide: TimeBlocks
    narrow: TimeBlocks
    inside: BlockStates

    def states(self, u: Array, starts: Array) -> Array:
        """Return states at all samples of blocks, wide ones or narrow ones, from packed w at their beginnings."""
        n, n_blocks = starts.shape[-1], starts.shape[0] * starts.shape[1]
        if not n_blocks:  # an empty batch
            return np.zeros((*u.shape[:2], n))
        width = u.shape[0] * u.shape[1] // n_blocks
        inputs, w = u.reshape(n_blocks, width, u.shape[-1]), starts.reshape(n_blocks, n)
        if width > self.narrow.width:
            narrow_starts, _ = self.narrow.starts(inputs, w)
            n_narrow = n_blocks * width // self.narrow.width
            inputs, w = inputs.reshape(n_narrow, self.narrow.width, u.shape[-1]), narrow_starts.reshape(n_narrow, n)
        return self.inside.states(inputs, w).reshape(*u.shape[:2], n)


@dataclass(frozen=True, eq=False)
class UniformStepper:
    """States along evenly spaced samples u `(batch, T, m)`, from packed states z0 `(batch, n)` at the first."""

    grid: SingleSteps
    blocks: NestedBlocks | None
    """None if outputs take single steps too."""
    u: Array
    z0: Array

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Return packed states at samples first … stop − 1, and w at the next; `before` is z at sample 0, else w."""
        if first > 0:
            return self._states(self.u[:, first:stop], before)
        states = np.empty((len(self.u), stop, before.shape[-1]))
        states[:, 0] = before
        after = self.grid.step.after_first(before, self.u[:, 0])
        if stop > 1:
            states[:, 1:], after = self._states(self.u[:, 1:stop], after)
        return states, after

    def _states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Return states and the next w: whole wide blocks first, then narrow ones, then single steps."""
        if self.blocks is None:
            return self.grid.states(u, w)
        states, begin = np.empty((*u.shape[:2], w.shape[-1])), 0
        for blocks in (self.blocks.wide, self.blocks.narrow):
            in_blocks = slice(begin, begin + (u.shape[1] - begin) // blocks.width * blocks.width)
            if in_blocks.stop > in_blocks.start:
                starts, w = blocks.starts(u[:, in_blocks], w)
                states[:, in_blocks] = self.blocks.states(u[:, in_blocks], starts)
            begin = in_blocks.stop
        if begin < u.shape[1]:
            states[:, begin:], w = self.grid.states(u[:, begin:], w)
        return states, w
