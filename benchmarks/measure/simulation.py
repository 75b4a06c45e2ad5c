"""Simulation, network and grid prepared, outputs only: against the functions that people call for it, and the floor."""

from benchmarks.peers import EXACT
from benchmarks.support.cases import BUDGET, Case, simulation_cases
from benchmarks.support.floor import bare_work, multiplication_rate, products_of
from benchmarks.support.oracle import relative_error
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import take_turns


def measure(settings: Settings) -> list[Table]:
    """One row per case."""
    rate = multiplication_rate(settings.pair)
    rows = [_row(case, settings=settings, rate=rate) for case in simulation_cases(quick=settings.quick)]
    peers = {peer.name: f"{peer.name} / ltinet" for peer in EXACT}
    columns = {"case": "case", "size": "n, m, p", "steps": "steps", "milliseconds": "ltinet, ms", **peers}
    columns |= {"floor": "ltinet / floor", "bare": "ltinet / bare work", "error": "error"}
    columns |= {f"error {peer.name}": f"error of {peer.name}" for peer in EXACT}
    note = (
        "Outputs of a sampled input, straight lines between samples, everything prepared that can be; networks are "
        f"constructed with cond(T) ≤ {BUDGET:g}. Ratios of times "
        "of calls that take turns; larger is faster. Floor: the floating-point operations of the matrix products of "
        f"blocks of time at the rate of a large square product, {rate / 1e9:.1f}·10⁹ a second here; a fast convolution "
        "can go below it. Bare work: the same products alone, of the same shapes, or the same transforms. Errors are "
        "relative to max |y|, against outputs computed in 60 bits or more."
    )
    return [Table("simulation", "Simulation", note, columns, rows)]


def _row(case: Case, *, settings: Settings, rate: float) -> dict[str, Cell]:
    net = case.construct()

    def ours() -> object:
        return net.simulate(case.u, case.t).y

    row: dict[str, Cell] = {
        "case": case.name,
        "size": f"{case.system.n_states}, {case.system.n_inputs}, {case.system.n_outputs}",
        "steps": case.n_steps,
        "error": relative_error(net.simulate(case.u, case.t).y, case.reference),
    }
    for peer in EXACT:
        row[peer.name] = "not installed"
        if peer.is_installed:
            run = peer.prepare(case, peer.tolerance)
            row[f"error {peer.name}"] = relative_error(run(), case.reference)
            row[peer.name] = take_turns(ours, run, effort=settings.pair).ratio.as_cell()
    products = products_of(net, case.u, step=case.step)
    pair = take_turns(bare_work(net, case.u, step=case.step), ours, effort=settings.pair)
    row["bare"], row["milliseconds"] = pair.ratio.as_cell(), pair.peer.scaled(1e3).as_cell()
    row["floor"] = pair.peer.scaled(rate / products.flops).as_cell()
    return row
