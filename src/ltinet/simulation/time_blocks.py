"""Simulation of evenly spaced samples in blocks of K steps, mostly as matrix products.

The state is kept only at the ends of blocks:

    block ends     w_b = P^K w_{b−1} + [P^{K−1}Γ … Γ] u_b         a product, and a recurrence over T/K steps
    outputs        Y = [W_before, U_blocks] · weights             with one row for each block

The weights of the state before a block are [C P⁰ … C P^{K−1}]ᵀ, those of its inputs a block Toeplitz matrix of Markov
parameters. Half of that matrix is zero: the first half of the outputs does not depend on the second half of the
inputs. States that have decayed after K steps need no recurrence: their contribution is a product with the inputs of
the block before. In stiff systems most states are of this kind.

States at all samples come from narrower blocks within the wide ones, as products P^j w + … for j < K. Consecutive
steps err in the same direction since P is rounded once; a product with P^j is off by a few units whatever j is.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet.simulation.modal import pack_states, unpack_states
from ltinet.simulation.recurrence import OVERFLOW_LIMIT, StepDecay, matrix_powers, max_abs, scan_states
from ltinet.simulation.step_model import ExactStep, SingleSteps, outputs_from_states, run_in_groups
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.time_blocks
# States at the end of a block of time: of some, something is left; others have faded and need no recurrence.

Indices = NDArray[np.intp]
DECAYED = 2.0**-60  # of a state that enters a sum in double precision nothing is left


def split_decayed_states(decay: StepDecay, *, fades_below: float = DECAYED) -> tuple[Indices, Indices, StepDecay]:
    """Places of packed states that last and of those that have faded, and the decay of the lasting ones."""
    pairs, reals = np.abs(decay.pairs) >= fades_below, np.abs(decay.reals) >= fades_below
    dense = [bool(np.linalg.norm(matrix) >= fades_below) for matrix in decay.blocks]
    sizes = [len(matrix) for matrix in decay.blocks]
    mask = np.concatenate([np.repeat(pairs, 2), reals, np.repeat(np.array(dense, dtype=bool), sizes)])
    blocks = tuple(matrix for matrix, lasts in zip(decay.blocks, dense, strict=True) if lasts)
    return np.flatnonzero(mask), np.flatnonzero(~mask), StepDecay(decay.pairs[pairs], decay.reals[reals], blocks)


# MERGED ltinet.simulation.time_blocks
# Evenly spaced samples in blocks of K steps, so that nearly everything is a few matrix products.
#
# The state is kept only at the ends of blocks:
#
#     block ends     w_b = P^K w_{b−1} + [P^{K−1}Γ … Γ] u_b         a product, and a recurrence over T/K steps
#     outputs        Y = [W_before, U_blocks] · weights             with one row for each block
#
# The weights of the state before a block are [C P⁰ … C P^{K−1}]ᵀ, those of its inputs a block Toeplitz matrix of Markov
# parameters. Half of that is zero: the first half of the outputs does not depend on the second half of the inputs.
# States that have faded after K steps need no recurrence: what they bring into a block is a product with the inputs of
# the block before. In stiff systems these are most of them.

_MIN_HALVED_WIDTH = 32  # steps: products with fewer columns gain nothing from leaving out zeros
_GROUP_NUMBERS = 2**17  # numbers: members of a batch that are worked on together, to stay in the cache


@dataclass(frozen=True)
class TimeBlocks:
    """A grid whose states are known at the ends of blocks only."""

    step: ExactStep
    width: int
    """K, the number of steps in a block."""
    weights: tuple[Matrix, ...]
    """From the lasting states before a block and its inputs, as far as they matter, to each half of its outputs."""
    kept: Indices
    """Packed states of which something is left after a block."""
    into_kept: Matrix
    """From the inputs of a block to what they add to these states at its end, (K m × kept)."""
    decay: StepDecay
    """P^K of these states."""
    faded: Indices
    """Packed states of which nothing is left after a block."""
    into_faded: Matrix
    """From the inputs of a block to these states at its end, (K m × faded)."""
    from_faded: Matrix
    """From these states at the beginning of a block to its outputs, (faded × K p)."""
    from_before: Matrix
    """From the inputs of the block before, through these states, to the outputs of a block, (K m × K p)."""

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed w at the first."""
        batch, n_times, _ = u.shape
        n_blocks = -(-n_times // self.width)
        y = np.empty((batch, n_blocks * self.width, self.step.system.n_outputs))

        def work(own: slice) -> None:
            self._fill_outputs(y[own], self._rows(u[own], w[own]), w[own])

        run_in_groups(work, batch, at_once=_GROUP_NUMBERS // (n_blocks * len(self.weights[-1]) + 1), threads=threads)
        return y[:, :n_times]

    def outputs_from(self, z: Array, u: Array, *, threads: int = 1) -> Array:
        """The same from packed states at the first sample."""
        return outputs_from_states(self, z, u, threads=threads)

    def longest_product(self, batch: int, n_times: int) -> float:
        """How many multiplications the longest product of such a run takes."""
        return self._per_row * batch * -(-n_times // self.width)

    @cached_property
    def _per_row(self) -> float:
        """The same for one block; not known where there is a recurrence."""
        return math.inf if len(self.kept) else max(self.from_before.size, *(own.size for own in self.weights))

    def outputs_and_state(self, u: Array, w: Array) -> tuple[Array, Array]:
        """The same for whole blocks, and packed w one step after the last sample."""
        rows = self._rows(u, w)
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))
        self._fill_outputs(y, rows, w)
        return y, self._after(rows, w)

    def _after(self, rows: Array, w: Array) -> Array:
        """Packed w one step after the last of whole blocks."""
        states, last = np.split(rows[:, -1], [len(self.kept)], axis=-1)
        kept = (last @ self.into_kept)[:, None]
        scan_states(kept, states, self.decay)
        after = np.empty_like(w)
        after[:, self.kept], after[:, self.faded] = kept[:, 0], last @ self.into_faded
        return after

    def starts(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Packed w at the beginning of each of some whole blocks, `(batch, n_blocks, n)`, and one step after them."""
        rows = self._rows(u, w)
        inputs = rows[..., len(self.kept) :]
        before = np.empty((*rows.shape[:2], w.shape[-1]))
        before[..., self.kept], before[:, 1:, self.faded] = (
            rows[..., : len(self.kept)],
            inputs[:, :-1] @ self.into_faded,
        )
        before[:, 0, self.faded] = w[:, self.faded]
        return before, self._after(rows, w)

    def _rows(self, u: Array, w: Array) -> Array:
        """The lasting states before each block and its inputs, `(batch, n_blocks, kept + K m)`."""
        batch, n_times, _ = u.shape
        n_inputs, n_kept = self.into_kept.shape
        if not n_kept and n_times % self.width == 0:
            return u.reshape(batch, n_times // self.width, n_inputs)
        rows = np.empty((batch, -(-n_times // self.width), n_kept + n_inputs))
        _fill(rows[..., n_kept:], u)
        if n_kept:
            # One product for all members: what it brings from the last block of one to the next is overwritten.
            flat, states = rows.reshape(-1, n_kept + n_inputs), rows[..., :n_kept]
            np.matmul(flat[:-1, n_kept:], self.into_kept, out=flat[1:, :n_kept])
            states[:, 0] = w[:, self.kept]
            scan_states(states[:, 1:], states[:, 0], self.decay)
        return rows

    def _fill_outputs(self, y: Array, rows: Array, w: Array) -> None:
        batch, n_blocks, n_terms = rows.shape
        n_outputs = self.from_before.shape[1]
        terms, flat = rows.reshape(batch * n_blocks, n_terms), y.reshape(batch * n_blocks, n_outputs)
        for place, weights in enumerate(self.weights):
            n_needed, n_own = weights.shape
            np.matmul(terms[:, :n_needed], weights, out=flat[:, place * n_own : (place + 1) * n_own])
        if len(self.faded):
            outputs = y.reshape(batch, n_blocks, n_outputs)
            outputs[:, 0] += np.dot(w[:, self.faded] if len(self.kept) else w, self.from_faded)
            for own, inputs in zip(outputs, rows[..., len(self.kept) :], strict=True):
                _add_product(own[1:], inputs[:-1], self.from_before)


def prepare_time_blocks(step: ExactStep, width: int, *, fades_below: float = DECAYED) -> TimeBlocks | None:
    """Prepare a grid of blocks of K steps, K a power of two; None if a state overflows within a block.

    States of which less than `fades_below` is left after a block are not taken any further.
    """
    decay = step.decay(width)
    if not max(max_abs(decay.pairs), max_abs(decay.reals), *map(max_abs, decay.blocks)) < OVERFLOW_LIMIT:
        return None
    into, out = step.into(step.Gamma, width)[::-1], step.out_of(width)
    markov = np.concatenate([step.direct[None], out[:-1] @ into[-1].T])
    into_state = into.reshape(-1, into.shape[-1])
    from_state = out.transpose(2, 0, 1).reshape(into.shape[-1], -1)
    kept, faded, decay = split_decayed_states(decay, fades_below=fades_below)
    into_faded, from_faded = into_state[:, faded], from_state[faded]
    return TimeBlocks(
        step=step,
        width=width,
        weights=_halves(np.vstack([from_state[kept], block_toeplitz(markov)]), n_kept=len(kept), width=width),
        kept=kept,
        into_kept=np.ascontiguousarray(into_state[:, kept]),
        decay=decay,
        faded=faded,
        into_faded=into_faded,
        from_faded=from_faded,
        from_before=into_faded @ from_faded,
    )


def _halves(weights: Matrix, *, n_kept: int, width: int) -> tuple[Matrix, ...]:
    """The weights of each half of the outputs, without the rows that are zero; short or odd blocks stay whole."""
    if width < _MIN_HALVED_WIDTH or width % 2:
        return (weights,)
    n_needed, middle = n_kept + (len(weights) - n_kept) // 2, weights.shape[1] // 2
    return np.ascontiguousarray(weights[:n_needed, :middle]), np.ascontiguousarray(weights[:, middle:])


def block_toeplitz(markov: Array) -> Matrix:
    """(K m × K p) with H_{k−j} from input j to output k, 0 where that index is negative; rows are inputs."""
    K, p, m = markov.shape
    padded = np.concatenate([np.zeros((K, p, m)), markov])
    lag = np.arange(K) - np.arange(K)[:, None]
    return np.asarray(padded[lag + K].transpose(0, 3, 1, 2).reshape(K * m, K * p))


def _fill(blocks: Array, u: Array) -> None:
    """Inputs `(batch, T, m)` as rows of blocks, with zeros after the last."""
    batch, n_blocks, width = blocks.shape
    flat = u.reshape(batch, u.shape[1] * u.shape[2])
    n_rest = n_blocks * width - flat.shape[1]
    n_whole = n_blocks - 1 if n_rest else n_blocks
    blocks[:, :n_whole] = flat[:, : n_whole * width].reshape(batch, n_whole, width)
    if n_rest:
        blocks[:, -1, : width - n_rest], blocks[:, -1, width - n_rest :] = flat[:, n_whole * width :], 0.0


def _add_product(total: Array, left: Array, right: Matrix) -> None:
    """Total += left · right without a temporary copy; the rows of the total follow each other in memory."""
    if total.size and left.size:
        blas.dgemm(1.0, right.T, left.T, beta=1.0, c=total.T, overwrite_c=True)


# MERGED ltinet.simulation.time_blocks
# States at all samples of narrow blocks, from those at their beginnings: products of powers, no recurrence.
#
# Steps that follow each other err in the same direction each time, since P is rounded once. In a product with P^j the
# state after j steps is off by a few units, whatever j is.


@dataclass(frozen=True, eq=False)
class BlockStates:
    """A grid whose states are known at all samples of blocks of a few steps."""

    step: ExactStep
    width: int
    scalar_powers: Complex
    """P⁰ … P^{K−1} of the scalars."""
    dense_powers: tuple[Array, ...]
    """The same of the dense blocks, (K × n × n) each."""
    from_inputs: Matrix
    """From the inputs of a block to its states, (K m × K n)."""

    def states(self, u: Array, w: Array) -> Array:
        """Packed z `(blocks, K, n)` from inputs `(blocks, K, m)` and packed w `(blocks, n)` at the beginnings."""
        n_blocks, K, m = u.shape
        states = (u.reshape(n_blocks, K * m) @ self.from_inputs).reshape(n_blocks, K, w.shape[-1])
        v, parts = unpack_states(self.step.system, w)
        turned = [_apply_powers(powers, part) for powers, part in zip(self.dense_powers, parts, strict=True)]
        states += pack_states(self.step.system, v[:, None] * self.scalar_powers, turned)
        return states


def prepare_block_states(step: ExactStep, width: int) -> BlockStates:
    """Prepare blocks of so many steps."""
    into = step.into(step.Gamma, width).transpose(0, 2, 1)
    from_inputs = block_toeplitz(np.concatenate([step.shift[None], into[:-1]]))
    dense = tuple(matrix_powers(P, width) for P in step.dense)
    return BlockStates(step, width, step.scalar_powers(np.arange(width)), dense, from_inputs)


def _apply_powers(powers: Array, states: Array) -> Array:
    """P^j z for all powers `(K, n, n)` and states `(blocks, n)`, `(blocks, K, n)`."""
    K, n, _ = powers.shape
    return np.asarray(states @ powers.reshape(K * n, n).T).reshape(len(states), K, n)


# MERGED ltinet.simulation.time_blocks
# States at evenly spaced samples, one piece of time after the other.


@dataclass(frozen=True, eq=False)
class NestedBlocks:
    """The blocks of the outputs, narrower ones within them, and the states within those."""

    wide: TimeBlocks
    narrow: TimeBlocks
    inside: BlockStates


@dataclass(frozen=True, eq=False)
class UniformStepper:
    """States along samples u `(batch, T, m)`, from packed states z0 `(batch, n)` at the first."""

    grid: SingleSteps
    blocks: NestedBlocks | None
    """None where outputs go by single steps too."""
    u: Array
    z0: Array

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and w at the next one; at the first sample the state itself is known."""
        if first > 0:
            return self._states(self.u[:, first:stop], before)
        states = np.empty((len(self.u), stop, before.shape[-1]))
        states[:, 0] = before
        after = self.grid.step.after_first(before, self.u[:, 0])
        if stop > 1:
            states[:, 1:], after = self._states(self.u[:, 1:stop], after)
        return states, after

    def _states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Whole wide blocks first, then narrow ones, then what is left over."""
        if self.blocks is None:
            return self.grid.states(u, w)
        states, begin = np.empty((*u.shape[:2], w.shape[-1])), 0
        for blocks in (self.blocks.wide, self.blocks.narrow):
            own = slice(begin, begin + (u.shape[1] - begin) // blocks.width * blocks.width)
            if own.stop > own.start:
                starts, w = blocks.starts(u[:, own], w)
                states[:, own] = self._inside(u[:, own], starts)
            begin = own.stop
        if begin < u.shape[1]:
            states[:, begin:], w = self.grid.states(u[:, begin:], w)
        return states, w

    def _inside(self, u: Array, starts: Array) -> Array:
        """States at all samples of blocks, from those at their beginnings; wide blocks by narrow ones."""
        assert self.blocks is not None  # noqa: S101 - the caller has looked
        narrow, inside = self.blocks.narrow, self.blocks.inside
        n, n_blocks = starts.shape[-1], starts.shape[0] * starts.shape[1]
        if not n_blocks:  # a batch of none
            return np.zeros((*u.shape[:2], n))
        width = u.shape[0] * u.shape[1] // n_blocks
        each, w = u.reshape(n_blocks, width, u.shape[-1]), starts.reshape(n_blocks, n)
        if width > narrow.width:
            within, _ = narrow.starts(each, w)
            n_narrow = n_blocks * width // narrow.width
            each, w = each.reshape(n_narrow, narrow.width, u.shape[-1]), within.reshape(n_narrow, n)
        return inside.states(each, w).reshape(*u.shape[:2], n)
