"""One experiment: evenly spaced samples of inputs and outputs without gaps."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array


@dataclass(frozen=True, eq=False)
class Record:
    """Inputs `(T, m)` and outputs `(T, p)` of one experiment."""

    u: Array
    y: Array

    def __len__(self) -> int:
        return len(self.u)

    def part(self, own: slice) -> "Record":
        """Some samples that follow each other."""
        return Record(self.u[own], self.y[own])

    def shifted(self, delays: tuple[int, ...]) -> "Record":
        """The record with every input as many samples later as it is delayed; samples without an input are left out."""
        longest = max(delays, default=0)
        if not longest:
            return self
        u = np.stack([self.u[longest - d : len(self) - d, j] for j, d in enumerate(delays)], axis=1)
        return Record(u, self.y[longest:])


def n_samples(records: tuple[Record, ...]) -> int:
    """Samples of all experiments."""
    return sum(len(own) for own in records)
