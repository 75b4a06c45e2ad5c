"""One step at a time, as in a control loop: microseconds a sample, beside a bare step of the dense system."""

import numpy as np
from scipy import linalg

from benchmarks.support.cases import chain, data_case, random_case
from benchmarks.support.settings import Settings
from benchmarks.support.systems import DATA
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import take_turns

STEPS = 2000


def measure(settings: Settings) -> list[Table]:
    """One row, n = 48."""
    case = data_case("building", STEPS) if DATA.is_dir() else random_case("mass_spring_damper", chain(), STEPS)
    stepper = case.construct().stepper(case.step)
    A, B, C, _ = case.matrices
    n, P, G = len(A), linalg.expm(A * case.step), B * case.step

    def ours() -> None:
        for u in case.u:
            stepper.step(u)

    def bare() -> None:
        x = np.zeros(n)
        for u in case.u:
            x = P @ x + G @ u
            C @ x

    pair = take_turns(ours, bare, effort=settings.pair)
    row: dict[str, Cell] = {
        "system": f"{case.name} (n = {n})",
        "step": pair.ours.scaled(1e6 / STEPS).as_cell(),
        "bare": pair.peer.scaled(1e6 / STEPS).as_cell(),
    }
    columns = {"system": "system", "step": "`stepper.step(u)`, µs", "bare": "bare `x = P @ x + G @ u; C @ x`, µs"}
    note = (
        f"Microseconds a step, {STEPS} steps at a time. The bare step does the dense products of a discretised system "
        "in NumPy and checks nothing; `step` checks its input and keeps what it takes to go on later."
    )
    return [Table("streaming", "Streaming", note, columns, [row])]
