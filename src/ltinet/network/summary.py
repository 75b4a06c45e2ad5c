"""A network in a dozen lines, for a terminal or a notebook, whatever its size."""

from collections import Counter
from html import escape

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.network.network import Network
from ltinet.shown import count_of

_SHOWN = 3  # coupled layers listed one by one: with them and all other lines, a dozen


def summary_text(network: Network, form: BlockDiagonalForm | None) -> str:
    """Layers, neuron types, connections, weights, condition and residual as aligned lines."""
    title, rows = summary_rows(network, form)
    width = max(len(label) for label, _ in rows)
    return "\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in rows)])


def summary_html(network: Network, form: BlockDiagonalForm | None) -> str:
    """The same as a table, for a notebook."""
    title, rows = summary_rows(network, form)
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(label)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for label, value in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def summary_rows(network: Network, form: BlockDiagonalForm | None) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what there is to say as pairs of a label and a value."""
    inputs, outputs = count_of(network.n_inputs, "input"), count_of(network.n_outputs, "output")
    title = f"dynamic neural network, {inputs} → {outputs}"
    rows = [
        ("neurons", f"{network.n_neurons}: {network.n_first_order} first-order, {network.n_second_order} second-order"),
        ("layers", f"{network.n_layers}: {_kinds(network)}" if network.n_layers else "none, a static gain"),
        *_coupled_layers(network),
        ("connections", f"{network.n_connections} between neurons"),
        (
            "weights",
            f"{network.n_weights} of {network.n_weights_dense} in a dense network ({network.sparsity:.1%} saved)",
        ),
        ("weight norm", f"{network.weight_norm:.4g}"),
    ]
    if form is not None:
        rows += [
            ("cond(T)", f"{form.condition:.4g} in balanced coordinates, {form.condition_raw:.4g} as given"),
            ("residual", f"{form.residual:.1e} of ‖A‖‖T‖"),
        ]
    return title, rows


def _kinds(network: Network) -> str:
    counts = Counter((layer.kind, layer.n_neurons == 1) for layer in network.layers)
    names = [
        f"{count} {kind}{' (single neurons)' if single else ''}" for (kind, single), count in sorted(counts.items())
    ]
    return ", ".join(names)


def _coupled_layers(network: Network) -> list[tuple[str, str]]:
    coupled = [(index, layer) for index, layer in enumerate(network.layers) if layer.n_neurons > 1]
    largest = sorted(coupled, key=lambda item: -item[1].n_neurons)[:_SHOWN]
    rows = [
        (f"  layer {index}", f"{layer.n_first_order} first-order + {layer.n_second_order} second-order neurons")
        for index, layer in sorted(largest, key=lambda item: item[0])
    ]
    if len(coupled) > len(largest):
        rows.append(("  …", f"{count_of(len(coupled) - len(largest), 'more coupled layer')}"))
    return rows
