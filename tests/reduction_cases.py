"""Systems drawn at random to be reduced, and their error over frequencies in balls of python-flint."""

from collections.abc import Callable
from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from ltinet import StateSpace
from ltinet._util.floating_point import Array

Complex = NDArray[np.complex128]

KINDS = ("dense", "descriptor", "badly scaled", "clustered", "nearly unstable", "symmetric", "dissipative")
RESIDUAL = ("symmetric", "dissipative")


@dataclass(frozen=True)
class Case:
    """A system, what kind it is, and the order to reduce it to."""

    kind: str
    system: StateSpace
    order: int


def draw(seed: int) -> Case:
    """A case of each kind in turn."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    if kind in RESIDUAL:
        return _sparse(kind, rng)
    n, m, p = int(rng.integers(3, 40)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    A, B, C = _modal(rng, n, kind), rng.standard_normal((n, m)), rng.standard_normal((p, n))
    T = linalg.qr(rng.standard_normal((n, n)))[0] @ np.diag(10.0 ** rng.uniform(-1, 1, n))
    if kind == "clustered":
        T = np.eye(n)
    A, B, C = T @ A @ linalg.inv(T), T @ B, C @ linalg.inv(T)
    E = None
    if kind == "descriptor":
        E = rng.standard_normal((n, n)) + n * np.eye(n)
        A, B = E @ A, E @ B
    if kind == "badly scaled":
        units = 10.0 ** rng.uniform(-6, 6, n)
        A, B, C = A * units / units[:, None], B / units[:, None], C * units
    return Case(kind, StateSpace(A, B, C, E=E), int(rng.integers(1, n)))


def _modal(rng: np.random.Generator, n: int, kind: str) -> Array:
    """Real blocks with eigenvalues in the left half plane."""
    decay = 10.0 ** rng.uniform(-8 if kind == "nearly unstable" else -2, 2, n)
    if kind == "clustered":
        decay = np.repeat(decay[: n // 3 + 1], 3)[:n] * (1.0 + 1e-9 * rng.standard_normal(n))
    A = np.diag(-decay)
    for place in range(0, n - 1, 2):
        if rng.random() < 0.6:
            turn = 10.0 ** rng.uniform(-1, 2)
            A[place, place + 1], A[place + 1, place] = turn, -turn
            A[place + 1, place + 1] = A[place, place]
    if kind == "clustered":
        A += np.triu(rng.standard_normal((n, n)), 2) * rng.choice([0.0, 0.3])
    return A


def _sparse(kind: str, rng: np.random.Generator) -> Case:
    """A grid of resistors and capacitors, with a skew part where it is not symmetric; 310 states or more."""
    g = int(rng.integers(18, 23))
    n, m, p = g * g, int(rng.integers(1, 3)), int(rng.integers(1, 3))
    along = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(g, g))
    A = sparse.kron(along, sparse.eye_array(g)) + sparse.kron(sparse.eye_array(g), along)
    A = sparse.csc_array(10.0 ** rng.uniform(-2, 3) * A) - sparse.diags_array(10.0 ** rng.uniform(-6, 1, n))
    if kind == "dissipative":
        beside = [rng.standard_normal(n - 1), rng.standard_normal(n - g)]
        there = sparse.diags_array(beside, offsets=[1, g], shape=(n, n))
        A = A + 10.0 ** rng.uniform(-1, 2) * (there - there.T)
    E = sparse.diags_array(10.0 ** rng.uniform(-1, 1, n)) if rng.random() < 0.5 else None
    B, C = rng.standard_normal((n, m)), rng.standard_normal((p, n))
    return Case(kind, StateSpace(sparse.csc_array(A), B, C, E=E), int(rng.integers(1, 40)))


def error_of(case: Case, small: StateSpace, *, n_places: int = 200) -> float:
    """The largest ‖G − G_r‖ found: doubles look for the places, refined around the largest, and balls tell the value.

    A value at any place is a lower bound of the supremum, so nothing hangs on the doubles but how near it is.
    """
    whole = _response(case.system)
    is_sparse = case.system.sparse is not None
    poles = small.poles() if is_sparse else np.concatenate([case.system.poles(), small.poles()])
    sizes = np.abs(poles[np.abs(poles) > 0.0])
    n_places = n_places // 3 if is_sparse else n_places  # smooth functions, and a factorisation for each
    omega = np.concatenate([[0.0], np.geomspace(sizes.min() / 30.0, sizes.max() * 30.0, n_places), np.abs(poles.imag)])
    omega = np.unique(omega)
    errors = _gaps(whole, small, omega)
    for _ in range(4):
        worst = int(np.argmax(errors))
        around = np.linspace(omega[max(worst - 1, 0)], omega[min(worst + 1, len(omega) - 1)], 24)
        omega, errors = np.append(omega, around), np.append(errors, _gaps(whole, small, around))
        order = np.argsort(omega, kind="stable")
        omega, errors = omega[order], errors[order]
    if case.kind in RESIDUAL:  # well conditioned, and too large for balls
        return float(errors.max())
    return max(_exact_gap(case.system, small, float(own)) for own in omega[np.argsort(-errors)[:3]])


def _response(system: StateSpace) -> Callable[[Array], Complex]:
    if system.sparse is None:
        return system.frequency_response
    A, B = sparse.csc_array(system.sparse.A), system.sparse.B.astype(np.complex128)
    E = sparse.eye_array(system.n_states) if system.sparse.E is None else system.sparse.E
    return lambda omega: np.array([system.C @ splu(sparse.csc_array(1j * own * E - A)).solve(B) for own in omega])


def _gaps(whole: Callable[[Array], Complex], small: StateSpace, omega: Array) -> Array:
    gaps = np.linalg.norm(whole(omega) - small.frequency_response(omega), 2, axis=(1, 2))
    return np.where(np.isfinite(gaps), gaps, 0.0)


def _exact_gap(system: StateSpace, small: StateSpace, omega: float) -> float:
    """‖G(iω) − G_r(iω)‖ in 300 bits, of the matrices as they were given."""
    flint.ctx.prec = 300
    gap = _ball_response(system, omega) - _ball_response(small, omega)
    rows, columns = gap.nrows(), gap.ncols()
    return float(np.linalg.norm([[complex(gap[i, j]) for j in range(columns)] for i in range(rows)], 2))


def _ball_response(system: StateSpace, omega: float) -> flint.acb_mat:
    E, A, B = (flint.acb_mat([[float(x) for x in row] for row in own]) for own in _matrices(system))
    C = flint.acb_mat([[float(x) for x in row] for row in system.C])
    D = flint.acb_mat([[float(x) for x in row] for row in system.D])
    return C * (E * flint.acb(0, omega) - A).solve(B) + D


def _matrices(system: StateSpace) -> tuple[Array, Array, Array]:
    """E, A and B as they were given, filled in."""
    if system.sparse is not None:
        E = np.eye(system.n_states) if system.sparse.E is None else system.sparse.E.toarray()
        return E, system.sparse.A.toarray(), system.sparse.B
    if system.descriptor is not None:
        return system.descriptor
    return np.eye(system.n_states), system.A, system.B
