"""Realizations of rational functions: equal to polynomials and roots in 50 digits up to rounding times conditioning."""

import control
import mpmath
import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.errors import InvalidSystemError

RNG = np.random.default_rng(47)
POINTS = [0.31 + 0.2j, 1.7j, -0.4 + 5.0j, 30.0 + 2.0j, 1e-3j]


def exact_response(system, s):
    """C (s I − A)⁻¹ B + D of the matrices of a system, in 120 digits."""
    with mpmath.workdps(120):
        matrices = (mpmath.matrix(np.asarray(part).tolist()) for part in (system.A, system.B, system.C, system.D))
        A, B, C, D = matrices
        if system.n_states == 0:
            return D
        pencil = mpmath.mpc(s) * mpmath.eye(system.n_states) - A
        X = mpmath.matrix([list(mpmath.lu_solve(pencil, B.column(j))) for j in range(B.cols)]).T
        return C * X + D


def exact_ratio(num, den, s):
    with mpmath.workdps(120):
        return mpmath.polyval([mpmath.mpf(float(c)) for c in num], s) / mpmath.polyval(
            [mpmath.mpf(float(c)) for c in den], s
        )


def condition(num, den, s):
    """Condition number of num(s)/den(s) with respect to what the realization stores, as the module defines it."""
    with mpmath.workdps(120):
        n = len(den) - 1
        b = [mpmath.mpf(0)] * (n + 1 - len(num)) + [mpmath.mpf(float(c)) for c in num]
        a = [mpmath.mpf(float(c)) for c in den]
        d = b[0] / a[0]
        size = abs(mpmath.mpc(s))
        above = sum((abs(bk) + abs(d * ak)) * size ** (n - k) for k, (bk, ak) in enumerate(zip(b, a, strict=True)))
        below = sum(abs(ak) * size ** (n - k) for k, ak in enumerate(a))
        return above / abs(mpmath.polyval(b, s)) + below / abs(mpmath.polyval(a, s))


def random_polynomials(degree, seed):
    """Coefficients over several decades, some of them zero."""
    rng = np.random.default_rng(seed)
    den = rng.standard_normal(degree + 1) * 10.0 ** rng.uniform(-4, 4, degree + 1)
    num = rng.standard_normal(rng.integers(1, degree + 2)) * 10.0 ** rng.uniform(-3, 3)
    den[1:][rng.random(degree) < 0.15] = 0.0
    return num, den


FUNCTIONS = {
    "double integrator": ([1.0], [1.0, 0.0, 0.0]),
    "five integrators with zeros": ([2.0, 3.0, 5.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    "integrator and lag": ([1.0, 0.1], [3.0, 1.0, 0.0]),
    "(s + 1)^-20": ([1.0], np.poly(-np.ones(20))),
    "Wilkinson of degree 20": ([1.0, 4.0, 7.0], np.round(np.poly(-np.arange(1.0, 21.0)))),
    "equal degrees": (np.poly(-np.arange(2.0, 14.0)), np.poly(-np.arange(1.5, 13.5))),
    "nine decades": ([1.0, 1e-6], np.poly([-1e-5, -1e-2, -1.0, -1e2, -1e4])),
    **{f"random, degree {degree}": random_polynomials(degree, degree) for degree in (1, 2, 3, 5, 8, 13, 20, 25, 32)},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_polynomials_are_realized_up_to_their_conditioning(name):
    num, den = FUNCTIONS[name]
    system = ltinet.tf(num, den)
    assert system.n_states == len(den) - 1
    for s in POINTS:
        exact = exact_ratio(num, den, s)
        with mpmath.workdps(120):
            error = abs(exact_response(system, s)[0, 0] - exact) / abs(exact)
        # Each coefficient is rounded three times at most: in divisions, in the product with d and in the difference.
        assert error <= 3.0 * EPS * condition(num, den, s)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_computed_response_is_accurate_relative_to_its_terms(name):
    num, den = FUNCTIONS[name]
    system = ltinet.tf(num, den)
    n = system.n_states
    for s in POINTS:
        with mpmath.workdps(120):
            exact = complex(exact_response(system, s)[0, 0])
            inverse = (mpmath.mpc(s) * mpmath.eye(n) - mpmath.matrix(system.A.tolist())) ** -1
            R = np.array([[float(abs(inverse[i, j])) for j in range(n)] for i in range(n)])
        # First order in a backward error of |s I − A| by 10·n·eps (`rounding_tolerance`) in every entry.
        spread = R @ (abs(s) * np.eye(n) + np.abs(system.A)) @ R
        size = np.abs(system.C) @ (spread + R) @ np.abs(system.B) + np.abs(system.D)
        assert abs(system(s) - exact) <= rounding_tolerance(n) * float(size[0, 0])


ROOTS = {
    "no zeros": ([], [-1.0, -2.0, -3.0], 6.0),
    "pair over pair": ([-1 + 2j, -1 - 2j], [-0.1 + 9j, -0.1 - 9j], -2.5),
    "pair over two real poles": ([-1 + 2j, -1 - 2j], [-4.0, -5.0], 3.0),
    "real zeros over a pair": ([-0.5, 7.0], [-0.1 + 9j, -0.1 - 9j, -3.0], 1.5),
    "one zero over a pair": ([-0.5], [-0.1 + 9j, -0.1 - 9j], 1.5),
    "integrators": ([-0.5], [0.0, 0.0, -1.0], 1.0),
    "six equal poles": ([-2.0], [-1.0] * 6, 1.0),
    "thirty poles": (-np.arange(0.5, 20.5), -np.arange(1.0, 31.0), 1.0),
    "twenty pairs": (
        [],
        [complex(-0.01 * k, sign * k) for k in range(1, 21) for sign in (1, -1)],
        1e30,
    ),
    "nine decades": ([-3e-4, -30.0], [-1e-5, -1e-2, -1.0, -1e2, -1e4], 7.0),
    "unstable": ([1.0], [2.0, -1 + 1j, -1 - 1j], 1.0),
}


@pytest.mark.parametrize("name", ROOTS)
def test_roots_are_realized_up_to_their_conditioning(name):
    zeros, poles, gain = ROOTS[name]
    system = ltinet.zpk(zeros, poles, gain)
    assert system.n_states == len(poles)
    for s in POINTS:
        with mpmath.workdps(120):
            point, k = mpmath.mpc(s), mpmath.mpf(gain)
            over, under = (mpmath.fprod([point - mpmath.mpc(root) for root in roots]) for roots in (zeros, poles))
            error = abs(exact_response(system, s)[0, 0] / (k * over / under) - 1)
        # A section stores p − z, whose rounding is relative to it; zeros are at most as far from their poles as from others.
        far = [min(abs(p - z) for p in poles) for z in zeros]
        kappa = len(poles) + sum((abs(s) + 2 * abs(z) + 4 * f) / abs(s - z) for z, f in zip(zeros, far, strict=True))
        assert error <= 40.0 * EPS * kappa


@pytest.mark.parametrize("name", ROOTS)
def test_poles_of_a_realization_are_those_given(name):
    _, poles, _ = ROOTS[name]
    A = ltinet.zpk(*ROOTS[name]).A
    blocks, k = [], 0
    while k < len(A):
        if k + 1 < len(A) and A[k, k + 1] != 0.0:
            blocks += [complex(A[k, k], sign * np.sqrt(-A[k, k + 1] * A[k + 1, k])) for sign in (1, -1)]
            k += 2
        else:
            blocks.append(complex(A[k, k]))
            k += 1
    assert np.array_equal(np.triu(A, 2), np.zeros_like(A))
    np.testing.assert_array_equal(np.sort_complex(blocks), np.sort_complex(np.array(poles, dtype=complex)))


PAIR = [-0.3 + 2j, -0.3 - 2j]
ROOT_MATRICES = {
    "column": ([[[]], [[-2.0]], [PAIR]], [[[-1.0]], [[-1.0, -5.0]], [[-4.0, -3.0]]], [[2.0], [3.0], [-0.5]], 4),
    "row with common poles": ([[[], [-3.0]]], [-1.0, -2.0], [[4.0, 2.0]], 2),
    "common zeros and poles": ([-0.5], [-1.0, *PAIR], [[1.0, 2.0], [3.0, 4.0]], 6),
    "rank one": ([-0.5], [-1.0, *PAIR], [[1.0, 2.0], [2.0, 4.0]], 3),
    "two by two": (
        [[[1.0], []], [PAIR, []]], [[[-1.0, 0.0], PAIR], [[-7.0, -8.0, -9.0], []]], [[1.0, -6.0], [30.0, 0.7]], 7,
    ),
    "two by three": ([], [[[-1.0], [-2.0], PAIR], [[-1.0], [-2.0], [-4.0]]], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 5),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOT_MATRICES)
def test_matrices_of_roots_are_those_of_50_digits_and_of_python_control(name):
    zeros, poles, gain, n_states = ROOT_MATRICES[name]
    system = ltinet.zpk(zeros, poles, gain, input_delay=0.25)
    assert system.n_states == n_states
    assert np.all(system.input_delay == 0.25)
    realized = {s: exact_response(system, s) for s in POINTS}
    for i, j in np.ndindex(np.shape(gain)):
        z, p = (roots[i][j] if roots and isinstance(roots[0], list) else roots for roots in (zeros, poles))
        theirs = control.zpk(z, p, gain[i][j])
        for s in POINTS:
            with mpmath.workdps(50):
                point = mpmath.mpc(s)
                over, under = (mpmath.fprod([point - mpmath.mpc(root) for root in roots]) for roots in (z, p))
                exact = complex(gain[i][j] * over / under)
                entry = complex(realized[s][i, j])
            # Common states leave by orthogonal transformations, whose rounding is relative to the whole matrix.
            assert abs(entry - exact) <= 1e-13 * (abs(exact) + 1.0)
            assert abs(entry - theirs(s)) <= 1e-12 * (abs(exact) + 1.0)
    roots = system.zpk()
    back = ltinet.zpk(roots.zeros, roots.poles, roots.gain)
    np.testing.assert_allclose(
        back(np.array(POINTS)), system.with_signal_settings(input_delay=None)(np.array(POINTS)), rtol=1e-11, atol=1e-13
    )


def test_equal_zeros_and_poles_cancel():
    assert ltinet.zpk([-1.0, -2.0], [-1.0, -2.0, -3.0], 1.0).n_states == 1
    assert ltinet.zpk([-1 + 1j, -1 - 1j], [-1 + 1j, -1 - 1j], 4.0).D == 4.0


@pytest.mark.parametrize(
    ("num", "den", "n_states"),
    [
        ([1, 6, 11, 6], [1, 10, 35, 50, 24], 1),  # three common factors
        ([1, 0], [1, 0, 0], 1),
        ([1, 1], [1, 2, 1], 1),
        ([0], [1, 2, 1], 0),
        ([1, 1 + 1e-6], [1, 2, 1], 2),  # no common factor
        ([[[1], [2]], [[1], [2]]], [[[1, 1]] * 2] * 2, 1),
        ([[[1], [1]], [[1], [2]]], [[[1, 1]] * 2] * 2, 2),
        ([[[1]], [[1]]], [[[1, 1]], [[1, 3, 2]]], 2),
        ([[[1], [1, 2]], [[1], [3]]], [[[1, 0], [1, 3]], [[1, 0, 0], [1, 1]]], 4),
    ],
)
def test_realizations_are_minimal(num, den, n_states):
    system = ltinet.tf(num, den)
    assert system.n_states == n_states
    nums, dens = (num, den) if isinstance(num[0], list) else ([[num]], [[den]])
    for s in POINTS:
        expected = [[np.polyval(n, s) / np.polyval(d, s) for n, d in zip(*row, strict=True)]
                    for row in zip(nums, dens, strict=True)]  # fmt: skip
        # Functions of degree 4 with coefficients up to 50: conditioning below 1e4 at these points.
        np.testing.assert_allclose(np.atleast_2d(system(s)), expected, rtol=1e4 * rounding_tolerance(4), atol=0.0)


def test_states_are_kept_where_a_staircase_would_lose_the_function():
    poles = -np.logspace(-9, 6, 6)
    system = ltinet.tf([1.0], np.poly(poles))
    assert system.n_states == 6


def test_common_denominator_and_one_input():
    system = ltinet.tf([[1, 2], [3, 4]], [1, 5, 6])
    assert (system.n_outputs, system.n_inputs, system.n_states) == (2, 1, 2)
    assert ltinet.tf(3.0, 2.0).D == 1.5
    assert ltinet.tf([[[1], [1]]], [1, 1]).n_states == 1


def test_names_delays_and_time_step():
    system = ltinet.tf([1], [1, 0.5], 0.1, inputs=["force"], outputs=["speed"], input_delay=0.3, output_delay=0.2)
    assert (system.dt, system.input_names, system.output_names) == (0.1, ("force",), ("speed",))
    assert system.input_delay == [0.3]
    assert system.output_delay == [0.2]
    assert ltinet.zpk([], [0.5], 1, 0.1).dt == 0.1
    assert ltinet.ss(1, 2, 3, 0, 0.1, states=["x"]).state_names == ("x",)
    assert ltinet.ss(([1.0], [1.0, 2.0]), input_delay=2.0).input_delay == [2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ltinet.tf([1, 2, 3], [1, 1]), r"improper: num has degree 2, den only 1.*pass a proper one"),
        (lambda: ltinet.tf([[[1], [1, 0]]], [[[1, 1], [1]]]), r"input 1: .*improper"),
        (lambda: ltinet.tf([1], [0, 0]), r"den is zero"),
        (lambda: ltinet.tf([[1, 2]], [[1, 2]]), r"write num\[i\]\[j\]"),
        (lambda: ltinet.tf([[[1], [1]]], [[[1, 1]]]), r"a polynomial for each output and input"),
        (lambda: ltinet.tf([1j], [1, 1]), r"num is complex"),
        (lambda: ltinet.tf("q"), r'"s" or "z", got'),
        (lambda: ltinet.tf("z"), r"needs a time step"),
        (lambda: ltinet.tf("s", dt=0.1), r'write tf\("z", dt=0.1\)'),
        (lambda: ltinet.tf("s").poles(), r"improper"),
        (lambda: ltinet.zpk([1, 2], [1], 1), r"improper: 2 zeros but 1 poles"),
        (lambda: ltinet.zpk([], [1 + 1j], 1), r"without their conjugates"),
        (lambda: ltinet.zpk([], [1], [1, 2]), r"gain has"),
        (lambda: ltinet.zpk([], [1], np.zeros((0, 2))), r"gain has shape \(0, 2\); pass a number, or a matrix"),
        (lambda: ltinet.zpk([], [[[-1]]], [[1, 2]]), r"poles must have a list of roots for each entry of gain, 1×2"),
        (lambda: ltinet.zpk([], [[-1], [-2]], [[1], [2]]), r"poles must have a list of roots for each entry"),
        (lambda: ltinet.zpk([], [[[-1], ["a"]]], [[1, 2]]), r"poles\[0\]\[1\] must be a list of numbers"),
        (lambda: ltinet.zpk([np.nan], [1], 1), r"zeros must be a list of finite numbers"),
        (lambda: ltinet.pid(1, 0, 1), r"without filter is improper; pass tf.*tf=0\.1\b"),
        (lambda: ltinet.pid(1, 0, 1, 0.01, 0.1), r"unstable.*above dt/2 = 0\.05"),
        (lambda: ltinet.pid("1"), r"kp must be a finite number"),
        (lambda: ltinet.pid(1, 1, 0, -1), r"tf must be a number ≥ 0"),
        (lambda: ltinet.ss(1, 2), r"ss needs A, B and C"),
        (lambda: ltinet.ss(([1.0], [1.0, 2.0]), D=1), r"one system, or matrices"),
    ],
)
def test_invalid_arguments_are_refused_with_advice(call, message):
    with pytest.raises(InvalidSystemError, match=message):
        call()


@pytest.mark.parametrize(
    "gains", [(2.0, 0.0, 0.0, 0.0), (2.0, 1.5, 0.0, 0.0), (0.0, 1.5, 0.0, 0.1), (2.0, 1.5, 0.7, 0.05)]
)
def test_pid_is_its_formula(gains):
    kp, ki, kd, tf = gains
    for s in POINTS:
        expected = kp + ki / s + (kd * s / (tf * s + 1) if kd else 0.0)
        assert abs(ltinet.pid(*gains)(s) - expected) <= 1e3 * EPS * (kp + ki / abs(s) + (kd / tf if kd else 0.0))
    dt = 0.04
    for z in (1.3 + 0.2j, -0.9j, 2.0):
        expected = kp + ki * dt / (z - 1) + (kd / (tf + dt / (z - 1)) if kd else 0.0)
        assert abs(ltinet.pid(*gains, dt)(z) - expected) <= 1e3 * EPS * (kp + ki + (kd / tf if kd else 0.0))
    assert ltinet.pid(*gains).n_states == (ki != 0) + (kd != 0)


# Back to polynomials and roots


def test_polynomials_come_back():
    num, den = np.array([2.0, 3.0, 5.0]), np.array([1.0, 4.0, 6.0, 4.0])
    back = ltinet.tf(7.0 * num, 7.0 * den).tf()
    np.testing.assert_allclose(back.num, num, rtol=1e3 * EPS)
    np.testing.assert_allclose(back.den, den, rtol=1e3 * EPS)
    assert back.tf() is back
    assert str(back) == "    2 s^2 + 3 s + 5\n-----------------------\n s^3 + 4 s^2 + 6 s + 4"


def test_matrices_come_back_with_delays():
    system = ltinet.tf([[[1], [2]], [[0], [1, 3]]], [[[1, 1], [1, 2]], [[1], [1, 4, 5]]], input_delay=[0.0, 0.5])
    back = system.tf()
    assert (back.n_outputs, back.n_inputs) == (2, 2)
    np.testing.assert_allclose(back.num[1][1], [1.0, 3.0], rtol=1e3 * EPS)
    np.testing.assert_allclose(back.num[1][0], [0.0], atol=0.0)
    assert "exp(-0.5 s) *" in str(back)
    assert "input 1 to output 1" in str(back)
    for s in POINTS:
        np.testing.assert_allclose(back(s), system(s), rtol=1e5 * EPS, atol=1e4 * EPS)
        np.testing.assert_allclose(system.zpk()(s), system(s), rtol=1e5 * EPS, atol=1e4 * EPS)


def test_zeros_poles_and_gain_come_back():
    zeros, poles = [-0.5, -1 + 3j, -1 - 3j], [-0.1 + 2j, -0.1 - 2j, -4.0, -7.0]
    back = ltinet.zpk(zeros, poles, -2.5).zpk()
    np.testing.assert_allclose(np.sort_complex(back.zeros), np.sort_complex(zeros), rtol=1e4 * EPS)
    np.testing.assert_allclose(np.sort_complex(back.poles), np.sort_complex(poles), rtol=1e4 * EPS)
    assert back.gain == pytest.approx(-2.5, rel=1e4 * EPS)
    assert str(ltinet.zpk([-3], [-1, 0], 2).zpk()) == "2 (s + 3) / (s (s + 1))"
    assert str(ltinet.zpk([], [0.5], 1, 0.1).zpk()) == "1 / (z - 0.5)"
    assert ltinet.tf(3, 1).zpk().gain == 3.0
    assert ltinet.tf(ltinet.tf([1], [1, 1])).den.tolist() == [1.0, 1.0]


# Formulas in s


def test_formulas_are_polynomials_until_a_system_is_needed():
    s = ltinet.tf("s")
    G = (s + 1) / s * (s + 2) / (0.01 * s + 1)  # improper in between
    np.testing.assert_allclose(G.num, [1.0, 3.0, 2.0])
    np.testing.assert_allclose(G.den, [0.01, 1.0, 0.0])
    assert G.poles().real.tolist() == [0.0, -100.0]
    assert ((1 / s) ** 2 + 3 / s**2).num.tolist() == [4.0]
    assert (2 - s).num.tolist() == [-1.0, 2.0]
    assert (s**-2).den.tolist() == [1.0, 0.0, 0.0]
    assert -s == s * -1
    assert s != ltinet.tf("z", dt=0.1)
    assert repr(1 / (s + 1)) == "TransferFunction([1.0], [1.0, 1.0])"
    assert s(2.0) == 2.0


def test_formulas_combine_with_systems():
    s = ltinet.tf("s")
    lag = ltinet.tf([1], [1, 1])
    product, total = lag * (1 / (s + 2)), (1 / (s + 2)) + lag
    assert isinstance(product, ltinet.StateSpace)
    assert abs(product(1j) - 1 / ((1j + 1) * (1j + 2))) <= 100 * EPS
    assert abs(total(1j) - 1 / (1j + 1) - 1 / (1j + 2)) <= 100 * EPS
    with pytest.raises(InvalidSystemError, match="improper"):
        lag * s
    with pytest.raises(InvalidSystemError, match="denominator is zero"):
        1 / (s - s)
