"""Bounds beside true errors on the paper's examples, what they cost, and what tolerances for single neurons save.

The truth is the exact engine, whose own bound stands beside it.

    python -m benchmarks.measure.bounds               bounds, errors and times of the four examples
    python -m benchmarks.measure.bounds tolerances    evaluations: tolerances for single neurons, one for all

The 500 random networks and 1,000 random neurons are tests: LTINET_THOROUGH=1 pytest -s tests/properties/test_bounds.py
tests/unit/error_bounds/test_gains.py
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import ltinet

Array = NDArray[np.float64]
TIMES = np.linspace(0.0, 10.0, 101)
TARGET = 1e-6
METHOD = "RK45"  # DOP853 takes one step between two samples at this target, whatever its tolerance
EXAMPLES: dict[str, int | None] = {"diffusion": None, "triangular": 4, "blobs": 6, "convection_diffusion": None}


def main() -> None:
    """Print one of the tables."""
    if "tolerances" in sys.argv[1:]:
        compare_tolerances()
    else:
        compare_bounds()


def compare_bounds() -> None:
    """One row per example and engine: errors and bounds at the times asked for, and the share of time bounds take."""
    print(
        "| example, engine, tolerance | largest error | bound at these times | bound at all times | time of bound / "
        "time of engine |\n|---|---|---|---|---|"
    )
    for name, n_layers in EXAMPLES.items():
        net, u = example(name, n_layers)
        truth = net.simulate(u, TIMES)
        for engine, tolerance in (("per_neuron", 1e-10), ("per_interval", 1e-6)):
            begin = time.perf_counter()
            solution = net.simulate(u, TIMES, engine=engine, rtol=tolerance, atol=tolerance)
            solved = time.perf_counter()
            bound, overall = solution.error_bound(TIMES), solution.error_bound()
            judged = time.perf_counter()
            error = float(np.max(np.abs(solution.y - truth.y)))
            print(
                f"| {name}, {engine}, {tolerance:g} | {error:.2e} | {_times(bound, error)} | {_times(overall, error)} "
                f"| {(judged - solved) / (solved - begin):.1%} |",
                flush=True,
            )
        print(f"| {name}, exact | – | {np.max(truth.error_bound(TIMES)):.2e} | {np.max(truth.error_bound()):.2e} | – |")


def compare_tolerances() -> None:
    """Evaluations with tolerances for single neurons, and with the largest single tolerance that meets the target."""
    print(
        "| example | bound | evaluations | one tolerance for all | its evaluations | saved |\n|---|---|---|---|---|---|"
    )
    for name, n_layers in EXAMPLES.items():
        net, u = example(name, n_layers)
        chosen = ltinet.tolerances_for(net, target=TARGET, u=u, t=TIMES, method=METHOD)
        single, evaluations = largest_single(
            lambda own, net=net, u=u: net.simulate(u, TIMES, engine="per_neuron", method=METHOD, rtol=own, atol=own),  # type: ignore[misc]
            TARGET,
        )
        print(
            f"| {name} | {chosen.bound:.2e} | {chosen.evaluations} | {single:.2e} | {evaluations} "
            f"| {1.0 - chosen.evaluations / evaluations:.1%} |",
            flush=True,
        )


def largest_single(simulate: Callable[[float], ltinet.Solution], target: float) -> tuple[float, int]:
    """The largest tolerance, to a tenth of a decade, whose run has a bound within the target, and its evaluations."""

    def meets(exponent: float) -> int | None:
        solution = simulate(10.0**-exponent)
        return int(solution.stats["total_evaluations"]) if np.max(solution.error_bound()) <= target else None

    decade = next((exponent for exponent in range(4, 13) if meets(exponent) is not None), None)
    if decade is None:
        raise SystemExit(f"no single tolerance meets {target:g}")
    for tenth in range(9, -1, -1):
        evaluations = meets(decade - tenth / 10.0)
        if evaluations is not None:
            return 10.0 ** (tenth / 10.0 - decade), evaluations
    raise SystemExit("runs are not repeatable")


def example(name: str, n_layers: int | None) -> tuple[ltinet.DynamicNetwork, Array]:
    """The network of an example and its input: a hat at one point of a grid, or sines."""
    system = ltinet.named_system(name)
    net = ltinet.construct(system, n_layers=n_layers)
    if name in ("triangular", "blobs"):
        return net, np.sin(np.outer(TIMES, np.arange(1, system.n_inputs + 1) / 2.0))
    u = np.zeros((len(TIMES), system.n_inputs))
    u[:, system.n_inputs // 2 + 10] = np.interp(TIMES, [0.0, 0.2, 0.4], [0.0, 1.0, 0.0])
    return net, u


def _times(bound: Array, error: float) -> str:
    return f"{np.max(bound):.2e} ({np.max(bound) / error:.3g} times)"


if __name__ == "__main__":
    main()
