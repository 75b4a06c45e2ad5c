"""Hypothesis: over systems drawn at random, regions hold true poles, delays are found and fits reach the noise.

A small part of `make bench-identify`, with its generator: draws whose states stand out of the noise.
"""

import itertools

import numpy as np
import pytest
from benchmarks.identify_monte_carlo import CERTAIN, Draw, drawn, regions_hold

import ltinet

COUNT = 12


@pytest.fixture(scope="module")
def draws() -> list[Draw]:
    return list(itertools.islice(filter(lambda own: own.visibility >= CERTAIN, map(drawn, itertools.count())), COUNT))


@pytest.fixture(scope="module")
def models(draws: list[Draw]) -> list[ltinet.IdentificationResult]:
    return [ltinet.identify(own.u, own.y, dt=1.0, order=own.order, delay=0) for own in draws]


def test_draws_are_of_all_kinds(draws: list[Draw]) -> None:
    assert {(own.coloured, own.decibels) for own in draws} == {(False, 20), (False, 40), (True, 20), (True, 40)}
    assert len({own.order for own in draws}) >= 4
    for own in draws:
        assert np.abs(np.linalg.eigvals(own.A)).max() < 0.98
        noise = own.y - own.clean
        assert own.clean.std(axis=0) / noise.std(axis=0) == pytest.approx(10.0 ** (own.decibels / 20.0), rel=1e-9)


@pytest.mark.slow
def test_regions_hold_true_poles(draws: list[Draw], models: list[ltinet.IdentificationResult]) -> None:
    held = [
        inside
        for own, found in zip(draws, models, strict=True)
        for inside in regions_hold(found.pole_uncertainty(), np.linalg.eigvals(own.A).astype(complex))
    ]
    assert len(held) >= 40
    # 99 % of about 50 dependent ones: with 5 % of misses, the worst that is promised for coloured noise, 3 and a spread
    # of 1.6; two spreads more. Regions of white noise alone miss one in seven under coloured noise.
    assert np.count_nonzero(np.logical_not(held)) <= 0.05 * len(held) + 2.0 * np.sqrt(0.05 * len(held))


@pytest.mark.slow
def test_regions_are_tight(draws: list[Draw], models: list[ltinet.IdentificationResult]) -> None:
    """Distances of true poles in deviations: their median is that of a normal number, 0.67, and not far below."""
    distances = []
    for own, found in zip(draws, models, strict=True):
        true = np.log(np.linalg.eigvals(own.A).astype(complex))
        for confidence in found.pole_uncertainty():
            nearest = true[np.argmin(np.abs(np.exp(true) - np.exp(confidence.pole)))]
            distances.append(abs(nearest.real - confidence.pole.real) / confidence.deviation.real)
    # 40 distances: their median spreads by about 0.15; models that are not refined count their step as a deviation.
    assert 0.3 < np.median(distances) < 1.1


@pytest.mark.slow
def test_fit_reaches_parameter_bound(draws: list[Draw], models: list[ltinet.IdentificationResult]) -> None:
    for own, found in zip(draws, models, strict=True):
        assert found.covariance is not None
        # The best any method can do under white noise leaves noise · √(parameters/(N p)); three times that, and six
        # times under coloured noise, whose spectrum is up to 20 times, in amplitude 6 times, that of its variance.
        share = np.sqrt(len(found.covariance.parameters) / own.y.size)
        left = 10.0 ** (-own.decibels / 20.0) * share * (6.0 if own.coloured else 3.0)
        assert np.all(found.fit(own.u, own.clean) > 100.0 * (1.0 - left))


@pytest.mark.slow
def test_delays_are_found(draws: list[Draw]) -> None:
    found = []
    for own in draws:
        u, y = own.delayed()
        found.append(ltinet.identify(u, y, dt=1.0, order=own.order, refine=False, method="moesp").delay == own.delays)
    assert found.count(False) <= 1  # 95 % of 12 are promised
