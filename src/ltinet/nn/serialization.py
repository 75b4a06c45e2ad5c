"""Models in safetensors files.

A file holds the tensors of a model by their names in `state_dict`, and a description in JSON: the type of each module,
its arguments and its parts, and a SHA-256 checksum. Nothing is executed on loading, only the module types of this
package are built, and every bit is restored.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ltinet._util.text import format_path, sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidNetworkError, LtinetError
from ltinet.io.file_access import DEFAULT_MAX_BYTES, as_path, error_text
from ltinet.network.file_format import checksum, read_safetensors, write_safetensors
from ltinet.nn.feedback import Feedback
from ltinet.nn.maps import MLP, Monotone, Polynomial, Spline
from ltinet.nn.stack import Stack
from ltinet.nn.triangular import GROUP_BUFFERS, NeuronGroup, Triangular, validate_neuron_groups
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings, arguments_from_facts
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import PARAMETERS_BY_PART
from ltinet.torch.parameters import NetworkTensors

ArrayDict = dict[str, NDArray[Any]]
ArrayMapping = Mapping[str, NDArray[Any]]
FORMAT = "ltinet-model"
VERSION = 1
_MAP_TYPES: dict[str, Callable[..., nn.Module]] = {
    "polynomial": Polynomial,
    "spline": Spline,
    "mlp": MLP,
    "monotone": Monotone,
}


def describe_module(model: nn.Module) -> dict[str, Any]:
    """Return the description of a model and its parts as plain data.

    Raises InvalidNetworkError for a part that files do not have.
    """
    if isinstance(model, LinearNetwork):
        facts: dict[str, Any] = {"dt": model.dt, "hold": model.hold, "trainable": list(model.trainable)}
        if model.signal_settings != NO_SETTINGS:
            facts["signal_settings"] = model.signal_settings.facts
        return {"kind": "linear", **facts, "names": model.names.by_kind}
    if isinstance(model, DelayedNetwork):
        return {"kind": "delayed", "network": describe_module(model.network)}
    if isinstance(model, Stack):
        residual = {"residual": True} if model.residual else {}
        return {"kind": "stack", "parts": [describe_module(part) for part in model.parts], **residual}
    if isinstance(model, Feedback):
        return {"kind": "feedback", "network": describe_module(model.network), "map": describe_module(model.map)}
    if isinstance(model, Triangular):
        parts = {"network": describe_module(model.network), "map": describe_module(model.map)}
        return {"kind": "triangular", "n_groups": model.n_groups, **parts}
    for kind, map_type in _MAP_TYPES.items():
        if type(model) is map_type:
            return {"kind": kind, **model.description()}
    raise InvalidNetworkError(
        f"nn.save does not write a {type(model).__name__}; save the state_dict of the model instead: "
        "torch.save(model.state_dict(), path)"
    )


def build_module(description: Any, tensors: ArrayMapping, *, prefix: str = "") -> nn.Module:
    """Build a model from its description; sizes of networks are those of the tensors under their names.

    Raises ValueError, KeyError or TypeError if the description is not valid.
    """
    facts = dict(description)
    kind = facts.pop("kind")
    if kind == "linear":
        return _linear_network(facts, tensors, prefix)
    if kind == "delayed":
        return DelayedNetwork(_linear_network(dict(facts["network"]), tensors, f"{prefix}network."))
    if kind == "stack":
        parts = enumerate(facts["parts"])
        built = [build_module(part, tensors, prefix=f"{prefix}parts.{number}.") for number, part in parts]
        return Stack(*built, residual=facts.get("residual") is True)
    if kind in ("feedback", "triangular"):
        network = build_module(facts["network"], tensors, prefix=f"{prefix}network.")
        map = build_module(facts["map"], tensors, prefix=f"{prefix}map.")
        if kind == "feedback":
            return Feedback(network, map)
        groups = [
            NeuronGroup(*(torch.tensor(tensors[f"{prefix}{name}_{number}"]) for name in GROUP_BUFFERS))
            for number in range(facts["n_groups"])
        ]
        validate_neuron_groups(groups, network.system())
        return Triangular.of_parts(network, map, groups)
    if kind not in _MAP_TYPES:
        raise ValueError(f"unknown kind of module {kind!r}")
    return _MAP_TYPES[kind](**facts)


def _linear_network(facts: dict[str, Any], tensors: ArrayMapping, prefix: str) -> LinearNetwork[DynamicNetwork]:
    values = {name[len(prefix) :]: torch.tensor(array) for name, array in tensors.items() if name.startswith(prefix)}
    parameters = {name: values.pop(name) for names in PARAMETERS_BY_PART.values() for name in names}
    names = facts["names"] or {}
    p, m = parameters["D"].shape
    settings = SignalSettings.of(n_inputs=m, n_outputs=p, **arguments_from_facts(facts.get("signal_settings", {})))
    return LinearNetwork(
        NetworkTensors(parameters, values),
        dt=facts["dt"],
        hold=facts["hold"],
        trainable=tuple(facts["trainable"]),
        names=SignalNames.of(names.get("inputs"), names.get("outputs"), names.get("states")),
        signal_settings=settings,
        rebuild=DynamicNetwork,
    )


def save(model: nn.Module, path: str | Path) -> None:
    """Write a model of `ltinet.nn` atomically to a safetensors file, from which `ltinet.nn.load` restores every bit.

    Parameters
    ----------
    model : nn.Module
        Model.
    path : str or Path
        File; an existing one is replaced.

    Raises
    ------
    FileFormatError
        The file cannot be written.
    InvalidNetworkError
        A part of the model is not of this package.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> nn.save(ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).to_torch(0.1), "model.safetensors")
    """
    write_model(model, path, {})


def write_model(model: nn.Module, path: str | Path, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write a model and extra arrays by name; names of tensors of the model have the prefix `model.`."""
    content, tensors = _description_and_tensors(model)
    tensors |= {name: np.asarray(values) for name, values in extra.items()}
    write_safetensors(as_path(path), tensors, content, kind=FORMAT, version=VERSION)


def model_checksum(model: nn.Module) -> str:
    """Return the SHA-256 checksum of a model, which its file has if it holds no extra arrays."""
    return checksum(*_description_and_tensors(model))


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> nn.Module:
    """Read a model that `ltinet.nn.save` wrote.

    Parameters
    ----------
    path : str or Path
        File.
    max_bytes : float
        Limit on the memory of its tensors.

    Returns
    -------
    nn.Module
        The model, with the same bits in all tensors.

    Raises
    ------
    FileFormatError
        The file does not exist, is damaged, is not a model, exceeds the limit, or has a newer format.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> nn.save(ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).to_torch(0.1), "model.safetensors")
    >>> nn.load("model.safetensors").dt
    0.1
    """
    return read_model(path, max_bytes=max_bytes)[0]


def read_model(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> tuple[nn.Module, ArrayDict]:
    """Read a model and the extra arrays in its file."""
    file = as_path(path)
    metadata, tensors = read_safetensors(file, partial(_validate_metadata, file), max_bytes=max_bytes)
    values = {name[len("model.") :]: array for name, array in tensors.items() if name.startswith("model.")}
    try:
        if not all(array.dtype in (np.float64, np.int64) for array in tensors.values()):
            raise ValueError("its tensors must be float64 or int64")
        model = build_module(json.loads(metadata.get("content", "")), values)
        model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in values.items()})
    except (LtinetError, ValueError, KeyError, TypeError, IndexError, RuntimeError, RecursionError) as error:
        raise FileFormatError(f"{format_path(file)} does not hold a complete model: {error_text(error)}") from None
    return model, {name: array for name, array in tensors.items() if not name.startswith("model.")}


def _validate_metadata(path: Path, metadata: Mapping[str, str]) -> None:
    """Raise FileFormatError unless the file is a model of this version."""
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"{format_path(path)} is not a model; write one with ltinet.nn.save(model, path)")
    if metadata.get("version") != str(VERSION):
        version = sanitize(repr(metadata.get("version")))
        raise FileFormatError(f"{format_path(path)} has format version {version}; upgrade ltinet to read it")


def _description_and_tensors(model: nn.Module) -> tuple[str, ArrayDict]:
    """Return the description of a model in JSON, and its tensors by their names in the file."""
    tensors: ArrayDict = {
        f"model.{name}": values.detach().cpu().numpy()
        for name, values in model.state_dict().items()
        if not name.endswith("_extra_state")  # time step and hold, which the description has
    }
    return json.dumps(describe_module(model), sort_keys=True), tensors
