"""Forward passes of the paper's examples: inputs, clustering and the five ways to run one network.

The same network and input are run by Algorithm 3 across the knots of the input and restarted at them, by Algorithm A.1,
by the exact engine and by SciPy's `lsim`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from scipy import integrate, signal

import ltinet
from ltinet._util.floating_point import Array
from ltinet._util.progress import ProgressCallback

# MERGED ltinet.paper.forward_passes
# How the examples tell how far they are, so that they take nothing from outside this room but public names.


# MERGED ltinet.paper.forward_passes
# The times and inputs that the paper's examples share.

SAMPLE_TIMES: Array = np.linspace(0.0, 10.0, 101)
"""0…10 in steps of 0.1; inputs are straight lines between them."""
SAMPLE_TIMES.setflags(write=False)


def heat_pulse(*, points: int = 20, length: float = 10.0) -> Array:
    """100 exp(−0.8 ((x − l/2)² + (y − l/2)²)) at t = 0.2 and nothing at the other times, `(101, points²)`.

    With straight lines between the times this is a hat from t = 0.1 to 0.3. Point (i, j) is input j·points + i.
    """
    along = (np.arange(points) * length / points - length / 2.0) ** 2
    u = np.zeros((len(SAMPLE_TIMES), points**2))
    u[2] = 100.0 * np.exp(-0.8 * np.add.outer(along, along)).ravel()
    return u


def sine_inputs(n_inputs: int = 10) -> Array:
    """sin(i t / 2) for i = 1…n_inputs, `(101, n_inputs)`."""
    return np.asarray(np.sin(np.outer(SAMPLE_TIMES, np.arange(1, n_inputs + 1)) / 2.0))


# MERGED ltinet.paper.forward_passes
# The clustering algorithm of the paper, from scikit-learn, with its random start fixed.

KMEANS_SEED = 0


def kmeans(n_clusters: int) -> Any:
    """K-means for `construct(system, clustering=…)`, which shows it (Re λ, |Im λ|), so that no pair is split."""
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=10, random_state=KMEANS_SEED)


# MERGED ltinet.paper.forward_passes
# One network, one input, every way to run it: the paper's two algorithms, the exact engine and SciPy's `lsim`.

Item = TypeVar("Item")
SOLVER_TOLERANCE = 1e-10
"""rtol and atol of every solver, as in the paper; its solver is DOP853."""


@dataclass(frozen=True)
class SolverEffort:
    """How much the ODE solvers are asked for. Everything else is the same in a quick run and in a full one."""

    stop: float = 10.0
    """Where the ODE solvers end."""
    layers_across_knots: int | None = None
    """How many layers, evenly spread, Algorithm 3 solves as in the paper; None for all. The others are exact."""
    layers_from_knot_to_knot: int | None = None
    """The same for the algorithms that restart at the knots of the input."""


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """What one of the paper's algorithms gave."""

    y: Array
    """Outputs at the times up to `Effort.stop`."""
    errors: Array
    """Largest |y − exact| of an output at each of these times."""
    bounds: Array
    """What `sol.error_bound` says of it."""
    evaluations: tuple[tuple[int, ...], ...]
    """Evaluations of the right-hand side of each neuron, layer by layer; none for layers that were not solved."""

    @property
    def error(self) -> float:
        """Largest of all."""
        return float(np.max(self.errors))

    @property
    def bound(self) -> float:
        """Largest of all."""
        return float(np.max(self.bounds))

    @property
    def n_layers_solved(self) -> int:
        """Layers that a solver was asked for."""
        return sum(bool(layer) for layer in self.evaluations)

    @property
    def most_evaluations(self) -> int:
        """Of the neuron that needs most."""
        return max(max(layer) for layer in self.evaluations if layer)

    @property
    def least_evaluations(self) -> int:
        """Of the neuron that needs least."""
        return min(min(layer) for layer in self.evaluations if layer)

    @property
    def mean_evaluations(self) -> tuple[float, ...]:
        """Of each layer that was solved, averaged over its neurons."""
        return tuple(float(np.mean(layer)) for layer in self.evaluations if layer)


@dataclass(frozen=True, eq=False)
class ForwardPasses:
    """The same network and input, run in five ways."""

    exact: Array
    exact_bounds: Array
    """What `sol.error_bound` says of the exact engine at each time, largest of all outputs."""
    lsim: Array
    algorithm_3: ForwardPass
    """As in the paper: one integration per neuron over the whole time, across the knots of the input."""
    algorithm_3_from_knot_to_knot: ForwardPass
    algorithm_a1: ForwardPass

    @property
    def exact_against_lsim(self) -> float:
        """Max |exact − lsim| / max |lsim|."""
        return float(np.max(np.abs(self.exact - self.lsim)) / np.max(np.abs(self.lsim)))

    @property
    def orders_gained(self) -> float:
        """Orders of magnitude by which the error of Algorithm A.1 is lower than that of Algorithm 3 as in the paper."""
        return float(np.log10(self.algorithm_3.error / self.algorithm_a1.error))

    @property
    def orders_gained_by_intervals(self) -> float:
        """The same where Algorithm 3, too, restarts at the knots of the input."""
        return float(np.log10(self.algorithm_3_from_knot_to_knot.error / self.algorithm_a1.error))


def run_all_methods(
    net: ltinet.DynamicNetwork, u: Array, *, system: ltinet.StateSpace, effort: SolverEffort, tell: ProgressCallback
) -> ForwardPasses:
    """Run `net`, made from `system`, on the input u at `SAMPLE_TIMES`; `tell` hears what comes next."""
    tell("exact engine and lsim")
    sol = net.simulate(u, SAMPLE_TIMES)
    exact, exact_bounds = sol.y, np.max(sol.error_bound(SAMPLE_TIMES), axis=1)
    _, lsim, _ = signal.lsim((system.A, system.B, system.C, system.D), u, SAMPLE_TIMES)
    tell("Algorithm 3 as in the paper")
    across_knots = _solve_layers(net, u, exact=exact, effort=effort, engine="per_neuron", across_knots=True)
    tell("Algorithm 3 from knot to knot")
    from_knot_to_knot = _solve_layers(net, u, exact=exact, effort=effort, engine="per_neuron")
    tell("Algorithm A.1")
    in_intervals = _solve_layers(net, u, exact=exact, effort=effort, engine="per_interval")
    return ForwardPasses(exact, exact_bounds, lsim, across_knots, from_knot_to_knot, in_intervals)


def _solve_layers(
    net: ltinet.DynamicNetwork, u: Array, *, exact: Array, effort: SolverEffort,
    engine: Literal["per_neuron", "per_interval"], across_knots: bool = False,
) -> ForwardPass:  # fmt: skip
    """Solve the layers that `effort` asks for; outputs of layers add up, so the others can be taken as exact."""
    count = effort.layers_across_knots if across_knots else effort.layers_from_knot_to_knot
    chosen = np.linspace(0, net.n_layers - 1, min(count or net.n_layers, net.n_layers)).round().astype(int).tolist()
    part = select_layers(net, chosen)
    times = SAMPLE_TIMES[effort.stop + 1e-9 >= SAMPLE_TIMES]  # 0.1 has no exact binary form
    sol = part.simulate(
        u[: len(times)],
        times,
        engine=engine,
        rtol=SOLVER_TOLERANCE,
        atol=SOLVER_TOLERANCE,
        n_jobs=-1,
        across_knots=across_knots,
    )
    error = sol.y - part.simulate(u[: len(times)], times).y
    evaluations = dict(zip(chosen, sol.stats["evaluations"], strict=True))
    return ForwardPass(
        y=exact[: len(times)] + error,
        errors=np.max(np.abs(error), axis=1),
        bounds=np.max(sol.error_bound(times), axis=1),
        evaluations=tuple(evaluations.get(layer, ()) for layer in range(net.n_layers)),
    )


def select_layers(net: ltinet.DynamicNetwork, chosen: Sequence[int]) -> ltinet.DynamicNetwork:
    """A network of some of the layers of another, with the same inputs and outputs."""
    if len(chosen) == net.n_layers:
        return net
    own = net.parameters

    def pick(part: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(part[layer] for layer in chosen)

    kept = ltinet.NetworkParameters(pick(own.M), pick(own.C), pick(own.K), pick(own.W), pick(own.Phi), own.Psi)
    return ltinet.DynamicNetwork.from_parameters(kept)


def evaluations_without_decoupling(
    system: ltinet.StateSpace, u: Array, *, stop: float = 10.0, from_knot_to_knot: bool = False
) -> int:
    """Evaluations that the same solver needs for ẋ = A x + B u, undecoupled; it restarts at knots, or crosses them."""
    inflow = ltinet.SampledSignal(SAMPLE_TIMES, u @ system.B.T)
    knots = SAMPLE_TIMES[stop + 1e-9 >= SAMPLE_TIMES] if from_knot_to_knot else np.array([0.0, stop])
    state, evaluations = np.zeros(system.n_states), 0
    for span in pairwise(knots.tolist()):
        with np.errstate(invalid="ignore"):  # DOP853 divides zero by zero where its error estimate underflows
            run = integrate.solve_ivp(
                lambda t, x: system.A @ x + inflow.value(np.array([t]))[0], span, state,
                method="DOP853", rtol=SOLVER_TOLERANCE, atol=SOLVER_TOLERANCE, dense_output=True,  # which takes evaluations, too
            )  # fmt: skip
        state, evaluations = run.y[:, -1], evaluations + run.nfev
    return evaluations
