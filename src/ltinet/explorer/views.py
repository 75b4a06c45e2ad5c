"""Views of a system and its network as plain data for JSON.

Each function calls the library and rounds: curves to seven digits, coordinates to hundredths; numbers that are not
finite become null. Long curves are thinned to the minimum and the maximum of each stretch, so that peaks remain.
"""

import itertools
import json
import math
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.subject import ExcitationRun, Subject, simulate_run
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import neuron_contribution
from ltinet.network.realization import sparse_block_diagonal
from ltinet.nonlinear.network import NonlinearNetwork
from ltinet.plotting.architecture import LayerBand, arrange_layers
from ltinet.plotting.layers import row_runs
from ltinet.signals.sampled import SampledSignal
from ltinet.simulation.engines import ENGINES
from ltinet.simulation.solution import Solution

JSONObject = dict[str, Any]


def rounded_list(values: Array) -> list[float | None]:
    """Return values of a curve with seven digits, null for values that are not finite."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in np.asarray(values).ravel().tolist()]


def encode_json(view: JSONObject) -> bytes:
    """Return a view as JSON; all its numbers must be finite."""
    return json.dumps(view, allow_nan=False, separators=(",", ":")).encode()


def finite_or_none(value: float | None) -> float | None:
    """Return a finite number, else None."""
    return None if value is None or not math.isfinite(value) else float(value)


def round_coordinates(values: Iterable[float]) -> list[float]:
    """Return coordinates of a drawing, rounded to hundredths of its unit."""
    return [round(float(value), 2) for value in values]


MAX_POINTS = 1000


def thin_curve(values: Array, max_points: int = MAX_POINTS) -> NDArray[np.intp]:
    """Return ascending indices of at most `max_points` of the values `(T,)`: both ends, and each stretch's extremes."""
    count = len(values)
    if count <= max_points:
        return np.arange(count)
    edges = np.linspace(0, count, max_points // 2).astype(np.intp)
    indices = {0, count - 1}
    for start, stop in itertools.pairwise(edges):
        indices |= {int(start + np.argmin(values[start:stop])), int(start + np.argmax(values[start:stop]))}
    return np.array(sorted(indices))


_ASPECT = 0.62  # height over width
_MAX_ARCS = 1200  # drawn in a layer; more cannot be distinguished, and only their number is shown


def architecture_view(net: DynamicNetwork) -> JSONObject:
    """Return bands with balls and arcs in the coordinates of the drawing, y upwards; balls have their equations."""
    layers = net.layers
    sizes = [layer.n_neurons for layer in layers]
    layout = arrange_layers(sizes, connected=[layer.n_connections > 0 for layer in layers], aspect=_ASPECT)
    return {
        **{name: round(getattr(layout, name), 2) for name in ("width", "height", "left", "right")},
        "bands": [_band(band, net) for band in layout.bands],
        "inputs": list(net.input_names),
        "outputs": list(net.output_names),
    }


_MAX_PRODUCTS = 100  # product neurons in the list


def products_view(subject: Subject, net: DynamicNetwork) -> JSONObject | None:
    """Return the product neurons of a model as texts, with their number and kinds; None for a linear model."""
    if subject.model is None:
        return None
    neurons = NonlinearNetwork(subject.model, net).products
    names = net.input_names, subject.model.scheduling_names
    return {
        "count": neurons.n_neurons,
        "kinds": ", ".join(f"{count} {kind}" for kind, count in neurons.counts().items() if count),
        "listed": [neurons.describe(index, *names) for index in range(min(neurons.n_neurons, _MAX_PRODUCTS))],
    }


def _band(band: LayerBand, net: DynamicNetwork) -> JSONObject:
    layer = None if band.layer is None else net.layers[band.layer]
    neurons = [net.layers[ball.layer].neurons[ball.neuron] for ball in band.balls]
    return {
        "layer": band.layer,
        "label": [band.label.text, *round_coordinates((band.label.x, band.label.y))],
        "words": [[word.text, *round_coordinates((word.x, word.y))] for word in band.words],
        "top": round(band.top, 2),
        "bottom": round(band.bottom, 2),
        "balls": [
            [ball.layer, ball.neuron, *round_coordinates((ball.x, ball.y)), neuron.order, str(neuron.equation)]
            for ball, neuron in zip(band.balls, neurons, strict=True)
        ],
        "arcs": [] if layer is None else _arcs(band, layer),
        "n_connections": 0 if layer is None else layer.n_connections,
        "arc_height": round(band.arc_height, 2),
    }


def _arcs(band: LayerBand, layer: HorizontalLayer) -> list[list[float]]:
    """Return the x coordinates of pairs of connected neurons."""
    x = {ball.neuron: ball.x for ball in band.balls}
    ends = [(x[j], x[i]) for i, j in layer.edges if i in x and j in x]
    return [round_coordinates(pair) for pair in ends[:_MAX_ARCS]]


def bode_view(subject: Subject, response: NDArray[np.complex128], *, input: int, output: int) -> JSONObject:
    """Return |H| and the phase in degrees between one input and one output; `response` is `net.frequency_response`.

    The response of a large sparse system is not computed: the bound of its reduction bounds the difference.
    """
    network = response[:, output, input]
    dead_time = float(subject.system.input_delay[input] + subject.system.output_delay[output])
    delay = subject.frequencies * dead_time
    curves = {
        "omega": rounded_list(subject.frequencies),
        "network": rounded_list(np.abs(network)),
        "network_phase": rounded_list(_phase(network, delay)),
    }
    if subject.response is None:
        bound = None if subject.reduction is None else subject.reduction.error_bound
        difference_bound = np.full(len(network), np.nan if bound is None else bound)
        return {**curves, "system": None, "system_phase": None, "difference": rounded_list(difference_bound)}
    system = subject.response[:, output, input]
    return {
        **curves,
        "system": rounded_list(np.abs(system)),
        "system_phase": rounded_list(_phase(system, delay)),
        "difference": rounded_list(np.abs(system - network)),
    }


def _phase(values: NDArray[np.complex128], delay: Array) -> Array:
    """Return the phase in degrees, unwrapped without the phase of the delay, which is then subtracted."""
    return np.asarray(np.degrees(np.unwrap(np.angle(values * np.exp(1j * delay))) - delay))


_N_COMPARED_TIMES = 100  # for constant inputs: ODE solvers restart at each sample


def engines_view(net: DynamicNetwork, run: ExcitationRun, *, output: int) -> JSONObject:
    """Return a row for each engine with its distance from the exact engine and its own error bound."""
    run = _without_knots(run)
    runs = {name: _timed(net, run, name) for name in ENGINES}
    return {"engines": [_row(name, *runs[name], exact_y=runs["exact"][0].y, output=output) for name in ENGINES]}


def _without_knots(run: ExcitationRun) -> ExcitationRun:
    """Replace a constant input by two samples, and use fewer times, since ODE solvers restart at each sample."""
    if (run.u != run.u[0]).any():
        return run
    times = run.t[:: max(1, (len(run.t) - 1) // _N_COMPARED_TIMES)]
    return run._replace(t=times, u=SampledSignal(run.t[[0, -1]], run.u[[0, -1]], hold="zero"))


def _timed(net: DynamicNetwork, run: ExcitationRun, name: str) -> tuple[Solution, float]:
    start = time.perf_counter()
    return simulate_run(net, run, engine=name), time.perf_counter() - start


def _row(name: str, solution: Solution, seconds: float, *, exact_y: Array, output: int) -> JSONObject:
    evaluations = solution.stats.get("evaluations")
    return {
        "name": name,
        "evaluations": None if evaluations is None else int(sum(np.sum(counts) for counts in evaluations)),
        "seconds": seconds,
        "error": finite_or_none(float(np.abs(solution.y - exact_y)[:, output].max())),
        "bound": finite_or_none(float(solution.error_bound()[output])),
    }


def facts_view(subject: Subject, net: DynamicNetwork) -> JSONObject:
    """Return counts, condition number and settings of the network."""
    form = net.form
    return {
        "n_states": net.n_states,
        "n_full_order": subject.full_order_system.n_states,
        "n_layers": net.n_layers,
        "n_neurons": net.n_neurons,
        "n_connections": net.n_connections,
        "n_weights": net.n_weights,
        "n_weights_dense": net.n_weights_dense,
        "condition": None if form is None else finite_or_none(form.condition),
        "residual": None if form is None else finite_or_none(form.residual),
        "weight_norm": finite_or_none(net.weight_norm),
        "inputs": list(net.input_names),
        "outputs": list(net.output_names),
        "details": {**subject.facts, **_settings(net)},
    }


def _settings(net: DynamicNetwork) -> dict[str, str]:
    """Return delays, operating point, hold and sample time as texts."""
    settings: dict[str, str] = {}
    for label, text in net.signal_settings.rows:
        settings[label] = f"{settings[label]}; {text}" if label in settings else text
    return settings


def reduction_view(subject: Subject) -> JSONObject | None:
    """Return the error of a reduction and whether it is proven; None without a reduction."""
    reduction = subject.reduction
    if reduction is None:
        return None
    return {
        "order": reduction.order,
        "n_states": subject.full_order_system.n_states,
        "error_bound": finite_or_none(reduction.error_bound),
        "estimate": finite_or_none(reduction.estimate),
        "gain": finite_or_none(reduction.gain),
        "notes": list(reduction.notes),
    }


_MAX_CELLS = 160  # per side of a drawn matrix; in larger matrices a cell stands for several entries


def original_pattern_view(subject: Subject) -> JSONObject:
    """Return the sparsity pattern of the full-order system's A."""
    system = subject.full_order_system
    return _pattern(sparse.coo_array(system.A if system.sparse is None else system.sparse.state))


def block_pattern_view(net: DynamicNetwork) -> JSONObject:
    """Return the sparsity pattern of the block-diagonal matrix, or of the network's own A if it has no form."""
    if net.form is None:
        return _pattern(sparse.coo_array(net.to_state_space().A))
    blocks = [net.form.block(index) for index in range(net.form.n_blocks)]
    return _pattern(sparse.coo_array(sparse_block_diagonal(blocks)))


def _pattern(matrix: "sparse.coo_array") -> JSONObject:
    """Return runs of nonzero cells, row by row, and the number of nonzero entries."""
    n = matrix.shape[0]
    is_set = matrix.data != 0
    rows, columns = matrix.row[is_set], matrix.col[is_set]
    side = min(n, _MAX_CELLS)
    cells = np.zeros((side, side), dtype=bool)
    cells[rows * side // max(n, 1), columns * side // max(n, 1)] = True
    rows, starts, stops = row_runs(cells)
    runs = np.column_stack([rows, starts, stops - starts]).tolist()
    return {"n": n, "side": side, "count": int(np.count_nonzero(is_set)), "runs": runs}


def response_view(run: ExcitationRun, solution: Solution, *, input: int, output: int) -> JSONObject:
    """Return times, input and output."""
    samples = thin_curve(solution.y[:, output])
    return {
        "t": rounded_list(run.t[samples]),
        "u": rounded_list(run.u[samples, input]),
        "y": rounded_list(solution.y[samples, output]),
        "end": finite_or_none(float(run.t[-1])),
        "largest": finite_or_none(float(np.abs(solution.y[:, output]).max())),
        "notes": list(solution.notes),
    }


def share_view(
    net: DynamicNetwork, run: ExcitationRun, solution: Solution, *, neuron_indices: tuple[int, int], output: int
) -> JSONObject:
    """Return the contribution of one neuron to the output, and its equation."""
    layer, neuron = neuron_indices
    share = _delayed_share(net, run, solution, layer=layer, neuron=neuron, output=output)
    chosen, samples = net.layers[layer].neurons[neuron], thin_curve(share)
    return {
        "pick": f"{layer}.{neuron}",
        "t": rounded_list(run.t[samples]),
        "share": rounded_list(share[samples]),
        "y": rounded_list(solution.y[samples, output]),
        "equation": str(chosen.equation),
        "poles": [[finite_or_none(pole.real), finite_or_none(pole.imag)] for pole in chosen.poles],
    }


def _delayed_share(
    net: DynamicNetwork, run: ExcitationRun, solution: Solution, *, layer: int, neuron: int, output: int
) -> Array:
    """Return the contribution of a neuron to an output, delayed as the output is; neuron states are not delayed."""
    delay = float(run.settings.array("output_delay", net.n_outputs)[output])
    if not delay:
        return neuron_contribution(net.network, solution.neuron_states, layer=layer, neuron=neuron)[:, output]
    share = np.zeros(len(run.t))
    has_arrived = run.t >= run.t[0] + delay
    if has_arrived.any():
        states = solution.trajectory.neuron_states(np.maximum(run.t[has_arrived] - delay, run.t[0]))
        share[has_arrived] = neuron_contribution(net.network, states, layer=layer, neuron=neuron)[:, output]
    return share


def band_view(net: DynamicNetwork, run: ExcitationRun, *, output: int) -> JSONObject:
    """Return the error bound of the output at the drawn times and over all times."""
    solution = simulate_run(net, run)
    samples = thin_curve(solution.y[:, output])
    parts = {name: finite_or_none(float(bounds[output])) for name, bounds in solution.error_parts().items()}
    return {
        "bound": rounded_list(solution.error_bound(run.t[samples])[:, output]),
        "largest": finite_or_none(float(solution.error_bound()[output])),
        "parts": parts,
    }


def poles_view(net: DynamicNetwork) -> JSONObject:
    """Return real and imaginary parts as in `net.poles()`, layer by layer."""
    poles = net.poles()
    counts = [layer.n_states for layer in net.layers]
    return {
        "real": rounded_list(poles.real),
        "imaginary": rounded_list(poles.imag),
        "layer": np.repeat(np.arange(len(counts)), counts).tolist(),
    }


def tradeoff_view(subject: Subject, index: int) -> JSONObject:
    """Return every point of the trade-off curve, a limit that selects it, and the index of the current one."""
    curve = subject.curve
    return {
        "condition": [finite_or_none(point.condition) for point in curve],
        "layers": [point.n_layers for point in curve],
        "connections": [point.n_connections for point in curve],
        "budgets": list(subject.budgets),
        "place": index,
    }
