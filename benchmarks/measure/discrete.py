"""Simulation in discrete time of the data sets, prepared, outputs only: against `scipy.signal.dlsim`."""

import numpy as np
from scipy import signal

import ltinet
from benchmarks.support.settings import Settings
from benchmarks.support.systems import data_systems, named_systems
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import take_turns

STEPS = 10_000
SAMPLES_PER_RADIAN = 10.0  # of the median pole
MAX_STATES = 400


def measure(settings: Settings) -> list[Table]:
    """One row for each data set."""
    systems = data_systems() or named_systems()
    chosen = {name: system for name, system in systems.items() if system.n_states <= MAX_STATES}
    rows = [_row(name, sampled(system), settings=settings) for name, system in chosen.items()]
    columns = {
        "case": "case", "size": "n, m, p", "milliseconds": "ltinet, ms", "ratio": "scipy.signal.dlsim / ltinet",
        "difference": "difference",
    }  # fmt: skip
    note = (
        f"{STEPS} random samples from rest through the data sets, discretised by zero-order hold with "
        f"{SAMPLES_PER_RADIAN:g} samples per radian of the median pole. Ratios of times of calls that take turns; larger "
        "is faster. Differences are relative to max |y|."
    )
    return [Table("discrete", "Discrete time", note, columns, rows)]


def sampled(system: ltinet.StateSpace) -> ltinet.StateSpace:
    """Return the system in discrete time."""
    speeds = np.abs(system.poles())
    return system.to_discrete(float(1.0 / (SAMPLES_PER_RADIAN * np.median(speeds[speeds > 0.0]))))


def _row(name: str, system: ltinet.StateSpace, *, settings: Settings) -> dict[str, Cell]:
    u = np.random.default_rng(0).standard_normal((STEPS, system.n_inputs))
    matrices = system.A, system.B, system.C, system.D, float(system.dt or 1.0)

    def ours() -> object:
        return system.simulate(u, STEPS).y

    def theirs() -> object:
        return signal.dlsim(matrices, u)[1]

    y, reference = np.asarray(ours()), np.asarray(theirs())
    pair = take_turns(ours, theirs, effort=settings.pair)
    return {
        "case": name,
        "size": f"{system.n_states}, {system.n_inputs}, {system.n_outputs}",
        "milliseconds": pair.ours.scaled(1e3).as_cell(),
        "ratio": pair.ratio.as_cell(),
        "difference": float((np.abs(y - reference).max(axis=0) / np.abs(reference).max(axis=0)).max()),
    }
