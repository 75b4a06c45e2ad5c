"""HiPPO systems and the diagonal starts of S4D: initial matrices of state-space layers.

The state of a HiPPO system holds the coefficients of its input's history in a basis p₀, p₁, … that is orthonormal with
respect to a weight on the past (Gu et al. 2020, "HiPPO: Recurrent memory with optimal polynomial projections"; Gu et
al. 2022, "How to train your HiPPO"). For the window [t − 1, t] with x = (t − s) and c_n = ∫₀¹ u(t − x) p_n(x) dx,

    c_n' = p_n(0) u(t) − p_n(1) u(t − 1) + ∫₀¹ u(t − x) p_n'(x) dx,

where u(t − 1) is replaced by the value that the coefficients themselves give.

- LegT: Legendre polynomials, u(t − 1) ≈ Σ p_k(1) c_k.
- FouT: 1, √2 cos 2πmx, √2 sin 2πmx; at the ends the series gives the mean of u(t) and u(t − 1), so that
  u(t − 1) ≈ 2 Σ p_k(1) c_k − u(t).
- LegS: Legendre polynomials in e^{−x}, x ≥ 0, with the weight e^{−x} on the past.

A window of length θ has A/θ and B/θ. S4D (Gu et al. 2022, "On the parameterization and initialization of diagonal state
space models") keeps only eigenvalues: those of the normal part of LegS, A + ½ B Bᵀ, or two formulas near to them.
"""

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array


def legs_matrices(n: int) -> tuple[Array, Array]:
    """Return A and B of HiPPO-LegS: A_nk = −√((2n+1)(2k+1)) for n > k, −(n+1) for n = k; B_n = √(2n+1)."""
    k = np.arange(n)
    A = -np.tril(np.sqrt(np.multiply.outer(2.0 * k + 1.0, 2.0 * k + 1.0)), -1) - np.diag(k + 1.0)
    return A, np.sqrt(2.0 * k + 1.0)[:, None]


def legt_matrices(n: int) -> tuple[Array, Array]:
    """Return A and B of HiPPO-LegT: A_nk = −√((2n+1)(2k+1)) · (1 for n ≥ k, else (−1)ⁿ⁻ᵏ); B_n = √(2n+1)."""
    k = np.arange(n)
    signs = np.where(k[:, None] >= k, 1.0, (-1.0) ** (k[:, None] - k))
    return -np.sqrt(np.multiply.outer(2.0 * k + 1.0, 2.0 * k + 1.0)) * signs, np.sqrt(2.0 * k + 1.0)[:, None]


def fout_matrices(n: int) -> tuple[Array, Array]:
    """Return A and B of HiPPO-FouT: B = 2 p and A = R − 2 p pᵀ with p = (1, √2, 0, √2, 0, …).

    State 0 is the constant, states 2m − 1 and 2m are the cosine and sine of frequency m, which R rotates with 2πm:
    R_{2m,2m−1} = 2πm = −R_{2m−1,2m}. n is odd: a last cosine without its sine would be a combination of states that no
    input reaches and that does not decay.
    """
    p = np.zeros(n)
    p[1::2] = np.sqrt(2.0)
    p[0] = 1.0
    couplings = np.zeros(n - 1)
    couplings[1::2] = 2.0 * np.pi * np.arange(1, (n + 1) // 2)
    R = np.diag(couplings, -1) - np.diag(couplings, 1)
    return R - 2.0 * np.multiply.outer(p, p), 2.0 * p[:, None]


def s4d_lin_poles(n: int) -> NDArray[np.complex128]:
    """Return −½ + iπk for k < n/2: one pole of each of the n/2 conjugate pairs."""
    return np.asarray(-0.5 + 1j * np.pi * np.arange(n // 2), dtype=np.complex128)


def s4d_inv_poles(n: int) -> NDArray[np.complex128]:
    """Return −½ + i (n/π) (n/(2k+1) − 1) for k < n/2."""
    frequencies = (n / np.pi) * (n / (2.0 * np.arange(n // 2) + 1.0) - 1.0)
    return np.asarray(-0.5 + 1j * frequencies, dtype=np.complex128)


def s4d_legs_poles(n: int) -> NDArray[np.complex128]:
    """Return the eigenvalues of the normal part of LegS that have a positive imaginary part, in ascending order.

    A + ½ B Bᵀ = −½ I + S with a skew-symmetric S, whose eigenvalues i ω are those of the Hermitian matrix −i S.
    """
    k = np.arange(n)
    lower = np.tril(0.5 * np.sqrt(np.multiply.outer(2.0 * k + 1.0, 2.0 * k + 1.0)), -1)
    omega = np.linalg.eigvalsh(-1j * (lower.T - lower))
    return np.asarray(-0.5 + 1j * omega[n // 2 :], dtype=np.complex128)
