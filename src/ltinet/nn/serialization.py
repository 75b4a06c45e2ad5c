"""Models in safetensors files.

A file holds the tensors of a model by their names in `state_dict`, and a description in JSON: the type of each module,
its arguments and its parts, and a SHA-256 checksum. Nothing is executed on loading, only the module types of this
package are built, and every bit is restored.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.text import format_path, sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidNetworkError, LtinetError
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    SizeLimitError,
    as_path,
    error_reason,
    error_text,
    open_regular,
    parse_size_limit,
)
from ltinet.network.file_format import encode_safetensors, read_header, read_tensors
from ltinet.nn.feedback import Feedback
from ltinet.nn.maps import MLP, Monotone, Polynomial, Spline
from ltinet.nn.stack import Stack
from ltinet.nn.triangular import NeuronGroup, Triangular, validate_neuron_groups
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings, arguments_from_facts
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import PARAMETERS_BY_PART
from ltinet.torch.parameters import NetworkTensors

# MERGED ltinet.nn.serialization
# The kinds of modules that files know: how each is described, and made anew from its description.

ArrayMapping = Mapping[str, NDArray[Any]]
_MAP_TYPES: dict[str, Callable[..., nn.Module]] = {
    "polynomial": Polynomial,
    "spline": Spline,
    "mlp": MLP,
    "monotone": Monotone,
}


def describe_module(model: nn.Module) -> dict[str, Any]:
    """The description of a model and its parts.

    Raises:
        InvalidNetworkError: a part is of a kind that files do not know.
    """
    if isinstance(model, LinearNetwork):
        facts: dict[str, Any] = {"dt": model.dt, "hold": model.hold, "trainable": list(model.trainable)}
        if model.signal_settings != NO_SETTINGS:
            facts["signal_settings"] = model.signal_settings.facts
        return {"kind": "linear", **facts, "names": model.names.by_kind}
    if isinstance(model, DelayedNetwork):
        return {"kind": "delayed", "network": describe_module(model.network)}
    if isinstance(model, Stack):
        return {"kind": "stack", "parts": [describe_module(part) for part in model.parts]}
    if isinstance(model, Feedback):
        return {"kind": "feedback", "network": describe_module(model.network), "map": describe_module(model.map)}
    if isinstance(model, Triangular):
        parts = {"network": describe_module(model.network), "map": describe_module(model.map)}
        return {"kind": "triangular", "n_groups": model.n_groups, **parts}
    for kind, known in _MAP_TYPES.items():
        if type(model) is known:
            return {"kind": kind, **model.description()}
    raise InvalidNetworkError(
        f"a {type(model).__name__} is no module of ltinet.nn, and files know no others; save its state_dict yourself"
    )


def build_module(description: Any, tensors: ArrayMapping, *, prefix: str = "") -> nn.Module:
    """A model from its description; of networks the sizes are those of the tensors under their names.

    Raises:
        ValueError, KeyError, TypeError: the description is not one.
    """
    facts = dict(description)
    kind = facts.pop("kind")
    if kind == "linear":
        return _linear_network(facts, tensors, prefix)
    if kind == "delayed":
        return DelayedNetwork(_linear_network(dict(facts["network"]), tensors, f"{prefix}network."))
    if kind == "stack":
        parts = enumerate(facts["parts"])
        return Stack(*(build_module(own, tensors, prefix=f"{prefix}parts.{number}.") for number, own in parts))
    if kind in ("feedback", "triangular"):
        network = build_module(facts["network"], tensors, prefix=f"{prefix}network.")
        map = build_module(facts["map"], tensors, prefix=f"{prefix}map.")
        if kind == "feedback":
            return Feedback(network, map)
        groups = _neuron_groups(facts["n_groups"], tensors, prefix)
        validate_neuron_groups(groups, network.system())
        return Triangular.of_parts(network, map, groups)
    if kind not in _MAP_TYPES:
        raise ValueError(f"there is no kind of module called {kind!r}")
    return _MAP_TYPES[kind](**facts)


def _neuron_groups(count: int, tensors: ArrayMapping, prefix: str) -> list[NeuronGroup]:
    return [
        NeuronGroup(*(torch.tensor(tensors[f"{prefix}{name}_{number}"]) for name in NeuronGroup._fields))
        for number in range(count)
    ]


def _linear_network(facts: dict[str, Any], tensors: ArrayMapping, prefix: str) -> LinearNetwork[DynamicNetwork]:
    own = {name[len(prefix) :]: torch.tensor(values) for name, values in tensors.items() if name.startswith(prefix)}
    learnt = {name for names in PARAMETERS_BY_PART.values() for name in names}
    split = NetworkTensors(
        {name: own[name] for name in learnt}, {name: values for name, values in own.items() if name not in learnt}
    )
    names = facts["names"] or {}
    m, p = int(own["D"].shape[1]), int(own["D"].shape[0])
    settings = SignalSettings.of(n_inputs=m, n_outputs=p, **arguments_from_facts(facts.get("signal_settings", {})))
    return LinearNetwork(
        split,
        dt=facts["dt"],
        hold=facts["hold"],
        trainable=tuple(facts["trainable"]),
        names=SignalNames.of(names.get("inputs"), names.get("outputs"), names.get("states")),
        signal_settings=settings,
        rebuild=DynamicNetwork,
    )


# MERGED ltinet.nn.serialization
# Models in files: safetensors with a description and a checksum, nothing executed; what comes back is bit for bit.
#
# A file has the tensors of a model by their names in `state_dict`, and a description in JSON: the kind of each module,
# what it was made with, and its parts. Only the kinds of this package are made anew from it.

FORMAT = "ltinet-model"
VERSION = 1
_MAX_DESCRIPTION_BYTES = 1 << 20

ArrayDict = dict[str, NDArray[Any]]


def save(model: nn.Module, path: str | Path) -> None:
    """Write a model of `ltinet.nn` to a safetensors file, whole or not at all; `ltinet.nn.load` restores every bit.

    Raises:
        FileFormatError: it cannot be written there.
        InvalidNetworkError: the model has parts that are not of this package.
    """
    write_model(model, path, {})


def write_model(model: nn.Module, path: str | Path, extra: Mapping[str, NDArray[Any]]) -> None:
    """Write a model, and other arrays beside it under names of their own."""
    place = as_path(path)
    content, tensors = _description_and_tensors(model)
    tensors |= {name: np.asarray(values) for name, values in extra.items()}
    metadata = {"format": FORMAT, "version": str(VERSION), "content": content, "sha256": _checksum(content, tensors)}
    try:
        write_file_atomically(place, encode_safetensors(tensors, metadata))
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{format_path(place)} cannot be written ({error_reason(error)}); choose another place"
        ) from error


def model_checksum(model: nn.Module) -> str:
    """SHA-256 of a model, the one that its file has where nothing else stands beside it."""
    return _checksum(*_description_and_tensors(model))


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> nn.Module:
    """Read a model that `ltinet.nn.save` wrote.

    Raises:
        FileFormatError: there is no such file, it is damaged, no model, too large, or of a newer format.
    """
    return read_model(path, max_bytes=max_bytes)[0]


def read_model(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> tuple[nn.Module, ArrayDict]:
    """Read a model and what was written beside it."""
    place = as_path(path)
    metadata, tensors = _read(place, max_bytes)
    content = metadata.get("content", "")
    if len(content) > _MAX_DESCRIPTION_BYTES or metadata.get("sha256") != _checksum(content, tensors):
        raise FileFormatError(f"{format_path(place)} is damaged: its checksum does not match; restore it from a copy")
    own = {name[len("model.") :]: values for name, values in tensors.items() if name.startswith("model.")}
    try:
        model = build_module(json.loads(content), own)
        model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in own.items()})
    except (LtinetError, ValueError, KeyError, TypeError, IndexError, RuntimeError, RecursionError) as error:
        raise FileFormatError(f"{format_path(place)} does not hold a complete model: {error_text(error)}") from None
    return model, {name: values for name, values in tensors.items() if not name.startswith("model.")}


def _read(path: Path, max_bytes: float) -> tuple[dict[str, str], ArrayDict]:
    room = parse_size_limit(max_bytes)
    with open_regular(path) as file:
        try:
            header = read_header(file)
            if header.metadata.get("format") != FORMAT:
                raise FileFormatError(f"{format_path(path)} is no model; write one with ltinet.nn.save(model, path)")
            if header.metadata.get("version") != str(VERSION):
                version = sanitize(repr(header.metadata.get("version")))
                raise FileFormatError(f"{format_path(path)} has format version {version}; upgrade ltinet to read it")
            return header.metadata, read_tensors(file, header, room)
        except LtinetError:
            raise
        except SizeLimitError as error:
            raise FileFormatError(f"{format_path(path)} cannot be read: {error}") from None
        except (OSError, ValueError, MemoryError, RecursionError) as error:
            raise FileFormatError(
                f"{format_path(path)} is not a readable safetensors file ({error_text(error)}); it may be damaged"
            ) from None


def _description_and_tensors(model: nn.Module) -> tuple[str, ArrayDict]:
    """The description of a model and its tensors, by their names in the file."""
    tensors: ArrayDict = {f"model.{name}": own.detach().cpu().numpy() for name, own in model.state_dict().items()}
    return json.dumps(describe_module(model), sort_keys=True), tensors


def _checksum(content: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the description and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(content.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
