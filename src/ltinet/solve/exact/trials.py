"""Trials of two ways to run a system: for which steps, moved by what."""

import math
from typing import NamedTuple

import numpy as np

from ltinet.signals.plateaus import plateaus
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.tolerances import EPS

FEW, MANY = 2**8, 2**13  # steps that excite all states, and of a run without end: rounding shows what more would
_SHOWS = 5e-12  # of a peak: what many steps may lose by T and a few not


class Lengths(NamedTuple):
    """Steps of one length, and how many."""

    step: float
    number: float


class Steps(NamedTuple):
    """The steps of a run, as far as trials take them: how long at most and on the average, and how many."""

    longest: float
    average: float
    number: int

    @classmethod
    def of(cls, samples: SampledSignal) -> "Steps":
        """Those between samples."""
        number = len(samples.t) - 1
        if samples.step is not None or number < 1:
            return cls.even(samples.longest_step, max(number, 1))
        return cls(samples.longest_step, float(samples.t[-1] - samples.t[0]) / number, number)

    @classmethod
    def even(cls, length: float, number: int) -> "Steps":
        """Of one length."""
        return cls(length, length, number)

    @property
    def duration(self) -> float:
        """Of all of them."""
        return self.average * self.number

    def tried(self, condition: float) -> list[Lengths]:
        """A few steps of the longest kind, then as many as there are where T of this condition may show in the end.

        No more than there are: an output may see little until something arrives. The few come first because many of a
        system that grows exceed all numbers and say nothing. Numbers are rounded so that few trials serve many runs.
        """
        few, whole = self.few, self.whole
        shows = self.number <= FEW or whole.number * EPS * condition > _SHOWS
        return [few, whole] if shows and few != whole else [few]

    @property
    def few(self) -> Lengths:
        """A few of the longest kind."""
        return Lengths(self.longest, _rounded_down(min(self.number, FEW)))

    @property
    def whole(self) -> Lengths:
        """As many as there are, of the usual kind."""
        usual = self.longest if self.average == self.longest else _rounded_down(self.average)
        return Lengths(usual, _rounded_down(min(self.number, MANY)))


class Trial(NamedTuple):
    """Steps with inputs of some sizes, or from a state of the user with none."""

    step: float
    number: float
    hold: Hold
    inputs: tuple[float, ...]
    start: tuple[float, ...] | None = None

    @property
    def halved(self) -> "Trial":
        """Half as many steps."""
        return self._replace(number=self.number // 2)

    @property
    def of_one_step(self) -> "Trial":
        """The first of them alone."""
        return self._replace(number=1.0)

    @property
    def samples(self) -> SampledSignal:
        """Inputs that excite slow and fast states alike."""
        found = plateaus(self.step, len(self.inputs), self.hold, n_steps=int(self.number))
        sizes = np.asarray(self.inputs) * (1.0 if self.start is None else 0.0)
        return SampledSignal(found.axis, found.u * sizes, hold=self.hold)


def _rounded_down(number: float) -> float:
    """With three binary digits."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(math.floor(8.0 * fraction), exponent - 3)
