"""The answer of an output over time, the share of one neuron in it, and the band that holds the true answer."""

import numpy as np

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.driving import Run, simulated
from ltinet.explorer.views.numbers import Plain, curve, exact
from ltinet.explorer.views.thinning import kept_points
from ltinet.network.shares import neuron_share
from ltinet.solve.solution import Solution


def response_view(run: Run, solution: Solution, *, input: int, output: int) -> Plain:
    """Times, what drives and what answers."""
    kept = kept_points(solution.y[:, output])
    return {
        "t": curve(run.t[kept]),
        "u": curve(run.u[kept, input]),
        "y": curve(solution.y[kept, output]),
        "end": exact(float(run.t[-1])),
        "largest": exact(float(np.abs(solution.y[:, output]).max())),
        "remarks": list(solution.remarks),
    }


def share_view(net: DynamicNetwork, run: Run, solution: Solution, *, pick: tuple[int, int], output: int) -> Plain:
    """What one neuron adds to the output, and its equation."""
    layer, neuron = pick
    share = _late_share(net, run, solution, layer=layer, neuron=neuron, output=output)
    own = net.layers[layer].neurons[neuron]
    kept = kept_points(share)
    return {
        "pick": f"{layer}.{neuron}",
        "t": curve(run.t[kept]),
        "share": curve(share[kept]),
        "y": curve(solution.y[kept, output]),
        "equation": str(own.equation),
        "poles": [[exact(pole.real), exact(pole.imag)] for pole in own.poles],
    }


def _late_share(net: DynamicNetwork, run: Run, solution: Solution, *, layer: int, neuron: int, output: int) -> Array:
    """The share of a neuron in an output, as late as the output is; neuron states themselves are not."""
    late = float(run.settings.array("output_delay", net.n_outputs)[output])
    if not late:
        return neuron_share(net.network, solution.neuron_states, layer=layer, neuron=neuron)[:, output]
    share = np.zeros(len(run.t))
    now = run.t >= run.t[0] + late
    if now.any():
        states = solution.trajectory.neuron_states(np.maximum(run.t[now] - late, run.t[0]))
        share[now] = neuron_share(net.network, states, layer=layer, neuron=neuron)[:, output]
    return share


def band_view(net: DynamicNetwork, run: Run, *, output: int) -> Plain:
    """How far the output may be from the true one, at the times that are drawn and at all times."""
    solution = simulated(net, run)
    kept = kept_points(solution.y[:, output])
    parts = {name: exact(float(own[output])) for name, own in solution.error_parts().items()}
    return {
        "bound": curve(solution.error_bound(run.t[kept])[:, output]),
        "largest": exact(float(solution.error_bound()[output])),
        "parts": parts,
    }
