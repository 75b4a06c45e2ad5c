"""Format of network files: safetensors container, declared tensors and a description in JSON.

The safetensors library reads the tensors from the bytes of the file: a file that it maps into memory and that is
truncated meanwhile would end the process. The library does not return the metadata of bytes, and does not fix the order
of the header, so that equal networks could give different bytes; both are done here. Shapes of tensors are declared by
named sizes, which follow from four tensors. The description holds everything that is not a tensor: parts of the file,
condition limit, notes, names and settings of signals.
"""

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.text import format_path, sanitize
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.io.file_access import RegularFile, SizeLimitError, error_reason, error_text, open_regular, parse_size_limit
from ltinet.io.system_files import SYSTEM_SUFFIXES
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings, arguments_from_facts
from ltinet.systems.system_matrices import SystemMatrices

# Description in JSON

_PART_KEYS = {"has_form", "has_system", "has_descriptor"}
_PARTS_OF_VERSION_1 = {"has_form"}
_FORM_KEYS = {"budget", "seen", "remarks"}
# Optional keys are omitted where there is nothing to store, so that files without them keep their bytes.
_NAMES_KEY = "names"
_REDUCED_KEY = "reduced_error"
_SETTINGS_KEY = "signal_settings"  # from version 3 on
_TIME_STEP_KEY = "dt"  # from version 4 on, and required there
_SIGNAL_KINDS = {"inputs", "outputs", "states"}
_SETTING_KEYS = {"input_delay", "output_delay", "u0", "y0", "hold", "sample_time", "remarks"}
_MAX_TEXT_LENGTH = 2000
SETTINGS_NOT_STORED = "the file carries no delay, operating point or hold"
"""Note of a network from a file of version 1 or 2, which do not store signal settings."""


class FileDescription(NamedTuple):
    """Contents of a network file other than tensors."""

    has_form: bool
    has_system: bool = False
    has_descriptor: bool = False
    budget: float | None = None
    candidates: tuple[tuple[int, float], ...] = ()
    decisions: tuple[str, ...] = ()
    names: SignalNames = UNNAMED
    reduction_error: float | None = None
    settings: SignalSettings = NO_SETTINGS
    dt: float | None = None


def encode_description(
    form: BlockDiagonalForm | None,
    system: SystemMatrices | None,
    *,
    reduction_error: float | None = None,
    settings: SignalSettings = NO_SETTINGS,
    dt: float | None = None,
) -> str:
    """Return the description as JSON, the same text for the same form and system."""
    has_descriptor = system is not None and system.descriptor is not None
    facts: dict[str, Any] = {"has_form": form is not None, "has_system": system is not None}
    facts["has_descriptor"] = has_descriptor
    if form is not None:  # JSON does not accept numbers of NumPy
        facts["budget"] = None if form.budget is None else float(form.budget)
        facts["seen"] = [(int(count), float(condition)) for count, condition in form.candidates]
        facts["remarks"] = form.decisions
    if system is not None and system.names.by_kind:
        facts[_NAMES_KEY] = system.names.by_kind
    if reduction_error is not None:
        facts[_REDUCED_KEY] = float(reduction_error)
    if not settings.is_default:
        facts[_SETTINGS_KEY] = settings.facts
    if dt is not None:
        facts[_TIME_STEP_KEY] = float(dt)
    return json.dumps(facts, sort_keys=True)


def parse_description(content: str, *, version: int) -> FileDescription:
    """Parse the text of `encode_description`, of this version or an earlier one.

    Raises ValueError for missing or unknown keys and invalid values, InvalidSystemError for invalid names.
    """
    facts = json.loads(content, object_pairs_hook=reject_duplicate_keys)
    parts = _PART_KEYS if version > 1 else _PARTS_OF_VERSION_1
    if not isinstance(facts, dict) or not all(isinstance(facts.get(part), bool) for part in parts):
        raise ValueError(f"its description must have the flags {', '.join(sorted(parts))}")
    has_form, has_system, has_descriptor = (
        facts.get(f"has_{part}", False) for part in ("form", "system", "descriptor")
    )
    required = parts | (_FORM_KEYS if has_form else set()) | ({_TIME_STEP_KEY} if version > 3 else set())
    optional = {_REDUCED_KEY} if version > 1 else set()
    optional |= {_NAMES_KEY} if has_system else set()
    optional |= {_SETTINGS_KEY} if version > 2 else set()
    if not required <= set(facts) <= required | optional:
        raise ValueError(f"its description has the keys {sanitize(sorted(facts))}")
    if has_system > has_form or has_descriptor > has_system:
        raise ValueError("its description has a system without a form, or E without a system")
    settings = NO_SETTINGS if version > 2 else SignalSettings(notes=(SETTINGS_NOT_STORED,))
    if _SETTINGS_KEY in facts:
        settings = _parse_settings(facts[_SETTINGS_KEY])
    reduction_error = _parse_reduction_error(facts[_REDUCED_KEY]) if _REDUCED_KEY in facts else None
    description = FileDescription(
        has_form, has_system, has_descriptor, reduction_error=reduction_error, settings=settings,
        dt=_parse_time_step(facts[_TIME_STEP_KEY]) if version > 3 else None,
    )  # fmt: skip
    if not has_form:
        return description
    return description._replace(
        budget=_parse_budget(facts["budget"]),
        candidates=_parse_candidates(facts["seen"]),
        decisions=_parse_texts(facts["remarks"]),
        names=_parse_names(facts[_NAMES_KEY]) if _NAMES_KEY in facts else UNNAMED,
    )


def reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary for `json.loads`, or raise ValueError for duplicate keys.

    JSON readers differ: some take the first of two values, others the last.
    """
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("its JSON has the same key twice")
    return values


def _parse_budget(value: Any) -> float | None:
    """Return None or the limit on the condition number; infinite where there was none."""
    if value is not None and not (type(value) is float and value >= 1.0):
        raise ValueError(f"budget is {sanitize(repr(value))}, not a condition number")
    return value


def _parse_reduction_error(value: Any) -> float:
    """Return the H2 norm of the reduction error; infinite where it is not known."""
    if type(value) is not float or not value >= 0.0:
        raise ValueError(f"reduced_error is {sanitize(repr(value))}, not a norm")
    return value


def _parse_time_step(value: Any) -> float:
    """Return the time step of a network in discrete time."""
    if type(value) is not float or not 0.0 < value < math.inf:
        raise ValueError(f"dt is {sanitize(repr(value))}, not a time step")
    return value


def _parse_settings(value: Any) -> SignalSettings:
    """Return delays, operating point, hold and sample time; their lengths are validated when the network is known."""
    if not isinstance(value, dict) or not value or not set(value) <= _SETTING_KEYS:
        raise ValueError("signal_settings is not a table of delays, operating point, hold and sample time")
    for name, entries in value.items():
        is_list = name not in ("hold", "sample_time")
        kind = str if name == "remarks" else float
        if is_list and not (isinstance(entries, list) and all(type(entry) is kind for entry in entries)):
            raise ValueError(f"signal_settings has {name} that is not a list")
    try:
        return SignalSettings(**arguments_from_facts(value))
    except InvalidSystemError as error:
        raise ValueError(f"signal_settings: {error}") from None


def _parse_candidates(value: Any) -> tuple[tuple[int, float], ...]:
    """Return numbers of blocks and condition numbers, which are infinite for a singular T."""
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
    """Return texts, which are printed as they are and so must not have control characters."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("remarks is not a list of texts")
    for text in value:
        if len(text) > _MAX_TEXT_LENGTH or not text.isprintable():
            raise ValueError("remarks has an entry that is too long or has control characters")
    return tuple(value)


def _parse_names(value: Any) -> SignalNames:
    """Return names by kind; their numbers are validated when the system is known."""
    if not isinstance(value, dict) or not value or not set(value) <= _SIGNAL_KINDS:
        raise ValueError("names is not a list for inputs, outputs or states")
    if not all(isinstance(entries, list) for entries in value.values()):
        raise ValueError("names has an entry that is not a list of texts")
    return SignalNames.of(value.get("inputs"), value.get("outputs"), value.get("states"))


# Declared tensors

Tensors: TypeAlias = Mapping[str, NDArray[Any]]


class TensorSpec(NamedTuple):
    """Declaration of a tensor: float64, or int64 for counts; axes are named sizes."""

    name: str
    axes: tuple[str, ...]
    counts: bool = False

    @property
    def dtype(self) -> "np.dtype[Any]":
        """Data type."""
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
"""Tensors of all layers: square matrices flattened one after the other, rows stacked."""

FORM_TENSORS = (
    TensorSpec("form.block_sizes", ("blocks",), counts=True),
    TensorSpec("form.blocks", ("block entries",)),
    TensorSpec("form.T", ("states", "states")),
    TensorSpec("form.T_inv", ("states", "states")),
    TensorSpec("form.original", ("states", "states")),
    TensorSpec("form.scaling", ("states",)),
    TensorSpec("form.eigenvalues", ("states", "parts")),
)
"""Tensors of the block-diagonal form of the network."""

SYSTEM_TENSORS = (
    TensorSpec("blocks.B", ("states", "inputs")),
    TensorSpec("blocks.C", ("outputs", "states")),
    TensorSpec("system.A", ("states", "states")),
    TensorSpec("system.B", ("states", "inputs")),
    TensorSpec("system.C", ("outputs", "states")),
    TensorSpec("system.D", ("outputs", "inputs")),
)
"""Tensors of the given system, which error bounds compare with, and of its B and C in block coordinates."""

DESCRIPTOR_TENSORS = (TensorSpec("system.E", ("states", "states")),)
"""Tensors of a descriptor system besides A and B."""


def validate_tensors(tensors: Tensors, description: FileDescription) -> None:
    """Validate names, types and shapes of all tensors.

    A correct checksum does not prove that ltinet wrote the file. Raises ValueError if a tensor is missing, unknown, or
    of another type or shape.
    """
    parts = (
        (NETWORK_TENSORS, True),
        (FORM_TENSORS, description.has_form),
        (SYSTEM_TENSORS, description.has_system),
        (DESCRIPTOR_TENSORS, description.has_descriptor),
    )
    declared = {tensor.name: tensor for part, is_present in parts if is_present for tensor in part}
    if set(tensors) != set(declared):
        wrong_name = sorted(set(tensors) ^ set(declared))[0]
        raise ValueError(
            f"the tensor {wrong_name} is {'missing' if wrong_name in declared else 'not part of this format'}"
        )
    for name, tensor in declared.items():
        array = tensors[name]
        if array.dtype != tensor.dtype or array.ndim != len(tensor.axes):
            raise ValueError(
                f"{name} is {array.dtype} with {array.ndim} axes, not {tensor.dtype} with {len(tensor.axes)}"
            )
    sizes = _sizes(tensors, has_form=description.has_form)
    for name, tensor in declared.items():
        expected = tuple(sizes[axis] for axis in tensor.axes)
        if tensors[name].shape != expected:
            raise ValueError(f"{name} has the shape {tensors[name].shape}, not {expected} ({' × '.join(tensor.axes)})")


def _sizes(tensors: Tensors, *, has_form: bool) -> dict[str, int]:
    """Return the named sizes, which follow from n_neurons, masses, Psi and form.block_sizes."""
    layers, masses = _counts(tensors["n_neurons"], "n_neurons", minimum=0), tensors["masses"]
    n_outputs, n_inputs = tensors["Psi"].shape
    sizes = {"layers": len(layers), "neurons": sum(layers), "couplings": sum(count * count for count in layers)}
    sizes |= {"inputs": n_inputs, "outputs": n_outputs, "states": sum(layers) + int(np.count_nonzero(masses))}
    if has_form:
        blocks = _counts(tensors["form.block_sizes"], "form.block_sizes", minimum=1)
        states = _states_per_layer(masses, layers) if len(masses) == sum(layers) else []
        if blocks != states:
            raise ValueError(f"the form has blocks of {blocks[:5]} states, the network layers of {states[:5]}")
        sizes |= {"blocks": len(blocks), "block entries": sum(size * size for size in blocks), "parts": 2}
    return sizes


def _counts(array: NDArray[Any], name: str, *, minimum: int) -> list[int]:
    """Return counts as a list; raise ValueError if one is below `minimum`."""
    counts: list[int] = array.tolist()
    if any(count < minimum for count in counts):
        raise ValueError(f"{name} has the entry {min(counts)}, but all must be {minimum} or more")
    return counts


def _states_per_layer(masses: NDArray[np.float64], layers: list[int]) -> list[int]:
    """Return the number of states of each layer: one for each neuron, and one more for those with a mass."""
    ends = np.cumsum([0, *layers])
    return [int(stop - start + np.count_nonzero(masses[start:stop])) for start, stop in pairwise(ends)]


# Safetensors container

_LENGTH_SIZE = 8
_MAX_HEADER_SIZE = 1 << 24
_METADATA = "__metadata__"


def write_safetensors(path: Path, tensors: Tensors, content: str, *, kind: str, version: int) -> None:
    """Write tensors atomically, with the description `content`, the format `kind`, its version and the checksum.

    Raises FileFormatError if the file cannot be written.
    """
    metadata = {"format": kind, "version": str(version), "content": content, "sha256": checksum(content, tensors)}
    try:
        if path.exists() and not path.is_file():
            raise FileFormatError(
                f"{format_path(path)} is a folder or a device, not a file, and would be replaced; choose another place"
            )
        write_file_atomically(path, _encode_safetensors(tensors, metadata))
    except LtinetError:
        raise
    except (OSError, ValueError) as error:  # the second for a NUL in the path
        raise FileFormatError(
            f"{format_path(path)} cannot be written ({error_reason(error)}); choose another place"
        ) from error


def _encode_safetensors(tensors: Tensors, metadata: Mapping[str, str]) -> bytes:
    """Return the file as the safetensors library writes it, but with sorted metadata at the front of the header."""
    written = save(dict(tensors))
    (length,) = struct.unpack("<Q", written[:_LENGTH_SIZE])
    start = _LENGTH_SIZE + length
    facts = {_METADATA: dict(sorted(metadata.items()))} | json.loads(written[_LENGTH_SIZE:start])
    header = json.dumps(facts, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # so that the numbers begin at a multiple of eight
    return struct.pack("<Q", len(header)) + header + written[start:]


def read_safetensors(
    path: Path, validate_metadata: Callable[[Mapping[str, str]], None], *, max_bytes: float
) -> tuple[dict[str, str], Tensors]:
    """Read metadata and tensors, which are read-only; the metadata are validated before the tensors are read.

    Raises FileFormatError if the file is missing, too large, not a safetensors file, or damaged.
    """
    allowance = parse_size_limit(max_bytes)
    with open_regular(path) as file:
        try:
            metadata = _read_metadata(file)
            validate_metadata(metadata)
            allowance.claim_bytes(file.length, "all of its tensors")
            tensors = load(file.bytes_at(0, file.length))
        except LtinetError:
            raise
        except SizeLimitError as error:
            raise FileFormatError(f"{format_path(path)} cannot be read: {error}") from None
        except Exception as error:  # the library raises several types
            if path.suffix.lower() in SYSTEM_SUFFIXES:
                raise FileFormatError(
                    f"{format_path(path)} is not a network but looks like a system; read it with "
                    "ltinet.load_system(path), and construct its network: ltinet.construct(ltinet.load_system(path))"
                ) from None
            raise FileFormatError(
                f"{format_path(path)} is not a readable safetensors file ({error_text(error)}); it may be damaged or "
                "cut off"
            ) from None
    if metadata.get("sha256") != checksum(metadata.get("content", ""), tensors):
        raise FileFormatError(
            f"{format_path(path)} is damaged: its checksum does not match; restore it from a copy or construct it again"
        )
    for array in tensors.values():
        array.setflags(write=False)
    return metadata, tensors


def read_kind(path: Path) -> str | None:
    """Return the format that a safetensors file names in its metadata; None if it cannot be read."""
    try:
        with open_regular(path) as file:
            return _read_metadata(file).get("format")
    except Exception:  # whatever is wrong is reported by the reader of the format
        return None


def _read_metadata(file: RegularFile) -> dict[str, str]:
    """Read the metadata in the header; raise ValueError if they are not texts, or the header has a key twice."""
    (length,) = struct.unpack("<Q", file.bytes_at(0, _LENGTH_SIZE))
    if length > _MAX_HEADER_SIZE:
        raise ValueError(f"its header claims {length} bytes")
    facts = json.loads(file.bytes_at(_LENGTH_SIZE, length).decode("utf-8"), object_pairs_hook=reject_duplicate_keys)
    metadata = facts.get(_METADATA, {}) if isinstance(facts, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata has values that are not text")
    return metadata


def checksum(content: str, tensors: Tensors) -> str:
    """Return the SHA-256 of the description and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(content.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
