"""Realization of rational functions: polynomials, and zeros, poles and gain, as well-scaled minimal systems.

Polynomials num(s)/den(s) become a companion matrix (controller form). Its entries are the coefficients themselves, each
rounded once in the division by the leading coefficient aₙ, and the states are scaled by powers of two, which rounds
nothing. With d = bₙ/aₙ the feedthrough, the function of the rounded matrices differs from num/den by a relative error
of at most a few eps times

    κ(s) = (Σ (|b_k| + |d a_k|) |s|ᵏ) / |num(s)| + (Σ |a_k| |s|ᵏ) / |den(s)|,

the condition number of the function with respect to its coefficients, where b_k − d a_k is what C stores. Roots are not
computed: those of polynomials of degree 20 may be known to one digit only, while the coefficients are exact.

Zeros and poles become a chain of sections of order one and two. A pair σ ± jω is the block [[σ, −ω], [ω, σ]] and a real
pole is its own block, so that A has exactly the poles given; the polynomials are not multiplied out. Each section
stores what its zero differs from its pole, p − z, so that zeros are paired with their nearest poles. The relative error
is a few eps times the sum over sections of (|s − p| + |p − z|)/|s − z|.

Minimal systems: states that are not observable or not controllable are removed by orthogonal staircases with ranks
decided at 10·n·eps of the norm (`rounding_tolerance`). The smaller system replaces the larger one only if its transfer
function is the same at 2n + 1 points up to the rounding errors of an evaluation, so that no state that matters is lost
where entries differ by many decades.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, lapack

from ltinet._util.floating_point import Complex, rounding_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, MatrixLike, as_real_matrix
from ltinet.systems.system_matrices import SystemMatrices

Arrays = tuple[Matrix, Matrix, Matrix, Matrix]
"""Matrices A, B, C and D."""

# Polynomials


def realize_polynomials(num: MatrixLike, den: MatrixLike) -> SystemMatrices:
    """Realize num(s)/den(s) in controller form, with one input and one output per row of `num`, highest power first.

    The states are not scaled. Raises InvalidSystemError if the denominator is zero or of lower degree than a numerator.
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
        degree = numerators.shape[1] - 1 - np.flatnonzero(numerators.any(axis=0))[0]
        raise InvalidSystemError(
            f"the transfer function is improper: num has degree {degree}, den only {n}, so the output "
            "would need derivatives of the input; pass a proper one, for example with a fast pole added to den"
        )
    c = np.zeros((len(numerators), n + 1))
    trimmed = numerators[:, excess:]
    c[:, n + 1 - trimmed.shape[1] :] = trimmed
    A, B = np.eye(n, k=-1), np.eye(n, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # SystemMatrices refuses overflows
        c, a = c / a[0], a / a[0]
        C, D = c[:, 1:] - c[:, :1] * a[1:], c[:, :1]
    A[:1] = -a[1:]
    return SystemMatrices(A, B, C, D)


def realize_column(nums: Sequence[MatrixLike], dens: Sequence[MatrixLike], where: str) -> SystemMatrices:
    """Realize one column of a transfer matrix: entries with equal denominators share their states."""
    try:
        entries = [realize_polynomials(num, den) for num, den in zip(nums, dens, strict=True)]
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{where}: {error}") from None
    groups: list[list[int]] = []
    for row, entry in enumerate(entries):
        same = next((group for group in groups if np.array_equal(entries[group[0]].A, entry.A)), None)
        if same is None:
            groups.append([row])
        else:
            same.append(row)
    n_outputs, parts = len(entries), []
    for group in groups:
        C = np.zeros((n_outputs, entries[group[0]].n_states))
        C[group] = np.vstack([entries[row].C for row in group])
        parts.append((entries[group[0]].A, entries[group[0]].B, C))
    A = block_diag(*(part[0] for part in parts))
    B, D = np.vstack([part[1] for part in parts]), np.vstack([entry.D for entry in entries])
    return SystemMatrices(A, B, np.hstack([part[2] for part in parts]), D)


def realize_polynomial_matrix(
    num: Sequence[Sequence[MatrixLike]], den: Sequence[Sequence[MatrixLike]]
) -> SystemMatrices:
    """Realize the transfer matrix with entries num[i][j]/den[i][j] from input j to output i, column by column.

    Entries of a column that share a denominator share its states. Poles that several denominators or columns have in
    common appear once for each; `minimal_realization` removes them.
    """
    columns = [
        realize_column([row[j] for row in num], [row[j] for row in den], where=f"input {j}") for j in range(len(num[0]))
    ]
    A, B = (block_diag(*(getattr(column, name) for column in columns)) for name in "AB")
    C, D = (np.hstack([getattr(column, name) for column in columns]) for name in "CD")
    n, m = sum(column.n_states for column in columns), len(columns)
    return SystemMatrices(A.reshape(n, n), B.reshape(n, m), C, D)


# Zeros, poles and gain


def realize_zpk(zeros: NDArray[np.complex128], poles: NDArray[np.complex128], gain: float) -> SystemMatrices:
    """Realize gain·Π(s − zeros)/Π(s − poles) with one input and one output as a chain of sections.

    Zeros that equal a pole exactly are cancelled. Raises InvalidSystemError if there are more zeros than poles, or
    complex ones without their conjugates.
    """
    if len(zeros) > len(poles):
        raise InvalidSystemError(
            f"the transfer function is improper: {len(zeros)} zeros but {len(poles)} poles; pass at least as many poles"
        )
    real_poles, pole_pairs = _split_conjugates(poles, "poles")
    real_zeros, zero_pairs = _split_conjugates(zeros, "zeros")
    _cancel_equal(real_zeros, real_poles)
    _cancel_equal(zero_pairs, pole_pairs)
    A, B, C, D = np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.ones((1, 1))
    for a, c, d in _sections(real_zeros, zero_pairs, real_poles, pole_pairs):
        # Series connection with a section whose input acts on its first state: B₂C₁ and B₂D₁ are not rounded.
        b = np.eye(len(a), 1)
        A = np.block([[A, np.zeros((len(A), len(a)))], [b @ C, a]])
        B, C, D = np.vstack([B, b * D]), np.hstack([d * C, c]), d * D
    return scale_states(SystemMatrices(A, B, gain * C, gain * D))


def realize_zpk_matrix(
    zeros: Sequence[Sequence[Complex]], poles: Sequence[Sequence[Complex]], gains: Matrix
) -> SystemMatrices:
    """Realize the transfer matrix with zeros[i][j], poles[i][j] and gains[i, j] from input j to output i."""
    entries = [
        [realize_zpk(z, p, float(k)) for z, p, k in zip(*rows, strict=True)]
        for rows in zip(zeros, poles, gains, strict=True)
    ]
    return entries[0][0] if gains.size == 1 else minimal_realization(stack_entries(entries))


def _split_conjugates(roots: NDArray[np.complex128], name: str) -> tuple[list[float], list[complex]]:
    """Return the real roots and, of each conjugate pair, the root with positive imaginary part."""
    tolerance = rounding_tolerance(len(roots)) * np.abs(roots)
    is_real = np.abs(roots.imag) <= tolerance
    upper, lower = roots[~is_real & (roots.imag > 0)], list(roots[~is_real & (roots.imag < 0)])
    for root in upper:
        partner = min(lower, key=lambda other: abs(other - root.conjugate()), default=np.complex128(np.nan))
        if not abs(partner - root.conjugate()) <= rounding_tolerance(len(roots)) * abs(root):
            lower.append(partner)
            break
        lower.remove(partner)
    if lower:
        raise InvalidSystemError(f"{name} has complex entries without their conjugates; pass both of each pair")
    return np.sort(roots[is_real].real).tolist(), upper.tolist()


def _cancel_equal(zeros: list[float] | list[complex], poles: list[float] | list[complex]) -> None:
    """Remove roots that both lists have, in place."""
    for root in list(zeros):
        if root in poles:
            zeros.remove(root)  # type: ignore[arg-type]  # both lists are of one kind
            poles.remove(root)  # type: ignore[arg-type]


def _sections(
    real_zeros: list[float], zero_pairs: list[complex], real_poles: list[float], pole_pairs: list[complex]
) -> list[tuple[Matrix, Matrix, float]]:
    """Return (A, C, D) of sections with B = (1, 0)ᵀ, each zero with the nearest poles that are left.

    Pairs of zeros first take pairs of poles, then two real poles; real zeros take what is nearest.
    """
    real_poles, open_pairs = list(real_poles), list(pole_pairs)
    sections = []
    for zero in sorted(zero_pairs, key=abs, reverse=True):
        if open_pairs:
            pole = min(open_pairs, key=lambda pole: abs(pole - zero))
            open_pairs.remove(pole)
            sections.append(_pair_section(pole, 2.0 * (pole.real - zero.real), _at_center(pole, zero), 1.0))
        else:
            first, second = sorted(real_poles, key=lambda pole: abs(pole - zero))[:2]
            real_poles.remove(first)
            real_poles.remove(second)
            sections.append(_two_real_poles(first, second, zero))
    zeros_of_pair: dict[int, list[float]] = {index: [] for index in range(len(open_pairs))}
    for zero in sorted(real_zeros, key=abs, reverse=True):
        pairs = [index for index, taken in zeros_of_pair.items() if len(taken) < 2]
        index = min(pairs, key=lambda index: abs(open_pairs[index] - zero), default=None)
        real = min(real_poles, key=lambda pole: abs(pole - zero), default=None)
        if real is not None and (index is None or abs(real - zero) <= abs(open_pairs[index] - zero)):
            real_poles.remove(real)
            sections.append((np.array([[real]]), np.array([[real - zero]]), 1.0))
        elif index is not None:
            zeros_of_pair[index].append(zero)
    for index, zeros in zeros_of_pair.items():
        sigma, omega = open_pairs[index].real, open_pairs[index].imag
        if len(zeros) == 2:  # N(s) = (s − z₁)(s − z₂), and N − den = g₁(s − σ) + N(σ) − ω²
            slope = (sigma - zeros[0]) + (sigma - zeros[1])
            value = (sigma - zeros[0]) * (sigma - zeros[1]) - omega * omega
            sections.append(_pair_section(open_pairs[index], slope, value, 1.0))
        else:  # N(s) = (s − σ) + (σ − z), or 1
            value = sigma - zeros[0] if zeros else 1.0
            sections.append(_pair_section(open_pairs[index], float(len(zeros)), value, 0.0))
    return sections + [(np.array([[pole]]), np.array([[1.0]]), 0.0) for pole in real_poles]


def _at_center(pole: complex, zero: complex) -> float:
    """Return N(σ) − ω² for N(s) = (s − z)(s − z*) and the pole σ + jω, without cancellation between squares."""
    return (pole.real - zero.real) ** 2 + (zero.imag - pole.imag) * (zero.imag + pole.imag)


def _pair_section(pole: complex, slope: float, value: float, feedthrough: float) -> tuple[Matrix, Matrix, float]:
    """Return the section feedthrough + (slope·(s − σ) + value)/((s − σ)² + ω²).

    With A = [[σ, −ω], [ω, σ]] and B = (1, 0)ᵀ the states are (s − σ, ω)ᵀ over the denominator.
    """
    sigma, omega = pole.real, pole.imag
    return np.array([[sigma, -omega], [omega, sigma]]), np.array([[slope, value / omega]]), feedthrough


def _two_real_poles(first: float, second: float, zero: complex) -> tuple[Matrix, Matrix, float]:
    """Return the section (s − z)(s − z*)/((s − p₁)(s − p₂)).

    With A = [[p₁, 0], [1, p₂]] the states are ((s − p₂), 1)ᵀ over the denominator, and
    N − den = (p₁ + p₂ − 2 Re z)(s − p₂) + N(p₂).
    """
    slope = (first - zero.real) + (second - zero.real)
    value = (second - zero.real) ** 2 + zero.imag**2
    return np.array([[first, 0.0], [1.0, second]]), np.array([[slope, value]]), 1.0


# Scaling and minimality


def scale_states(system: SystemMatrices) -> SystemMatrices:
    """Scale the states by powers of two so that rows and columns of [[A, B], [C, 0]] have similar norms.

    All inputs and all outputs stand for one row and one column of the matrix that LAPACK `dgebal` balances.
    """
    if system.n_states == 0:
        return system
    units = _balancing_units(system.A, system.B, system.C)
    A = system.A / units[:, None] * units
    return SystemMatrices(A, system.B / units[:, None], system.C * units, system.D, dt=system.dt)


def _balancing_units(A: Matrix, B: Matrix, C: Matrix) -> NDArray[np.float64]:
    n = len(A)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = A
    matrix[:n, n] = np.abs(B).max(axis=1, initial=0.0)
    matrix[n, :n] = np.abs(C).max(axis=0, initial=0.0)
    units = np.asarray(lapack.dgebal(matrix, scale=1, permute=0)[3])
    return np.asarray(units[:n] / units[n])


def minimal_realization(system: SystemMatrices) -> SystemMatrices:
    """Return a well-scaled system with the same transfer function and without uncontrollable or unobservable states.

    A system from which nothing can be removed keeps its entries up to the scaling of its states.
    """
    scaled = scale_states(system)
    A, B, C = _controllable_part(scaled.A, scaled.B, scaled.C)
    A_t, C_t, B_t = _controllable_part(A.T, C.T, B.T)
    if len(A_t) == system.n_states:
        return scaled
    smaller = scale_states(SystemMatrices(A_t.T, B_t.T, C_t.T, system.D, dt=system.dt))
    return smaller if _have_equal_responses(scaled, smaller) else scaled


def _controllable_part(A: Matrix, B: Matrix, C: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return A, B and C on the states that inputs reach, by a staircase of orthogonal transformations.

    The staircase compresses the rows of B, then those of the part of A that leads from the states just reached to the
    others, until nothing is left or the remaining part is rounding.
    """
    n = len(A)
    noise_A, noise_B = (rounding_tolerance(n, float(np.linalg.norm(matrix))) for matrix in (A, B))
    reached, last, block, noise = 0, slice(0, 0), B, noise_B
    while reached < n:
        U, values, _ = np.linalg.svd(block)
        rank = int(np.count_nonzero(values > noise))
        if rank == 0:
            break
        A, B, C = A.copy(), B.copy(), C.copy()
        rest = slice(reached, n)
        A[rest], B[rest] = U.T @ A[rest], U.T @ B[rest]
        A[:, rest], C[:, rest] = A[:, rest] @ U, C[:, rest] @ U
        last, reached = slice(reached, reached + rank), reached + rank
        block, noise = A[reached:, last], noise_A
    return A[:reached, :reached], B[:reached], C[:, :reached]


_MAX_CHECK_POINTS = (
    65  # for time: 2n + 1 points prove equality, so that beyond 32 states it is checked at some points only
)


def _have_equal_responses(one: SystemMatrices, other: SystemMatrices) -> bool:
    """Return whether two transfer functions agree at 2n + 1 points within the rounding of their evaluation.

    A rational function of degree n is determined by so many points. They lie between the smallest and the largest
    eigenvalue in size, away from the real axis. Rounding of C (s I − A)⁻¹ B is relative to |C| |(s I − A)⁻¹| |B|.
    """
    n = one.n_states
    sizes = np.abs(np.linalg.eigvals(one.A))
    sizes = sizes[sizes > rounding_tolerance(n, float(np.max(sizes, initial=0.0)))]
    low, high = (float(sizes.min()), float(sizes.max())) if len(sizes) else (1.0, 1.0)
    radii = np.geomspace(0.5 * low, 2.0 * high, min(2 * n + 1, _MAX_CHECK_POINTS))
    points = radii * np.exp(1j * np.linspace(0.9, 1.2, len(radii)))
    H, size = _evaluate_with_size(one, points)
    reduced, _ = _evaluate_with_size(other, points)
    return bool(np.all(np.abs(H - reduced) <= rounding_tolerance(n) * size))


def _evaluate_with_size(system: SystemMatrices, points: Complex) -> tuple[Complex, NDArray[np.float64]]:
    """Return H at some points, `(K, p, m)`, and |C| |(s I − A)⁻¹| |B| + |D|."""
    resolvents = np.linalg.inv(points[:, None, None] * np.eye(system.n_states) - system.A)
    H = np.asarray(system.C @ resolvents @ system.B + system.D, dtype=np.complex128)
    return H, np.abs(system.C) @ np.abs(resolvents) @ np.abs(system.B) + np.abs(system.D)


def stack_entries(entries: Sequence[Sequence[SystemMatrices]]) -> SystemMatrices:
    """Return the system whose transfer matrix has the given systems with one input and one output as entries."""
    p, m = len(entries), len(entries[0])
    parts = [(i, j, entry) for i, row in enumerate(entries) for j, entry in enumerate(row)]
    n = sum(entry.n_states for *_, entry in parts)
    A, B, C, D = np.zeros((n, n)), np.zeros((n, m)), np.zeros((p, n)), np.zeros((p, m))
    start = 0
    for i, j, entry in parts:
        states = slice(start, start + entry.n_states)
        A[states, states], B[states, j : j + 1], C[i : i + 1, states] = entry.A, entry.B, entry.C
        D[i, j], start = entry.D[0, 0], states.stop
    return SystemMatrices(A, B, C, D)
