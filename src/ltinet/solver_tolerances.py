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
from ltinet.systems.system_matrices import require_continuous_time


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
    """Choose a solver tolerance for every neuron so that a simulation meets a required accuracy.

    The simulation is run a few times. Each run gives the effect of the error of each neuron on the outputs, and
    neurons with little effect receive larger tolerances. The result needs fewer evaluations than one tolerance for all
    neurons.

    Parameters
    ----------
    net : DynamicNetwork
        Network to simulate.
    target : float, optional
        Limit on `solution.error_bound()` for all outputs.
    u, t, x0, hold
        Input, times, initial state and hold of the simulation, as for `DynamicNetwork.simulate`.
    engine : {"per_neuron", "per_interval"}, optional
        Solver engine that the tolerances are for.
    method : str, mapping or callable, optional
        Solver of SciPy, as for `DynamicNetwork.simulate`.
    n_jobs : int, optional
        Number of processes that share the layers.

    Returns
    -------
    NeuronTolerances
        Tolerances `rtol` and `atol` to pass to `net.simulate`.

    Raises
    ------
    SimulationError
        If the network has products, rounding or the block-diagonalization alone exceed the target, or the engine is
        unknown.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=3))
    >>> t = np.linspace(0.0, 10.0, 101)
    >>> chosen = ltinet.tolerances_for(net, 1e-5, u=np.sin(t), t=t)
    >>> solution = net.simulate(np.sin(t), t, engine="per_neuron", rtol=chosen.rtol, atol=chosen.atol)
    >>> bool((solution.error_bound() <= 1e-5).all())
    True
    """
    if not isinstance(net, DynamicNetwork):
        raise SimulationError(
            f"tolerances_for is for networks of linear models, got {type(net).__name__}; for a network with products use "
            "net.simulate(u, t, tol=…)"
        )
    require_continuous_time(net, "net.simulate(u, t, engine=…)")
    target = validate_positive(target, "target")
    if engine not in ("per_neuron", "per_interval"):
        raise SimulationError(f'engine must be "per_neuron" or "per_interval", got {engine!r}')

    def simulate(tolerances: Mapping[tuple[int, int], float]) -> Solution:
        return net.simulate(
            u, t, x0=x0, hold=hold, engine=engine, method=method, rtol=tolerances, atol=tolerances, n_jobs=n_jobs
        )

    neurons = [(index, i) for index, layer in enumerate(net.layers) for i in range(layer.n_neurons)]
    return search_tolerances(simulate, neurons, target=target)
