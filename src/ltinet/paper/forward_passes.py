"""Forward passes of the paper's examples: inputs, clustering and the five ways to run one network.

The same network and input are run by Algorithm 3 across the knots of the input and restarted at them, by Algorithm A.1,
by the exact engine and by SciPy's `lsim`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import integrate, signal

import ltinet
from ltinet._util.floating_point import Array
from ltinet._util.progress import ProgressCallback

SAMPLE_TIMES: Array = np.linspace(0.0, 10.0, 101)
"""Times 0…10 in steps of 0.1; inputs are linear between them."""
SAMPLE_TIMES.setflags(write=False)


def heat_pulse(*, points: int = 20, length: float = 10.0) -> Array:
    """Return 100 exp(−0.8 ((x − l/2)² + (y − l/2)²)) at t = 0.2 and zero at the other times, `(101, points²)`.

    Linear between the times this is a hat from t = 0.1 to 0.3. Point (i, j) is input j·points + i.
    """
    along = (np.arange(points) * length / points - length / 2.0) ** 2
    u = np.zeros((len(SAMPLE_TIMES), points**2))
    u[2] = 100.0 * np.exp(-0.8 * np.add.outer(along, along)).ravel()
    return u


def sine_inputs() -> Array:
    """Return sin(i t / 2) for i = 1…10, `(101, 10)`."""
    return np.asarray(np.sin(np.outer(SAMPLE_TIMES, np.arange(1, 11)) / 2.0))


KMEANS_SEED = 0


def kmeans(n_clusters: int) -> Any:
    """Return scikit-learn's K-means for `construct(system, clustering=…)`, with a fixed random start.

    It clusters points (Re λ, |Im λ|), so that no pair is split.
    """
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=10, random_state=KMEANS_SEED)


SOLVER_TOLERANCE = 1e-10
"""rtol and atol of every solver, as in the paper; its solver is DOP853."""


@dataclass(frozen=True)
class SolverEffort:
    """Work of the ODE solvers, the only difference between a quick and a full run."""

    stop: float = 10.0
    """Final time of the ODE solvers."""
    layers_across_knots: int | None = None
    """Number of layers, evenly spread, that Algorithm 3 solves as in the paper; None for all. The others are exact."""
    layers_from_knot_to_knot: int | None = None
    """Number of layers that the algorithms solve which restart at the knots of the input."""


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """Result of one of the paper's algorithms."""

    y: Array
    """Outputs at the times up to `SolverEffort.stop`."""
    errors: Array
    """Largest |y − exact| of any output at each of these times."""
    bounds: Array
    """Bounds of these errors by `sol.error_bound`."""
    evaluations: tuple[tuple[int, ...], ...]
    """Evaluations of the right-hand side of each neuron, layer by layer; none for layers that were not solved."""

    @property
    def error(self) -> float:
        """Largest error."""
        return float(np.max(self.errors))

    @property
    def bound(self) -> float:
        """Largest bound."""
        return float(np.max(self.bounds))

    @property
    def n_layers_solved(self) -> int:
        """Number of layers that were solved."""
        return sum(bool(layer) for layer in self.evaluations)

    @property
    def most_evaluations(self) -> int:
        """Evaluations of the neuron with the most."""
        return max(max(layer) for layer in self.evaluations if layer)

    @property
    def least_evaluations(self) -> int:
        """Evaluations of the neuron with the fewest."""
        return min(min(layer) for layer in self.evaluations if layer)

    @property
    def mean_evaluations(self) -> tuple[float, ...]:
        """Evaluations of each layer that was solved, averaged over its neurons."""
        return tuple(float(np.mean(layer)) for layer in self.evaluations if layer)


@dataclass(frozen=True, eq=False)
class ForwardPasses:
    """Results of five algorithms for the same network and input."""

    exact: Array
    exact_bounds: Array
    """Bound of the error of the exact engine at each time, largest of all outputs."""
    lsim: Array
    algorithm_3: ForwardPass
    """As in the paper: one integration per neuron over the whole time, across the knots of the input."""
    algorithm_3_from_knot_to_knot: ForwardPass
    algorithm_a1: ForwardPass

    @property
    def outputs(self) -> dict[str, Array]:
        """Outputs of the paper's two algorithms and of the exact engine."""
        return {"Algorithm 3": self.algorithm_3.y, "Algorithm A.1": self.algorithm_a1.y, "exact engine": self.exact}

    @property
    def exact_against_lsim(self) -> float:
        """Relative difference max |exact − lsim| / max |lsim|."""
        return float(np.max(np.abs(self.exact - self.lsim)) / np.max(np.abs(self.lsim)))

    @property
    def orders_gained(self) -> float:
        """Orders of magnitude by which the error of Algorithm A.1 is lower than that of Algorithm 3 as in the paper."""
        return float(np.log10(self.algorithm_3.error / self.algorithm_a1.error))

    @property
    def orders_gained_by_intervals(self) -> float:
        """Orders of magnitude gained by Algorithm A.1 over Algorithm 3 restarted at the knots of the input."""
        return float(np.log10(self.algorithm_3_from_knot_to_knot.error / self.algorithm_a1.error))


def run_all_methods(
    net: ltinet.DynamicNetwork, u: Array, *, system: ltinet.StateSpace, effort: SolverEffort, progress: ProgressCallback
) -> ForwardPasses:
    """Run `net`, constructed from `system`, on the input u at `SAMPLE_TIMES` with all algorithms."""
    progress("exact engine and lsim")
    sol = net.simulate(u, SAMPLE_TIMES)
    exact, exact_bounds = sol.y, np.max(sol.error_bound(SAMPLE_TIMES), axis=1)
    _, lsim, _ = signal.lsim((system.A, system.B, system.C, system.D), u, SAMPLE_TIMES)
    progress("Algorithm 3 as in the paper")
    across_knots = _solve_layers(net, u, exact=exact, effort=effort, engine="per_neuron", across_knots=True)
    progress("Algorithm 3 from knot to knot")
    from_knot_to_knot = _solve_layers(net, u, exact=exact, effort=effort, engine="per_neuron")
    progress("Algorithm A.1")
    in_intervals = _solve_layers(net, u, exact=exact, effort=effort, engine="per_interval")
    return ForwardPasses(exact, exact_bounds, lsim, across_knots, from_knot_to_knot, in_intervals)


def _solve_layers(
    net: ltinet.DynamicNetwork, u: Array, *, exact: Array, effort: SolverEffort,
    engine: Literal["per_neuron", "per_interval"], across_knots: bool = False,
) -> ForwardPass:  # fmt: skip
    """Solve the layers of `effort`; outputs of layers add up, so that the exact outputs of the others can be added."""
    count = effort.layers_across_knots if across_knots else effort.layers_from_knot_to_knot
    layers = np.linspace(0, net.n_layers - 1, min(count or net.n_layers, net.n_layers)).round().astype(int).tolist()
    part = select_layers(net, layers)
    times = SAMPLE_TIMES[effort.stop + 1e-9 >= SAMPLE_TIMES]  # 0.1 has no exact binary form
    samples, tolerance = u[: len(times)], SOLVER_TOLERANCE
    sol = part.simulate(
        samples, times, engine=engine, rtol=tolerance, atol=tolerance, n_jobs=-1, across_knots=across_knots
    )
    error = sol.y - part.simulate(samples, times).y
    evaluations = dict(zip(layers, sol.stats["evaluations"], strict=True))
    return ForwardPass(
        y=exact[: len(times)] + error,
        errors=np.max(np.abs(error), axis=1),
        bounds=np.max(sol.error_bound(times), axis=1),
        evaluations=tuple(evaluations.get(layer, ()) for layer in range(net.n_layers)),
    )


def select_layers(net: ltinet.DynamicNetwork, layers: Sequence[int]) -> ltinet.DynamicNetwork:
    """Return a network of some layers of another one, with the same inputs and outputs."""
    if len(layers) == net.n_layers:
        return net
    of_layers = {name: values for name, values in net.parameters._asdict().items() if name != "Psi"}
    chosen: dict[str, Any] = {name: tuple(values[layer] for layer in layers) for name, values in of_layers.items()}
    return ltinet.DynamicNetwork.from_parameters(net.parameters._replace(**chosen))


def evaluations_without_decoupling(
    system: ltinet.StateSpace, u: Array, *, stop: float = 10.0, from_knot_to_knot: bool = False
) -> int:
    """Count the evaluations that the same solver needs for ẋ = A x + B u, across the knots or restarted at them."""
    inflow = ltinet.SampledSignal(SAMPLE_TIMES, u @ system.B.T)
    knots = SAMPLE_TIMES[stop + 1e-9 >= SAMPLE_TIMES] if from_knot_to_knot else np.array([0.0, stop])
    state, evaluations = np.zeros(system.n_states), 0
    for span in pairwise(knots.tolist()):
        with np.errstate(invalid="ignore"):  # DOP853 divides zero by zero where its error estimate underflows
            run = integrate.solve_ivp(
                lambda t, x: system.A @ x + inflow.value(np.array([t]))[0], span, state,
                method="DOP853", rtol=SOLVER_TOLERANCE, atol=SOLVER_TOLERANCE, dense_output=True,
            )  # fmt: skip
        state, evaluations = run.y[:, -1], evaluations + run.nfev
    return evaluations
