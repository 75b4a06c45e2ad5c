"""The tables of a step are accurate to a few units of rounding, as the bounds of exports assume."""

import mpmath
import numpy as np

from ltinet._util.floating_point import EPS
from ltinet.export.rounding import TABLE_ERROR
from ltinet.simulation.propagators import exp_of_multiples, scalar_steps


def test_exponentials_and_weights_of_inputs_are_accurate() -> None:
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-4.0, 2.0, (2, 400))
    exponents = -sizes[0] + 1j * sizes[1] * rng.integers(0, 2, 400)
    powers = exp_of_multiples(exponents, 1.0, np.array([1]))[0]
    steps = scalar_steps(exponents, np.array([1.0]), linear=True)
    errors = []
    with mpmath.workdps(50):
        for exponent, power, begin, end in zip(exponents, powers, steps.begin[0], steps.end[0], strict=True):
            z = mpmath.mpc(exponent.real, exponent.imag)
            exact = mpmath.exp(z)
            first, second = (exact - 1) / z, (exact - 1 - z) / z**2
            scale = abs(first - second) + abs(second)  # bounds use the sum of the sizes of both weights
            errors.append(abs(power - exact) / abs(exact))
            errors += [abs(begin - (first - second)) / scale, abs(end - second) / scale]
    assert float(max(errors)) <= 2.5 * EPS
    assert TABLE_ERROR >= 3.0 * 2.5 * EPS  # with one rounding each into Γ and C
