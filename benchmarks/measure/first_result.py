"""First result: construct a network and simulate once, nothing prepared, against one `scipy.signal.lsim`."""

from scipy import linalg

import ltinet
from benchmarks.peers.linear_simulation import lsim
from benchmarks.support.cases import Case, diffusion_cases, random_case
from benchmarks.support.floor import products_of
from benchmarks.support.settings import Settings
from benchmarks.support.systems import data_systems, named_systems
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Call, take_turns

STEPS = (10_000, 1_000)


def measure(settings: Settings) -> list[Table]:
    """One row per system, one column per number of steps."""
    systems = data_systems() or named_systems()
    if settings.quick:
        systems = dict(list(systems.items())[:4])
    rows = [_row(name, system, settings=settings) for name, system in systems.items()]
    example = diffusion_cases()[0]
    example_row: dict[str, Cell] = {"system": example.name, "n": example.system.n_states}
    rows.append(example_row | {"101": _ratio(example, settings=settings), "floor": _floor(example, settings=settings)})
    columns = {"system": "system", "n": "n", **{str(n_steps): f"{n_steps} steps" for n_steps in STEPS}}
    columns |= {"101": "101 steps, the paper's input", "floor": "ltinet / floor"}
    note = (
        "`ltinet.construct(system).simulate(u, t).y` from the matrices to the outputs, against one "
        "`scipy.signal.lsim` of the same system, times and input. Ratios of times of calls that take turns; larger is "
        "faster. Floor: one real Schur form (`eigh` for a symmetric matrix) and the matrix products of the simulation, "
        "at most steps."
    )
    return [Table("first_result", "First result", note, columns, rows)]


def _row(name: str, system: ltinet.StateSpace, *, settings: Settings) -> dict[str, Cell]:
    row: dict[str, Cell] = {"system": name, "n": system.n_states}
    for n_steps in STEPS:
        row[str(n_steps)] = _ratio(random_case(name, system, n_steps), settings=settings)
    return row | {"floor": _floor(random_case(name, system, max(STEPS)), settings=settings)}


def _ratio(case: Case, *, settings: Settings) -> Cell:
    return take_turns(_ours(case), lsim(case, 0.0), effort=settings.slow).ratio.as_cell()


def _floor(case: Case, *, settings: Settings) -> Cell:
    """Our time over that of one decomposition and the products alone."""
    A = case.matrices[0]
    products = products_of(ltinet.construct(case.system), case.u, step=case.step).bare()
    is_symmetric = bool((A == A.T).all())

    def floor() -> None:
        if is_symmetric:
            linalg.eigh(A)
        else:
            linalg.schur(A, output="real")
        products()

    return take_turns(floor, _ours(case), effort=settings.slow).ratio.as_cell()


def _ours(case: Case) -> Call:
    return lambda: ltinet.construct(case.system).simulate(case.u, case.t).y
