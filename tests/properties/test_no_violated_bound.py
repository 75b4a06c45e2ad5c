"""Hypothesis: no certified bound is below the error that an independent way finds, and most systems are certified."""

import numpy as np

import ltinet
from reduction_cases import KINDS, RESIDUAL, draw, error_of

N_CASES = 84


def test_bounds_hold_and_are_not_far_above_the_error() -> None:
    ratios: dict[bool, list[float]] = {True: [], False: []}
    certified = {kind: [0, 0] for kind in KINDS}
    for seed in range(N_CASES):
        case = draw(seed)
        found = ltinet.reduce(case.system, order=case.order)
        certified[case.kind][1] += 1
        if found.error_bound is None:
            continue
        certified[case.kind][0] += 1
        error = error_of(case, found.system)
        floor = 1e-12 * found.gain if case.kind in RESIDUAL else 0.0  # what the reference by doubles loses there
        assert error <= found.error_bound + floor, (seed, case.kind, error, found.error_bound)
        if error > 1e-11 * found.gain:  # below, rounding is all of both
            ratios[case.kind in RESIDUAL].append(found.error_bound / error)
    share = sum(own for own, _ in certified.values()) / N_CASES
    assert share >= 0.95, certified
    assert np.median(ratios[False]) <= 20.0
    assert np.median(ratios[True]) <= 100.0
