"""A network in a dozen lines, for a terminal or a notebook, whatever its size."""

from collections import Counter

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.network.facts import LayerFacts, NetworkFacts, network_facts
from ltinet.network.network import Network
from ltinet.shown import count_of, shown_rows
from ltinet.views import html_facts

_SHOWN = 3  # coupled layers listed one by one: with them and all other lines, a dozen


def summary_text(
    network: Network,
    form: BlockDiagonalForm | None,
    *,
    names: SignalNames = UNNAMED,
    settings: SignalSettings = NO_SETTINGS,
) -> str:
    """Layers, neuron types, connections, weights, condition and residual as aligned lines."""
    return shown_rows(*summary_rows(network_facts(network, form), names, settings))


def summary_html(
    network: Network,
    form: BlockDiagonalForm | None,
    *,
    names: SignalNames = UNNAMED,
    settings: SignalSettings = NO_SETTINGS,
) -> str:
    """The same as a table, for a notebook."""
    return html_facts(*summary_rows(network_facts(network, form), names, settings))


def summary_rows(
    facts: NetworkFacts, names: SignalNames = UNNAMED, settings: SignalSettings = NO_SETTINGS
) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what there is to say as pairs of a label and a value; names where somebody gave them."""
    inputs, outputs = count_of(facts["n_inputs"], "input"), count_of(facts["n_outputs"], "output")
    kinds = f"{facts['n_layers']}: {_kinds(facts['layers'])}" if facts["n_layers"] else "none, a static gain"
    saved = f"{facts['n_weights_dense']} in a dense network ({facts['sparsity']:.1%} saved)"
    rows = [
        *names.of_ends.rows,
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


def _kinds(layers: list[LayerFacts]) -> str:
    counts = Counter((layer["kind"], _n_neurons(layer) == 1) for layer in layers)
    names = [
        f"{count} {kind}{' (single neurons)' if single else ''}" for (kind, single), count in sorted(counts.items())
    ]
    return ", ".join(names)


def _coupled_layers(layers: list[LayerFacts]) -> list[tuple[str, str]]:
    coupled = [(index, layer) for index, layer in enumerate(layers) if _n_neurons(layer) > 1]
    largest = sorted(coupled, key=lambda item: -_n_neurons(item[1]))[:_SHOWN]
    rows = [
        (f"  layer {index}", f"{layer['n_first_order']} first-order + {layer['n_second_order']} second-order neurons")
        for index, layer in sorted(largest, key=lambda item: item[0])
    ]
    if len(coupled) > len(largest):
        rows.append(("  …", count_of(len(coupled) - len(largest), "more coupled layer")))
    return rows
