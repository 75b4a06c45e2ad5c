"""Coupled blocks in the form that keeps stability, whatever is learnt: quasi triangular, pairs as [[a, b], [c, a]].

Eigenvalues then stand on the diagonal, a for reals and a ± i√(−bc) for pairs, and couplings above it are free.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array

_NO_SMALLER = 2.0**-10  # of the rates: couplings below need no other units


class StandardBlock(NamedTuple):
    """F = basis⁻¹ · given · basis in standard form, and where each real or pair begins on its diagonal.

    Without any such places F is taken as it is: all its entries are couplings.
    """

    F: Array
    basis: Array
    inverse: Array
    starts: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """1 for a real, 2 for a pair."""
        stops = (*self.starts[1:], len(self.F))[: len(self.starts)]
        return tuple(stop - start for start, stop in zip(self.starts, stops, strict=True))


def standard_block(F: Array) -> StandardBlock:
    """A block in standard form; one that has it already is not touched, so that it keeps its digits."""
    identity = np.eye(len(F))
    if not _is_quasi_triangular(F):
        balanced, (scale, _) = linalg.matrix_balance(F, permute=False, separate=True)  # by powers of two
        schur, Z = linalg.schur(balanced, output="real")
        return _in_best_units(StandardBlock(schur, scale[:, None] * Z, Z.T / scale, _starts(schur)))
    basis = identity
    for start in _starts(F):
        own = slice(start, start + 2)
        piece = F[own, own]
        if not _is_standard(piece):
            turn = np.array(identity)
            turn[own, own] = linalg.schur(piece, output="real")[1]
            F, basis = turn.T @ F @ turn, basis @ turn
            F[own, own] = linalg.schur(piece, output="real")[0]  # exactly standard
    return _in_best_units(StandardBlock(np.array(F), basis, basis.T, _starts(F)))


def _in_best_units(block: StandardBlock) -> StandardBlock:
    """The block with states in units, powers of two, in which no coupling is much larger than the rates.

    An exponential is right relative to the norm of its matrix: a coupling of a million times the rates would cost six
    digits of these.
    """
    sizes = np.abs(block.F)
    rate = float(sizes.diagonal().max(initial=0.0)) or float(sizes.max(initial=0.0)) or 1.0
    # Without a way back a coupling could be made as small as one likes; small ones stay so.
    scale = linalg.matrix_balance(np.maximum(sizes, _NO_SMALLER * rate), permute=False, separate=True)[1][0]
    F = block.F / scale[:, None] * scale
    return StandardBlock(F, block.basis * scale, block.inverse / scale[:, None], block.starts)


def _is_quasi_triangular(F: Array) -> bool:
    below = np.diagonal(F, -1) != 0.0
    return not np.tril(F, -2).any() and not bool((below[1:] & below[:-1]).any())


def _starts(F: Array) -> tuple[int, ...]:
    """Where reals and pairs begin on the diagonal of a quasi upper triangular matrix."""
    second = np.flatnonzero(np.diagonal(F, -1) != 0.0) + 1
    return tuple(np.setdiff1d(np.arange(len(F)), second).tolist())


def _is_standard(piece: Array) -> bool:
    """Whether a diagonal piece is a real, reals, or a pair [[a, b], [c, a]] with bc < 0."""
    if len(piece) < 2 or piece[1, 0] == 0.0:
        return True
    return bool(piece[0, 0] == piece[1, 1] and np.sign(piece[0, 1]) * np.sign(piece[1, 0]) < 0.0)
