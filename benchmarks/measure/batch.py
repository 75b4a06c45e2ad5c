"""Many inputs at once: what one of them costs in a batch, against one at a time and against the floor."""

import numpy as np

from benchmarks.support.cases import Case, simulation_cases
from benchmarks.support.floor import bare_work, multiplication_rate, products_of
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import take_turns

MAIN = ("iss", "blobs")
LARGEST = 256 * 10_000 * 3  # numbers in the inputs of a batch; cases with more inputs get fewer steps


def measure(settings: Settings) -> list[Table]:
    """One row per case and batch."""
    rate = multiplication_rate(settings.pair)
    cases = [case for case in simulation_cases(quick=False) if case.name != "Ex 3.1"]
    if settings.quick:
        cases = [case.first(1000) for case in cases if case.name in MAIN]
    rows = [_row(case.first(10_000), 100, settings=settings, rate=rate) for case in cases]
    rows += [_row(case.first(10_000), 256, settings=settings, rate=rate) for case in cases if case.name in MAIN]
    columns = {
        "case": "case",
        "batch": "batch",
        "steps": "steps",
        "milliseconds": "ltinet, ms an input",
        "gain": "one at a time / in the batch",
        "shared": "one at a time / in the batch, n_jobs=-1",
        "floor": "ltinet / floor",
        "bare": "ltinet / bare work",
    }
    note = (
        "A batch `(batch, T, m)` in one call, against the same inputs one after the other, both prepared. With "
        "`n_jobs=-1` a thread on each core shares the batch; everything else here has one thread. Floor and bare work "
        "as in the table of simulations."
    )
    return [Table("batch", "Batches", note, columns, rows)]


def _row(case: Case, batch: int, *, settings: Settings, rate: float) -> dict[str, Cell]:
    m = case.system.n_inputs
    case = case.first(max(100, min(case.n_steps, LARGEST // (batch * m))))
    net = case.construct()
    u = np.random.default_rng(0).standard_normal((batch, case.n_steps, m))

    def together() -> object:
        return net.simulate(u, case.t).y

    def shared() -> object:
        return net.simulate(u, case.t, n_jobs=-1).y

    def one_at_a_time() -> None:
        for one in u:
            net.simulate(one, case.t)

    products = products_of(net, u, step=case.step)
    pair = take_turns(together, one_at_a_time, effort=settings.pair)
    return {
        "case": case.name,
        "batch": batch,
        "steps": case.n_steps,
        "milliseconds": pair.ours.scaled(1e3 / batch).as_cell(),
        "gain": pair.ratio.as_cell(),
        "shared": take_turns(shared, one_at_a_time, effort=settings.pair).ratio.as_cell(),
        "floor": pair.ours.scaled(rate / products.flops).as_cell(),
        "bare": take_turns(bare_work(net, u, step=case.step), together, effort=settings.pair).ratio.as_cell(),
    }
