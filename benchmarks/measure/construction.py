"""Time of the decomposition, nearly all of construction: against one Schur form, `eigh` and `control.bdschur`."""

import warnings
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet
from benchmarks.support.settings import Settings
from benchmarks.support.systems import data_systems, named_systems
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Spread, seconds, take_turns

SIZES = (100, 200, 400, 800, 2000)
BUDGETS = (10.0, 100.0, 1e4)
_SMALL = 40  # states below which a call takes so little time that the ratio says nothing about the decomposition
Matrix = NDArray[np.float64]


def measure(settings: Settings) -> list[Table]:
    """Random dense matrices against the floor, which is one Schur form; data sets against python-control."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn about repeated eigenvalues
        return [_against_schur(settings), _against_bdschur(settings)]


def _against_schur(settings: Settings) -> Table:
    random = np.random.default_rng(0)
    rows = []
    for n in SIZES[:3] if settings.quick else SIZES:
        A = random.standard_normal((n, n))
        rows.append(_schur_row(f"random dense, n = {n}", n, A, settings=settings))
    S = random.standard_normal((400, 400))
    symmetric = take_turns(
        lambda: linalg.eigh(S + S.T), lambda: ltinet.block_diagonalize(S + S.T), effort=settings.pair
    )
    rows.append({"matrix": "symmetric, n = 400 (against `eigh`)", "n": 400, **_cells(symmetric.peer, symmetric.ratio)})
    columns = {"matrix": "matrix", "seconds": "ltinet, s", "ratio": "ltinet / floor"}
    note = (
        "`ltinet.block_diagonalize(A)` with the default budget. The floor is one real Schur form, `scipy.linalg.schur`;"
        " smaller is faster."
    )
    return Table("construction", "Construction", note, columns, rows)


def _schur_row(label: str, n: int, A: Matrix, *, settings: Settings) -> dict[str, Cell]:
    def ours() -> object:
        return ltinet.block_diagonalize(A)

    def floor() -> object:
        return linalg.schur(A, output="real")

    if n <= 800:
        pair = take_turns(floor, ours, effort=settings.slow)
        return {"matrix": label, "n": n, **_cells(pair.peer, pair.ratio)}
    # A round takes most of a minute: one, without warming up.
    theirs, mine = seconds(floor), seconds(ours)
    return {"matrix": label, "n": n, "seconds": mine, "ratio": mine / theirs}


def _against_bdschur(settings: Settings) -> Table:
    systems = {name: system for name, system in (data_systems() or named_systems()).items() if system.n_states > _SMALL}
    chosen = list(systems.items())[: 2 if settings.quick else None]
    rows = [
        _bdschur_row(name, np.array(system.A), budget, settings=settings)
        for name, system in chosen
        for budget in BUDGETS
    ]
    columns = {"system": "data set, budget", "ratio": "control.bdschur / ltinet", "floor": "ltinet / one Schur form"}
    note = (
        "`ltinet.block_diagonalize(A, max_condition=κ)` against `control.bdschur(A, condmax=κ)` with slycot; larger is "
        "faster. What each finds within the budget is in the table of sparsity."
    )
    return Table("bdschur", "Construction against python-control", note, columns, rows)


def _bdschur_row(name: str, A: Matrix, budget: float, *, settings: Settings) -> dict[str, Cell]:
    label = f"{name} (n = {len(A)}), κ ≤ {budget:g}"

    def ours() -> object:
        return ltinet.block_diagonalize(A, max_condition=budget)

    floor = take_turns(lambda: linalg.schur(A, output="real"), ours, effort=settings.slow).ratio.as_cell()
    if find_spec("control") is None or find_spec("slycot") is None:
        return {"system": label, "ratio": "not installed", "floor": floor}
    import control

    pair = take_turns(ours, lambda: control.bdschur(A, condmax=budget), effort=settings.slow)
    return {"system": label, "ratio": pair.ratio.as_cell(), "floor": floor}


def _cells(time: Spread, ratio: Spread) -> dict[str, Cell]:
    return {"seconds": time.as_cell(), "ratio": ratio.as_cell()}
