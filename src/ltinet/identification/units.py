"""Channels in units in which all are about 1: products of numbers of 1e200 or 1e-200 are none."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Start
from ltinet.identification.record import Record

_FAR_APART = 10  # powers of two


class Units(NamedTuple):
    """Powers of two, which cost no digit, for every input `(m,)` and output `(p,)`."""

    inputs: Array
    outputs: Array

    @property
    def gain(self) -> Array:
        """Of what is given by what is scaled, `(p, m)`."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.outputs[:, None] / self.inputs)

    def scaled(self, record: Record) -> Record:
        """A record in these units."""
        return Record(record.u / self.inputs, record.y / self.outputs)

    def restored(self, linear: Linear) -> Linear:
        """A model of scaled records as one of those that were given."""
        model = linear.model
        own = replace(
            model,
            B=model.B / self.inputs,
            C=model.C * self.outputs[:, None],
            D=model.D * self.outputs[:, None] / self.inputs,
        )
        starts = tuple(Start(start.states, start.trends * self.outputs[:, None]) for start in linear.starts)
        with np.errstate(over="ignore", under="ignore"):  # fits are told in scaled units
            return Linear(own, starts, linear.errors * self.outputs**2)


def units_of(records: tuple[Record, ...]) -> Units:
    """Units near the spread of every channel."""
    return Units(*(_near(np.max([np.ptp(getattr(own, name), axis=0) for own in records], axis=0)) for name in "uy"))


def _near(size: Array) -> Array:
    """One unit for all channels, since units weigh them against each other; own ones where they are far apart."""
    exponents = np.frexp(size)[1]
    together = exponents.max()
    return np.asarray(np.ldexp(1.0, np.where(exponents > together - _FAR_APART, together, exponents)))
