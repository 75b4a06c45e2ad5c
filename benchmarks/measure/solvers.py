"""Simulation by solvers of differential equations, which people use where a model is not seen as linear."""

from benchmarks.peers import SOLVERS
from benchmarks.peers.peer import Peer
from benchmarks.support.cases import Case, simulation_cases
from benchmarks.support.oracle import relative_error
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Effort, repeat


def measure(settings: Settings) -> list[Table]:
    """One row per case and solver."""
    cases = simulation_cases(quick=settings.quick)
    cases = cases[:1] if settings.quick else cases[:-1]  # the dense input of Example 3.1 costs solvers the same
    rows = [row for case in cases for row in _rows(case, settings=settings)]
    columns = {
        "case": "case",
        "peer": "solver",
        "ratio": "solver / ltinet",
        "error": "error of the solver",
        "own_error": "error of ltinet",
    }
    few = ", ".join(f"{peer.name} {peer.n_steps}" for peer in SOLVERS)
    note = (
        "The same work as in the table of simulations, by solvers on the dense system with rtol = atol = 1e-8; pyMOR's "
        "implicit midpoint rule has fixed steps, one a sample. Radau and Kvaerno5, methods for stiff systems, are used "
        "where some state decays within a step. No step crosses a sample. Solvers run the first steps only "
        f"({few}), and their time is scaled to all steps: each costs the same. diffrax is compiled beforehand. Errors "
        "are over the steps that a solver runs."
    )
    return [Table("solvers", "Simulation by solvers", note, columns, rows)]


def _rows(case: Case, *, settings: Settings) -> list[dict[str, Cell]]:
    net = case.construct()
    own = repeat(lambda: net.simulate(case.u, case.t).y, effort=settings.pair)
    start = case.first(max(peer.n_steps or 0 for peer in SOLVERS) + 1)
    own_error = relative_error(net.simulate(case.u, case.t).y[: start.n_steps], start.reference)
    fixed: dict[str, Cell] = {"case": case.name, "own_error": own_error}
    peers = [peer for peer in SOLVERS if case.is_stiff or not peer.for_stiff]
    return [{**fixed, "peer": peer.name, **_against(peer, start, own.median, case.n_steps)} for peer in peers]


def _against(peer: Peer, start: Case, own_seconds: float, n_steps: int) -> dict[str, Cell]:
    """Ratio and error of one solver."""
    if not peer.is_installed:
        return {"ratio": "not installed", "error": None}
    short = start.first((peer.n_steps or 0) + 1)
    run = peer.prepare(short, peer.tolerance)
    error = relative_error(run(), start.reference)
    times = repeat(run, effort=Effort(0.3, 1), is_warm=True)
    return {"ratio": times.scaled((n_steps - 1) / (short.n_steps - 1) / own_seconds).as_cell(), "error": error}
