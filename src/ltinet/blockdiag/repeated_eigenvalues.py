"""Treatment of repeated eigenvalues that rounding has perturbed in a Schur form.

Rounding changes an entry of the Schur form by about eps · (|Z|ᵀ|A||Z|)_ij. For eigenvalues closer than this, distances,
imaginary parts and couplings carry no information about A. If kept, they would decide which neurons share a layer, and
weights would grow as their reciprocals. Pairs with an imaginary part at this level become two real eigenvalues,
eigenvalues at this level become zero, and a semisimple repeated eigenvalue λ becomes one diagonal block λ·I whose
basis is chosen so that as few of its neurons as possible are coupled to others. Every change is a backward error of
the size of those of the Schur form itself.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr

from ltinet._util.double_double import commutator
from ltinet._util.floating_point import EPS, summation_tolerance
from ltinet.blockdiag.schur import SchurForm, reorder
from ltinet.systems.matrices import Matrix

# Rounding error of LAPACK at a single entry of R, relative to |Z|ᵀ|A||Z| there. Of 400 double eigenvalues and integrators of
# random matrices 250, 38 and 0 are missed with 0.1, 1 and 10 eps, and no pair or eigenvalue of 1e-10 is taken for one up
# to 1e4 eps (python -m benchmarks.constants _ENTRY_ROUNDING).
_ENTRY_ROUNDING = 10.0 * EPS

# A coupling is noise if the first-order correction removes it but for this fraction, which second-order terms may leave.
_MAX_SECOND_ORDER_FRACTION = 1e-3

# Factor on the rounding bound of couplings between neurons that were moved: swaps spread the errors of other entries. Of 300
# semisimple eigenvalues 217, 2 and 0 are missed with 0.01, 0.1 and 1 to 1e4; of 300 with couplings from 1e-10 on, none is
# taken for semisimple up to 100, and 19 are with 1e4 (python -m benchmarks.constants _SWAP_AMPLIFICATION).
_SWAP_AMPLIFICATION = 10.0


def remove_noise(schur: SchurForm, A: Matrix) -> SchurForm:
    """Return the Schur form of A with noise pairs split into two real eigenvalues, and noise eigenvalues set to zero.

    Of a pair that is complex because of rounding errors only, the smaller off-diagonal entry is removed; the other one
    is a coupling. Removed entries are below the rounding bound of their block, a backward error like those of the Schur
    form itself. Cost O(n²).
    """
    largest = float(np.linalg.norm(A))  # no entry of |Z|ᵀ|A||Z| exceeds ‖A‖_F
    return _zero_tiny_eigenvalues(_split_noise_pairs(schur, A, largest), A, largest)


def group_repeated_eigenvalues(schur: SchurForm, A: Matrix) -> SchurForm:
    """Return the Schur form of A with each semisimple repeated real eigenvalue as one block λ·I.

    The basis of its eigenvectors is free, and is chosen such that most of them are not coupled to other neurons.
    Defective eigenvalues (Jordan chains) stay as they are. Cost O(n²) where all eigenvalues are distinct, else O(n²)
    for each that is repeated.
    """
    groups = [schur.eigenvalues.real[members] for members in _equal_eigenvalues(schur, A)]
    grouped = _group_states(schur, groups, A)
    if grouped is None and len(groups) > 1:  # one is defective, or swaps for others perturbed it
        groups = [values for values in groups if _group_states(schur, [values], A)]
        grouped = _group_states(schur, groups, A)
    if grouped is None:
        return schur
    R, Z = grouped.R, grouped.Z
    for values in groups:
        states = _state_slice(grouped, values)
        R[states, states] = float(np.mean(values)) * np.eye(len(values))
        _concentrate_couplings(R, Z, states)
    return SchurForm(R, Z)


def _product_magnitudes(Z: Matrix, A: Matrix) -> Matrix:
    """Return |Z|ᵀ|A||Z| for some of the Schur vectors: eps times this bounds the rounding errors of ZᵀA Z."""
    magnitude = np.abs(Z)
    return np.asarray(magnitude.T @ (np.abs(A) @ magnitude))


def _split_noise_pairs(schur: SchurForm, A: Matrix, largest: float) -> SchurForm:
    """Split each pair [[a, b], [c, a]] that is complex because of rounding errors only into two real eigenvalues.

    These are pairs with √|bc| at the rounding level of the block, whose reciprocal would be a weight; and pairs with
    the smaller of b and c at the rounding level of its entry, as rounding perturbs half of all Jordan chains of two.
    """
    R, Z = schur.R, schur.Z
    at, omegas = schur.pairs, schur.eigenvalues.imag[schur.sizes == 2]
    smaller = np.minimum(np.abs(R[at, at + 1]), np.abs(R[at + 1, at]))
    doubtful = (omegas <= summation_tolerance(len(A)) * largest) | (smaller <= _ENTRY_ROUNDING * largest)
    for i, omega in zip(at[doubtful].tolist(), omegas[doubtful].tolist(), strict=True):
        block, is_lower_larger = slice(i, i + 2), abs(R[i + 1, i]) > abs(R[i, i + 1])
        magnitudes = _product_magnitudes(Z[:, block], A)
        (lower, level) = (R[i, i + 1], magnitudes[0, 1]) if is_lower_larger else (R[i + 1, i], magnitudes[1, 0])
        if omega > summation_tolerance(len(A)) * magnitudes.max() and abs(lower) > _ENTRY_ROUNDING * level:
            continue
        if (
            is_lower_larger
        ):  # the larger entry is the coupling: exchange the two states so that it is above the diagonal
            R[:, block], Z[:, block] = R[:, block][:, ::-1].copy(), Z[:, block][:, ::-1].copy()
            R[block] = R[block][::-1].copy()
        R[i + 1, i] = 0.0
    return SchurForm(R, Z) if doubtful.any() else schur


def _zero_tiny_eigenvalues(schur: SchurForm, A: Matrix, largest: float) -> SchurForm:
    """Set real eigenvalues at the level of rounding errors to zero: integrators have exactly no stiffness."""
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


def _equal_eigenvalues(schur: SchurForm, A: Matrix) -> list[NDArray[np.intp]]:
    """Return groups of neurons with real eigenvalues that are equal up to rounding."""
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


def _group_states(schur: SchurForm, groups: list[NDArray[np.float64]], A: Matrix) -> SchurForm | None:
    """Return the Schur form with the neurons of each group adjacent; None where a group is coupled and so defective."""
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


def _has_all_vectors(schur: SchurForm, values: NDArray[np.float64], A: Matrix) -> bool:
    """Return whether the block of a group of adjacent neurons is a multiple of the identity up to rounding."""
    states = _state_slice(schur, values)
    identity = np.eye(len(values), dtype=bool)
    noise = summation_tolerance(len(A)) * _product_magnitudes(schur.Z[:, states], A)
    # Each coupling is compared with the bound of its own entry: entries that A holds exactly may be small.
    allowed = np.where(identity, noise.diagonal().max(), _SWAP_AMPLIFICATION * noise)
    deviation = np.abs(schur.R[states, states] - np.where(identity, np.mean(values), 0.0))
    couples = deviation > allowed
    if not couples.any():
        return True
    if couples.diagonal().any() or deviation.max() > summation_tolerance(len(A)) * float(np.linalg.norm(A)):
        return False
    corrected = schur.R[states, states] + _correction(schur, states, A)
    return bool((np.abs(corrected[couples]) <= _MAX_SECOND_ORDER_FRACTION * deviation[couples]).all())


def _correction(schur: SchurForm, states: slice, A: Matrix) -> Matrix:
    """Return the first-order correction of a diagonal block of R for the rounding errors of the Schur form.

    A Z = Z (R + E) with E of rounding size, computed in extended precision. With the right and left vectors [Y; I; 0]
    and [0, I, M] of a block of R, the block of R + E differs by [0, I, M] E [Y; I; 0] and terms of second order in E.
    """
    R, Z = schur.R, schur.Z
    before, after = slice(0, states.start), slice(states.stop, len(R))
    E = Z.T @ commutator(A, Z, R)
    right, left = E[:, states].copy(), np.eye(len(R))[states]
    if states.start:
        right -= E[:, before] @ _solve_sylvester(R[before, before], R[states, states], R[before, states])
    if states.stop < len(R):
        left[:, after] = _solve_sylvester(R[states, states], R[after, after], R[states, after])
    return np.asarray(left @ right)


def _members(schur: SchurForm, values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the real neurons with these eigenvalues, which swaps keep bit for bit."""
    return np.asarray(((schur.sizes == 1) & (schur.eigenvalues.real[:, None] == values).any(axis=1)).nonzero()[0])


def _state_slice(schur: SchurForm, values: NDArray[np.float64]) -> slice:
    """Return the states of a group of adjacent neurons."""
    first = int(schur.starts[_members(schur, values)[0]])
    return slice(first, first + len(values))


def _concentrate_couplings(R: Matrix, Z: Matrix, states: slice) -> None:
    """Rotate the eigenvectors of a repeated eigenvalue, in place, to couple as few of its neurons as possible.

    Its right vectors are [Y; I; 0], its left vectors [0, I, M]. The last direction is the one for which [Yᵀ, M] is
    largest at one neuron, the one before it the next, and so on: a QR factorization with pivoting, columns reversed.
    """
    before, after = slice(0, states.start), slice(states.stop, len(R))
    above, right = R[before, states], R[states, after]
    Y, M = above, right
    if above.size:
        Y = _solve_sylvester(R[before, before], R[states, states], above)
    if right.size:
        M = _solve_sylvester(R[states, states], R[after, after], right)
    rotation = qr(np.hstack([Y.T, M]), pivoting=True, check_finite=False)[0][:, ::-1]
    R[before, states], Z[:, states] = above @ rotation, Z[:, states] @ rotation
    R[states, after] = rotation.T @ right


def _solve_sylvester(left: Matrix, right: Matrix, product: Matrix) -> Matrix:
    """Solve left · X − X · right = product for quasi-triangular matrices."""
    X, scale, _ = lapack.dtrsyl(left, right, product, isgn=-1)
    return np.asarray(X / scale)
