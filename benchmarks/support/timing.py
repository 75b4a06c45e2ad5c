"""Times that can be compared: two calls take turns in one process, and their ratio comes with its spread."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

Call = Callable[[], object]


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of repeated measurements."""

    median: float
    min: float
    max: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """The spread of a list with at least one entry."""
        return cls(float(np.median(values)), min(values), max(values))

    def scaled(self, factor: float) -> "Spread":
        """All three times a factor."""
        return Spread(self.median * factor, self.min * factor, self.max * factor)

    def as_cell(self) -> dict[str, float]:
        """As a cell of a table."""
        return asdict(self)


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds for each pair of calls, and the fewest and most rounds."""

    seconds: float
    at_least: int
    at_most: int = 300


@dataclass(frozen=True)
class Pair:
    """Seconds of our call and of a peer's, round by round, and the ratio peer / ours of each round."""

    ours: Spread
    peer: Spread
    ratio: Spread


def take_turns(ours: Call, peer: Call, *, effort: Effort) -> Pair:
    """Call both in turns; where ours is far shorter, a round has several of its calls, and their median counts.

    Both are called once before the clock starts: what is prepared on the first call is not part of the ratio.
    """
    ours()
    calls = max(1, min(9, int(seconds(peer) / max(seconds(ours), 1e-9) / 4.0)))
    mine: list[float] = []
    theirs: list[float] = []
    begin = time.perf_counter()
    while len(mine) < effort.at_least or (time.perf_counter() - begin < effort.seconds and len(mine) < effort.at_most):
        theirs.append(seconds(peer))
        mine.append(float(np.median([seconds(ours) for _ in range(calls)])))
    ratios = [other / own for own, other in zip(mine, theirs, strict=True)]
    return Pair(Spread.of(mine), Spread.of(theirs), Spread.of(ratios))


def repeat(call: Call, *, effort: Effort, is_warm: bool = False) -> Spread:
    """Seconds of one call, repeated, after one that does not count unless there was one already."""
    if not is_warm:
        call()
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < effort.at_least or (
        time.perf_counter() - begin < effort.seconds and len(times) < effort.at_most
    ):
        times.append(seconds(call))
    return Spread.of(times)


def seconds(call: Call) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
