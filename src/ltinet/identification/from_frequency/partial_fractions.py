"""Real partial fractions: the functions 1/(s − p) of poles, combined so that their coefficients are real."""

import numpy as np

from ltinet.arrays import Array, Complex


def paired(poles: Complex) -> Complex:
    """Real poles first, ascending, then of each pair the pole with positive imaginary part followed by the other."""
    real = np.sort(poles[poles.imag == 0.0].real).astype(np.complex128)
    upper = poles[poles.imag > 0.0]
    upper = upper[np.argsort(upper.imag)]
    return np.concatenate([real, np.column_stack([upper, upper.conj()]).ravel()])


def fractions(s: Complex, poles: Complex) -> Complex:
    """Columns 1/(s − p), and for pairs 1/(s − p) + 1/(s − p̄) and j/(s − p) − j/(s − p̄); shape (K, N).

    The poles stand as `paired` leaves them.
    """
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    plain = 1.0 / (s[:, None] - poles)
    columns = plain.copy()
    upper, lower = plain[:, n_real::2], plain[:, n_real + 1 :: 2]
    columns[:, n_real::2] = upper + lower
    columns[:, n_real + 1 :: 2] = 1j * (upper - lower)
    return columns


def block_matrices(poles: Complex) -> tuple[Array, Array]:
    """A and b with c (s − A)⁻¹ b = Σ cᵢ · (column i of `fractions`) for every real c: pairs as [[a, ω], [−ω, a]]."""
    n_real = int(np.count_nonzero(poles.imag == 0.0))
    A, b = np.diag(poles.real), np.ones(len(poles))
    at = np.arange(n_real, len(poles), 2)
    A[at, at + 1], A[at + 1, at] = poles[at].imag, -poles[at].imag
    b[at], b[at + 1] = 2.0, 0.0
    return A, b


def stacked(values: Complex) -> Array:
    """Real parts above imaginary parts, along the last axis but one."""
    return np.concatenate([values.real, values.imag], axis=-2)
