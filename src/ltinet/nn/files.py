"""Models in files: safetensors with a description and a checksum, nothing executed; what comes back is bit for bit.

A file has the tensors of a model by their names in `state_dict`, and a description in JSON: the kind of each module,
what it was made with, and its parts. Only the kinds of this package are made anew from it.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ltinet.atomic import write_whole
from ltinet.errors import FileFormatError, LtinetError
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, allowance
from ltinet.model.formats.opening import as_path, one_line, opened, reason_of
from ltinet.model.formats.refusals import BeyondLimitError
from ltinet.network.safetensors_file import read_header, read_tensors, to_bytes
from ltinet.nn.kinds import described, made
from ltinet.shown import shown, shown_path

FORMAT = "ltinet-model"
VERSION = 1
_MOST_TEXT = 1 << 20

Arrays = dict[str, NDArray[Any]]


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
    content, tensors = _content(model)
    tensors |= {name: np.asarray(values) for name, values in extra.items()}
    metadata = {"format": FORMAT, "version": str(VERSION), "content": content, "sha256": _digest(content, tensors)}
    try:
        write_whole(place, to_bytes(tensors, metadata))
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{shown_path(place)} cannot be written ({reason_of(error)}); choose another place"
        ) from error


def model_checksum(model: nn.Module) -> str:
    """SHA-256 of a model, the one that its file has where nothing else stands beside it."""
    return _digest(*_content(model))


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> nn.Module:
    """Read a model that `ltinet.nn.save` wrote.

    Raises:
        FileFormatError: there is no such file, it is damaged, no model, too large, or of a newer format.
    """
    return read_model(path, max_bytes=max_bytes)[0]


def read_model(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> tuple[nn.Module, Arrays]:
    """Read a model and what was written beside it."""
    place = as_path(path)
    metadata, tensors = _read(place, max_bytes)
    content = metadata.get("content", "")
    if len(content) > _MOST_TEXT or metadata.get("sha256") != _digest(content, tensors):
        raise FileFormatError(f"{shown_path(place)} is damaged: its checksum does not match; restore it from a copy")
    own = {name[len("model.") :]: values for name, values in tensors.items() if name.startswith("model.")}
    try:
        model = made(json.loads(content), own)
        model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in own.items()})
    except (LtinetError, ValueError, KeyError, TypeError, IndexError, RuntimeError, RecursionError) as error:
        raise FileFormatError(f"{shown_path(place)} does not hold a complete model: {one_line(error)}") from None
    return model, {name: values for name, values in tensors.items() if not name.startswith("model.")}


def _read(path: Path, max_bytes: float) -> tuple[dict[str, str], Arrays]:
    room = allowance(max_bytes)
    with opened(path) as file:
        try:
            header = read_header(file)
            if header.metadata.get("format") != FORMAT:
                raise FileFormatError(f"{shown_path(path)} is no model; write one with ltinet.nn.save(model, path)")
            if header.metadata.get("version") != str(VERSION):
                version = shown(repr(header.metadata.get("version")))
                raise FileFormatError(f"{shown_path(path)} has format version {version}; upgrade ltinet to read it")
            return header.metadata, read_tensors(file, header, room)
        except LtinetError:
            raise
        except BeyondLimitError as error:
            raise FileFormatError(f"{shown_path(path)} cannot be read: {error}") from None
        except (OSError, ValueError, MemoryError, RecursionError) as error:
            raise FileFormatError(
                f"{shown_path(path)} is not a readable safetensors file ({one_line(error)}); it may be damaged"
            ) from None


def _content(model: nn.Module) -> tuple[str, Arrays]:
    """The description of a model and its tensors, by their names in the file."""
    tensors: Arrays = {f"model.{name}": own.detach().cpu().numpy() for name, own in model.state_dict().items()}
    return json.dumps(described(model), sort_keys=True), tensors


def _digest(content: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the description and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(content.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
