"""The line above all drawings: what this network is, in numbers."""

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.subject import Subject
from ltinet.explorer.views.numbers import Plain, exact


def facts_view(subject: Subject, net: DynamicNetwork) -> Plain:
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
        "condition": None if form is None else exact(form.condition),
        "residual": None if form is None else exact(form.residual),
        "weight_norm": exact(net.weight_norm),
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


def reduction_view(subject: Subject) -> Plain | None:
    """What a reduction left out, and whether that is proven; None where nothing was reduced."""
    found = subject.reduction
    if found is None:
        return None
    return {
        "order": found.order,
        "n_states": subject.given.n_states,
        "error_bound": exact(found.error_bound),
        "estimate": exact(found.estimate),
        "gain": exact(found.gain),
        "remarks": list(found.remarks),
    }
