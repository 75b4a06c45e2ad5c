"""The records and their splits: those of the package `nonlinear_benchmarks` 1.0.1, zero-based, end excluded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "nonlinear"
Samples = NDArray[np.float64]


@dataclass(frozen=True)
class Record:
    """Inputs and outputs `(T,)`, in volts."""

    u: Samples
    y: Samples

    def part(self, start: int, stop: int) -> "Record":
        """Some samples of it."""
        return Record(self.u[start:stop], self.y[start:stop])


@dataclass(frozen=True)
class Units:
    """Offsets and deviations of the record that a model is trained with; four numbers that tests are not asked for."""

    u_mean: float
    u_deviation: float
    y_mean: float
    y_deviation: float

    @classmethod
    def of(cls, record: Record) -> "Units":
        """Those of a record."""
        return cls(*(float(own) for own in (record.u.mean(), record.u.std(), record.y.mean(), record.y.std())))

    def scaled(self, record: Record) -> Record:
        """A record in these units."""
        return Record((record.u - self.u_mean) / self.u_deviation, (record.y - self.y_mean) / self.y_deviation)


def silverbox() -> dict[str, Record]:
    """Training, the multisine test, the arrow, and the arrow without extrapolation."""
    whole = _read("SNLS80mV.mat", "V1", "V2")
    spans = {"train": (40650, 105712), "multisine": (105712, 127400), "arrow": (100, 40575), "inside": (100, 32100)}
    return {name: whole.part(*span) for name, span in spans.items()}


def wiener_hammerstein() -> dict[str, Record]:
    """Training and test."""
    whole = _read("WienerHammerBenchMark.mat", "uBenchMark", "yBenchMark")
    return {"train": whole.part(5200, 105200), "test": whole.part(105200, 184000)}


def cascaded_tanks() -> dict[str, Record]:
    """Training and test."""
    return {
        "train": _read("cascaded_tanks.mat", "uEst", "yEst"),
        "test": _read("cascaded_tanks.mat", "uVal", "yVal"),
    }


def _read(name: str, u: str, y: str) -> Record:
    file: dict[str, Any] = loadmat(DATA / name)
    return Record(np.ravel(file[u]).astype(float), np.ravel(file[y]).astype(float))
