"""Gaps in tables: filled by the last value or by straight lines over time, or left as NaN, which splits a record."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.shown import count_of
from ltinet.tables.cells import shown_cell
from ltinet.tables.options import Gaps

LONGEST_GAP = 1_000_000
"""Rows that wait for the value after a gap."""


@final
@dataclass(frozen=True)
class Samples:
    """Times `(T,)`, values `(T, k)` with NaN for gaps, and the line of each row."""

    t: Array
    values: Array
    lines: NDArray[np.int64]

    def part(self, begin: int, end: int | None = None) -> "Samples":
        """Some of the rows."""
        return Samples(self.t[begin:end], self.values[begin:end], self.lines[begin:end])


@final
class GapFiller:
    """Fills gaps in what comes chunk by chunk; rows whose gaps are still open wait until a value follows."""

    def __init__(self, policy: Gaps, names: tuple[str, ...], title: str) -> None:
        self._policy, self._names, self._title = policy, names, title
        self._waiting: Samples | None = None  # the last complete row and those after it
        self._n_answered = 0  # rows of these that were given out already: 0 or 1
        self.n_filled = 0
        self.n_split = 0
        """Rows with a gap that was left."""

    def fill(self, samples: Samples) -> Samples:
        """The rows that are complete now."""
        has_gaps = bool(np.isnan(samples.values).any())
        if self._policy == "split":
            self.n_split += int(np.isnan(samples.values).any(axis=1).sum())
            return samples
        if self._policy == "error" or (not has_gaps and (self._waiting is None or len(self._waiting.t) == 1)):
            self._remember(samples.part(max(len(samples.t) - 1, 0)))
            return samples
        joined = samples if self._waiting is None else _joined(self._waiting, samples)
        begin = self._n_answered
        gaps = np.isnan(joined.values)
        self._refuse_open(gaps[0], joined.lines[0], "no value comes before it")
        known = _last_known(gaps)
        end = len(joined.t) if self._policy == "hold" else int(known[-1].min()) + 1
        filled = joined.values.copy()
        for column in range(filled.shape[1]):
            own = gaps[:end, column]
            if self._policy == "hold":
                filled[:end, column] = joined.values[known[:end, column], column]
            elif own.any():
                with_value = np.flatnonzero(~gaps[:, column])
                filled[:end, column][own] = np.interp(
                    joined.t[:end][own], joined.t[with_value], joined.values[with_value, column]
                )
        self.n_filled += int(gaps[begin:end].sum())
        # The row before those that wait is complete, and what lines begin at. Values after it stay as they came.
        rest = joined.part(end - 1)
        anchor = Samples(rest.t, np.concatenate([filled[end - 1 : end], rest.values[1:]]), rest.lines)
        self._remember(anchor)
        return Samples(joined.t, filled, joined.lines).part(begin, end)

    def finish(self) -> None:
        """Refuse rows that still wait."""
        if self._waiting is not None and len(self._waiting.t) > self._n_answered:
            place = self._n_answered
            gap = np.isnan(self._waiting.values[place:]).any(axis=1)
            row = place + int(np.argmax(gap))
            self._refuse_open(np.isnan(self._waiting.values[row]), self._waiting.lines[row], "no value follows it")

    def told(self) -> tuple[str, ...]:
        """What was done."""
        if self.n_split:
            return (f"{count_of(self.n_split, 'row')} with gaps left out",)
        if not self.n_filled:
            return ()
        way = "the value before" if self._policy == "hold" else "straight lines"
        return (f"{count_of(self.n_filled, 'gap')} filled by {way}",)

    def _remember(self, waiting: Samples) -> None:
        if len(waiting.t) > LONGEST_GAP:
            raise FileFormatError(
                f"{self._title}, line {waiting.lines[1]}: a gap begins that is longer than {LONGEST_GAP} rows; fill it "
                'with gaps="hold", or leave its column out with columns="…"'
            )
        if len(waiting.t):
            self._waiting, self._n_answered = waiting, 1

    def _refuse_open(self, gaps: NDArray[np.bool_], line: int, why: str) -> None:
        if gaps.any():
            name = shown_cell(self._names[int(np.argmax(gaps))])
            raise FileFormatError(
                f"{self._title}, line {line}, column {name}: this gap cannot be filled, since {why}; give a value or "
                "remove the line"
            )


def _joined(first: Samples, second: Samples) -> Samples:
    return Samples(
        np.concatenate([first.t, second.t]),
        np.concatenate([first.values, second.values]),
        np.concatenate([first.lines, second.lines]),
    )


def _last_known(gaps: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each cell the last row, up to its own, in which its column has a value."""
    rows = np.where(gaps, 0, np.arange(len(gaps))[:, None])
    return np.asarray(np.maximum.accumulate(rows, axis=0))
