"""The three engines on the run that is shown: what each evaluates, how long it takes, how far it is from the first."""

import time

import numpy as np

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.driving import Run, simulated
from ltinet.explorer.views.numbers import Plain, exact
from ltinet.solve.engines import ENGINES
from ltinet.solve.solution import Solution


def engines_view(net: DynamicNetwork, run: Run, *, output: int) -> Plain:
    """A row for each engine; `error` is the distance from the exact engine, `bound` what each promises of itself."""
    exact_run = simulated(net, run)
    return {"engines": [_row(net, run, name, exact_run, output) for name in ENGINES]}


def _row(net: DynamicNetwork, run: Run, name: str, exact_run: Solution, output: int) -> Plain:
    began = time.perf_counter()
    found = simulated(net, run, engine=name)
    seconds = time.perf_counter() - began
    evaluations = found.stats.get("evaluations")
    return {
        "name": name,
        "evaluations": None if evaluations is None else int(sum(np.sum(own) for own in evaluations)),
        "seconds": seconds,
        "error": exact(float(np.abs(found.y - exact_run.y)[:, output].max())),
        "bound": exact(float(found.error_bound()[output])),
    }
