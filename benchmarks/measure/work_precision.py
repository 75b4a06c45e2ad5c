"""Work and precision: what a digit costs, for every peer over its tolerances, on an oscillating and a stiff system."""

from collections.abc import Iterator

from benchmarks.peers import EXACT, SOLVERS
from benchmarks.peers.peer import Peer
from benchmarks.peers.pymor_steps import implicit_midpoint
from benchmarks.support.cases import Array, Case, chain, data_case, random_case
from benchmarks.support.oracle import relative_error
from benchmarks.support.settings import Settings
from benchmarks.support.systems import DATA
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Effort, Spread, repeat, seconds

_SLOW = ("solve_ivp Radau", "diffrax Tsit5", "diffrax Kvaerno5")  # left out of quick runs
STEPS = 1000
SOLVER_STEPS = 100  # of these; each costs a solver the same
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
SUBSTEPS = (1, 4, 16)
LONGEST = 2.0  # seconds of a run after which a solver is not asked for more digits


def measure(settings: Settings) -> list[Table]:
    """One row per case, method and tolerance."""
    rows = [row for case in _cases()[: 1 if settings.quick else None] for row in _rows(case, settings=settings)]
    columns = {"case": "case", "method": "method", "tolerance": "setting", "seconds": "seconds", "error": "error"}
    note = (
        f"{STEPS} steps of 0.01 of normal input, straight lines between samples. Errors relative to max |y| against "
        f"outputs computed in 60 bits or more, of all methods over the first {SOLVER_STEPS} steps: solvers run these "
        "only, and their time is scaled; "
        "adaptive ones with rtol = atol as given, ever tighter until a run takes more than "
        f"{LONGEST:g} s, pyMOR with steps per sample. Radau and Kvaerno5 on the stiff system only."
    )
    return [Table("work_precision", "Work and precision", note, columns, rows)]


def _cases() -> list[Case]:
    if DATA.is_dir():
        return [data_case("building", STEPS + 1), data_case("heat", STEPS + 1)]
    return [random_case("mass_spring_damper", chain(), STEPS + 1)]


def _rows(case: Case, *, settings: Settings) -> Iterator[dict[str, Cell]]:
    effort = Effort(settings.pair.seconds / 5, settings.pair.at_least)
    net = case.construct()
    start = case.first(SOLVER_STEPS + 1)

    def error_of(y: Array) -> float:
        return relative_error(y[: start.n_steps], start.reference)

    error = error_of(net.simulate(case.u, case.t).y)
    prepared = repeat(lambda: net.simulate(case.u, case.t).y, effort=effort)
    yield _row(case, "ltinet", "prepared", prepared, error)
    first = repeat(lambda: case.construct().simulate(case.u, case.t).y, effort=effort)
    yield _row(case, "ltinet", "from the matrices", first, error)
    for peer in EXACT:
        if peer.is_installed:
            run = peer.prepare(case, 0.0)
            yield _row(case, peer.name, "", repeat(run, effort=effort), error_of(run()))
    for peer in SOLVERS:
        if peer.is_installed and (case.is_stiff or not peer.for_stiff) and not (settings.quick and peer.name in _SLOW):
            yield from _solver_rows(case, start, peer)


def _solver_rows(case: Case, start: Case, peer: Peer) -> Iterator[dict[str, Cell]]:
    """One row per tolerance, or per number of steps a sample where steps are fixed."""
    fixed = [(implicit_midpoint(substeps), 0.0, f"{substeps} a sample") for substeps in SUBSTEPS]
    adaptive = [(peer.prepare, tolerance, f"{tolerance:g}") for tolerance in TOLERANCES]
    for prepare, tolerance, label in adaptive if peer.tolerance else fixed:
        run = prepare(start, tolerance)
        error, time = relative_error(run(), start.reference), seconds(run)
        yield _row(case, peer.name, label, Spread.of([time * STEPS / SOLVER_STEPS]), error)
        if time > LONGEST:
            return


def _row(case: Case, method: str, tolerance: str, times: Spread, error: float) -> dict[str, Cell]:
    return {
        "case": case.name,
        "method": method,
        "tolerance": tolerance,
        "seconds": times.as_cell(),
        "error": error,
    }
