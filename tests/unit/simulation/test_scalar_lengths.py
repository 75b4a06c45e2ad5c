"""Hypothesis: steps of many lengths are as accurate and unbiased as one exponential per step."""

import mpmath
import numpy as np
import pytest

from ltinet._util.phi_functions import phi_functions
from ltinet.error_bounds.double_double_exponentials import double_double_exponential_table
from ltinet.simulation import nonuniform_scalars
from ltinet.simulation.nonuniform_scalars import NonuniformScalarSteps

EPS = float(np.finfo(float).eps)
OCTAVE = -6
COUNT = 2 * nonuniform_scalars._MIN_PREPARED_LENGTHS  # lengths, so that everything is prepared


def _rates(kind):
    """Rates of all methods: slow, fast, beyond tables, growing slowly and fast, zero."""
    random = np.random.default_rng(3)
    size = 10.0 ** random.uniform(-6.0, 6.0, 40)
    rates = -size if kind == "real" else -size * np.exp(1j * random.uniform(-np.pi / 2, np.pi / 2, 40))
    rates[0], rates[1], rates[2] = 0.0, 3.0, 700.0
    return rates


def _lengths():
    random = np.random.default_rng(4)
    even = random.uniform(0.5, 1.5, COUNT) * 0.01
    wide = 10.0 ** random.uniform(-12.0, -2.0, COUNT)
    return np.concatenate([even, wide, [0.0, 5e-324, 1e-310, np.nextafter(2.0**OCTAVE, 0.0), 2.0**-9]])


def _exact(rate, h):
    """e^z, h φ₁(z) and h φ₂(z) in 50 digits."""
    h = mpmath.mpf(float(h))
    z = mpmath.mpmathify(complex(rate)) * h
    return mpmath.exp(z), h * mpmath.hyp1f1(1, 2, z), h * mpmath.hyp1f1(1, 3, z) / 2


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def _steps(rates, h, *, linear, many_follow=False):
    """Return P, or P − 1 for incremental rates, and h φ₁ and h φ₂ from the responses to unit inputs at both ends."""
    steps = NonuniformScalarSteps(
        rates, np.ones((1, len(rates))), octave=OCTAVE, linear=linear, many_follow=many_follow
    )
    one, none = np.ones((1, len(h), 1)), np.zeros((1, len(h), 1))
    P, begin = steps.step(h, one, none)
    _, end = steps.step(h, none, one)
    return P + np.asarray(steps.incremental, dtype=float), begin[0] + end[0], end[0]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("linear", [True, False], ids=["linear", "zero"])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("many_follow", [False, True])
def test_steps_are_those_of_exponentials(kind, linear, many_follow):
    rates, h = _rates(kind), _lengths()
    steps = _steps(rates, h, linear=linear, many_follow=many_follow)
    for k in [*range(0, len(h), 37), *range(len(h) - 5, len(h))]:
        for j, rate in enumerate(rates):
            P, first, second = (own[k, j] for own in steps)
            true_P, true_first, true_second = _exact(rate, h[k])
            turned = max(1.0, abs(rate) * h[k])  # λh is rounded where there is one exponential for each
            assert abs(P - true_P) <= 8.0 * EPS * turned * max(1.0, abs(true_P))
            # A series is right relative to its largest value, and φ₁ and φ₂ fall to 1/32 of it.
            assert abs(first - true_first) <= 16.0 * EPS * turned * abs(true_first) + 5e-324
            if linear:
                assert abs(second - true_second) <= 16.0 * EPS * turned * abs(true_second) + 5e-324
            else:
                assert second == 0.0


@pytest.mark.parametrize("many_follow", [False, True])
def test_nothing_moves_in_a_step_of_length_zero(many_follow):
    h = np.append(_lengths(), 0.0)
    P, first, second = _steps(_rates("complex"), h, linear=True, many_follow=many_follow)
    assert np.all(P[-1] == 1.0)
    assert not first[-1].any()
    assert not second[-1].any()


@pytest.mark.parametrize("rate", [1j, np.pi * 10j, np.pi * 66j, np.pi * 1000j, -1e-3 / np.pi, -1e-9 + np.pi * 1e-3j])
def test_many_steps_are_not_off_in_one_direction(rate):
    """The product of 20,000 steps equals one step of their total length as accurately as one of 20,000 exponentials.

    Independent roundings add up to √20,000 = 141 half units, roundings of one sign to 20,000.
    """
    h = np.random.default_rng(5).uniform(0.05, 0.15, 20_000)
    h = np.round(h * 2.0**30) / 2.0**30  # so that their sum is exact
    rates = np.array([rate if isinstance(rate, complex) else float(rate)])
    steps = NonuniformScalarSteps(rates, np.ones((1, 1)), octave=-2, linear=True, many_follow=True)
    P = steps.factors(h)[:, 0] + float(steps.incremental)
    whole = mpmath.exp(mpmath.mpmathify(complex(rate)) * mpmath.mpf(float(h.sum())))
    ours, one_by_one = (abs(complex(np.prod(own)) / whole - 1) for own in (P, np.exp(rates[0] * h)))
    assert ours <= max(10.0 * one_by_one, 200.0 * EPS)


def test_exponentials_of_twice_the_digits():
    random = np.random.default_rng(0)
    rates = -(10.0 ** random.uniform(-6.0, 2.7, 20)) * np.exp(1j * random.uniform(-np.pi / 2, np.pi / 2, 20))
    rates[:2] = 0.0, 3.0
    less_one = np.arange(20) % 2 == 0
    table = double_double_exponential_table(rates, 0.125, 65, less_one=less_one)
    for k in range(0, 65, 8):
        for j, rate in enumerate(rates):
            z = mpmath.mpmathify(complex(rate)) * k / 8
            found = mpmath.mpmathify(complex(table.high[k, j])) + mpmath.mpmathify(complex(table.low[k, j]))
            found += int(less_one[j])
            assert abs(found - mpmath.exp(z)) <= 2.0**-70 * max(1.0, abs(z)) * max(1.0, abs(mpmath.exp(z)))


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e-3, 0.5, 2.0, 30.0])
def test_phi_functions(scale):
    z = scale * np.exp(1j * np.linspace(0.1, np.pi, 11))
    first, second = phi_functions(z)
    for k, value in enumerate(z):
        of_one, of_two = (mpmath.hyp1f1(1, n, mpmath.mpmathify(complex(value))) / (n - 1) for n in (2, 3))
        assert abs(first[k] - of_one) <= 8.0 * EPS * max(abs(of_one), 1.0 / scale)
        assert abs(second[k] - of_two) <= 8.0 * EPS * abs(of_two)
