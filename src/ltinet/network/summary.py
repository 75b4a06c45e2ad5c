"""Summary of a network as plain data, as text for a terminal and as HTML for a notebook."""

from collections import Counter
from typing import NotRequired, TypedDict

from ltinet._util.display import html_properties
from ltinet._util.text import format_count, format_rows
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.network.network import Network
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings

# Plain data


class LayerFacts(TypedDict):
    """Data of one horizontal layer."""

    kind: str
    n_first_order: int
    n_second_order: int
    n_connections: int


class NetworkFacts(TypedDict):
    """Data of a network and of its form if there is one; every value can be encoded as JSON."""

    kind: str
    dt: NotRequired[float]
    n_states: int
    n_inputs: int
    n_outputs: int
    n_layers: int
    n_neurons: int
    n_first_order: int
    n_second_order: int
    n_connections: int
    n_weights: int
    n_weights_dense: int
    sparsity: float
    weight_norm: float
    condition: NotRequired[float]
    condition_raw: NotRequired[float]
    residual: NotRequired[float]
    layers: list[LayerFacts]


def network_facts(network: Network, form: BlockDiagonalForm | None, dt: float | None = None) -> NetworkFacts:
    """Return the time step if there is one, counts, weights, condition numbers of the form, and data of every layer."""
    facts: NetworkFacts = {
        "kind": "network",
        "n_states": network.n_states,
        "n_inputs": network.n_inputs,
        "n_outputs": network.n_outputs,
        "n_layers": network.n_layers,
        "n_neurons": network.n_neurons,
        "n_first_order": network.n_first_order,
        "n_second_order": network.n_second_order,
        "n_connections": network.n_connections,
        "n_weights": network.n_weights,
        "n_weights_dense": network.n_weights_dense,
        "sparsity": network.sparsity,
        "weight_norm": network.weight_norm,
        "layers": [
            {
                "kind": layer.kind,
                "n_first_order": layer.n_first_order,
                "n_second_order": layer.n_second_order,
                "n_connections": layer.n_connections,
            }
            for layer in network.layers
        ],
    }
    if dt is not None:
        facts |= {"dt": dt}
    if form is not None:
        facts |= {"condition": form.condition, "condition_raw": form.condition_raw, "residual": form.residual}
    return facts


# Text and HTML

_N_LISTED_LAYERS = 3  # coupled layers listed one by one, so that a summary has about a dozen lines


def summary_text(
    network: Network,
    form: BlockDiagonalForm | None,
    *,
    names: SignalNames = UNNAMED,
    settings: SignalSettings = NO_SETTINGS,
    dt: float | None = None,
) -> str:
    """Return layers, types of neurons, connections, weights, condition and residual as aligned lines."""
    return format_rows(*summary_rows(network_facts(network, form, dt), names, settings))


def summary_html(
    network: Network,
    form: BlockDiagonalForm | None,
    *,
    names: SignalNames = UNNAMED,
    settings: SignalSettings = NO_SETTINGS,
    dt: float | None = None,
) -> str:
    """Return the rows of `summary_text` as a table for notebooks."""
    return html_properties(*summary_rows(network_facts(network, form, dt), names, settings))


def summary_rows(
    facts: NetworkFacts, names: SignalNames = UNNAMED, settings: SignalSettings = NO_SETTINGS
) -> tuple[str, list[tuple[str, str]]]:
    """Return a title, and pairs of a label and a value; with names of inputs and outputs where the user gave them."""
    inputs, outputs = format_count(facts["n_inputs"], "input"), format_count(facts["n_outputs"], "output")
    kinds = f"{facts['n_layers']}: {_format_kinds(facts['layers'])}" if facts["n_layers"] else "none, a static gain"
    saved = f"{facts['n_weights_dense']} in a dense network ({facts['sparsity']:.1%} saved)"
    rows = [
        *([("time step", f"{facts['dt']:g}, discrete in time")] if "dt" in facts else []),
        *names.without_states.rows,
        *settings.rows,
        (
            "neurons",
            f"{facts['n_neurons']}: {facts['n_first_order']} first-order, {facts['n_second_order']} second-order",
        ),
        ("layers", kinds),
        *_coupled_layers(facts["layers"]),
        ("connections", f"{facts['n_connections']} between neurons"),
        ("weights", f"{facts['n_weights']} of {saved}"),
        ("weight norm", f"{facts['weight_norm']:.4g}"),
    ]
    if "condition" in facts:
        rows += [
            ("cond(T)", f"{facts['condition']:.4g} in balanced coordinates, {facts['condition_raw']:.4g} as given"),
            ("residual", f"{facts['residual']:.1e} of ‖A‖‖T‖"),
        ]
    return f"dynamic neural network, {inputs} → {outputs}", rows


def _n_neurons(layer: LayerFacts) -> int:
    return layer["n_first_order"] + layer["n_second_order"]


def _format_kinds(layers: list[LayerFacts]) -> str:
    counts = Counter((layer["kind"], _n_neurons(layer) == 1) for layer in layers)
    names = [
        f"{count} {kind}{' (single neurons)' if single else ''}" for (kind, single), count in sorted(counts.items())
    ]
    return ", ".join(names)


def _coupled_layers(layers: list[LayerFacts]) -> list[tuple[str, str]]:
    coupled = [(index, layer) for index, layer in enumerate(layers) if _n_neurons(layer) > 1]
    largest = sorted(coupled, key=lambda item: -_n_neurons(item[1]))[:_N_LISTED_LAYERS]
    rows = [
        (f"  layer {index}", f"{layer['n_first_order']} first-order + {layer['n_second_order']} second-order neurons")
        for index, layer in sorted(largest, key=lambda item: item[0])
    ]
    if len(coupled) > len(largest):
        rows.append(("  …", format_count(len(coupled) - len(largest), "more coupled layer")))
    return rows
