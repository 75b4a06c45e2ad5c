"""What a network says of itself, as plain data: for print, a notebook, `ltinet info --json` and whoever comes next."""

from typing import NotRequired, TypedDict

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network


class LayerFacts(TypedDict):
    """One horizontal layer."""

    kind: str
    n_first_order: int
    n_second_order: int
    n_connections: int


class FormFacts(TypedDict, total=False):
    """What is known of the form that a network came from; nothing if it came from none."""

    condition: float
    condition_raw: float
    residual: float


class NetworkFacts(TypedDict):
    """A network, and the form that it came from if it is known; every value passes as JSON."""

    kind: str
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


def network_facts(network: Network, form: BlockDiagonalForm | None) -> NetworkFacts:
    """Counts, weights, how well conditioned the form is, and every layer."""
    return {
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
        **_form_facts(form),
        "layers": [_layer_facts(layer) for layer in network.layers],
    }


def _form_facts(form: BlockDiagonalForm | None) -> FormFacts:
    if form is None:
        return {}
    return {"condition": form.condition, "condition_raw": form.condition_raw, "residual": form.residual}


def _layer_facts(layer: HorizontalLayer) -> LayerFacts:
    return {
        "kind": layer.kind,
        "n_first_order": layer.n_first_order,
        "n_second_order": layer.n_second_order,
        "n_connections": layer.n_connections,
    }
