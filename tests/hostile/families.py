"""The families of systems: what breaks a decomposition, an exponential, a recurrence or a bound, drawn at random.

Each function takes a generator of random numbers and a number of states and returns a `Sketch`. Rates are of order one;
units of time and of the states come on top of it in `draw`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sketch:
    """E x' = A x with states of some sizes, and the decades of |λ| h that its runs are drawn from."""

    A: Array
    E: Array | None = None
    sizes: Array | None = None
    """How large each state is beside the others, where they differ by design."""
    decades: tuple[float, float] = (-3.0, 2.0)
    least_inputs: int = 1


def repeated(rng: Generator, n: int) -> Sketch:
    """Repeated and nearly repeated eigenvalues, semisimple, behind a general similarity; two inputs or more see it."""
    n = max(n, 2)
    values = -(10.0 ** rng.uniform(-1.0, 1.0, rng.integers(1, max(2, n // 2))))
    near = 10.0 ** rng.uniform(-16.0, -1.0) if rng.random() < 0.5 else 0.0
    blocks: list[Array] = []
    while sum(map(len, blocks)) < n:
        value = rng.choice(values) * (1.0 + near * rng.standard_normal())
        room = n - sum(map(len, blocks))
        blocks.append(pair(value, 2.0 * abs(value)) if room > 1 and rng.random() < 0.3 else np.array([[value]]))
    if rng.random() < 0.3:
        blocks[-1] = blocks[-1] * 1e4  # one far away, as the norm is its
    return Sketch(similar(linalg.block_diag(*blocks), random_basis(rng, n)), least_inputs=2)


def jordan(rng: Generator, n: int) -> Sketch:
    """Jordan blocks, exact (as they are or behind a whole-number similarity) and perturbed."""
    value = -(2.0 ** rng.integers(-2, 3))
    sizes = cut(rng, n)
    A = linalg.block_diag(*[value * np.eye(size) + abs(value) * np.eye(size, k=1) for size in sizes])
    kind = rng.integers(4)
    if kind == 1:
        A = whole_number_similarity(rng, A)
    elif kind == 2:
        A = A + 10.0 ** rng.uniform(-16.0, -3.0) * rng.standard_normal((n, n))
    elif kind == 3:
        A = similar(A, orthogonal(rng, n))
    return Sketch(A)


def nearly_real(rng: Generator, n: int) -> Sketch:
    """Pairs whose imaginary part is 1e-16 to 1e3 times their real part: normal, lopsided, and coupled."""
    n = max(n - n % 2, 2)
    blocks = []
    for _ in range(n // 2):
        decay, omega = 10.0 ** rng.uniform(-1.0, 0.5), 10.0 ** rng.uniform(-16.0, 3.0)
        lopsided = 10.0 ** rng.uniform(-6.0, 6.0) if rng.random() < 0.3 else 1.0
        blocks.append(decay * np.array([[-1.0, omega * lopsided], [-omega / lopsided, -1.0]]))
    A = linalg.block_diag(*blocks)
    kind = rng.integers(3)
    if kind == 1:
        A = A + np.triu(rng.standard_normal((n, n)), 2)
    elif kind == 2:
        A = similar(A, orthogonal(rng, n))
    return Sketch(A)


def scales(rng: Generator, n: int) -> Sketch:
    """Ten decades: of the units of the states, or of the rates of coupled pairs and reals."""
    if rng.random() < 0.5:
        A = random_stable(rng, n)
        sizes = 10.0 ** rng.uniform(-5.0, 5.0, n)
        return Sketch(A * sizes[:, None] / sizes, sizes=sizes)
    rates = 10.0 ** np.sort(rng.uniform(-8.0, 0.0, n))
    A = np.diag(-rates)
    for i in range(0, n - 1, 2):
        if rng.random() < 0.7:
            A[i : i + 2, i : i + 2] = pair(-rates[i], rates[i] * 10.0 ** rng.uniform(-1.0, 1.0))
    coupling = np.triu(rng.standard_normal((n, n)), 2) * rates[:, None] * 10.0 ** rng.uniform(-2.0, 2.0)
    A = A + coupling
    return Sketch(A if rng.random() < 0.5 else similar(A, orthogonal(rng, n)), decades=(-1.0, 6.0))


def growing(rng: Generator, n: int) -> Sketch:
    """Some modes grow: real, in pairs, or in a Jordan block, beside others that decay."""
    blocks: list[Array] = []
    while sum(map(len, blocks)) < n:
        rate = 10.0 ** rng.uniform(-2.0, 0.0) * (1.0 if not blocks or rng.random() < 0.3 else -1.0)
        two = n - sum(map(len, blocks)) > 1
        kind = rng.random()
        if two and kind < 0.4:
            blocks.append(pair(rate, 10.0 ** rng.uniform(-1.0, 1.0)))
        elif two and kind < 0.5:
            blocks.append(np.array([[rate, 1.0], [0.0, rate]]))
        else:
            blocks.append(np.array([[rate]]))
    A = linalg.block_diag(*blocks)
    return Sketch(A if rng.random() < 0.3 else similar(A, random_basis(rng, n)), decades=(-2.0, 2.0))


def integrating(rng: Generator, n: int) -> Sketch:
    """λ = 0: single, several and chained integrators, undamped oscillators, beside modes that decay."""
    n_zero = int(rng.integers(1, n + 1))
    chained = np.zeros((n_zero, n_zero))
    chained[np.arange(n_zero - 1), np.arange(1, n_zero)] = rng.integers(0, 2, n_zero - 1)
    blocks = [chained]
    while sum(map(len, blocks)) < n:
        if n - sum(map(len, blocks)) > 1 and rng.random() < 0.5:
            blocks.append(pair(0.0, 10.0 ** rng.uniform(-1.0, 1.0)))
        else:
            blocks.append(np.array([[-(10.0 ** rng.uniform(-1.0, 1.0))]]))
    A = linalg.block_diag(*blocks)
    kind = rng.integers(3)
    if kind == 0:
        A = A + np.triu(rng.standard_normal((n, n)) * (np.arange(n) >= n_zero), 1) * (A == 0.0)
    elif kind == 1:
        A = whole_number_similarity(rng, A)
    return Sketch(A, decades=(-3.0, 1.0))


def defective(rng: Generator, n: int) -> Sketch:
    """Nilpotent and defective matrices: chains, dense triangles, rank one, pairs in one chain, hidden or not."""
    kind = rng.integers(5)
    if kind == 0:
        A = np.eye(n, k=1) * 10.0 ** rng.uniform(-1.0, 1.0, n)
    elif kind == 1:
        A = np.triu(rng.integers(-3, 4, (n, n)).astype(float), 1)
    elif kind == 2:
        left, right = rng.standard_normal(n), rng.standard_normal(n)
        A = np.outer(left, right - left * (left @ right) / (left @ left))  # trace zero but for rounding
    elif kind == 3 and n >= 4:
        half = n // 2
        A = np.kron(np.eye(half), pair(-1.0, 2.0)) + np.kron(np.eye(half, k=1), np.eye(2))
    else:
        A = np.triu(rng.standard_normal((n, n)), 1) - np.eye(n)
    hidden = rng.integers(3)
    if hidden == 1:
        A = similar(A, orthogonal(rng, len(A)))
    elif hidden == 2:
        A = similar(A, random_basis(rng, len(A)))
    return Sketch(A, decades=(-3.0, 0.5))


def hurwitz(rng: Generator, n: int) -> Sketch:
    """Random stable matrices, with steps from a millionth to a million times their fastest time constant."""
    return Sketch(random_stable(rng, n), decades=(-6.0, 6.0))


def descriptor(rng: Generator, n: int) -> Sketch:
    """E x' = A x with cond(E) from 1 to 1e10: by singular values, by rows and columns, or symmetric."""
    condition = 10.0 ** rng.uniform(0.0, 10.0)
    spread = condition ** -np.linspace(0.0, 1.0, n) if n > 1 else np.ones(1)
    kind = rng.integers(3)
    if kind == 0:
        E = orthogonal(rng, n) * spread @ orthogonal(rng, n)
    elif kind == 1:
        E = (np.eye(n) + 0.3 * rng.standard_normal((n, n)) / np.sqrt(n)) * rng.permutation(spread)
    else:
        Q = orthogonal(rng, n)
        E = Q * spread @ Q.T
    return Sketch(E @ random_stable(rng, n), E=E)


def similarity(rng: Generator, n: int) -> Sketch:
    """Separate eigenvalues behind transformations of condition 1 to 1e6."""
    values = np.diag(-(10.0 ** rng.uniform(-1.5, 1.5, n)))
    for i in range(0, n - 1, 2):
        if rng.random() < 0.5:
            values[i : i + 2, i : i + 2] = pair(values[i, i], -values[i, i] * 10.0 ** rng.uniform(-1.0, 1.5))
    spread = 10.0 ** (-rng.uniform(0.0, 6.0) * np.linspace(0.0, 1.0, n))
    return Sketch(similar(values, orthogonal(rng, n) * spread @ orthogonal(rng, n)))


def non_normal(rng: Generator, n: int) -> Sketch:
    """HiPPO-LegS, companion, Grcar, transport and Kahan matrices: eigenvalues tell little about them."""
    kind = rng.integers(5)
    if kind == 0:
        root = np.sqrt(2.0 * np.arange(n) + 1.0)
        A = -(np.tril(np.outer(root, root), -1) + np.diag(np.arange(n) + 1.0))
    elif kind == 1:
        A = linalg.companion(np.poly(-rng.uniform(0.5, 2.0 + n, max(n, 2))))
    elif kind == 2:
        A = np.triu(np.tril(np.ones((n, n)), 3)) - np.eye(n, k=-1) - 3.0 * np.eye(n)
    elif kind == 3:
        A = n * (np.eye(n, k=-1) - np.eye(n))
    else:
        A = -np.diag(0.9 ** np.arange(n)) @ (np.eye(n) - 0.9 * np.triu(np.ones((n, n)), 1))
    return Sketch(A)


def stiff(rng: Generator, n: int) -> Sketch:
    """Rates over eight decades in one coupled system: a step is short for the slow modes and endless for the fast."""
    rates = -(10.0 ** rng.uniform(-8.0, 0.0, n))
    A = np.diag(rates) + np.triu(rng.standard_normal((n, n)), 1) * np.sqrt(np.abs(np.outer(rates, rates)))
    for i in range(0, n - 1, 2):
        if rng.random() < 0.3:
            A[i : i + 2, i : i + 2] = pair(rates[i], -rates[i] * 10.0 ** rng.uniform(0.0, 2.0))
    basis = [np.eye(n), orthogonal(rng, n), random_basis(rng, n)][rng.integers(3)]
    return Sketch(similar(A, basis), decades=(-2.0, 7.0))


_OF_FEW_STATES: tuple[Callable[[Generator, int], Sketch], ...] = (
    repeated, jordan, nearly_real, scales, growing, integrating,
    defective, hurwitz, descriptor, similarity, non_normal, stiff,
)  # fmt: skip


def large(rng: Generator, n: int) -> Sketch:
    """Any of the others with 30 to 160 states."""
    return _OF_FEW_STATES[int(rng.integers(len(_OF_FEW_STATES)))](rng, n)


FAMILIES: dict[str, Callable[[Generator, int], Sketch]] = {
    family.__name__: family for family in (*_OF_FEW_STATES, large)
}


def pair(decay: float, omega: float) -> Array:
    """A normal 2×2 block with the eigenvalues decay ± iω."""
    return np.array([[decay, omega], [-omega, decay]])


def cut(rng: Generator, n: int) -> list[int]:
    """Sizes that sum to n."""
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(int(rng.integers(1, n - sum(sizes) + 1)))
    return sizes


def orthogonal(rng: Generator, n: int) -> Array:
    """A random orthogonal matrix."""
    return np.asarray(np.linalg.qr(rng.standard_normal((n, n)))[0])


def random_basis(rng: Generator, n: int) -> Array:
    """Independent normal entries, redrawn in the rare case of a condition beyond 1e4."""
    V = rng.standard_normal((n, n))
    while np.linalg.cond(V) > 1e4:
        V = rng.standard_normal((n, n))
    return V


def similar(A: Array, V: Array) -> Array:
    """V A V⁻¹, rounded as it comes."""
    return np.asarray(np.linalg.solve(V.T, (V @ A).T).T)


def whole_number_similarity(rng: Generator, A: Array) -> Array:
    """A similarity by shears with small whole numbers: a dyadic A keeps its Jordan form to the last bit."""
    A, n = A.copy(), len(A)
    for _ in range(n if n > 1 else 0):
        i, j = rng.choice(n, 2, replace=False)
        factor = float(rng.integers(-2, 3))
        A[i] += factor * A[j]
        A[:, j] -= factor * A[:, i]
    return A


def random_stable(rng: Generator, n: int) -> Array:
    """Independent normal entries, moved to the left of the imaginary axis."""
    A = rng.standard_normal((n, n))
    edge = 10.0 ** rng.uniform(-2.0, 0.0)
    return np.asarray(A - (np.max(np.linalg.eigvals(A).real) + edge * np.sqrt(n)) * np.eye(n))
