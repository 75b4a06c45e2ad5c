"""Samples at uneven times: `lsim` refuses them, so people solve the differential equation."""

import numpy as np

import ltinet
from benchmarks.peers.initial_value import dense_solver
from benchmarks.support.cases import Case, simulation_cases
from benchmarks.support.floor import Products, multiplication_rate
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Effort, repeat

STEPS = 10_000
PEER_STEPS = 100  # of these; each costs the solver about the same


def measure(settings: Settings) -> list[Table]:
    """One row per case."""
    cases = [case for case in simulation_cases(quick=False) if not case.name.startswith("Ex")]
    cases = cases[:1] if settings.quick else cases
    columns = {"case": "case", "n": "n", "milliseconds": "ltinet, ms", "ratio": "solve_ivp / ltinet"}
    columns |= {"distance": "distance of outputs", "floor": "ltinet / floor"}
    rate = multiplication_rate(settings.pair)
    note = (
        f"{STEPS} steps whose lengths are drawn from U[0.5, 1.5]·0.01, normal input with straight lines between "
        "samples, network prepared. `solve_ivp` is DOP853 with rtol = atol = 1e-8 on the dense system, and free to "
        f"step over samples; it runs the first {PEER_STEPS} steps, and its time is scaled to all. Distance: of its "
        "outputs from ours, relative to max |y|. Floor: the products with B and C alone, at the rate of a large square "
        "product; every step has a length of its own, and an exponential of every eigenvalue."
    )
    rows = [_row(case.first(STEPS), settings=settings, rate=rate) for case in cases]
    return [Table("irregular", "Uneven times", note, columns, rows)]


def _row(case: Case, *, settings: Settings, rate: float) -> dict[str, Cell]:
    t = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, case.n_steps)) * case.step
    net = ltinet.construct(case.system)
    own = repeat(lambda: net.simulate(case.u, t).y, effort=settings.slow)
    start = case.first(PEER_STEPS + 1)
    short = t[: start.n_steps]
    peer = dense_solver(start, short, method="DOP853", tolerance=1e-8, max_step=np.inf)
    outputs = peer()
    theirs = repeat(peer, effort=Effort(0.5, 1), is_warm=True)
    scale = (case.n_steps - 1) / (start.n_steps - 1) / own.median
    y = net.simulate(start.u, short).y
    n, m, p = case.system.n_states, case.system.n_inputs, case.system.n_outputs
    products = Products(((case.n_steps, m, n), (case.n_steps, n, p)))
    return {
        "case": case.name,
        "n": n,
        "milliseconds": own.scaled(1e3).as_cell(),
        "ratio": theirs.scaled(scale).as_cell(),
        "distance": float(np.max(np.abs(outputs - y)) / np.max(np.abs(y))),
        "floor": own.scaled(rate / products.flops).as_cell(),
    }
