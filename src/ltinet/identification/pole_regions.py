"""Regions that hold true poles: ellipses for pairs, intervals for real ones, and what lies between the two.

To first order a pole moves by its gradient times what parameters move. Where two poles meet, a pair that could as well
be two real ones, there is no first order: with mean μ and discriminant Δ they are μ ± √Δ, and a root has no slope at 0.
But μ and Δ, coefficients of the quadratic, move smoothly through it. So wherever 99 % of them reach beyond Δ = 0, both
poles share a region told in μ and Δ, at samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.modal_model import ModalModel
from ltinet.model.matrices import Matrix

_LEVEL = 0.99  # at which two poles that may meet are told together
_ON_THE_LINE = 1e-9  # of a pole: an imaginary part below is none


@final
@dataclass(frozen=True, eq=False)
class MeetingPoles:
    """Two poles μ ± √Δ, of which records do not tell whether they are a pair (Δ < 0) or real (Δ > 0)."""

    mean: float
    discriminant: float
    covariance: Matrix
    """Of mean and discriminant, `(2, 2)`."""
    dt: float | None
    """At samples poles are eˢᵈᵗ; None where they are those of continuous time themselves."""

    def contains(self, pole: complex, *, level: float) -> bool:
        """Whether a pole of continuous time is one of two within the region."""
        if self.dt is not None and abs(pole.imag) * self.dt > np.pi * (1.0 + _ON_THE_LINE):
            return False
        own = complex(np.exp(pole * self.dt)) if self.dt is not None else pole
        is_real = abs(own.imag) <= _ON_THE_LINE * abs(own)
        squared = self._nearest(own.real) if is_real else self._squared(own.real, -(own.imag**2))
        return bool(squared <= reach(2, level))

    def reaches_zero(self, level: float) -> bool:
        """Whether the region holds pairs and real poles."""
        return bool(self.discriminant**2 <= reach(2, level) * self.covariance[1, 1])

    def _squared(self, mean: float, discriminant: float) -> float:
        step = np.array([mean - self.mean, discriminant - self.discriminant])
        return float(step @ np.linalg.solve(self.covariance, step))

    def _nearest(self, pole: float) -> float:
        """The smallest distance of all pairs of real poles with this one among them: Δ = (pole − μ)²."""
        x = np.polynomial.Polynomial([0.0, 1.0])  # pole − μ
        along, across = pole - self.mean - x, x**2 - self.discriminant
        W = np.linalg.inv(self.covariance)
        squared = W[0, 0] * along**2 + 2.0 * W[0, 1] * along * across + W[1, 1] * across**2
        turns = squared.deriv().roots()
        return float(min(squared(own.real) for own in turns))


@final
@dataclass(frozen=True, eq=False)
class PoleConfidence:
    """A pole of continuous time, of pairs that with Im > 0, and how certain it is."""

    pole: complex
    covariance: Matrix
    """Of its real part `(1, 1)`, for pairs of real and imaginary part `(2, 2)`."""
    is_pair: bool
    meeting: MeetingPoles | None = None
    """Where it may be one of two real poles as well as of a pair: both of them."""

    @property
    def deviation(self) -> complex:
        """Standard deviations of the real and of the imaginary part."""
        sizes = np.sqrt(self.covariance.diagonal())
        return complex(sizes[0], sizes[1] if self.is_pair else 0.0)

    def contains(self, pole: complex, *, level: float = 0.99) -> bool:
        """Whether a pole (of a pair either one) lies within the region that holds the true one at this level."""
        if self.meeting is not None:
            return self.meeting.contains(complex(pole), level=level)
        away = complex(pole.real, abs(pole.imag)) - self.pole
        if not self.is_pair and abs(away.imag) > _ON_THE_LINE * abs(self.pole):  # only along the line is a region
            return False
        step = np.array([away.real, away.imag])[: len(self.covariance)]
        return bool(step @ np.linalg.solve(self.covariance, step) <= reach(len(step), level))


def reach(n_numbers: int, level: float) -> float:
    """The squared distance, in standard deviations, within which so many normal numbers are at this level."""
    from scipy import special  # here, because it takes its time

    return float(special.chdtri(n_numbers, 1.0 - level))


def pole_confidences(found: ParameterCovariance, dt: float | None) -> tuple[PoleConfidence, ...]:
    """The poles of continuous time, mode by mode: log(λ)/dt, with what that does to small changes of λ."""
    model = found.model
    meeting = dict(_meeting(model, found.matrix, dt))
    told = []
    modes = zip(model.places(), model.poles.tolist(), model.is_pair.tolist(), strict=True)
    for number, (place, pole, pair) in enumerate(modes):
        slope, rate = _rate(pole, dt)
        turn = np.array([[slope.real, -slope.imag], [slope.imag, slope.real]])[: 1 + pair, : 1 + pair]
        own = slice(place, place + 1 + pair)
        told.append(PoleConfidence(rate, turn @ found.matrix[own, own] @ turn.T, pair, meeting.get(number)))
    return tuple(told)


def _rate(pole: complex, dt: float | None) -> tuple[complex, complex]:
    """ds/dλ and s of a pole λ."""
    if dt is None:
        return 1.0 + 0.0j, complex(pole)
    if not pole:
        return complex(np.inf), complex(-np.inf)
    return 1.0 / (pole * dt), complex(np.log(complex(pole)) / dt)


def _meeting(model: ModalModel, covariance: Matrix, dt: float | None) -> Iterator[tuple[int, MeetingPoles]]:
    """For modes that may meet another, or their own conjugate: the two of them; each real pole in one at most."""
    places = model.places()
    for number in np.flatnonzero(model.is_pair).tolist():
        pole, own = model.poles[number], slice(places[number], places[number] + 2)
        two = _two(
            pole.real, -(pole.imag**2), np.array([[1.0, 0.0], [0.0, -2.0 * pole.imag]]), covariance[own, own], dt
        )
        if two.reaches_zero(_LEVEL):
            yield number, two
    for first, second in _neighbours(model):
        at = [places[first], places[second]]
        half = 0.5 * float(model.poles[first].real - model.poles[second].real)
        mean = 0.5 * float(model.poles[first].real + model.poles[second].real)
        two = _two(mean, half**2, np.array([[0.5, 0.5], [half, -half]]), covariance[np.ix_(at, at)], dt)
        if two.reaches_zero(_LEVEL):
            yield first, two
            yield second, two


def _two(mean: float, discriminant: float, slopes: Array, covariance: Matrix, dt: float | None) -> MeetingPoles:
    return MeetingPoles(float(mean), float(discriminant), slopes @ covariance @ slopes.T, dt)


def _neighbours(model: ModalModel) -> Iterator[tuple[int, int]]:
    """Real poles in twos, the closest first, each once."""
    real = np.flatnonzero(~model.is_pair)
    values = model.poles[real].real
    first, second = np.triu_indices(len(real), 1)
    free = np.ones(len(real), dtype=bool)
    for place in np.argsort(np.abs(values[first] - values[second]), kind="stable").tolist():
        i, j = int(first[place]), int(second[place])
        if free[i] and free[j]:
            free[i] = free[j] = False
            yield int(real[i]), int(real[j])
