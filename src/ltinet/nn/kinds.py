"""The kinds of modules that files know: how each is described, and made anew from its description."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError
from ltinet.learn.delayed_network import DelayedNetwork
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.neurons import NeuronGroup, require_layers
from ltinet.learn.parameters import Tensors
from ltinet.learn.trainable_parts import PARTS
from ltinet.model.names import SignalNames
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.nn.feedback import Feedback
from ltinet.nn.maps import MLP, Polynomial, Spline
from ltinet.nn.monotone import Monotone
from ltinet.nn.stack import Stack
from ltinet.nn.triangular import Triangular

Arrays = Mapping[str, NDArray[Any]]
_MAPS: dict[str, Callable[..., nn.Module]] = {
    "polynomial": Polynomial,
    "spline": Spline,
    "mlp": MLP,
    "monotone": Monotone,
}


def described(model: nn.Module) -> dict[str, Any]:
    """The description of a model and its parts.

    Raises:
        InvalidNetworkError: a part is of a kind that files do not know.
    """
    if isinstance(model, LinearNetwork):
        facts: dict[str, Any] = {"dt": model.dt, "hold": model.hold, "trainable": list(model.trainable)}
        if model.signal_settings != NO_SETTINGS:
            facts["signal_settings"] = model.signal_settings.facts
        return {"kind": "linear", **facts, "names": model.names.given}
    if isinstance(model, DelayedNetwork):
        return {"kind": "delayed", "network": described(model.network)}
    if isinstance(model, Stack):
        return {"kind": "stack", "parts": [described(part) for part in model.parts]}
    if isinstance(model, Feedback):
        return {"kind": "feedback", "network": described(model.network), "map": described(model.map)}
    if isinstance(model, Triangular):
        parts = {"network": described(model.network), "map": described(model.map)}
        return {"kind": "triangular", "n_groups": model.n_groups, **parts}
    for kind, known in _MAPS.items():
        if type(model) is known:
            return {"kind": kind, **model.description()}
    raise InvalidNetworkError(
        f"a {type(model).__name__} is no module of ltinet.nn, and files know no others; save its state_dict yourself"
    )


def made(description: Any, tensors: Arrays, *, prefix: str = "") -> nn.Module:
    """A model from its description; of networks the sizes are those of the tensors under their names.

    Raises:
        ValueError, KeyError, TypeError: the description is not one.
    """
    facts = dict(description)
    kind = facts.pop("kind")
    if kind == "linear":
        return _linear(facts, tensors, prefix)
    if kind == "delayed":
        return DelayedNetwork(_linear(dict(facts["network"]), tensors, f"{prefix}network."))
    if kind == "stack":
        parts = enumerate(facts["parts"])
        return Stack(*(made(own, tensors, prefix=f"{prefix}parts.{number}.") for number, own in parts))
    if kind in ("feedback", "triangular"):
        network = made(facts["network"], tensors, prefix=f"{prefix}network.")
        map = made(facts["map"], tensors, prefix=f"{prefix}map.")
        if kind == "feedback":
            return Feedback(network, map)
        groups = _groups(facts["n_groups"], tensors, prefix)
        require_layers(groups, network.system())
        return Triangular.of_parts(network, map, groups)
    if kind not in _MAPS:
        raise ValueError(f"there is no kind of module called {kind!r}")
    return _MAPS[kind](**facts)


def _groups(count: int, tensors: Arrays, prefix: str) -> list[NeuronGroup]:
    return [
        NeuronGroup(*(torch.tensor(tensors[f"{prefix}{name}_{number}"]) for name in NeuronGroup._fields))
        for number in range(count)
    ]


def _linear(facts: dict[str, Any], tensors: Arrays, prefix: str) -> LinearNetwork[DynamicNetwork]:
    own = {name[len(prefix) :]: torch.tensor(values) for name, values in tensors.items() if name.startswith(prefix)}
    learnt = {name for names in PARTS.values() for name in names}
    split = Tensors(
        {name: own[name] for name in learnt}, {name: values for name, values in own.items() if name not in learnt}
    )
    names = facts["names"] or {}
    m, p = int(own["D"].shape[1]), int(own["D"].shape[0])
    settings = SignalSettings.of(n_inputs=m, n_outputs=p, **facts.get("signal_settings", {}))
    return LinearNetwork(
        split,
        dt=facts["dt"],
        hold=facts["hold"],
        trainable=tuple(facts["trainable"]),
        names=SignalNames.of(names.get("inputs"), names.get("outputs"), names.get("states")),
        signal_settings=settings,
        rebuild=DynamicNetwork,
    )
