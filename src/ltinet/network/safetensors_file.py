"""The file format below network files, safetensors: a header in JSON and the bytes of all tensors behind it.

Read here rather than by the library, which maps the file into memory, where a file that is cut off meanwhile ends the
process; and written with the header in a fixed order, so that the same network gives the same bytes.
"""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ltinet.model.formats.limits import MOST_AXES, Allowance
from ltinet.model.formats.opening import OpenedFile
from ltinet.network.description import without_repetition
from ltinet.shown import shown

_LENGTH_SIZE = 8
_LONGEST_HEADER = 1 << 24
_METADATA = "__metadata__"
_TYPES = {"F64": "<f8", "I64": "<i8"}


class Header(NamedTuple):
    """What the file says of itself, and where its tensors begin."""

    metadata: dict[str, str]
    tensors: dict[str, Any]
    start: int


def to_bytes(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """The file: as the library writes it, with the metadata at the front of the header and in order."""
    written = save(dict(tensors))
    (length,) = struct.unpack("<Q", written[:_LENGTH_SIZE])
    start = _LENGTH_SIZE + length
    facts = {_METADATA: dict(sorted(metadata.items()))} | json.loads(written[_LENGTH_SIZE:start])
    header = json.dumps(facts, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # so that the numbers begin at a multiple of eight
    return struct.pack("<Q", len(header)) + header + written[start:]


def read_header(file: OpenedFile) -> Header:
    """Read the header.

    Raises:
        ValueError: this is not a safetensors file, or a damaged one.
    """
    (length,) = struct.unpack("<Q", file.bytes_at(0, _LENGTH_SIZE))
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header claims {length} bytes")
    facts = json.loads(file.bytes_at(_LENGTH_SIZE, length).decode("utf-8"), object_pairs_hook=without_repetition)
    if not isinstance(facts, dict):
        raise ValueError("its header is not a table of tensors")
    metadata = facts.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts")
    return Header(metadata, facts, _LENGTH_SIZE + length)


def read_tensors(file: OpenedFile, header: Header, allowance: Allowance) -> dict[str, NDArray[Any]]:
    """Read all tensors; they lie behind the header without gaps, and nothing follows the last.

    Raises:
        ValueError: they do not, or have a type that networks do not use.
        BeyondLimitError: they take more than is allowed.
    """
    size = file.length - header.start
    allowance.claim_bytes(size, "all of its tensors")
    places = sorted((_place(name, facts, size) for name, facts in header.tensors.items()), key=lambda place: place[2:])
    content, end, tensors = memoryview(file.bytes_at(header.start, size)), 0, {}
    for name, facts, start, stop in places:
        if start != end:
            raise ValueError(f"there is a gap before the tensor {shown(name)}, or it lies within another")
        tensors[name] = np.frombuffer(content[start:stop], _TYPES[facts["dtype"]]).reshape(facts["shape"])
        end = stop
    if end != size:
        raise ValueError(f"{size - end} bytes follow the last tensor")
    return tensors


def _place(name: str, facts: Any, size: int) -> tuple[str, Any, int, int]:
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the tensor {shown(name)} is not described as it should be")
    shape, offsets = facts["shape"], facts["data_offsets"]
    if facts["dtype"] not in _TYPES:
        raise ValueError(f"the tensor {shown(name)} is of type {shown(facts['dtype'])}; networks have F64 and I64")
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(shape) > MOST_AXES or len(offsets) != 2:
        raise ValueError(f"the tensor {shown(name)} has the shape {shown(shape)} at {shown(offsets)}")
    start, stop = offsets
    if stop > size or stop - start != 8 * math.prod(shape):
        raise ValueError(f"the tensor {shown(name)} of shape {shown(shape)} does not have the bytes for it")
    return name, facts, start, stop


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
