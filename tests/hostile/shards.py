"""Cases in portions, so that processes can share them."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from .draw import draw
from .families import FAMILIES
from .judge import Outcome, judge

RUNS_PER_FAMILY, RUNS_OF_LARGE = 170, 25
RUNS_PER_SHARD = 5
_PATIENCE = 120.0  # seconds for which a portion that another process took is waited for


def shards(n_runs: int = RUNS_PER_FAMILY) -> Iterator[tuple[str, range]]:
    """All portions, families in turn, so that whoever starts last has not all of the slowest."""
    for begin in range(0, n_runs, RUNS_PER_SHARD):
        for family in FAMILIES:
            stop = min(begin + RUNS_PER_SHARD, runs_of(family, n_runs))
            if stop > begin:
                yield family, range(begin, stop)


def runs_of(family: str, n_runs: int = RUNS_PER_FAMILY) -> int:
    """How many runs of a family are drawn."""
    return min(n_runs, RUNS_OF_LARGE) if family == "large" else n_runs


def run_shard(seed: int, family: str, numbers: range, *, timed: bool = False) -> list[Outcome]:
    """Judge the cases of a portion."""
    return [judge(draw(f"{seed}/{family}/{number}"), timed=timed) for number in numbers]


class SharedResults:
    """Outcomes in a folder that the processes of a test run share: a portion is run once, by whoever needs it first."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        folder.mkdir(exist_ok=True)

    def of(self, family: str, numbers: range) -> list[Outcome]:
        """The outcomes of a portion, from the folder or made here."""
        path = self.folder / f"{family}-{numbers.start}.json"
        if self._claimed(path):
            self._wait(path)
        if not path.exists():
            made = json.dumps([asdict(own) for own in run_shard(self.seed, family, numbers)])
            own_path = path.with_suffix(f".{os.getpid()}")
            own_path.write_text(made)
            own_path.replace(path)
        return [Outcome(**_tuples(own)) for own in json.loads(path.read_text())]

    def all_of(self, families: Iterator[str] | list[str]) -> list[Outcome]:
        """The outcomes of whole families."""
        wanted = set(families)
        return [own for family, numbers in shards() if family in wanted for own in self.of(family, numbers)]

    def _claimed(self, path: Path) -> bool:
        """Return whether another process has taken a portion; if not, take it for this process."""
        try:
            path.with_suffix(".claim").touch(exist_ok=False)
        except FileExistsError:
            return True
        return False

    def _wait(self, path: Path) -> None:
        """Until the other is ready, or for so long that it must have died."""
        end = time.monotonic() + _PATIENCE
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)


def _tuples(fields: dict[str, object]) -> dict[str, object]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
