"""How the cost grows: with states, steps, batch, inputs and outputs, and with the states coupled in one layer."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet
from benchmarks.peers.linear_simulation import lsim
from benchmarks.support.cases import DT, Case, random_case
from benchmarks.support.floor import bare_work
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Effort, repeat, take_turns

STATES = (50, 100, 200, 400, 800, 1400, 2000)
STEPS = tuple(10**power for power in range(2, 8))
BATCHES = (1, 3, 10, 30, 100, 300, 1000)
CHANNELS = (1, 3, 10, 30, 100, 200, 400)
COUPLED = (2, 5, 10, 20, 50, 100, 200)
_LSIM_STATES, _LSIM_STEPS = 400, 100_000  # beyond these one call of lsim takes many seconds


def measure(settings: Settings) -> list[Table]:
    """One table per quantity that grows."""
    quantities = (
        ("scaling_n", "states n", "1 input, 1 output, 10⁴ steps", _states, STATES),
        ("scaling_t", "steps T", "48 states, 1 input, 1 output", _steps, STEPS),
        ("scaling_batch", "batch", "48 states, 1 input, 1 output, 10³ steps; time of a batch", _batches, BATCHES),
        ("scaling_m", "inputs and outputs m = p", "400 states, 10³ steps", _channels, CHANNELS),
        ("scaling_coupled", "states coupled in one layer", "no other states, 10⁴ steps", _coupled, COUPLED),
    )
    return [
        _table(name, quantity, rest, rows(sizes[:3] if settings.quick else sizes, settings))
        for name, quantity, rest, rows, sizes in quantities
    ]


def oscillators(n: int, *, channels: int = 1) -> ltinet.StateSpace:
    """n/2 damped oscillators, hidden by a random similarity up to 400 states, with random inputs and outputs.

    Larger ones stay as they are, so that the benchmark does not wait for a decomposition that it does not measure.
    """
    random = np.random.default_rng(n)
    omega, damping = random.uniform(1.0, 50.0, n // 2), random.uniform(0.01, 1.0, n // 2)
    A = linalg.block_diag(*(np.array([[-d, w], [-w, -d]]) for d, w in zip(damping, omega, strict=True)))
    if n <= _LSIM_STATES:
        Q, _ = np.linalg.qr(random.standard_normal((n, n)))
        A = Q @ A @ Q.T
    return ltinet.StateSpace(A, random.standard_normal((n, channels)), random.standard_normal((channels, n)))


def _states(sizes: Iterable[int], settings: Settings) -> list[dict[str, Cell]]:
    return [_row(n, random_case(str(n), oscillators(n), 10_000), settings, with_lsim=n <= _LSIM_STATES) for n in sizes]


def _steps(counts: Iterable[int], settings: Settings) -> list[dict[str, Cell]]:
    system = oscillators(48)
    return [_row(T, random_case(str(T), system, T), settings, with_lsim=T <= _LSIM_STEPS) for T in counts]


def _batches(counts: Iterable[int], settings: Settings) -> list[dict[str, Cell]]:
    """One call of lsim for each input."""
    case = random_case("batch", oscillators(48), 1000)
    net, random = case.construct(), np.random.default_rng(0)
    theirs = _lsim(case, settings)
    inputs = [random.standard_normal((count, case.n_steps, 1)) for count in counts]
    return [{**_ours(net, u, settings), "size": len(u), "lsim": len(u) * theirs} for u in inputs]


def _channels(counts: Iterable[int], settings: Settings) -> list[dict[str, Cell]]:
    return [_row(m, random_case(str(m), oscillators(400, channels=m), 1000), settings, with_lsim=True) for m in counts]


def _coupled(counts: Iterable[int], settings: Settings) -> list[dict[str, Cell]]:
    """Random matrices kept in one layer, shifted to be stable."""
    rows = []
    for n in counts:
        random = np.random.default_rng(n)
        A = random.standard_normal((n, n)) / np.sqrt(n)
        A -= (np.max(np.linalg.eigvals(A).real) + 0.1) * np.eye(n)
        system = ltinet.StateSpace(A, random.standard_normal((n, 1)), random.standard_normal((1, n)))
        rows.append(_row(n, random_case(str(n), system, 10_000), settings, with_lsim=True, n_layers=1))
    return rows


def _row(size: int, case: Case, settings: Settings, *, with_lsim: bool, n_layers: int | None = None) -> dict[str, Cell]:
    net = ltinet.construct(case.system, n_layers=n_layers)
    lsim_time = _lsim(case, settings) if with_lsim else None
    return {**_ours(net, case.u, settings), "size": size, "lsim": lsim_time}


def _ours(net: ltinet.DynamicNetwork, u: NDArray[np.float64], settings: Settings) -> dict[str, Cell]:
    """Milliseconds of a call, and of its bare work."""
    t = DT * np.arange(u.shape[-2])
    effort = Effort(settings.pair.seconds / 4, settings.pair.at_least)
    pair = take_turns(bare_work(net, u, step=DT), lambda: net.simulate(u, t).y, effort=effort)
    return {"ours": pair.peer.scaled(1e3).as_cell(), "floor": pair.ours.median * 1e3}


def _lsim(case: Case, settings: Settings) -> float:
    """Milliseconds of a call of lsim."""
    return repeat(lsim(case, 0.0), effort=Effort(settings.slow.seconds / 4, 1)).median * 1e3


def _table(name: str, quantity: str, rest: str, rows: list[dict[str, Cell]]) -> Table:
    columns = {"size": quantity, "ours": "ltinet, ms", "floor": "bare work, ms", "lsim": "scipy.signal.lsim, ms"}
    return Table(name, f"Cost against {quantity}", f"Prepared network, outputs only; {rest}.", columns, rows)
