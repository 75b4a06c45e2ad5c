"""A case of `draw` with delays from 1e-9 of a step to 1,000 steps and an operating point, and what became of it.

*Right*: each output is off by at most 1e-10 of its peak, or by 10 times what stepping along the shifted signal by
exponentials in doubles is off, or by 100 times what half a unit in the last place of the largest time, added to all
delays, changes. The last is for times far from zero: t − τ is not known better there, and the library takes times that
are 8 such units apart for one. *Below its bound*: at every time, for the bound at that time and for that of the run.
"""

from dataclasses import dataclass

import numpy as np

import ltinet
from support.shifted_balls import Exact, by_balls, by_doubles

from .draw import draw
from .families import FAMILIES
from .judge import DATA_FACTOR, GOOD_ENOUGH, PEER_FACTOR

SEED = 44
N_RUNS = 500
_LONG = 1100  # samples of every tenth run, so that 1,000 steps are seen
_NAMES = tuple(own for own in FAMILIES if own != "large")  # whose exponentials at every step take the oracle minutes


@dataclass(frozen=True)
class DelayedRun:
    """A model and what it is run over."""

    name: str
    system: ltinet.StateSpace
    u: np.ndarray
    t: np.ndarray
    x0: np.ndarray | None
    grid: str

    @property
    def can_stream(self) -> bool:
        return self.grid == "exact"


@dataclass(frozen=True)
class Verdict:
    """What is wrong, what is above its bound, and by how much at worst."""

    name: str
    wrong: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    error: float = 0.0
    """Largest error relative to the peak of its output."""
    tightness: float = np.inf
    """Smallest bound over largest error of an output."""
    decided_by: str = ""
    """"peer" or "data" where 1e-10 of the peak did not decide."""


def delayed_run(number: int) -> DelayedRun:
    """Return run number 0 to 499."""
    family, index = _NAMES[number % len(_NAMES)], number // len(_NAMES)
    name = f"{SEED}/{family}/{index}"
    case = draw(name)
    rng = np.random.default_rng([SEED, number])
    count = min(len(case.t), _LONG if number % 10 == 3 else int(rng.integers(30, 200)))
    t = case.t[:count] if np.ptp(case.t[:count]) > 0.0 else case.t
    u = case.u.reshape(-1, *case.u.shape[-2:])[0][: len(t)]
    x0 = None if case.x0 is None else case.x0.reshape(-1, case.x0.shape[-1])[0]
    p, m = len(case.C), case.B.shape[1]
    step = float(np.ptp(t)) / (len(t) - 1)
    delays = step * np.array([_delay(rng, len(t)) for _ in range(m + p)])
    u0 = rng.standard_normal(m) * np.abs(u).max(initial=0.0) * rng.integers(0, 2)
    y0 = rng.standard_normal(p) * 10.0 ** rng.uniform(-2.0, 2.0) * rng.integers(0, 2)
    system = ltinet.StateSpace(
        case.A, case.B, case.C, case.D, E=case.E, input_delay=delays[:m], output_delay=delays[m:], u0=u0, y0=y0,
        hold=case.hold,
    )  # fmt: skip
    return DelayedRun(f"{number}: {case}", system, u, t, x0, case.grid)


def _delay(rng: np.random.Generator, n_times: int) -> float:
    """In steps: none, tiny, a part of one, whole numbers, whole numbers and a little, and any."""
    most = 1000.0 if rng.random() < 0.2 else min(1000.0, 0.7 * n_times)
    any_size = 10.0 ** rng.uniform(-9.0, np.log10(most))
    whole = float(np.floor(rng.uniform(0.0, most)))
    return float(rng.choice([0.0, 1e-9, rng.uniform(), whole, whole + 1e-9, whole + rng.uniform(), any_size]))


def _off_by_peer(run: DelayedRun, exact: Exact) -> np.ndarray:
    peer = by_doubles(run.system, run.u, run.t, x0=run.x0)
    return np.nan_to_num(PEER_FACTOR * exact.distance(peer).max(axis=0), nan=0.0)


def _off_by_data(run: DelayedRun, exact: Exact) -> np.ndarray:
    """What the last digit of t − τ changes."""
    late = {name: getattr(run.system, name) for name in ("input_delay", "output_delay")}
    half_a_unit = 2.0**-53 * float(np.abs(run.t).max())
    changed = run.system.with_signal_settings(**{name: own + half_a_unit * (own > 0.0) for name, own in late.items()})
    other = by_balls(changed, run.u, run.t, x0=run.x0)
    return np.asarray(DATA_FACTOR * np.abs((other.mid - exact.mid) + (other.low - exact.low)).max(axis=0))


_ALLOWANCES = {"peer": _off_by_peer, "data": _off_by_data}


def judged(run: DelayedRun) -> Verdict:
    """Run a case by the library, by the oracle and, where that decides, by the peer."""
    exact = by_balls(run.system, run.u, run.t, x0=run.x0)
    peak = np.abs(exact.mid).max(axis=0)
    net = ltinet.construct(run.system)
    solution = net.simulate(run.u, run.t, x0=run.x0)
    found = {"simulate": solution.y}
    if run.can_stream:
        step = float(run.t[1] - run.t[0])
        found["stream"] = np.concatenate(list(net.simulate_stream([run.u[:17], run.u[17:]], step, x0=run.x0)))
    wrong, allowed, decided_by, largest = [], GOOD_ENOUGH * peak, "", 0.0
    for way, y in found.items():
        error = exact.distance(y).max(axis=0)
        for name, other in _ALLOWANCES.items():
            if np.any(error > allowed) and decided_by != "data":
                decided_by, allowed = name, np.maximum(allowed, other(run, exact))
        wrong += [f"{way}, output {i}: {error[i]:.2e} of {peak[i]:.2e}" for i in np.flatnonzero(~(error <= allowed))]
        largest = max(largest, float((error / np.where(peak > 0.0, peak, 1.0)).max()))
    error = exact.distance(solution.y)
    bounds = {"overall": solution.error_bound(), "at times": solution.error_bound(run.t)}
    above = [
        f"{kind}, output {i}: {error[:, i].max():.2e} above {np.max(bound[..., i]):.2e}"
        for kind, bound in bounds.items()
        for i in np.flatnonzero(np.any(~(error <= bound), axis=0))
    ]
    most = np.maximum(error.max(axis=0), 2.0**-53 * peak)
    ratios = bounds["overall"][most > 0.0] / most[most > 0.0]
    return Verdict(run.name, tuple(wrong), tuple(above), largest, float(ratios.max(initial=0.0)), decided_by)
