"""The three engines on the run that is shown: what each evaluates, how long it takes, how far it is from the first."""

import time

import numpy as np

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.driving import Run, simulated
from ltinet.explorer.views.numbers import Plain, exact
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.engines import ENGINES
from ltinet.solve.solution import Solution

_TIMES = 100  # at which engines are compared where the input has no knots


def engines_view(net: DynamicNetwork, run: Run, *, output: int) -> Plain:
    """A row for each engine; `error` is the distance from the exact engine, `bound` what each promises of itself."""
    run = _without_knots(run)
    found = {name: _timed(net, run, name) for name in ENGINES}
    exact_y = found["exact"][0].y
    return {"engines": [_row(name, *found[name], exact_y=exact_y, output=output) for name in ENGINES]}


def _without_knots(run: Run) -> Run:
    """An input that stays what it is, by two samples and at fewer times: at each of them solvers begin anew."""
    if (run.u != run.u[0]).any():
        return run
    times = run.t[:: max(1, (len(run.t) - 1) // _TIMES)]
    return run._replace(t=times, u=SampledSignal(run.t[[0, -1]], run.u[[0, -1]], hold="zero"))


def _timed(net: DynamicNetwork, run: Run, name: str) -> tuple[Solution, float]:
    began = time.perf_counter()
    return simulated(net, run, engine=name), time.perf_counter() - began


def _row(name: str, found: Solution, seconds: float, *, exact_y: Array, output: int) -> Plain:
    evaluations = found.stats.get("evaluations")
    return {
        "name": name,
        "evaluations": None if evaluations is None else int(sum(np.sum(own) for own in evaluations)),
        "seconds": seconds,
        "error": exact(float(np.abs(found.y - exact_y)[:, output].max())),
        "bound": exact(float(found.error_bound()[output])),
    }
