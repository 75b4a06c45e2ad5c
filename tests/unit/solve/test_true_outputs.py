"""Outputs to more digits than the engines have, beside those of balls."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.true_outputs import true_outputs

# Half a unit in the last place of a result, and under linear hold what a second rounding of Γ₁ does: some of them.
_ROUNDINGS = 8.0 * 2.0**-53


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("seed", range(8))
def test_systems_whose_engines_lose_digits(seed, hold):
    rng = np.random.default_rng([37, seed])
    n, m, p = int(rng.integers(2, 13)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    # Non-normal, in units that differ by four decades, with a chain of integrators in every other one.
    A = np.triu(rng.standard_normal((n, n)), 1) - np.diag(10.0 ** rng.uniform(-2.0, 0.5, n) * (seed % 2))
    units = 10.0 ** rng.uniform(-2.0, 2.0, n)
    A, B, C = A * units / units[:, None], rng.standard_normal((n, m)), rng.standard_normal((p, n))
    D, x0 = rng.standard_normal((p, m)), rng.standard_normal(n)
    t, u = 2.0 ** -int(rng.integers(0, 6)) * np.arange(150), rng.standard_normal((150, m))
    direct = ltinet.construct((A, B, C, D))._prepared.as_given
    found = true_outputs(ExactPath(direct, SampledSignal(t, u, hold=hold), x0))
    truth = respond(A, B, C, D, u=u, t=t, hold=hold, x0=x0).y
    assert np.all(truth.distance(found[0]) <= _ROUNDINGS * np.maximum.accumulate(np.abs(truth.mid), axis=0))


@pytest.mark.parametrize(
    ("u", "t"), [(np.ones((9, 1)), np.arange(9.0) ** 2), (np.ones((2, 9, 1)), np.arange(9.0)), (np.ones((1, 1)), [0.0])]
)
def test_other_runs_are_left_to_bounds(u, t):
    direct = ltinet.construct((-np.eye(2), np.ones((2, 1)), np.ones((1, 2))))._prepared.as_given
    assert true_outputs(ExactPath(direct, SampledSignal(np.asarray(t), u), None)) is None


def test_what_exceeds_all_numbers_is_not_told():
    direct = ltinet.construct((400.0 * np.eye(1), np.ones((1, 1)), np.ones((1, 1))))._prepared.as_given
    assert true_outputs(ExactPath(direct, SampledSignal(np.arange(9.0), np.ones((9, 1))), None)) is None
