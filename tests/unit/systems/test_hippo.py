"""HiPPO systems and S4D poles equal the integrals that define them, in mpmath, to 1e-12."""

import mpmath as mp
import numpy as np
import pytest

from ltinet.errors import InvalidSystemError
from ltinet.files import named_system
from ltinet.systems.hippo import s4d_inv_poles, s4d_legs_poles, s4d_lin_poles

RELATIVE = 1e-12


def legendre(n):
    """Coefficients of √(2n+1) P_n(1 − 2x) in powers of x: orthonormal on [0, 1], positive at x = 0."""
    signs = [(-1) ** k * mp.binomial(n, k) * mp.binomial(n + k, k) for k in range(n + 1)]
    return [mp.sqrt(2 * n + 1) * c for c in signs]


def value(coefficients, x):
    return mp.polyval(coefficients[::-1], x)


def derivative(coefficients):
    return [k * c for k, c in enumerate(coefficients)][1:] or [mp.mpf(0)]


def inner(a, b):
    """∫₀¹ a(x) b(x) dx of polynomials, exactly up to the working precision."""
    return mp.fsum(p * q / (i + j + 1) for i, p in enumerate(a) for j, q in enumerate(b))


def assert_equal(matrix, expected):
    scale = max(abs(x) for row in expected for x in row)
    for row, exact in zip(matrix, expected, strict=True):
        for entry, x in zip(row, exact, strict=True):
            assert abs(mp.mpf(float(entry)) - x) <= RELATIVE * max(abs(x), scale * 1e-3)


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_legt_projects_on_legendre_polynomials_in_a_window(n):
    with mp.workdps(50):
        p = [legendre(k) for k in range(n)]
        A = [[inner(derivative(p[i]), p[k]) - value(p[i], 1) * value(p[k], 1) for k in range(n)] for i in range(n)]
        system = named_system("hippo_legt", n_states=n)
        assert_equal(system.A, A)
        assert_equal(system.B, [[value(p[i], 0)] for i in range(n)])


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_legs_projects_on_legendre_polynomials_of_a_decaying_exponential(n):
    # c_i(t) = ∫₀^∞ u(t − x) K_i(x) dx with K_i = p_i(z) (1 − z), z = 1 − e⁻ˣ, and dK_i/dx = Σ A_ik K_k.
    with mp.workdps(50):
        p = [legendre(k) for k in range(n)]
        one_minus = [mp.mpf(1), mp.mpf(-1)]

        def times(a, b):
            result = [mp.mpf(0)] * (len(a) + len(b) - 1)
            for i, x in enumerate(a):
                for j, y in enumerate(b):
                    result[i + j] += x * y
            return result

        # (1 − z) d/dz [p_i (1 − z)] = (1 − z) Σ_k A_ik p_k, so A_ik is the inner product of [p_i (1 − z)]′ with p_k.
        A = [[inner(derivative(times(p[i], one_minus)), p[k]) for k in range(n)] for i in range(n)]
        system = named_system("hippo_legs", n_states=n)
        assert_equal(system.A, A)
        assert_equal(system.B, [[value(p[i], 0)] for i in range(n)])


@pytest.mark.parametrize("n", [1, 3, 9])
def test_fout_projects_on_a_fourier_basis_in_a_window(n):
    def basis(i):
        m, kind = (i + 1) // 2, mp.cos if i % 2 else mp.sin
        return (lambda _: mp.mpf(1)) if i == 0 else lambda x: mp.sqrt(2) * kind(2 * mp.pi * m * x)

    def slope(i):
        m, kind = (i + 1) // 2, (lambda x: -mp.sin(x)) if i % 2 else mp.cos
        return (lambda _: mp.mpf(0)) if i == 0 else lambda x: mp.sqrt(2) * 2 * mp.pi * m * kind(2 * mp.pi * m * x)

    with mp.workdps(25):
        p, slopes = [basis(i) for i in range(n)], [slope(i) for i in range(n)]
        nodes = [mp.mpf(k) / (2 * n) for k in range(2 * n)]  # the mean is the integral of trigonometric polynomials

        def entry(i, k):
            # u(t − 1) ≈ 2 Σ p_k(1) c_k − u(t)
            return mp.fsum(slopes[i](x) * p[k](x) for x in nodes) / len(nodes) - 2 * p[i](mp.mpf(1)) * p[k](mp.mpf(1))

        system = named_system("hippo_fout", n_states=n, window=2.0)
        assert_equal(2.0 * system.A, [[entry(i, k) for k in range(n)] for i in range(n)])
        assert_equal(2.0 * system.B, [[p[i](mp.mpf(0)) + p[i](mp.mpf(1))] for i in range(n)])


def test_fout_refuses_a_cosine_without_its_sine():
    with pytest.raises(InvalidSystemError, match=r"must be odd for hippo_fout, .*, got 8; give 7 or 9"):
        named_system("hippo_fout", n_states=8)


@pytest.mark.parametrize("name", ["hippo_legs", "hippo_legt", "hippo_fout"])
def test_hippo_systems_are_stable(name):
    assert named_system(name, n_states=15).poles().real.max() < 0.0


@pytest.mark.parametrize("n", [2, 8, 64])
def test_s4d_poles_equal_the_published_formulas(n):
    with mp.workdps(30):
        lin = [mp.mpc(-0.5, mp.pi * k) for k in range(n // 2)]
        inv = [mp.mpc(-0.5, mp.mpf(n) / mp.pi * (mp.mpf(n) / (2 * k + 1) - 1)) for k in range(n // 2)]
        for poles, exact in ((s4d_lin_poles(n), lin), (s4d_inv_poles(n), inv)):
            assert len(poles) == n // 2
            assert all(abs(mp.mpc(p) - x) <= RELATIVE * abs(x) for p, x in zip(poles, exact, strict=True))


@pytest.mark.parametrize("n", [2, 10])
def test_s4d_legs_poles_are_eigenvalues_of_the_normal_part(n):
    with mp.workdps(30):
        system = named_system("hippo_legs", n_states=n)
        p = [mp.sqrt(2 * k + 1) for k in range(n)]
        A = mp.matrix(n, n)
        for i in range(n):
            for k in range(n):
                A[i, k] = (-p[i] * p[k] if i > k else -mp.mpf(i + 1) if i == k else 0) + p[i] * p[k] / 2
        exact = sorted((x for x in mp.eig(A)[0] if mp.im(x) > 0), key=mp.im)
        assert np.allclose(np.array(A.tolist(), dtype=float), system.A + system.B @ system.B.T / 2, rtol=RELATIVE)
        poles = s4d_legs_poles(n)
        assert len(exact) == len(poles) == n // 2
        assert all(abs(mp.mpc(p) - x) <= RELATIVE * abs(x) for p, x in zip(poles, exact, strict=True))
