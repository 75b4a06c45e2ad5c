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
from ltinet.explorer.excitation import ExcitationRun, simulate_run
from ltinet.explorer.subject import Subject
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import neuron_contribution
from ltinet.network.realization import sparse_block_diagonal
from ltinet.plotting.architecture import LayerBand, arrange_layers
from ltinet.signals.sampled import SampledSignal
from ltinet.simulation.engines import ENGINES
from ltinet.simulation.solution import Solution

JSONObject = dict[str, Any]


def rounded_list(values: Array) -> list[float | None]:
    """Values of a curve in seven digits, more than a pixel is worth."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in np.asarray(values).ravel().tolist()]


def encode_json(view: JSONObject) -> bytes:
    """A view as JSON, in which everything is a finite number or null."""
    return json.dumps(view, allow_nan=False, separators=(",", ":")).encode()


def finite_or_none(value: float | None) -> float | None:
    """A number as it is; None where it is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def round_coordinates(values: Iterable[float]) -> list[float]:
    """Places in a drawing, in hundredths of its unit."""
    return [round(float(value), 2) for value in values]


MAX_POINTS = 1000


def thin_curve(values: Array, most: int = MAX_POINTS) -> NDArray[np.intp]:
    """Indices of at most so many of the values `(T,)`, ascending: both ends, and each stretch's extremes."""
    count = len(values)
    if count <= most:
        return np.arange(count)
    edges = np.linspace(0, count, most // 2).astype(np.intp)
    kept = {0, count - 1}
    for start, stop in itertools.pairwise(edges):
        kept |= {int(start + np.argmin(values[start:stop])), int(start + np.argmax(values[start:stop]))}
    return np.array(sorted(kept))


_ASPECT = 0.62  # height over width
_MOST_ARCS = 1200  # of a layer: more are a grey cloud, and are counted in words


def architecture_view(net: DynamicNetwork) -> JSONObject:
    """Bands with balls and arcs in the coordinates of the drawing, y upwards; every ball with its equation."""
    layers = net.layers
    sizes = [layer.n_neurons for layer in layers]
    found = arrange_layers(sizes, connected=[layer.n_connections > 0 for layer in layers], aspect=_ASPECT)
    return {
        "width": round(found.width, 2),
        "height": round(found.height, 2),
        "left": round(found.left, 2),
        "right": round(found.right, 2),
        "bands": [_band(band, net) for band in found.bands],
        "inputs": list(net.input_names),
        "outputs": list(net.output_names),
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
        "room": round(band.room, 2),
    }


def _arcs(band: LayerBand, layer: HorizontalLayer) -> list[list[float]]:
    """From and to which x neurons feed each other, those that are drawn."""
    x = {ball.neuron: ball.x for ball in band.balls}
    drawn = [(x[j], x[i]) for i, j in layer.edges if i in x and j in x]
    return [round_coordinates(pair) for pair in drawn[:_MOST_ARCS]]


def bode_view(subject: Subject, answer: NDArray[np.complex128], *, input: int, output: int) -> JSONObject:
    """|H| and the phase in degrees between one input and one output; `answer` is `net.frequency_response`.

    The answer of a large sparse system is not computed: what is proven of the reduction bounds the difference.
    """
    network = answer[:, output, input]
    late = float(subject.system.input_delay[input] + subject.system.output_delay[output])
    delay = subject.frequencies * late
    shown = {
        "omega": rounded_list(subject.frequencies),
        "network": rounded_list(np.abs(network)),
        "network_phase": rounded_list(_phase(network, delay)),
    }
    if subject.response is None:
        bound = None if subject.reduction is None else subject.reduction.error_bound
        most = np.full(len(network), np.nan if bound is None else bound)
        return {**shown, "system": None, "system_phase": None, "difference": rounded_list(most)}
    system = subject.response[:, output, input]
    return {
        **shown,
        "system": rounded_list(np.abs(system)),
        "system_phase": rounded_list(_phase(system, delay)),
        "difference": rounded_list(np.abs(system - network)),
    }


def _phase(values: NDArray[np.complex128], delay: Array) -> Array:
    """The phase in degrees, made continuous without the angles of the delay, which are then taken off."""
    return np.asarray(np.degrees(np.unwrap(np.angle(values * np.exp(1j * delay))) - delay))


_TIMES = 100  # at which engines are compared where the input has no knots


def engines_view(net: DynamicNetwork, run: ExcitationRun, *, output: int) -> JSONObject:
    """A row for each engine; `error` is the distance from the exact engine, `bound` what each promises of itself."""
    run = _without_knots(run)
    found = {name: _timed(net, run, name) for name in ENGINES}
    exact_y = found["exact"][0].y
    return {"engines": [_row(name, *found[name], exact_y=exact_y, output=output) for name in ENGINES]}


def _without_knots(run: ExcitationRun) -> ExcitationRun:
    """An input that stays what it is, by two samples and at fewer times: at each of them solvers begin anew."""
    if (run.u != run.u[0]).any():
        return run
    times = run.t[:: max(1, (len(run.t) - 1) // _TIMES)]
    return run._replace(t=times, u=SampledSignal(run.t[[0, -1]], run.u[[0, -1]], hold="zero"))


def _timed(net: DynamicNetwork, run: ExcitationRun, name: str) -> tuple[Solution, float]:
    began = time.perf_counter()
    return simulate_run(net, run, engine=name), time.perf_counter() - began


def _row(name: str, found: Solution, seconds: float, *, exact_y: Array, output: int) -> JSONObject:
    evaluations = found.stats.get("evaluations")
    return {
        "name": name,
        "evaluations": None if evaluations is None else int(sum(np.sum(own) for own in evaluations)),
        "seconds": seconds,
        "error": finite_or_none(float(np.abs(found.y - exact_y)[:, output].max())),
        "bound": finite_or_none(float(found.error_bound()[output])),
    }


def facts_view(subject: Subject, net: DynamicNetwork) -> JSONObject:
    """Counts and evidence, each as the library has it."""
    form = net.form
    return {
        "n_states": net.n_states,
        "n_given": subject.given.n_states,
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
        "told": {**subject.facts, **_settings(net)},
    }


def _settings(net: DynamicNetwork) -> dict[str, str]:
    """Delays, operating point, hold and sample time, each in words, and notes together."""
    told: dict[str, str] = {}
    for label, words in net.signal_settings.rows:
        told[label] = f"{told[label]}; {words}" if label in told else words
    return told


def reduction_view(subject: Subject) -> JSONObject | None:
    """What a reduction left out, and whether that is proven; None where nothing was reduced."""
    found = subject.reduction
    if found is None:
        return None
    return {
        "order": found.order,
        "n_states": subject.given.n_states,
        "error_bound": finite_or_none(found.error_bound),
        "estimate": finite_or_none(found.estimate),
        "gain": finite_or_none(found.gain),
        "notes": list(found.notes),
    }


_MOST_CELLS = 160  # on a side: beyond, a cell stands for several entries


def original_pattern_view(subject: Subject) -> JSONObject:
    """The pattern of the matrix that was given."""
    large = subject.given.sparse
    return _pattern(sparse.coo_array(subject.given.A if large is None else large.state))


def block_pattern_view(net: DynamicNetwork) -> JSONObject:
    """The pattern of the block-diagonal matrix, or of a network that has no form that of its own equations."""
    if net.form is None:
        return _pattern(sparse.coo_array(net.to_state_space().A))
    return _pattern(
        sparse.coo_array(sparse_block_diagonal([net.form.block(index) for index in range(net.form.n_blocks)]))
    )


def _pattern(matrix: "sparse.coo_array") -> JSONObject:
    """Runs of cells that are not zero, row by row, with how many entries that are."""
    n = matrix.shape[0]
    is_set = matrix.data != 0
    rows, columns = matrix.row[is_set], matrix.col[is_set]
    side = min(n, _MOST_CELLS)
    cells = np.zeros((side, side), dtype=bool)
    cells[rows * side // max(n, 1), columns * side // max(n, 1)] = True
    return {"n": n, "side": side, "count": int(np.count_nonzero(is_set)), "runs": _runs(cells)}


def _runs(cells: NDArray[np.bool_]) -> list[list[int]]:
    edges = np.diff(np.pad(cells, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    found: list[list[int]] = np.column_stack([rows, starts, stops - starts]).tolist()
    return found


def response_view(run: ExcitationRun, solution: Solution, *, input: int, output: int) -> JSONObject:
    """Times, what drives and what answers."""
    kept = thin_curve(solution.y[:, output])
    return {
        "t": rounded_list(run.t[kept]),
        "u": rounded_list(run.u[kept, input]),
        "y": rounded_list(solution.y[kept, output]),
        "end": finite_or_none(float(run.t[-1])),
        "largest": finite_or_none(float(np.abs(solution.y[:, output]).max())),
        "notes": list(solution.notes),
    }


def share_view(
    net: DynamicNetwork, run: ExcitationRun, solution: Solution, *, pick: tuple[int, int], output: int
) -> JSONObject:
    """What one neuron adds to the output, and its equation."""
    layer, neuron = pick
    share = _delayed_share(net, run, solution, layer=layer, neuron=neuron, output=output)
    own = net.layers[layer].neurons[neuron]
    kept = thin_curve(share)
    return {
        "pick": f"{layer}.{neuron}",
        "t": rounded_list(run.t[kept]),
        "share": rounded_list(share[kept]),
        "y": rounded_list(solution.y[kept, output]),
        "equation": str(own.equation),
        "poles": [[finite_or_none(pole.real), finite_or_none(pole.imag)] for pole in own.poles],
    }


def _delayed_share(
    net: DynamicNetwork, run: ExcitationRun, solution: Solution, *, layer: int, neuron: int, output: int
) -> Array:
    """The share of a neuron in an output, as late as the output is; neuron states themselves are not."""
    late = float(run.settings.array("output_delay", net.n_outputs)[output])
    if not late:
        return neuron_contribution(net.network, solution.neuron_states, layer=layer, neuron=neuron)[:, output]
    share = np.zeros(len(run.t))
    now = run.t >= run.t[0] + late
    if now.any():
        states = solution.trajectory.neuron_states(np.maximum(run.t[now] - late, run.t[0]))
        share[now] = neuron_contribution(net.network, states, layer=layer, neuron=neuron)[:, output]
    return share


def band_view(net: DynamicNetwork, run: ExcitationRun, *, output: int) -> JSONObject:
    """How far the output may be from the true one, at the times that are drawn and at all times."""
    solution = simulate_run(net, run)
    kept = thin_curve(solution.y[:, output])
    parts = {name: finite_or_none(float(own[output])) for name, own in solution.error_parts().items()}
    return {
        "bound": rounded_list(solution.error_bound(run.t[kept])[:, output]),
        "largest": finite_or_none(float(solution.error_bound()[output])),
        "parts": parts,
    }


def poles_view(net: DynamicNetwork) -> JSONObject:
    """Real and imaginary parts as `net.poles()` has them, layer by layer."""
    poles = net.poles()
    counts = [layer.n_states for layer in net.layers]
    return {
        "real": rounded_list(poles.real),
        "imaginary": rounded_list(poles.imag),
        "layer": np.repeat(np.arange(len(counts)), counts).tolist(),
    }


def tradeoff_view(subject: Subject, place: int) -> JSONObject:
    """Every rung of the ladder, a budget that buys it, and the one that is bought now."""
    rungs = subject.ladder
    return {
        "condition": [finite_or_none(rung.condition) for rung in rungs],
        "layers": [rung.n_layers for rung in rungs],
        "connections": [rung.n_connections for rung in rungs],
        "budgets": list(subject.budgets),
        "place": place,
    }
