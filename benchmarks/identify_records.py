"""Measured records, identified from their first halves: `python -m benchmarks.identify_records [--names dryer ...]`.

Eight records of industrial plants and rigs (DaISy and SLICOT), beside the repository in `../shared/data/sysid`; those
that are not there are left out. For each the mean fit over outputs on the second half, states at its first sample
fitted, with the order given and chosen, and the seconds that this took.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

import ltinet

Array = NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "shared" / "data" / "sysid"


class MeasuredRecord(NamedTuple):
    """File with the columns of inputs and outputs, and the order of the model that is usual for it."""

    file: str
    inputs: slice
    outputs: slice
    order: int

    def read(self) -> tuple[Array, Array]:
        """Return inputs and outputs, `(T, m)` and `(T, p)`."""
        path = FOLDER / self.file
        if self.file.endswith(".dat"):
            values = np.loadtxt(path)
        else:
            arrays = {key: array for key, array in loadmat(path).items() if not key.startswith("_")}
            values = np.hstack([arrays["u"], arrays["p"]]) if "p" in arrays else max(arrays.values(), key=np.size)
        values = values.astype(float)
        return values[:, self.inputs], values[:, self.outputs]


RECORDS = {
    "CD arm": MeasuredRecord("CD_player_arm.mat", slice(0, 2), slice(2, 4), 8),
    "robot arm": MeasuredRecord("robot_arm.mat", slice(0, 1), slice(1, 2), 4),
    "exchanger": MeasuredRecord("exchanger.mat", slice(1, 2), slice(2, 3), 4),
    "dryer": MeasuredRecord("dryer.dat", slice(0, 1), slice(1, 2), 4),
    "heating": MeasuredRecord("heating_system.dat", slice(1, 2), slice(2, 3), 4),
    "flexible structure": MeasuredRecord("flexible_structure.mat", slice(0, 2), slice(2, 30), 40),
    "power plant": MeasuredRecord("power_plant.mat", slice(1, 6), slice(6, 9), 4),
    "actuator": MeasuredRecord("hydraulic_actuator.mat", slice(0, 1), slice(1, 2), 4),
}


def second_half_fit(record: MeasuredRecord, order: int | None) -> tuple[float, float, ltinet.IdentificationResult]:
    """Return the mean fit on the second half of a model of the first, the seconds to identify it, and the model."""
    u, y = record.read()
    half = len(u) // 2
    begin = time.perf_counter()
    result = ltinet.identify(u[:half], y[:half], dt=1.0, order=order)
    seconds = time.perf_counter() - begin
    return float(result.fit(u[half:], y[half:]).mean()), seconds, result


def _describe(result: Any) -> str:
    return f"{result.method} {result.block_rows}{', refined' if result.refined else ''}"


def main() -> None:
    """Identify every record and print one row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identify_records", description=__doc__)
    parser.add_argument("--names", nargs="*", default=list(RECORDS), choices=list(RECORDS), help="records")
    arguments = parser.parse_args()
    print("record               order   fit     s   method                     chosen  fit     s   method")
    means: list[tuple[float, float]] = []
    for name in arguments.names:
        record = RECORDS[name]
        if not (FOLDER / record.file).exists():
            print(f"{name:20s} not here")
            continue
        given, chosen = second_half_fit(record, record.order), second_half_fit(record, None)
        means.append((given[0], chosen[0]))
        print(
            f"{name:20s} {record.order:5d} {given[0]:6.2f} {given[1]:5.1f}   {_describe(given[2]):25s} "
            f"{chosen[2].order:5d} {chosen[0]:7.2f} {chosen[1]:5.1f}   {_describe(chosen[2])}",
            flush=True,
        )
    if means:
        first, second = np.mean(means, axis=0)
        print(f"mean{first:29.2f}{second:46.2f}")


if __name__ == "__main__":
    main()
