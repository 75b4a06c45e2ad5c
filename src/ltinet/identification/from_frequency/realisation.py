"""A model while it is being fitted: real A, B, C, D, with A as diagonal blocks, and its response."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.decompose.block_diagonal import block_diagonalize


@dataclass(frozen=True)
class Realisation:
    """H(s) = C (s − A)⁻¹ B + D, where A has diagonal blocks of these sizes and is zero elsewhere."""

    A: Array
    B: Array
    C: Array
    D: Array
    sizes: tuple[int, ...]

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.A)

    @property
    def poles(self) -> Complex:
        """Eigenvalues, block after block."""
        parts = [np.linalg.eigvals(self.A[block][:, block]) for block in self.blocks()]
        return np.concatenate([*parts, np.empty(0)]).astype(np.complex128)

    def dual(self) -> "Realisation":
        """The system of the transposed response, with inputs and outputs exchanged."""
        return Realisation(self.A.T, self.C.T, self.B.T, self.D.T, self.sizes)

    def blocks(self) -> list[NDArray[np.intp]]:
        """The states of every block."""
        return np.split(np.arange(self.n_states), np.cumsum(self.sizes)[:-1]) if self.sizes else []

    def response(self, s: Complex) -> Complex:
        """H at many places, (len(s), p, m)."""
        return np.asarray(self.C @ self.state_responses(s) + self.D)

    def state_responses(self, s: Complex) -> Complex:
        """(s − A)⁻¹ B, (len(s), n, m)."""
        return _solve_blocks(self.A, self.B, s, self.sizes)

    def output_responses(self, s: Complex) -> Complex:
        """C (s − A)⁻¹, (len(s), p, n)."""
        return _solve_blocks(self.A.T, self.C.T, s, self.sizes).transpose(0, 2, 1)


def in_blocks(A: Array, B: Array, C: Array, D: Array) -> Realisation:
    """Any realisation in well conditioned blocks: single poles, pairs, and what cannot be told apart together."""
    if len(A) == 0:
        return Realisation(A, B, C, D, ())
    form = block_diagonalize(A)
    return Realisation(np.array(form.A), form.T_inv @ B, C @ form.T, D, form.block_sizes)


def _solve_blocks(A: Array, B: Array, s: Complex, sizes: Sequence[int]) -> Complex:
    X = np.empty((len(s), *B.shape), dtype=np.complex128)
    starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.empty(0, dtype=np.intp)
    for size in set(sizes):
        states = starts[np.array(sizes) == size][:, None] + np.arange(size)
        inner = A[states[:, :, None], states[:, None, :]]
        solved = _inverses(inner, s) @ B[states]
        X[:, states.ravel()] = solved.reshape(len(s), -1, B.shape[1])
    return X


def _inverses(blocks: Array, s: Complex) -> Complex:
    """(s − A_b)⁻¹ for every place and every block of one size; closed forms up to pairs."""
    shifted = s[:, None, None, None] * np.eye(blocks.shape[-1]) - blocks
    if blocks.shape[-1] == 1:
        return np.asarray(1.0 / shifted)
    if blocks.shape[-1] == 2:
        a, b, c, d = shifted[..., 0, 0], shifted[..., 0, 1], shifted[..., 1, 0], shifted[..., 1, 1]
        adjugate = np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)
        return np.asarray(adjugate / (a * d - b * c)[..., None, None])
    return np.asarray(np.linalg.inv(shifted))
