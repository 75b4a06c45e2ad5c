"""Frequency responses: one decomposition of A, its time included, against one dense solve for each frequency."""

import numpy as np
from numpy.typing import NDArray

import ltinet
from benchmarks.support.settings import Settings
from benchmarks.support.systems import data_systems
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import take_turns

_FREQUENCIES = 1000
_SMALL = 40  # states below which a dense solve is mostly the call itself


def measure(settings: Settings) -> list[Table]:
    """One row per system: seconds for 1,000 frequencies, how many times longer dense solves take, and how far apart."""
    systems = {name: system for name, system in data_systems().items() if system.n_states > _SMALL}
    systems |= {"random dense": _random(270), "Grcar, n = 100": _grcar(100), "Grcar, n = 270": _grcar(270)}
    if settings.quick:
        systems = {name: system for name, system in systems.items() if system.n_states <= 100}
    rows = [_row(name, system, settings=settings) for name, system in systems.items()]
    columns = {"system": "system", "n": "n", "seconds": "ltinet, s", "ratio": "dense / ltinet", "distance": "distance"}
    note = (
        f"`StateSpace(…).frequency_response(omega)` at {_FREQUENCIES:,} frequencies, nothing kept from call to call, "
        "against `numpy.linalg.solve(1j*w*E - A, B)` for each of them; larger is faster. The distance of both is "
        "relative to the peak of each entry of H; where they differ visibly the dense solves are off, as a test with "
        "ball arithmetic shows."
    )
    return [Table("frequency", "Frequency response", note, columns, rows)]


def _row(name: str, system: ltinet.StateSpace, *, settings: Settings) -> dict[str, Cell]:
    sizes = np.abs(system.poles())
    omega = np.geomspace(sizes[sizes > 0.0].min() / 10.0, 10.0 * sizes.max(), _FREQUENCIES)
    given = (np.eye(system.n_states), system.A, system.B) if system.descriptor is None else system.descriptor

    def ours() -> NDArray[np.complex128]:
        E, A, B = given
        fresh = ltinet.StateSpace(A, B, system.C, system.D, None if system.descriptor is None else E)
        return fresh.frequency_response(omega)

    def dense() -> NDArray[np.complex128]:
        E, A, B = given
        return np.array([system.C @ np.linalg.solve(1j * w * E - A, B) + system.D for w in omega])

    H, theirs = ours(), dense()
    peak = np.abs(H).max(axis=0)
    distance = float((np.abs(H - theirs).max(axis=0)[peak > 0.0] / peak[peak > 0.0]).max(initial=0.0))
    pair = take_turns(ours, dense, effort=settings.slow)
    return {
        "system": name,
        "n": system.n_states,
        "seconds": pair.ours.as_cell(),
        "ratio": pair.ratio.as_cell(),
        "distance": distance,
    }


def _random(n: int) -> ltinet.StateSpace:
    random = np.random.default_rng(0)
    A = random.standard_normal((n, n)) / np.sqrt(n) - 1.1 * np.eye(n)
    return ltinet.StateSpace(A, random.standard_normal((n, 1)), random.standard_normal((1, n)))


def _grcar(n: int) -> ltinet.StateSpace:
    """Grcar's matrix, whose eigenvectors are as good as parallel, moved to the left half plane."""
    random = np.random.default_rng(0)
    A = sum((np.eye(n, k=k) for k in range(4)), -np.eye(n, k=-1)) - 3.5 * np.eye(n)
    return ltinet.StateSpace(A, random.standard_normal((n, 1)), random.standard_normal((1, n)))
