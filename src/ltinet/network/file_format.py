"""Format of network files: safetensors container, declared tensors and a description in JSON.

The container is read and written here, not by the safetensors library: the library maps the file into memory, where a
truncation during reading ends the process, and does not fix the order of the header, so that equal networks could give
different bytes. Shapes of tensors are declared by named sizes, which follow from four tensors. The description holds
everything that is not a tensor: parts of the file, condition limit, notes, names and settings of signals.
"""

import json
import math
import struct
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from ltinet._util.text import sanitize
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import InvalidSystemError
from ltinet.io.file_access import MAX_AXES, RegularFile, SizeAllowance
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings, arguments_from_facts
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.network.file_format
# What a network file says besides numbers: which parts it has, how blocks were chosen, what signals are called.

_PART_KEYS = {"has_form", "has_system", "has_descriptor"}
_PARTS_OF_VERSION_1 = {"has_form"}
_FORM_KEYS = {"budget", "seen", "remarks"}
_NAMES_KEY = "names"  # only where there are any: files without are the same bytes as before
_REDUCED_KEY = "reduced_error"  # likewise
_SETTINGS_KEY = "signal_settings"  # likewise, from version 3 on
_SIGNAL_KINDS = {"inputs", "outputs", "states"}
_SETTING_KEYS = {"input_delay", "output_delay", "u0", "y0", "hold", "sample_time", "remarks"}
_LONGEST_NOTE = 2000
SETTINGS_NOT_STORED = "the file carries no delay, operating point or hold"
"""What `print` says of a network from a file of a version that knows of no signal settings."""


class FileDescription(NamedTuple):
    """The facts about a form that are not tensors; empty where there is none."""

    has_form: bool
    has_system: bool = False
    has_descriptor: bool = False
    budget: float | None = None
    candidates: tuple[tuple[int, float], ...] = ()
    decisions: tuple[str, ...] = ()
    names: SignalNames = UNNAMED
    reduction_error: float | None = None
    settings: SignalSettings = NO_SETTINGS


def encode_description(
    form: BlockDiagonalForm | None,
    system: SystemMatrices | None,
    *,
    reduction_error: float | None = None,
    settings: SignalSettings = NO_SETTINGS,
) -> str:
    """The description as JSON, the same text for the same form and system."""
    has_descriptor = system is not None and system.descriptor is not None
    facts: dict[str, Any] = {"has_form": form is not None, "has_system": system is not None}
    facts["has_descriptor"] = has_descriptor
    if form is not None:  # whole numbers and floats of NumPy would not pass as JSON
        facts["budget"] = None if form.budget is None else float(form.budget)
        facts["seen"] = [(int(count), float(condition)) for count, condition in form.candidates]
        facts["remarks"] = form.decisions
    if system is not None and system.names.by_kind:
        facts[_NAMES_KEY] = system.names.by_kind
    if reduction_error is not None:
        facts[_REDUCED_KEY] = float(reduction_error)
    if not settings.is_default:
        facts[_SETTINGS_KEY] = settings.facts
    return json.dumps(facts, sort_keys=True)


def parse_description(content: str, *, version: int) -> FileDescription:
    """Read what `encode_description` wrote, in this version or an earlier one.

    Raises:
        ValueError: it is something else: text where a number is expected, facts that are missing or unknown.
        InvalidSystemError: names are not lists of texts that can be printed.
    """
    facts = json.loads(content, object_pairs_hook=reject_duplicate_keys)
    parts = _PART_KEYS if version > 1 else _PARTS_OF_VERSION_1
    if not isinstance(facts, dict) or not all(isinstance(facts.get(part), bool) for part in parts):
        raise ValueError("its description does not say which parts there are")
    named = {_NAMES_KEY} & set(facts) if facts.get("has_system") and version > 1 else set()
    reduced = {_REDUCED_KEY} & set(facts) if version > 1 else set()
    moved = {_SETTINGS_KEY} & set(facts) if version > 2 else set()
    if set(facts) != parts | named | reduced | moved | (_FORM_KEYS if facts["has_form"] else set()):
        raise ValueError(f"its description has the facts {sanitize(sorted(facts))}")
    has_system, has_descriptor = facts.get("has_system", False), facts.get("has_descriptor", False)
    if has_system > facts["has_form"] or has_descriptor > has_system:
        raise ValueError("its description has a system without a form, or E without a system")
    found = FileDescription(facts["has_form"], has_system, has_descriptor)
    found = found._replace(reduction_error=_parse_reduction_error(facts[_REDUCED_KEY])) if reduced else found
    if moved:
        found = found._replace(settings=_parse_settings(facts[_SETTINGS_KEY]))
    elif version < 3:
        found = found._replace(settings=SignalSettings(notes=(SETTINGS_NOT_STORED,)))
    if not found.has_form:
        return found
    return found._replace(
        budget=_parse_budget(facts["budget"]),
        candidates=_parse_candidates(facts["seen"]),
        decisions=_parse_texts(facts["remarks"]),
        names=_parse_names(facts[_NAMES_KEY]) if named else UNNAMED,
    )


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: a dictionary, unless a key comes twice, where every reader would take another one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it says the same thing twice")
    return found


def _parse_budget(value: Any) -> float | None:
    """None, or a condition number; infinite where every condition was allowed."""
    if value is not None and not (type(value) is float and value >= 1.0):
        raise ValueError(f"budget is {sanitize(repr(value))}, not a condition number")
    return value


def _parse_reduction_error(value: Any) -> float:
    """A norm, infinite where it is not known."""
    if type(value) is not float or not value >= 0.0:
        raise ValueError(f"reduced_error is {sanitize(repr(value))}, not a norm")
    return value


def _parse_settings(value: Any) -> SignalSettings:
    """Delays, operating point, hold and sample time; whether they fit is asked when the network is there."""
    if not isinstance(value, dict) or not value or not set(value) <= _SETTING_KEYS:
        raise ValueError("signal_settings is not a table of delays, operating point, hold and sample time")
    for name, own in value.items():
        is_list = name not in ("hold", "sample_time")
        of = str if name == "remarks" else float
        if is_list and not (isinstance(own, list) and all(type(one) is of for one in own)):
            raise ValueError(f"signal_settings has {name} that is not a list")
    try:
        return SignalSettings(**arguments_from_facts(value))
    except InvalidSystemError as error:
        raise ValueError(f"signal_settings: {error}") from None


def _parse_candidates(value: Any) -> tuple[tuple[int, float], ...]:
    """Numbers of blocks and condition numbers, infinite for a T that turned out to be singular."""
    if not isinstance(value, list):
        raise ValueError("seen is not a list")
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("seen has an entry that is not a pair")
        count, condition = pair
        if type(count) is not int or not 0 < count < 2**31 or type(condition) is not float or not condition > 0.0:
            raise ValueError(f"seen has the entry {sanitize(pair)}, not a number of blocks and a condition number")
    return tuple((count, condition) for count, condition in value)


def _parse_texts(value: Any) -> tuple[str, ...]:
    """They are shown as they are, so nothing in them may act on a terminal."""
    if not isinstance(value, list) or not all(isinstance(note, str) for note in value):
        raise ValueError("remarks is not a list of texts")
    for note in value:
        if len(note) > _LONGEST_NOTE or not note.isprintable():
            raise ValueError("remarks has an entry that is too long or has control characters")
    return tuple(value)


def _parse_names(value: Any) -> SignalNames:
    """Names by kind; whether there is one for each input, output and state is asked when the system is there."""
    if not isinstance(value, dict) or not value or not set(value) <= _SIGNAL_KINDS:
        raise ValueError("names is not a list for inputs, outputs or states")
    if not all(isinstance(own, list) for own in value.values()):
        raise ValueError("names has something that is not a list of texts")
    return SignalNames.of(value.get("inputs"), value.get("outputs"), value.get("states"))


# MERGED ltinet.network.file_format
# The tensors of a network file, declared: which there are, of which type and of which shape.
#
# Shapes are made of named sizes, and the sizes follow from four tensors that say how much there is of everything.

Tensors: TypeAlias = Mapping[str, NDArray[Any]]


class TensorSpec(NamedTuple):
    """One tensor of the format: float64, or int64 if it counts."""

    name: str
    axes: tuple[str, ...]
    counts: bool = False

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The type of its numbers."""
        return np.dtype(np.int64 if self.counts else np.float64)


NETWORK_TENSORS = (
    TensorSpec("n_neurons", ("layers",), counts=True),
    TensorSpec("masses", ("neurons",)),
    TensorSpec("C", ("couplings",)),
    TensorSpec("K", ("couplings",)),
    TensorSpec("E", ("neurons", "inputs")),
    TensorSpec("V", ("neurons", "inputs")),
    TensorSpec("Phi", ("outputs", "states")),
    TensorSpec("Psi", ("outputs", "inputs")),
)
"""All layers in few tensors: square matrices flattened one after the other, rows stacked."""

FORM_TENSORS = (
    TensorSpec("form.block_sizes", ("blocks",), counts=True),
    TensorSpec("form.blocks", ("block entries",)),
    TensorSpec("form.T", ("states", "states")),
    TensorSpec("form.T_inv", ("states", "states")),
    TensorSpec("form.original", ("states", "states")),
    TensorSpec("form.scaling", ("states",)),
    TensorSpec("form.eigenvalues", ("states", "parts")),
)
"""The block-diagonal form that the network was built from."""

SYSTEM_TENSORS = (
    TensorSpec("blocks.B", ("states", "inputs")),
    TensorSpec("blocks.C", ("outputs", "states")),
    TensorSpec("system.A", ("states", "states")),
    TensorSpec("system.B", ("states", "inputs")),
    TensorSpec("system.C", ("outputs", "states")),
    TensorSpec("system.D", ("outputs", "inputs")),
)
"""The system as it was given, which error bounds compare with, and in the coordinates of the blocks."""

DESCRIPTOR_TENSORS = (TensorSpec("system.E", ("states", "states")),)
"""E of a descriptor system; A and B are those beside it."""


def validate_tensors(tensors: Tensors, *, has_form: bool, has_system: bool, has_descriptor: bool) -> None:
    """Exactly the tensors of this format in size and type: a right checksum says nothing of who computed it.

    Raises:
        ValueError: one is missing, unknown, or of another type or shape.
    """
    parts = (
        (NETWORK_TENSORS, True),
        (FORM_TENSORS, has_form),
        (SYSTEM_TENSORS, has_system),
        (DESCRIPTOR_TENSORS, has_descriptor),
    )
    declared = {tensor.name: tensor for part, is_there in parts if is_there for tensor in part}
    if set(tensors) != set(declared):
        strange = sorted(set(tensors) ^ set(declared))[0]
        raise ValueError(f"the tensor {strange} is {'missing' if strange in declared else 'not part of this format'}")
    for name, tensor in declared.items():
        found = tensors[name]
        if found.dtype != tensor.dtype or found.ndim != len(tensor.axes):
            raise ValueError(
                f"{name} is {found.dtype} with {found.ndim} axes, not {tensor.dtype} with {len(tensor.axes)}"
            )
    sizes = _sizes(tensors, has_form=has_form)
    for name, tensor in declared.items():
        expected = tuple(sizes[axis] for axis in tensor.axes)
        if tensors[name].shape != expected:
            raise ValueError(f"{name} has the shape {tensors[name].shape}, not {expected} ({' × '.join(tensor.axes)})")


def _sizes(tensors: Tensors, *, has_form: bool) -> dict[str, int]:
    layers, masses = _counts(tensors["n_neurons"], "n_neurons", least=0), tensors["masses"]
    n_outputs, n_inputs = tensors["Psi"].shape
    sizes = {"layers": len(layers), "neurons": sum(layers), "couplings": sum(count * count for count in layers)}
    sizes |= {"inputs": n_inputs, "outputs": n_outputs, "states": sum(layers) + int(np.count_nonzero(masses))}
    if has_form:
        blocks = _counts(tensors["form.block_sizes"], "form.block_sizes", least=1)
        states = _states_per_layer(masses, layers) if len(masses) == sum(layers) else []
        if blocks != states:
            raise ValueError(f"the form has blocks of {blocks[:5]} states, the network layers of {states[:5]}")
        sizes |= {"blocks": len(blocks), "block entries": sum(size * size for size in blocks), "parts": 2}
    return sizes


def _counts(array: NDArray[Any], name: str, *, least: int) -> list[int]:
    counts: list[int] = array.tolist()
    if any(count < least for count in counts):
        raise ValueError(f"{name} has the entry {min(counts)}, and {least} is the least that can be")
    return counts


def _states_per_layer(masses: NDArray[np.float64], layers: list[int]) -> list[int]:
    """One state for each neuron, two for those with a mass."""
    ends = np.cumsum([0, *layers])
    return [int(stop - start + np.count_nonzero(masses[start:stop])) for start, stop in pairwise(ends)]


# MERGED ltinet.network.file_format
# The file format below network files, safetensors: a header in JSON and the bytes of all tensors behind it.
#
# Read here rather than by the library, which maps the file into memory, where a file that is cut off meanwhile ends the
# process; and written with the header in a fixed order, so that the same network gives the same bytes.

_LENGTH_SIZE = 8
_LONGEST_HEADER = 1 << 24
_METADATA = "__metadata__"
_TYPES = {"F64": "<f8", "I64": "<i8"}


class Header(NamedTuple):
    """What the file says of itself, and where its tensors begin."""

    metadata: dict[str, str]
    tensors: dict[str, Any]
    start: int


def encode_safetensors(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """The file: as the library writes it, with the metadata at the front of the header and in order."""
    written = save(dict(tensors))
    (length,) = struct.unpack("<Q", written[:_LENGTH_SIZE])
    start = _LENGTH_SIZE + length
    facts = {_METADATA: dict(sorted(metadata.items()))} | json.loads(written[_LENGTH_SIZE:start])
    header = json.dumps(facts, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # so that the numbers begin at a multiple of eight
    return struct.pack("<Q", len(header)) + header + written[start:]


def read_header(file: RegularFile) -> Header:
    """Read the header.

    Raises:
        ValueError: this is not a safetensors file, or a damaged one.
    """
    (length,) = struct.unpack("<Q", file.bytes_at(0, _LENGTH_SIZE))
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header claims {length} bytes")
    facts = json.loads(file.bytes_at(_LENGTH_SIZE, length).decode("utf-8"), object_pairs_hook=reject_duplicate_keys)
    if not isinstance(facts, dict):
        raise ValueError("its header is not a table of tensors")
    metadata = facts.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata are not texts")
    return Header(metadata, facts, _LENGTH_SIZE + length)


def read_tensors(file: RegularFile, header: Header, allowance: SizeAllowance) -> dict[str, NDArray[Any]]:
    """Read all tensors; they lie behind the header without gaps, and nothing follows the last.

    Raises:
        ValueError: they do not, or have a type that networks do not use.
        BeyondLimitError: they take more than is allowed.
    """
    size = file.length - header.start
    allowance.claim_bytes(size, "all of its tensors")
    places = sorted(
        (_parse_entry(name, facts, size) for name, facts in header.tensors.items()), key=lambda place: place[2:]
    )
    content, end, tensors = memoryview(file.bytes_at(header.start, size)), 0, {}
    for name, facts, start, stop in places:
        if start != end:
            raise ValueError(f"there is a gap before the tensor {sanitize(name)}, or it lies within another")
        tensors[name] = np.frombuffer(content[start:stop], _TYPES[facts["dtype"]]).reshape(facts["shape"])
        end = stop
    if end != size:
        raise ValueError(f"{size - end} bytes follow the last tensor")
    return tensors


def _parse_entry(name: str, facts: Any, size: int) -> tuple[str, Any, int, int]:
    if not isinstance(facts, dict) or set(facts) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the tensor {sanitize(name)} is not described as it should be")
    shape, offsets = facts["shape"], facts["data_offsets"]
    if facts["dtype"] not in _TYPES:
        raise ValueError(
            f"the tensor {sanitize(name)} is of type {sanitize(facts['dtype'])}; networks have F64 and I64"
        )
    if not _are_shape(shape) or not _are_shape(offsets) or len(shape) > MAX_AXES or len(offsets) != 2:
        raise ValueError(f"the tensor {sanitize(name)} has the shape {sanitize(shape)} at {sanitize(offsets)}")
    start, stop = offsets
    if stop > size or stop - start != 8 * math.prod(shape):
        raise ValueError(f"the tensor {sanitize(name)} of shape {sanitize(shape)} does not have the bytes for it")
    return name, facts, start, stop


def _are_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
