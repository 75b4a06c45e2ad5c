"""Linear systems in exact fractions (python-flint), under the names of python-control (`tf`, `ss`, `feedback`, …).

Every number is the double that was given, as a fraction; nothing is rounded before a value is read. Nothing of ltinet takes
part.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb_mat, ctx, fmpq, fmpq_mat, fmpq_poly

BITS = 400


def _fraction(value: Any) -> Any:
    return value if isinstance(value, fmpq) else fmpq(*float(value).as_integer_ratio())


def _matrix(values: Any) -> Any:
    if isinstance(values, fmpq_mat):
        return values
    array = np.atleast_2d(np.asarray(values, dtype=float))
    return fmpq_mat(*array.shape, [_fraction(value) for value in array.ravel()])


def _identity(n: int) -> Any:
    return fmpq_mat(n, n, [fmpq(int(i == j)) for i in range(n) for j in range(n)])


def _names(names: Any, base: str, count: int) -> list[str]:
    return (
        [f"{base}[{k}]" for k in range(count)] if names is None else [names] if isinstance(names, str) else list(names)
    )


class ExactSystem:
    """A, B, C and D as fractions, with names of inputs and outputs."""

    __array_ufunc__ = None

    def __init__(self, A: Any, B: Any, C: Any, D: Any, inputs: Any = None, outputs: Any = None) -> None:
        self.A, self.B, self.C, self.D = A, B, C, D
        self.inputs, self.outputs = _names(inputs, "u", D.ncols()), _names(outputs, "y", D.nrows())

    def __mul__(self, other: Any) -> "ExactSystem":
        return series(other, self)

    def __rmul__(self, other: Any) -> "ExactSystem":
        return series(self, other)

    def __call__(self, s: complex) -> np.ndarray:
        """C (s I − A)⁻¹ B + D, rounded to complex doubles."""
        with ctx.workprec(BITS):
            H = acb_mat(arb_mat(self.D))
            if n := self.A.nrows():
                pencil = acb_mat(arb_mat(_identity(n))) * acb(s.real, s.imag) - acb_mat(arb_mat(self.A))
                H += acb_mat(arb_mat(self.C)) * pencil.solve(acb_mat(arb_mat(self.B)))
            return np.array([complex(entry) for entry in H.entries()]).reshape(H.nrows(), H.ncols())

    def step(self, t: float) -> np.ndarray:
        """Unit step responses at a time t > 0, outputs by inputs, from the exponential of [[A, B], [0, 0]]."""
        n, m = self.A.nrows(), self.D.ncols()
        with ctx.workprec(BITS):
            block = arb_mat(n + m, n + m)
            for i in range(n):
                for j in range(n + m):
                    block[i, j] = arb_mat(self.A)[i, j] if j < n else arb_mat(self.B)[i, j - n]
            grown = (block * _fraction(t)).exp()
            X = arb_mat(n, m, [grown[i, n + j] for i in range(n) for j in range(m)])
            y = arb_mat(self.C) * X + arb_mat(self.D)
            return np.array([float(entry) for entry in y.entries()]).reshape(y.nrows(), y.ncols())

    def polynomials(self, *, minimal: bool = True) -> tuple[Any, Any]:
        """Numerator and denominator of a system with one input and one output, highest common factor removed or not."""
        den = self.A.charpoly()
        num = (self.A - self.B * self.C).charpoly() + fmpq_poly([self.D[0, 0] - 1]) * den
        factor = num.gcd(den) if minimal and num else fmpq_poly([1])
        return num // factor, den // factor

    def poles(self) -> np.ndarray:
        """All eigenvalues of A."""
        return roots(self.A.charpoly())


def roots(polynomial: Any) -> np.ndarray:
    """Roots of a polynomial with fractions, each as often as it is one."""
    with ctx.workprec(BITS):
        if polynomial.degree() < 1:
            return np.zeros(0, complex)
        found = polynomial.numer().complex_roots()
        return np.array([complex(root) for root, multiplicity in found for _ in range(multiplicity)])


def ss(A: Any, B: Any = None, C: Any = None, D: Any = None, *, inputs: Any = None, outputs: Any = None) -> ExactSystem:
    """State-space system; a system alone is returned as it is."""
    if B is None:
        return A
    D = _matrix(D)
    n = 0 if not np.size(A) else len(np.atleast_2d(A))
    empty = fmpq_mat(0, 0), fmpq_mat(0, D.ncols()), fmpq_mat(D.nrows(), 0)
    A, B, C = (_matrix(part) for part in (A, B, C)) if n else empty
    return ExactSystem(A, B, C, D, inputs, outputs)


def tf(num: Any, den: Any = None, *, inputs: Any = None, outputs: Any = None) -> ExactSystem:
    """Transfer function num/den in controller form; a system alone is returned as it is."""
    if den is None:
        return num
    a = [_fraction(value) for value in np.atleast_1d(den)]
    n = len(a) - 1
    b = [fmpq(0)] * (n + 1 - np.size(num)) + [_fraction(value) for value in np.atleast_1d(num)]
    a, b = [value / a[0] for value in a], [value / a[0] for value in b]
    A = fmpq_mat(n, n, [-a[j + 1] if i == 0 else fmpq(int(i == j + 1)) for i in range(n) for j in range(n)])
    B = fmpq_mat(n, 1, [fmpq(int(i == 0)) for i in range(n)])
    C = fmpq_mat(1, n, [b[j + 1] - b[0] * a[j + 1] for j in range(n)])
    return ExactSystem(A, B, C, fmpq_mat(1, 1, [b[0]]), inputs, outputs)


def _system(value: Any) -> ExactSystem:
    return value if isinstance(value, ExactSystem) else ss([], [], [], value)


def _stack(matrices: Sequence[Any]) -> Any:
    rows, columns = sum(M.nrows() for M in matrices), sum(M.ncols() for M in matrices)
    result, i, j = fmpq_mat(rows, columns), 0, 0
    for M in matrices:
        for row in range(M.nrows()):
            for column in range(M.ncols()):
                result[i + row, j + column] = M[row, column]
        i, j = i + M.nrows(), j + M.ncols()
    return result


def _connect(parts: Sequence[ExactSystem], K: Any, L: Any, M: Any, **names: Any) -> ExactSystem:
    """System from r to z with u = K y + L r and z = M y."""
    A, B, C, D = (_stack([getattr(part, name) for part in parts]) for name in "ABCD")
    # y = C x + D u and u = K y + L r, so y = (I − D K)⁻¹ (C x + D L r).
    loop = (_identity(D.nrows()) - D * K).inv()
    Y, R = loop * C, loop * D * L
    return ExactSystem(A + B * K * Y, B * (K * R + L), M * Y, M * R, **names)


def series(first: Any, second: Any) -> ExactSystem:
    """Series connection in which signals pass through `first`, then `second`."""
    parts = [_system(first), _system(second)]
    (p1, m1), (p2, m2) = ((part.D.nrows(), part.D.ncols()) for part in parts)
    if m2 != p1 and m2 == p2 == 1:  # a number times a larger system
        parts[1] = ss([], [], [], parts[1].D[0, 0] * _identity(p1))
        p2 = m2 = p1
    K, L, M = fmpq_mat(m1 + m2, p1 + p2), fmpq_mat(m1 + m2, m1), fmpq_mat(p2, p1 + p2)
    for k in range(m2):
        K[m1 + k, k] = 1
    for k in range(m1):
        L[k, k] = 1
    for k in range(p2):
        M[k, p1 + k] = 1
    return _connect(parts, K, L, M)


def parallel(first: Any, second: Any) -> ExactSystem:
    """Sum of two systems with one input and one output."""
    return _connect([_system(first), _system(second)], fmpq_mat(2, 2), _matrix([[1], [1]]), _matrix([[1, 1]]))


def feedback(forward: Any, backward: Any = 1, sign: int = -1) -> ExactSystem:
    """Feedback of two systems with one input and one output."""
    parts = [_system(forward), _system(backward)]
    return _connect(parts, _matrix([[0, sign], [1, 0]]), _matrix([[1], [0]]), _matrix([[1, 0]]))


def summing_junction(inputs: Sequence[str], output: str) -> ExactSystem:
    """Sum of signals by name, with their signs."""
    signs = [[-1.0 if name.startswith("-") else 1.0 for name in inputs]]
    return ss([], [], [], signs, inputs=[name.lstrip("-") for name in inputs], outputs=output)


def interconnect(parts: Sequence[ExactSystem], *, inputs: Sequence[str], outputs: Sequence[str]) -> ExactSystem:
    """Connect inputs with outputs of the same name."""
    ends = [name for part in parts for name in part.inputs]
    starts = [name for part in parts for name in part.outputs]
    K = _matrix([[float(end == start) for start in starts] for end in ends])
    L = _matrix([[float(end == name) for name in inputs] for end in ends])
    M = _matrix([[float(name == start) for start in starts] for name in outputs])
    return _connect(parts, K, L, M, inputs=list(inputs), outputs=list(outputs))
