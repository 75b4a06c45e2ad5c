"""Treatment of repeated eigenvalues that rounding has perturbed in a Schur form.

Rounding changes an entry of the Schur form by about eps · (|Z|ᵀ|A||Z|)_ij. For eigenvalues closer than this, distances,
imaginary parts and couplings carry no information about A. If kept, they would decide which neurons share a layer, and
weights would grow as their reciprocals. Pairs with an imaginary part at this level become two real eigenvalues,
eigenvalues at this level become zero, and a semisimple repeated eigenvalue λ becomes one diagonal block λ·I whose
vectors are chosen by a fixed rule. Every change is a backward error of the size of those of the Schur form itself.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from ltinet._util.floating_point import EPS, summation_tolerance
from ltinet.blockdiag.schur import SchurForm, reorder
from ltinet.error_bounds.extended_precision import commutator
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.repeated_eigenvalues
# Repeated eigenvalues, which rounding tears apart, put together again: no couplings of noise, and vectors by a rule.
#
# What rounding can leave at an entry of a Schur form is of the size of eps · |Z|ᵀ|A||Z| there, which knows whether slow
# and fast states mix. Where eigenvalues are closer than that, their distances, their imaginary parts and the couplings
# between them say nothing about A. Left as they are they would decide which neurons share a layer, and weights would grow
# as their reciprocals.

Indices = NDArray[np.intp]
Vector = NDArray[np.float64]

# What LAPACK leaves at a single entry, relative to |Z|ᵀ|A||Z| there: an eigenvalue or the shape of a pair hangs on it.
_ENTRY_ROUNDING = 10.0 * EPS

# Of a coupling that is noise nothing is left beside what rounding did; this much may be of second order.
_SECOND_ORDER_SHARE = 1e-3

# Swaps bring noise of one entry to others: by so much more may couplings of moved neurons be noise.
_SWAP_AMPLIFICATION = 10.0


def remove_noise(schur: SchurForm, A: Matrix) -> SchurForm:
    """The Schur form of A with pairs of noise as two real eigenvalues, and eigenvalues of noise as zero.

    Of a pair that is one for rounding errors only, the smaller off-diagonal entry goes; the other is a coupling. What
    goes is below the rounding bound of its block, a backward error like those of the Schur form itself. Cost O(n²).
    """
    largest = float(np.linalg.norm(A))  # no entry of |Z|ᵀ|A||Z| exceeds ‖A‖_F
    return _zero_tiny_eigenvalues(_split_noise_pairs(schur, A, largest), A, largest)


def group_repeated_eigenvalues(schur: SchurForm, A: Matrix) -> SchurForm:
    """The Schur form of A with each real eigenvalue that has as many vectors as it is repeated as one block λ·I.

    Its vectors can be chosen freely, and are: most of them lean on no other neuron, the last ones carry it all. Where
    vectors are missing (Jordan chains) all stays as it is. Cost O(n²) where all eigenvalues are distinct, else O(n²)
    for each that is not.
    """
    groups = [schur.eigenvalues.real[members] for members in _equal_eigenvalues(schur, A)]
    together = _group_states(schur, groups, A)
    if together is None and len(groups) > 1:  # one that lacks vectors, or swaps for others that blurred one
        groups = [values for values in groups if _group_states(schur, [values], A)]
        together = _group_states(schur, groups, A)
    if together is None:
        return schur
    R, Z = together.R, together.Z
    for values in groups:
        own = _places(together, values)
        R[own, own] = float(np.mean(values)) * np.eye(len(values))
        _turn_leaning_last(R, Z, own)
    return SchurForm(R, Z)


def _product_magnitudes(Z: Matrix, A: Matrix) -> Matrix:
    """|Z|ᵀ|A||Z| for some of the Schur vectors: eps times this is what rounding leaves at the entries of ZᵀA Z."""
    magnitude = np.abs(Z)
    return np.asarray(magnitude.T @ (np.abs(A) @ magnitude))


def _split_noise_pairs(schur: SchurForm, A: Matrix, largest: float) -> SchurForm:
    """Two real eigenvalues for each pair [[a, b], [c, a]] that is one for rounding errors only.

    That is with √|bc| at the rounding level of its block, which would be its weight's reciprocal; and with the smaller
    of b and c at that of its own entry, as rounding leaves half of all Jordan chains of two.
    """
    R, Z = schur.R, schur.Z
    at, omegas = schur.pairs, schur.eigenvalues.imag[schur.sizes == 2]
    smaller = np.minimum(np.abs(R[at, at + 1]), np.abs(R[at + 1, at]))
    doubtful = (omegas <= summation_tolerance(len(A)) * largest) | (smaller <= _ENTRY_ROUNDING * largest)
    for i, omega in zip(at[doubtful].tolist(), omegas[doubtful].tolist(), strict=True):
        own, is_upside_down = slice(i, i + 2), abs(R[i + 1, i]) > abs(R[i, i + 1])
        sizes = _product_magnitudes(Z[:, own], A)
        (lower, level) = (R[i, i + 1], sizes[0, 1]) if is_upside_down else (R[i + 1, i], sizes[1, 0])
        if omega > summation_tolerance(len(A)) * sizes.max() and abs(lower) > _ENTRY_ROUNDING * level:
            continue
        if is_upside_down:  # the larger entry is the coupling, and stands above
            R[:, own], Z[:, own] = R[:, own][:, ::-1].copy(), Z[:, own][:, ::-1].copy()
            R[own] = R[own][::-1].copy()
        R[i + 1, i] = 0.0
    return SchurForm(R, Z) if doubtful.any() else schur


def _zero_tiny_eigenvalues(schur: SchurForm, A: Matrix, largest: float) -> SchurForm:
    """Eigenvalues of the size of rounding errors as the zeros that they are: a neuron that integrates has no weight."""
    real = schur.starts[:-1][schur.sizes == 1]
    values = np.abs(schur.R[real, real])
    doubtful = real[(values <= _ENTRY_ROUNDING * largest) & (values > 0.0)]
    if len(doubtful) == 0:
        return schur
    tiny = doubtful[
        np.abs(schur.R[doubtful, doubtful]) <= _ENTRY_ROUNDING * _product_magnitudes(schur.Z[:, doubtful], A).diagonal()
    ]
    schur.R[tiny, tiny] = 0.0
    return SchurForm(schur.R, schur.Z)


def _equal_eigenvalues(schur: SchurForm, A: Matrix) -> list[Indices]:
    """Groups of neurons with real eigenvalues that noise cannot keep apart."""
    noise = summation_tolerance(len(A))
    real = (schur.sizes == 1).nonzero()[0]
    real = real[np.argsort(schur.eigenvalues.real[real], kind="stable")]
    gaps = np.diff(schur.eigenvalues.real[real]) <= noise * float(np.linalg.norm(A))
    close = real[np.append(gaps, False) | np.insert(gaps, 0, False)] if len(real) else real
    if len(close) == 0:
        return []
    values, size = schur.eigenvalues.real[close], _product_magnitudes(schur.Z[:, schur.starts[close]], A).diagonal()
    ends = (np.diff(values) > noise * np.maximum(size[1:], size[:-1])).nonzero()[0] + 1
    return [group for group in np.split(close, ends) if len(group) > 1]


def _group_states(schur: SchurForm, groups: list[Vector], A: Matrix) -> SchurForm | None:
    """The Schur form with the neurons of each group side by side; None where some are coupled, and lack vectors."""
    if not groups:
        return None
    numbers = np.arange(len(schur.sizes))
    for values in groups:
        members = _members(schur, values)
        numbers[members] = members[0]
    ordered = reorder(schur, numbers)
    if len(ordered.bounds) - 1 != len(np.unique(numbers)):  # LAPACK refused a swap
        return None
    return ordered.schur if all(_has_all_vectors(ordered.schur, values, A) for values in groups) else None


def _has_all_vectors(schur: SchurForm, values: Vector, A: Matrix) -> bool:
    """Whether a group of neurons that stand side by side is a multiple of the identity, but for noise."""
    own = _places(schur, values)
    identity = np.eye(len(values), dtype=bool)
    noise = summation_tolerance(len(A)) * _product_magnitudes(schur.Z[:, own], A)
    # Each coupling by the size of its own entry: what A holds exactly is no noise, however small it is.
    allowed = np.where(identity, noise.diagonal().max(), _SWAP_AMPLIFICATION * noise)
    off = np.abs(schur.R[own, own] - np.where(identity, np.mean(values), 0.0))
    couples = off > allowed
    if not couples.any():
        return True
    if couples.diagonal().any() or off.max() > summation_tolerance(len(A)) * float(np.linalg.norm(A)):
        return False
    left = schur.R[own, own] + _correction(schur, own, A)
    return bool((np.abs(left[couples]) <= _SECOND_ORDER_SHARE * off[couples]).all())


def _correction(schur: SchurForm, own: slice, A: Matrix) -> Matrix:
    """By how much the block of some neurons differs from that of A itself, to many digits beyond rounding.

    A Z = Z (R + E) with an E of the size of rounding. With the right and left vectors [Y; I; 0] and [0, I, M] of a
    block of R, its block in R + E is off by [0, I, M] E [Y; I; 0], and by what is of second order in E.
    """
    R, Z = schur.R, schur.Z
    before, after = slice(0, own.start), slice(own.stop, len(R))
    E = Z.T @ commutator(A, Z, R)
    right, left = E[:, own].copy(), np.eye(len(R))[own]
    if own.start:
        right -= E[:, before] @ _solved(R[before, before], R[own, own], R[before, own])
    if own.stop < len(R):
        left[:, after] = _solved(R[own, own], R[after, after], R[own, after])
    return np.asarray(left @ right)


def _members(schur: SchurForm, values: Vector) -> Indices:
    """The real neurons with these eigenvalues, which swaps keep bit for bit."""
    return np.asarray(((schur.sizes == 1) & (schur.eigenvalues.real[:, None] == values).any(axis=1)).nonzero()[0])


def _places(schur: SchurForm, values: Vector) -> slice:
    """Where the neurons of a group stand side by side."""
    first = int(schur.starts[_members(schur, values)[0]])
    return slice(first, first + len(values))


def _turn_leaning_last(R: Matrix, Z: Matrix, own: slice) -> None:
    """Turn the vectors of a repeated eigenvalue, in place, so that as few of them as possible lean on others.

    Its right vectors are [Y; I; 0], its left ones [0, I, M]. Of all directions in its space the last one takes over the
    neuron that [Yᵀ, M] is largest for, the one before that the next, and so on: a QR factorisation with pivoting.
    """
    before, after = slice(0, own.start), slice(own.stop, len(R))
    above, right = R[before, own], R[own, after]
    Y, M = above, right
    if above.size:
        Y = _solved(R[before, before], R[own, own], above)
    if right.size:
        M = _solved(R[own, own], R[after, after], right)
    turn = qr(np.hstack([Y.T, M]), pivoting=True, check_finite=False)[0][:, ::-1]
    R[before, own], Z[:, own] = above @ turn, Z[:, own] @ turn
    R[own, after] = turn.T @ right


def _solved(left: Matrix, right: Matrix, product: Matrix) -> Matrix:
    """The X of left · X − X · right = product, for quasi-triangular matrices."""
    X, scale, _ = lapack.dtrsyl(left, right, product, isgn=-1)
    return np.asarray(X / scale)
