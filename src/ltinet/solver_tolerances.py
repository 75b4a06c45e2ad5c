"""Solver tolerances for a required accuracy: `tolerances_for`.

The network is simulated a few times. Each run gives the effect of the error of each neuron on the outputs, and neurons
with little effect receive larger tolerances.
"""

from collections.abc import Mapping
from typing import Any, Literal

from numpy.typing import ArrayLike

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import SimulationError
from ltinet.signals.sampled import Hold
from ltinet.simulation.options import validate_positive
from ltinet.simulation.solution import Solution
from ltinet.simulation.solver_errors import NeuronTolerances, search_tolerances

# MERGED ltinet.solver_tolerances
# Tolerances of solvers for an error that is asked for, found by running a network a few times.


def tolerances_for(  # noqa: PLR0913 - the options of the runs that the tolerances are for
    net: DynamicNetwork,
    target: float = 1e-6,
    *,
    u: Any,
    t: ArrayLike,
    x0: ArrayLike | None = None,
    hold: Hold | None = None,
    engine: Literal["per_neuron", "per_interval"] = "per_neuron",
    method: Any = None,
    n_jobs: int = 1,
) -> NeuronTolerances:
    """Choose a tolerance for every neuron so that `error_bound()` of a simulation is at most `target` for all outputs.

    Runs the simulation a few times: each run tells what the error of each neuron does to the outputs, and those that do
    little are given larger tolerances. Takes fewer evaluations than one tolerance for all; pass the result on with
    `net.simulate(u, t, engine=…, method=…, rtol=chosen.rtol, atol=chosen.atol)`.

    Raises:
        SimulationError: rounding or the decomposition alone exceed the target.
    """
    target = validate_positive(target, "target")
    if engine not in ("per_neuron", "per_interval"):
        raise SimulationError(f'engine is {engine!r}; tolerances are for "per_neuron" and "per_interval"')

    def simulate(tolerances: Mapping[tuple[int, int], float]) -> Solution:
        return net.simulate(
            u, t, x0=x0, hold=hold, engine=engine, method=method, rtol=tolerances, atol=tolerances, n_jobs=n_jobs
        )

    neurons = [(index, i) for index, layer in enumerate(net.layers) for i in range(layer.n_neurons)]
    return search_tolerances(simulate, neurons, target=target)
