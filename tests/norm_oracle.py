"""H₂ and H∞ norms in balls (python-flint): proofs, in which nothing of ltinet takes part.

The H∞ norm is above γ if σ_max(G) is, at some frequency; it is below γ if a stable system's Hamiltonian matrix for γ has no
eigenvalue on the imaginary axis and γ exceeds ‖D‖ (Boyd, Balakrishnan & Kabamba 1989). With many states and simple eigenvalues
sums of modes are cheaper: `is_below_everywhere` bounds the gain on intervals that cover all frequencies. Systems in discrete
time are mapped by z = (1 + w)/(1 − w), exactly.
"""

from typing import Any, NamedTuple

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx, fmpq, fmpq_mat
from scipy.sparse import issparse

BITS = 400


class BallSystem(NamedTuple):
    """A, B, C, D in balls, in continuous time."""

    A: Any
    B: Any
    C: Any
    D: Any


def _mat(values: Any) -> Any:
    values = values.toarray() if issparse(values) else np.asarray(values)
    rows, columns = np.shape(values)
    return arb_mat(rows, columns, [float(value) for value in np.ravel(values)])


def _identity(n: int) -> Any:
    return _mat(np.eye(n))


def ball_system(system: Any) -> BallSystem:
    """Matrices of a system as given, E eliminated in balls, in continuous time."""
    E, A, B = system.matrices.state_equation
    A, B = _mat(A), _mat(B)
    if E is not None:
        E = _mat(E)
        A, B = E.solve(A), E.solve(B)
    C, D = _mat(system.C), _mat(system.D)
    if system.dt is None:
        return BallSystem(A, B, C, D)
    # x = (zI − A)⁻¹B u with z = (1 + w)/(1 − w): w(I + A) x = (A − I) x + B (1 − w) u.
    one = _identity(system.n_states)
    inverse = (one + A).inv()
    G = inverse * B
    # C (zI − A)⁻¹ B = C' (wI − A')⁻¹ B' + D' with A' = (I + A)⁻¹(A − I), B' = 2 (I + A)⁻¹ G, C' = C, D' = D − C G.
    return BallSystem(inverse * (A - one), arb(2) * inverse * G, C, D - C * G)


def _eigenvalues(matrix: Any) -> list[Any]:
    """Eigenvalues whose real parts have a sign; repeated ones are roots of the exact characteristic polynomial."""
    try:
        values = list(acb_mat(matrix).eig(multiple=True))
    except ValueError:
        values = [acb(0)]
    if any(value.real.contains(0) for value in values) and all(entry.is_exact() for entry in matrix.entries()):
        return [root for root, _ in _rational(matrix).charpoly().numer().complex_roots()]
    return values


def is_stable(system: BallSystem) -> bool:
    """All eigenvalues of A are proven to have negative real parts."""
    return all(value.real < 0 for value in _eigenvalues(system.A))


def _rational(matrix: Any) -> Any:
    entries = []
    for entry in matrix.entries():
        assert entry.is_exact()
        mantissa, exponent = entry.man_exp()
        entries.append(fmpq(mantissa) * fmpq(2) ** int(exponent))
    return fmpq_mat(matrix.nrows(), matrix.ncols(), entries)


def is_above(system: BallSystem, gamma: float, omega: float) -> bool:
    """σ_max(G(jω)) ≥ γ is proven, at a frequency of continuous time; infinity for D."""
    if np.isinf(omega):
        G = acb_mat(system.D)
    else:
        n = system.A.nrows()
        pencil = acb_mat(_identity(n)) * acb(0, arb(omega)) - acb_mat(system.A)
        G = acb_mat(system.D) + acb_mat(system.C) * pencil.solve(acb_mat(system.B))
    gram = _adjoint(G) * G
    level = arb(gamma) ** 2
    if gram.nrows() == 1:
        return bool(gram[0, 0].real >= level)
    return any(value.real >= level for value in gram.eig(multiple=True))


def _adjoint(G: Any) -> Any:
    entries = [[acb(G[i, j].real, -G[i, j].imag) for i in range(G.nrows())] for j in range(G.ncols())]
    return acb_mat(entries)


def is_below(system: BallSystem, gamma: float) -> bool:
    """‖G‖∞ < γ is proven for a stable system."""
    A, B, C, D = system
    m = D.ncols()
    if all(entry == 0 for entry in D.entries()):  # γ' = 1/h ≤ γ for a double h leaves all entries of H exact
        h = np.nextafter(1.0 / gamma, np.inf)
        assert arb(1) / arb(float(h)) <= arb(gamma)
        B, gamma = B * arb(float(h)), 1.0
    R = _identity(m) * arb(gamma) ** 2 - D.transpose() * D
    if m and not all(value.real > 0 for value in acb_mat(R).eig(multiple=True)):
        return False
    R_inv = R.inv()
    upper = A + B * R_inv * D.transpose() * C
    right = B * R_inv * B.transpose()
    below = -(C.transpose() * (_identity(D.nrows()) + D * R_inv * D.transpose()) * C)
    n = A.nrows()
    H = arb_mat(2 * n, 2 * n)
    for i in range(n):
        for j in range(n):
            H[i, j], H[i, n + j], H[n + i, j], H[n + i, n + j] = upper[i, j], right[i, j], below[i, j], -upper[j, i]
    return all(not value.real.contains(0) for value in _eigenvalues(H))


def h2_square(system: BallSystem, *, discrete: Any = None) -> Any:
    """‖G‖₂² as a ball, from the modal sum; for a discrete system pass it as `discrete`."""
    A, B, C, D = (
        system if discrete is None else (_mat(part) for part in (discrete.A, discrete.B, discrete.C, discrete.D))
    )
    values, right = acb_mat(A).eig(right=True)
    modes = right.inv() * acb_mat(B)
    outputs = acb_mat(C) * right
    P, Q = modes * _adjoint(modes), _adjoint(outputs) * outputs
    total = acb(0)
    for k, one in enumerate(values):
        for j, other in enumerate(values):
            conjugate = acb(other.real, -other.imag)
            denominator = -(one + conjugate) if discrete is None else 1 - one * conjugate
            total += P[k, j] * Q[j, k] / denominator
    result = total.real
    if discrete is not None:
        result += sum((entry**2 for entry in D.entries()), arb(0))
    return result


def precision(bits: int = BITS) -> Any:
    """Context manager for the working precision."""
    return ctx.workprec(bits)


class ModalSum(NamedTuple):
    """G(s) = Σ r_k/(s − λ_k) for simple eigenvalues and D = 0, with one row r of residues for each entry of G."""

    rates: list[Any]
    residues: Any
    n_inputs: int


def modal_sum(system: BallSystem) -> ModalSum:
    """Modes of a system without feedthrough, in balls."""
    assert all(entry == 0 for entry in system.D.entries())
    rates, right = acb_mat(system.A).eig(right=True)
    B, C = right.solve(acb_mat(system.B)), acb_mat(system.C) * right
    entries = [[C[i, k] * B[k, j] for k in range(len(rates))] for i in range(C.nrows()) for j in range(B.ncols())]
    return ModalSum(rates, acb_mat(entries), B.ncols())


def _expansion(modes: ModalSum, gamma: float, omega: Any) -> list[Any]:
    """p, p' and p''/2 of p(ω) = det(γ² I − G*G) on a ball of frequencies, for one or two inputs.

    With d = 1/(jω − λ) the first coefficients of 1/(j(ω + h) − λ) are d, −j d² and −d³.
    """
    inverse = [1 / (acb(0, omega) - rate) for rate in modes.rates]
    G = modes.residues * acb_mat([[d, d * d * acb(0, -1), -(d**3)] for d in inverse])
    m = modes.n_inputs

    def product(a: list[Any], b: list[Any]) -> list[Any]:
        return [a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[0] * b[2] + a[1] * b[1] + a[2] * b[0]]

    def gram(i: int, j: int) -> list[Any]:
        total = [acb(arb(gamma) ** 2 if i == j else 0), acb(0), acb(0)]
        for row in range(0, G.nrows(), m):
            left = [acb(G[row + i, k].real, -G[row + i, k].imag) for k in range(3)]
            total = [a - b for a, b in zip(total, product(left, [G[row + j, k] for k in range(3)]), strict=True)]
        return total

    p = gram(0, 0)
    if m == 2:
        p = [a - b for a, b in zip(product(p, gram(1, 1)), product(gram(0, 1), gram(1, 0)), strict=True)]
    return [coefficient.real for coefficient in p]


def is_below_everywhere(modes: ModalSum, gamma: float, peak: float) -> bool:
    """σ_max(G(jω)) < γ is proven at all frequencies: p(ω) = det(γ² I − G*G) > 0, which is γ^2m at infinity.

    An interval is proven by p(ω) ≥ p(e) + p'(e) (ω − e) + min(0, p''/2) (ω − e)², with the point e of the interval that is
    nearest to the peak, and halved otherwise. At the peak p is almost zero, and convex around it. Beyond the last
    interval |G| is at most Σ |r_k|/(ω − |λ_k|).
    """
    for _ in range(6):  # Newton's method for p'(e) = 0
        _, slope, curvature = _expansion(modes, gamma, arb(peak))
        peak = (arb(peak) - slope / (2 * curvature)).mid()
    end = 2.0 * max(float(abs(rate).upper()) for rate in modes.rates)

    def is_small_beyond(omega: float) -> bool:
        sizes = [sum((abs(entry) for entry in column), arb(0)) for column in zip(*modes.residues.tolist(), strict=True)]
        bound = sum((r / (omega - abs(rate)) for r, rate in zip(sizes, modes.rates, strict=True)), arb(0))
        return bool(bound < gamma)

    while not is_small_beyond(end):
        end *= 2.0
    intervals = [(0.0, end)]
    while intervals:
        start, stop = intervals.pop()
        e = arb(start) if peak < start else arb(stop) if peak > stop else arb(peak)
        value, slope, _ = _expansion(modes, gamma, e)
        curvature = _expansion(modes, gamma, arb(0.5 * (start + stop), 0.5 * (stop - start) * (1.0 + 1e-15)))[2]
        ends = arb(start) - e, arb(stop) - e
        if all(value + slope * h + arb(0).min(curvature) * h * h > 0 for h in ends):
            continue
        if stop - start <= 1e-9 * stop:
            return False
        middle = 0.5 * (start + stop)
        intervals += [(start, middle), (middle, stop)]
    return True
