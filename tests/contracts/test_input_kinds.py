"""What every kind of input promises, and a kind that is written here, through the protocol alone.

The truth is a closed form: ẋ = −x + u with u(t) = t² on [0, 2] and 1 − t after it, a kink and a jump in one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.interpolate import PPoly

import ltinet
from ltinet.signals.sampled import SampledApproximation

T = np.linspace(0.0, 4.0, 41)
JUMP = 2.0


def u(t):
    return np.where(np.asarray(t) < JUMP, np.asarray(t) ** 2, 1.0 - np.asarray(t))


def rate(t):
    return np.where(np.asarray(t) < JUMP, 2.0 * np.asarray(t), -1.0)


def y(t):
    """t² − 2t + 2 − 2e^{−t} up to the jump; then u = 1 − t has the particular solution 2 − t."""
    before = t**2 - 2.0 * t + 2.0 - 2.0 * np.exp(-t)
    at_jump = JUMP**2 - 2.0 * JUMP + 2.0 - 2.0 * np.exp(-JUMP)
    after = 2.0 - t + (at_jump - (2.0 - JUMP)) * np.exp(-(t - JUMP))
    return np.where(t < JUMP, before, after)


@dataclass(frozen=True)
class Toy:
    """A kind of input that the library does not know: the formula above, in as few lines as the protocol takes."""

    factor: float = 1.0
    n_inputs: int = 1
    batch_shape: tuple[int, ...] = ()
    start: float = -np.inf
    stop: float = np.inf
    degree: int | None = None

    @property
    def knots(self) -> np.ndarray:
        return np.array([JUMP])

    def value(self, t: np.ndarray) -> np.ndarray:
        return self.factor * u(t)[:, None]

    def value_before(self, t: np.ndarray) -> np.ndarray:
        return self.factor * np.where(t <= JUMP, t**2, 1.0 - t)[:, None]

    def derivative(self, t: np.ndarray) -> np.ndarray:
        return self.factor * rate(t)[:, None]

    def sampled_over(self, t: np.ndarray, *, tolerance: float) -> SampledApproximation:
        return ltinet.FunctionSignal(lambda s: self.factor * u(s), n_inputs=1, knots=[JUMP]).sampled_over(
            t, tolerance=tolerance
        )

    def unbatched(self) -> Sequence["Toy"]:
        return [self]

    def through(self, weights: np.ndarray) -> ltinet.FunctionSignal:
        return ltinet.FunctionSignal(u, n_inputs=1, derivative=rate, knots=[JUMP]).through(self.factor * weights)

    def counted_from(self, origin: float) -> None:  # noqa: ARG002
        return None


POLYNOMIAL = ([0.0, 2.0, 4.0], [[1.0, 0.0], [0.0, -1.0], [0.0, -1.0]])
FINE = np.unique(np.concatenate([np.linspace(0.0, 2.0, 2_001), np.linspace(2.0, 4.0, 3)]))
KINDS = {
    "samples": lambda: ltinet.SampledSignal(
        np.insert(FINE, 2_000, 2.0), np.concatenate([FINE[:2_001] ** 2, [-1.0], 1.0 - FINE[2_001:]])
    ),
    "function": lambda: ltinet.FunctionSignal(u, n_inputs=1, derivative=rate, knots=[JUMP]),
    "polynomial": lambda: ltinet.PolynomialSignal(*POLYNOMIAL),
    "scipy's polynomial": lambda: PPoly(np.array(POLYNOMIAL[1])[:, :, None], POLYNOMIAL[0]),
    "toy": Toy,
}


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]]))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["exact", "per_neuron", "per_interval"])
def test_every_engine_runs_every_kind(net, kind, engine):
    solution = net.simulate(KINDS[kind](), T, engine=engine)
    error = np.abs(solution.y[:, 0] - y(T)).max()
    lines = 2.5e-7 if kind == "samples" else 0.0  # what 2,000 lines are from t²: h²/4, half of it on average
    assert error <= float(solution.error_bound()[0]) + lines
    assert error <= 1e-7 + lines  # tolerance of lines and of solvers is 1e-8 of max |u| = 4


@pytest.mark.parametrize("kind", [own for own in KINDS if own != "scipy's polynomial"])
def test_values_derivatives_and_weights_belong_together(kind):
    signal = KINDS[kind]()
    assert isinstance(signal, ltinet.Signal)
    t = np.array([0.5, 1.7, 2.0, 3.3])
    np.testing.assert_allclose(signal.value(t)[:, 0], u(t), atol=3e-7)
    np.testing.assert_allclose(signal.value_before(np.array([2.0]))[:, 0], [4.0], atol=3e-7)
    np.testing.assert_allclose(signal.derivative(t)[:, 0], rate(t), atol=2e-3)  # lines of length 1e-3
    assert JUMP in signal.knots
    both = signal.through(np.array([[2.0], [-1.0]]))
    assert both.n_inputs == 2
    np.testing.assert_allclose(both.value(t), u(t)[:, None] * [2.0, -1.0], atol=6e-7)
    assert [own.batch_shape for own in signal.unbatched()] == [()]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["exact", "per_neuron"])
def test_kinds_can_be_mixed_in_a_batch(net, engine):
    kinds = [own for own in KINDS if own != "scipy's polynomial"]
    batch = ltinet.SignalBatch([KINDS[own]() for own in kinds])
    together = net.simulate(batch, T, engine=engine)
    assert together.y.shape == (len(kinds), len(T), 1)
    bound = together.error_bound()
    for own, values, most in zip(kinds, together.y[..., 0], bound[:, 0], strict=True):
        assert np.abs(values - y(T)).max() <= most + (2.5e-7 if own == "samples" else 0.0), own


def test_times_counted_from_an_offset_stay_the_same_input():
    moved = ltinet.PolynomialSignal(np.array(POLYNOMIAL[0]) + 1024.0, POLYNOMIAL[1])
    own = moved.counted_from(1024.0)
    assert own is not None
    np.testing.assert_array_equal(own.value(T), ltinet.PolynomialSignal(*POLYNOMIAL).value(T))
    assert ltinet.PolynomialSignal(*POLYNOMIAL).counted_from(1.0) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ltinet.PolynomialSignal([0.0, 1.0], [[1.0, 2.0]]), "a piece between every two breaks"),
        (lambda: ltinet.PolynomialSignal([0.0, 1.0, 1.0], [[1.0, 2.0]]), "ascend strictly"),
        (lambda: ltinet.PolynomialSignal([0.0, 1.0], [[np.nan]]), "finite"),
        (lambda: ltinet.PolynomialSignal([0.0, 1.0], [[1j]]), "complex"),
        (lambda: ltinet.SignalBatch([]), "at least one"),
        (lambda: ltinet.SignalBatch([np.sin]), "not single signals"),
        (lambda: ltinet.SignalBatch([Toy(), ltinet.FunctionSignal(np.sin, n_inputs=2)]), r"\[1, 2\] inputs"),
    ],
)
def test_what_is_no_such_input_is_refused(make, words):
    with pytest.raises(ltinet.InvalidSignalError, match=words):
        make()


def test_a_polynomial_is_not_guessed_beyond_its_breaks(net):
    with pytest.raises(ltinet.InvalidSignalError, match="defined from 0 to 4 only"):
        net.simulate(ltinet.PolynomialSignal(*POLYNOMIAL), np.linspace(0.0, 5.0, 6))
