"""State-space realisations of transfer functions, given as polynomials or as zeros, poles and gain.

The states are the realisation's own, not the user's. Coefficients are taken as they are: SciPy's `tf2ss` drops leading
numerator coefficients below 1e-14 in absolute size, which is wrong for a system measured in small units.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix, MatrixLike, as_real_matrix
from ltinet.model.system_matrices import SystemMatrices
from ltinet.tolerances import rounding


def realise_polynomials(num: MatrixLike, den: MatrixLike) -> SystemMatrices:
    """Realise num(s)/den(s), one input and one output per row of `num`, highest power first, in controller form.

    Raises:
        InvalidSystemError: the denominator is zero or of lower degree than a numerator.
    """
    numerators = as_real_matrix(num, "num", vector="row")
    denominator = as_real_matrix(den, "den", vector="row")
    if len(denominator) != 1:
        raise InvalidSystemError(
            f"den has shape {denominator.shape}; pass one polynomial, the highest power first, or, if these are "
            "matrices A and B, all of (A, B, C)"
        )
    if not denominator.any():
        raise InvalidSystemError("den is zero; pass a denominator with a coefficient other than 0")
    a = np.trim_zeros(denominator[0], "f")
    n = len(a) - 1
    excess = max(numerators.shape[1] - len(a), 0)
    if numerators[:, :excess].any():
        raise InvalidSystemError(
            f"the transfer function is improper: num has degree {_degree(numerators)}, den only {n}, so the output "
            "would need derivatives of the input; pass a proper one, for example with a fast pole added to den"
        )
    c = np.zeros((len(numerators), n + 1))
    kept = numerators[:, excess:]
    c[:, n + 1 - kept.shape[1] :] = kept
    A, B = np.eye(n, k=-1), np.eye(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # a coefficient beyond float64 is refused by SystemMatrices
        c, a = c / a[0], a / a[0]
        C, D = c[:, 1:] - c[:, :1] * a[1:], c[:, :1]
    A[:1] = -a[1:]
    return SystemMatrices(A, B, C, D)


def realise_polynomial_matrix(
    num: Sequence[Sequence[MatrixLike]], den: Sequence[Sequence[MatrixLike]]
) -> SystemMatrices:
    """Realise the transfer matrix with entries num[i][j]/den[i][j] from input j to output i.

    A column whose entries share one denominator is realised once, any other entry by entry, and the columns stand side
    by side. The result is correct but not minimal: common poles of different entries appear once for each.
    """
    columns = [
        _realise_column([row[j] for row in num], [row[j] for row in den], where=f"input {j}")
        for j in range(len(num[0]))
    ]
    return _side_by_side(columns)


def realise_zpk(zeros: NDArray[np.complex128], poles: NDArray[np.complex128], gain: float) -> SystemMatrices:
    """Realise gain·Π(s − zeros)/Π(s − poles), one input and one output, as a chain of sections of order two.

    Multiplying out the polynomials would lose the poles to rounding from about twenty of them on; the chain keeps each.

    Raises:
        InvalidSystemError: there are more zeros than poles, or complex ones without their conjugates.
    """
    if len(zeros) > len(poles):
        raise InvalidSystemError(
            f"the transfer function is improper: {len(zeros)} zeros but {len(poles)} poles; pass at least as many poles"
        )
    denominators = _quadratic_factors(poles, "poles")
    numerators = _quadratic_factors(zeros, "zeros")
    numerators += [np.ones(1)] * (len(denominators) - len(numerators))
    system = realise_polynomials([[gain]], [1.0])
    for num, den in zip(numerators, denominators, strict=True):
        system = _in_series(system, realise_polynomials(num, den))
    return system


def _degree(numerators: Matrix) -> int:
    return int(numerators.shape[1] - 1 - np.flatnonzero(numerators.any(axis=0))[0])


def _realise_column(nums: Sequence[MatrixLike], dens: Sequence[MatrixLike], where: str) -> SystemMatrices:
    try:
        entries = [realise_polynomials(num, den) for num, den in zip(nums, dens, strict=True)]
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{where}: {error}") from None
    first = entries[0]
    if all(
        np.array_equal(entry.A, first.A) for entry in entries
    ):  # one denominator: one set of states serves every output
        C, D = np.vstack([entry.C for entry in entries]), np.vstack([entry.D for entry in entries])
        return SystemMatrices(first.A, first.B, C, D)
    return SystemMatrices(
        block_diag(*(entry.A for entry in entries)),
        np.vstack([entry.B for entry in entries]),
        block_diag(*(entry.C for entry in entries)),
        np.vstack([entry.D for entry in entries]),
    )


def _side_by_side(columns: Sequence[SystemMatrices]) -> SystemMatrices:
    """One input each, outputs added."""
    return SystemMatrices(
        block_diag(*(column.A for column in columns)),
        block_diag(*(column.B for column in columns)),
        np.hstack([column.C for column in columns]),
        np.hstack([column.D for column in columns]),
    )


def _in_series(first: SystemMatrices, second: SystemMatrices) -> SystemMatrices:
    """Feed the output of `first` to `second`."""
    A = np.block([[first.A, np.zeros((first.n_states, second.n_states))], [second.B @ first.C, second.A]])
    B = np.vstack([first.B, second.B @ first.D])
    return SystemMatrices(A, B, np.hstack([second.D @ first.C, second.C]), second.D @ first.D)


def _quadratic_factors(roots: NDArray[np.complex128], name: str) -> list[Matrix]:
    """Real polynomials of degree two, and one of degree one at the end if the number of roots is odd."""
    tolerance = rounding(len(roots)) * np.abs(roots)
    is_real = np.abs(roots.imag) <= tolerance
    real = np.sort(roots[is_real].real)
    upper, lower = roots[~is_real & (roots.imag > 0)], list(roots[~is_real & (roots.imag < 0)])
    factors = []
    for root in upper:
        partner = min(lower, key=lambda other: abs(other - root.conjugate()), default=np.complex128(np.nan))
        if not abs(partner - root.conjugate()) <= rounding(len(roots)) * abs(root):
            break
        lower.remove(partner)
        factors.append(np.array([1.0, -2.0 * root.real, abs(root) ** 2]))
    if lower or len(factors) != len(upper):
        raise InvalidSystemError(
            f"{name} has complex entries without their conjugates; a real system has both of each pair"
        )
    factors += [np.array([1.0, -(one + other), one * other]) for one, other in zip(real[::2], real[1::2], strict=False)]
    return factors + ([np.array([1.0, -real[-1]])] if len(real) % 2 else [])
