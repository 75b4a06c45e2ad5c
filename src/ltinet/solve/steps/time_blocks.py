"""Evenly spaced samples in blocks of K steps, so that nearly everything is a few matrix products.

The state is kept only at the ends of blocks:

    block ends     w_b = P^K w_{b−1} + [P^{K−1}Γ … Γ] u_b         a product, and a recurrence over T/K steps
    outputs        Y = [W_before, U_blocks] · weights             with one row for each block

The weights of the state before a block are [C P⁰ … C P^{K−1}]ᵀ, those of its inputs a block Toeplitz matrix of Markov
parameters. Half of that is zero: the first half of the outputs does not depend on the second half of the inputs.
States that have faded after K steps need no recurrence: what they bring into a block is a product with the inputs of
the block before. In stiff systems these are most of them.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.steps.lasting import FADED, Indices, sort_states
from ltinet.solve.steps.one_step import OneStep
from ltinet.solve.steps.recurrence import LARGE, Decay, accumulate, size
from ltinet.solve.steps.sharing import in_groups
from ltinet.solve.steps.single_steps import outputs_from

_WORTH_HALVING = 32  # steps: products with fewer columns gain nothing from leaving out zeros
_AT_ONCE = 2**17  # numbers: members of a batch that are worked on together, to stay in the cache


@dataclass(frozen=True)
class TimeBlocks:
    """A grid whose states are known at the ends of blocks only."""

    step: OneStep
    width: int
    """K, the number of steps in a block."""
    weights: tuple[Matrix, ...]
    """From the lasting states before a block and its inputs, as far as they matter, to each half of its outputs."""
    kept: Indices
    """Packed states of which something is left after a block."""
    into_kept: Matrix
    """From the inputs of a block to what they add to these states at its end, (K m × kept)."""
    decay: Decay
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

        in_groups(work, batch, at_once=_AT_ONCE // (n_blocks * len(self.weights[-1]) + 1), threads=threads)
        return y[:, :n_times]

    def outputs_from(self, z: Array, u: Array, *, threads: int = 1) -> Array:
        """The same from packed states at the first sample."""
        return outputs_from(self, z, u, threads=threads)

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
        accumulate(kept, states, self.decay)
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
            accumulate(states[:, 1:], states[:, 0], self.decay)
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


def time_blocks(step: OneStep, width: int, *, fades_below: float = FADED) -> TimeBlocks | None:
    """Prepare a grid of blocks of K steps, K a power of two; None if a state overflows within a block.

    States of which less than `fades_below` is left after a block are not taken any further.
    """
    decay = step.decay(width)
    if not max(size(decay.pairs), size(decay.reals), *map(size, decay.blocks)) < LARGE:
        return None
    into, out = step.into(step.Gamma, width)[::-1], step.out_of(width)
    markov = np.concatenate([step.direct[None], out[:-1] @ into[-1].T])
    into_state = into.reshape(-1, into.shape[-1])
    from_state = out.transpose(2, 0, 1).reshape(into.shape[-1], -1)
    kept, faded, decay = sort_states(decay, fades_below=fades_below)
    into_faded, from_faded = into_state[:, faded], from_state[faded]
    return TimeBlocks(
        step=step,
        width=width,
        weights=_halves(np.vstack([from_state[kept], toeplitz(markov)]), n_kept=len(kept), width=width),
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
    if width < _WORTH_HALVING or width % 2:
        return (weights,)
    n_needed, middle = n_kept + (len(weights) - n_kept) // 2, weights.shape[1] // 2
    return np.ascontiguousarray(weights[:n_needed, :middle]), np.ascontiguousarray(weights[:, middle:])


def toeplitz(markov: Array) -> Matrix:
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
