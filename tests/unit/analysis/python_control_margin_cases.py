"""Cases of python-control's `control/tests/margin_test.py` (0.10.2) in the scope of `ltinet.margin`, and why others are not.

`LOOPS` are its systems as polynomials: numerator, denominator and, for sampled ones, the time step of a zero-order hold.
`IN_SCOPE` names test, loop, gain and the quantities compared; `EXCLUDED` every other test with its reason. Lists of all
margins (`returnall=True`) count as one case, and so do the smallest margins of one loop.
"""

from typing import NamedTuple

import numpy as np


def _product(*factors: list[float]) -> list[float]:
    product = np.ones(1)
    for factor in factors:
        product = np.polymul(product, factor)
    return [float(value) for value in product]


_EXAMPLE_21 = (
    [0.002 * value for value in _product([1, 0.02], [1, 0.05], [1, 5], [1, 10])],
    _product([1, -0.0005], [1, 0.0001], [1, 0.01], [1, 0.2], [1, 1], [1, 100], [1, 100]),
)
_EXAMPLE_25 = _product(*[[1.0, 2.0, 2.0]] * 4)
_SWING = [1.0, -0.2, 1.01]  # (s − 0.1)² + 1
_FAST_SWING = [1.0, -0.4, 4.04]  # (s − 0.2)² + 4

LOOPS: dict[str, tuple[list[float], list[float], float | None]] = {
    "second order": ([1, 2], [1, 2, 3], None),
    "third order": ([1], [1, 2, 3, 4], None),
    "state space": ([1, -18], [1, -3, -10], None),
    "two resonances": (
        [8.75 * value for value in (4, 0.4, 1)], _product([100, 1], [1, 0.22, 1], [0.01, 0.008, 1]), None,
    ),
    "first order": ([1], [1, 1], None),
    "lead": ([3, 30], [1, 2], None),
    "right half plane zero": ([-0.01, 0.1], [1, 3, 2], None),
    "triple": ([2], [1, 3, 3, 1], None),
    "discrete": ([3e-4, 11e-4, 3e-4], [1.0, -2.7145, 2.4562, -0.7408], 0.1),
    "integrator": ([200.0], [1.0, 21.0, 20.0, 0.0], None),
    "gh-58": ([15], [1, 6, 11, 6], None),
    "typem1": ([1, 0], [1, 1], None),
    "type0": ([1], [1, 3, 3, 1], None),
    "type1": ([1, 0.1], [1, 1, 0], None),
    "type2": ([1, 0.1], [1, 1, 0, 0], None),
    "type3": (_product([1, 0.1], [1, 0.1]), [1, 1, 0, 0, 0], None),
    "example21": (*_EXAMPLE_21, None),
    "example22": (_product(_EXAMPLE_21[0], [1, -2, 401]), _EXAMPLE_21[1], None),
    "example23": (_product([1, 0.2, 1.01], [1, -0.1]), _product([1, 0.2, 4.01], [1, 1]), None),
    "example24": ([2e4 * value for value in _EXAMPLE_21[0]], _EXAMPLE_21[1], None),
    "example25a": ([1, 0], _EXAMPLE_25, None),
    "example25b": ([100, 0], _EXAMPLE_25, None),
    "example26a": (_SWING, _product([1, 0.1], _FAST_SWING), None),
    "example26b": (_SWING, _product([1, -0.3], _FAST_SWING), None),
}  # fmt: skip

SAMPLED: dict[str, tuple[list[float], list[float], float]] = {
    "gh-465": ([2], [1, 3, 2, 0], 1e-2),
    "2/(s + 1)³": ([2], [1, 3, 3, 1], 0.1),
    "gh-523 a": ([1.1 * 4 * np.pi**2], [1, 2 * 0.2 * 2 * np.pi, 4 * np.pi**2], 0.05),
    "gh-523 b": ([5e4], [1.0, 101.0, 10101.0, 10100.0, 10000.0], 1e-3),
}
"""Continuous-time loops with the step at which they are sampled by a zero-order hold."""


class Case(NamedTuple):
    """One comparison: smallest margins, all margins, or phase crossovers; `modulus` if a local minimum is the smallest."""

    test: str
    loop: str
    gain: float = 1.0
    modulus: bool = False


_SEVEN = (
    "second order",
    "third order",
    "state space",
    "two resonances",
    "first order",
    "lead",
    "right half plane zero",
)
_MODULUS = {"third order", "two resonances", "right half plane zero"}
IN_SCOPE = (
    *(Case("test_stability_margins", loop, modulus=loop in _MODULUS) for loop in _SEVEN),
    *(Case("test_stability_margins returnall", loop) for loop in _SEVEN),
    *(Case("test_margin_sys", loop) for loop in _SEVEN),
    *(
        Case("test_phase_crossover_frequencies", loop)
        for loop in ("third order", "first order", "triple", "discrete", "integrator")
    ),
    Case("test_mag_phase_omega", "gh-58", modulus=True),
    Case("test_zmore_margin", "typem1", 2.0),
    Case("test_zmore_margin", "type0", 0.8),
    Case("test_zmore_margin", "type0", 2.0),
    Case("test_zmore_margin", "type1"),
    Case("test_zmore_margin", "type2"),
    Case("test_zmore_margin", "type3"),
    Case("test_zmore_margin", "example21"),
    Case("test_zmore_margin", "example21", 1000.0),
    Case("test_zmore_margin", "example21", 5000.0),
    Case("test_zmore_stability_margins", "example21", modulus=True),
    *(
        Case("tsys_zmoresystems, which no test uses", loop)
        for loop in ("example22", "example23", "example24", "example25a", "example25b", "example26a", "example26b")
    ),
    *(Case("test_stability_margins_discrete", loop, modulus=True) for loop in SAMPLED),
    Case("test_siso_disk_margin", "25/(s³ + 10 s² + 10 s + 10)"),
    Case("test_mimo_disk_margin, at the output", "rotation"),
    Case("test_mimo_disk_margin, at the input", "rotation"),
)

EXCLUDED = {
    "test_stability_margins_omega (7)": "loops given as measured frequency responses: ltinet takes models",
    "test_stability_margins_3input (7)": "loops given as magnitude, phase and frequency: ltinet takes models",
    "test_margin_3input (7)": "loops given as magnitude, phase and frequency: ltinet takes models",
    "test_mag_phase_omega, second half": "a loop given as magnitude, phase and frequency: ltinet takes models",
    "test_frd": "a measured frequency response: ltinet takes models",
    "test_frd_indexing (3)": "measured frequency responses: ltinet takes models",
    "test_phase_crossover_frequencies_mimo": "the class of an exception; ltinet raises InvalidSystemError, tested apart",
    "test_stability_margins, sm of the other four loops": (
        "python-control lists local minima of |1 + L| and returns inf where the infimum is a limit at 0 or infinity; "
        "ltinet returns the infimum"
    ),
    "test_phase_crossover_frequencies, positive gains": (
        "frequencies at which L is real and positive are not margins; ltinet lists negative ones"
    ),
    "test_siso_disk_margin, skew=1": "the S-based disk is the modulus margin, compared elsewhere",
    "test_siso_disk_margin_return_all": "margins at each frequency of a grid; ltinet has no grid",
    "test_mimo_disk_margin_return_all": "margins at each frequency of a grid; ltinet has no grid",
}
