"""Runs drawn on the data sets: errors against balls, and their bounds.

`python -m tests.hostile.on_data_sets --data ../shared/data/lti --seed 1 --runs 20` prints a line for each set: runs, runs
with an error above its bound and with an infinite bound, and the ratio of bound to error: median, 90 % and largest. As in
`hostile.judge`, errors count as half a unit in the last place of the peak at least.

Steps are 1e-3 to 1e4 over the largest |λ|; times are even, rounded, with an offset, uneven or with jumps; inputs are held
or joined by lines; half of the runs begin from a state.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ltinet
from ball_oracle import respond
from data_sets import DATA_SETS
from hostile.grids import draw_queries, draw_times, with_jumps

Array = NDArray[np.float64]
_KINDS = ("exact", "rounded", "rounded offset", "uneven")
_MOST_WORK = 2e6  # states squared times steps: what balls take a few seconds for


class Result(NamedTuple):
    """What became of a run: errors above their bounds, infinite bounds, and bound over error."""

    is_above: bool
    is_infinite: bool
    ratio: float
    seconds: tuple[float, float]
    """Of the run, and of its bound."""
    text: str


def draw_run(rng: Generator, system: ltinet.StateSpace, fastest: float) -> dict[str, Any]:
    """Draw samples, times, hold and state at the start."""
    n, m = system.n_states, system.n_inputs
    most = max(12, min(400, int(_MOST_WORK / n**2)))
    n_steps = int(np.exp(rng.uniform(np.log(10), np.log(most))))
    step = 10.0 ** rng.uniform(-3.0, 4.0) / fastest
    t = draw_times(rng, str(rng.choice(_KINDS)), n_steps=n_steps, step=step, most_lengths=3)  # type: ignore[arg-type]
    if rng.random() < 0.2:
        t = with_jumps(rng, t)
    u = rng.standard_normal((len(t), m)) * 10.0 ** rng.uniform(-2.0, 2.0)
    if rng.random() < 0.3:
        u = np.cumsum(u, axis=0)
    x0 = rng.standard_normal(n) * 10.0 ** rng.uniform(-2.0, 2.0) if rng.random() < 0.5 else None
    return {"u": u, "t": t, "hold": str(rng.choice(["zero", "linear"])), "x0": x0}


def judge_run(system: ltinet.StateSpace, run: dict[str, Any], queries: Array) -> Result:
    """Compare a run, its corrected outputs and outputs between samples with balls."""
    matrices = dict(zip("EAB", system.descriptor or (None, system.A, system.B), strict=True))
    truth = respond(**matrices, C=system.C, D=system.D, **run, at=queries)
    begin = time.perf_counter()
    solution = system.simulate(**run)
    ran = time.perf_counter()
    overall = solution.error_bound()
    seconds = ran - begin, time.perf_counter() - ran
    corrected = solution.corrected()
    pairs = [
        (truth.y, solution.y, solution.error_bound(run["t"])),
        (truth.y, solution.y, overall),
        (truth.y, corrected.y, corrected.error_bound),
        (truth.between, solution(queries), solution.error_bound(queries)),
    ]
    assert truth.between is not None
    is_above = any(np.any(balls.distance(y) * (1.0 - 2.0**-40) - balls.radius > bound) for balls, y, bound in pairs)
    is_infinite = not all(np.all(np.isfinite(bound)) for _, _, bound in pairs)
    peak = truth.y.peak
    error = np.maximum(truth.y.distance(solution.y).max(axis=0), 2.0**-53 * peak)
    ratios = overall[peak > 0.0] / error[peak > 0.0]
    ratio = float(ratios.max()) if ratios.size else 1.0
    text = f"{len(run['t'])} samples, {run['hold']} hold, x0 {run['x0'] is not None}: {ratio:.3g} × the error"
    return Result(is_above, is_infinite, ratio, seconds, text)


def run_data_set(path: Path, seed: int, runs: int) -> list[Result]:
    """Draw and judge runs of one set."""
    given = {"C": np.eye(28)[:3]} if path.stem == "helicopter_v73" else {}  # the file has A and B only
    system = ltinet.load_system(path, **given)
    fastest = float(np.abs(np.linalg.eigvals(system.A)).max())
    results = []
    for index in range(runs):
        rng = np.random.default_rng([seed, index, *path.stem.encode()])
        run = draw_run(rng, system, fastest)
        results.append(judge_run(system, run, draw_queries(rng, run["t"], number=6)))
    return results


def main() -> None:
    """Print a table; the exit code tells whether all bounds hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.on_data_sets", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/lti"), help="folder of the data sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20, help="of each data set")
    parser.add_argument("--name", action="append", choices=DATA_SETS, help="only these; may be given twice")
    arguments = parser.parse_args()
    everything = []
    print(f"{'data set':24} {'runs':>5} {'above':>5} {'inf':>4} {'median':>8} {'90 %':>8} {'largest':>8}")
    for name in [*(arguments.name or DATA_SETS), "all"]:
        if name == "all":
            results = everything
        else:
            results = run_data_set(arguments.data / f"{name}.mat", arguments.seed, arguments.runs)
            everything += results
        ratios = [result.ratio for result in results]
        above, infinite = (sum(getattr(own, what) for own in results) for what in ("is_above", "is_infinite"))
        numbers = " ".join(f"{value:8.3g}" for value in np.quantile(ratios, [0.5, 0.9, 1.0]))
        print(f"{name:24} {len(results):5} {above:5} {infinite:4} {numbers}", flush=True)
        for result in results if name != "all" else []:
            if result.is_above or result.is_infinite or result.ratio > 100.0:
                print(f"    {result.text}{', above' * result.is_above}{', infinite' * result.is_infinite}")
    sys.exit(int(any(result.is_above or result.is_infinite for result in everything)))


if __name__ == "__main__":
    main()
