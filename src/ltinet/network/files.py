"""Network files: safetensors with versioned metadata, every bit restored or an error, nothing executed.

A file holds the packed parameters of all layers, the block-diagonal form and the system they came from if there are
any, and a SHA-256 of all of it: a damaged file is refused rather than read as another network. A file with a right
checksum but wrong contents is refused as well, when it is loaded and not when it is used.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltinet.atomic import write_whole
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.operator import Operator
from ltinet.errors import FileFormatError, LtinetError
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, allowance
from ltinet.model.formats.opening import as_path, one_line, opened, reason_of
from ltinet.model.formats.refusals import BeyondLimitError
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.description import Description, describe, parse_description
from ltinet.network.network import Network
from ltinet.network.packing import pack_form, pack_network, pack_system, unpack_form, unpack_network, unpack_system
from ltinet.network.safetensors_file import read_header, read_tensors, to_bytes
from ltinet.network.stored_tensors import Tensors, require_declared
from ltinet.network.stored_values import require_finite, require_form, require_own_blocks, require_solvable
from ltinet.shown import shown, shown_path

FORMAT = "ltinet-network"
VERSION = 3
_READABLE = ("1", "2", "3")  # 0.1.0 wrote the first, which knows of no system; signal settings came with the third


class StoredNetwork(NamedTuple):
    """What a file holds: a network, and where it came from as far as that is known."""

    network: Network
    form: BlockDiagonalForm | None = None
    system: SystemMatrices | None = None
    blocks: BlockSystem | None = None
    reduced_error: float | None = None
    """In the H2 norm, from the system that this one was reduced from; None where it was not."""
    settings: SignalSettings = NO_SETTINGS
    """Delays, operating point, hold and sample time."""


def write_network(path: str | PathLike[str], stored: StoredNetwork) -> None:
    """Write a network and what it came from, the same bytes each time.

    The file appears under its name only when it is complete. A system is kept together with its form and blocks.

    Raises:
        FileFormatError: it cannot be written there.
    """
    path = as_path(path)
    if has_operator(stored.form):
        raise FileFormatError(
            f"{shown_path(path)} is not written: T of this network of {stored.network.n_states} states is an operator "
            "and no array; store the model, save_system(net.system, path), from which construct makes it again in "
            "seconds"
        )
    content, tensors = _packed(stored)
    metadata = {"format": FORMAT, "version": str(VERSION), "content": content, "sha256": _digest(content, tensors)}
    try:
        if path.exists() and not path.is_file():
            raise FileFormatError(
                f"{shown_path(path)} is a folder or a device, not a file, and would be replaced; choose another place"
            )
        write_whole(path, to_bytes(tensors, metadata))
    except (OSError, ValueError) as error:  # the second for a NUL in the path
        if isinstance(error, LtinetError):
            raise
        raise FileFormatError(
            f"{shown_path(path)} cannot be written ({reason_of(error)}); choose another place"
        ) from error


def network_checksum(stored: StoredNetwork) -> str:
    """The SHA-256 that a file of the network holds, by which what was made from a network is known again.

    Where T is an operator there is no such file; that of the network alone then.
    """
    alone = StoredNetwork(stored.network, settings=stored.settings)
    return _digest(*_packed(alone if has_operator(stored.form) else stored))


def has_operator(form: BlockDiagonalForm | None) -> bool:
    """Whether T is an operator, of a large structured model."""
    return form is not None and isinstance(form.transformation, Operator)


def read_network(path: str | PathLike[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> StoredNetwork:
    """Read what `write_network` wrote, bit for bit.

    Raises:
        FileFormatError: there is no such file, it is damaged, not a network, too large, or of a newer format.
    """
    path = as_path(path)
    metadata, tensors = _read(path, max_bytes)
    content = metadata.get("content", "")
    if metadata.get("sha256") != _digest(content, tensors):
        raise FileFormatError(
            f"{shown_path(path)} is damaged: its checksum does not match; restore it from a copy or build it again"
        )
    try:
        return _unpack(tensors, parse_description(content, version=int(metadata["version"])))
    except (LtinetError, ValueError, MemoryError, RecursionError) as error:
        raise FileFormatError(f"{shown_path(path)} does not hold a complete network: {one_line(error)}") from None


def _packed(stored: StoredNetwork) -> tuple[str, Tensors]:
    """What a file says of itself, and its tensors."""
    network, form, system, blocks, reduced_error, settings = stored
    tensors = pack_network(network) | ({} if form is None else pack_form(form))
    has_system = form is not None and system is not None and blocks is not None
    if has_system and system is not None and blocks is not None:
        tensors |= pack_system(system, blocks)
    known = system if has_system else None
    return describe(form, known, reduced_error=reduced_error, settings=settings), tensors


def _unpack(tensors: Tensors, description: Description) -> StoredNetwork:
    has_system = description.has_system
    require_declared(
        tensors, has_form=description.has_form, has_system=has_system, has_descriptor=description.has_descriptor
    )
    require_finite(tensors)
    network = unpack_network(tensors)
    require_solvable(network)
    settings = description.settings.fitting(n_inputs=network.n_inputs, n_outputs=network.n_outputs)
    form = None
    if description.has_form:
        require_form(tensors)
        form = unpack_form(tensors, description)
    if form is None or not has_system:
        require_own_blocks(network, form)
        return StoredNetwork(network, form, reduced_error=description.reduced_error, settings=settings)
    system, blocks = unpack_system(tensors, form)
    return StoredNetwork(network, form, system.named(description.names), blocks, description.reduced_error, settings)


def _read(path: Path, max_bytes: float) -> tuple[dict[str, str], Tensors]:
    room = allowance(max_bytes)
    with opened(path) as file, _refusing(path):
        header = read_header(file)
        _require_known(path, header.metadata)
        return header.metadata, read_tensors(file, header, room)


def _require_known(path: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise FileFormatError(
            f"{shown_path(path)} is a safetensors file but not an ltinet network; write one with net.save(path)"
        )
    version = metadata.get("version", "")
    if version not in _READABLE:
        raise FileFormatError(
            f"{shown_path(path)} has format version {shown(repr(version))}, this ltinet reads up to {VERSION}; "
            "upgrade ltinet to read it"
        )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except LtinetError:
        raise
    except BeyondLimitError as error:
        raise FileFormatError(f"{shown_path(path)} cannot be read: {error}") from None
    except (OSError, ValueError, MemoryError, RecursionError) as error:
        if path.suffix.lower() in (".mat", ".npz"):
            raise FileFormatError(
                f"{shown_path(path)} is not a network but looks like a system; read it with ltinet.load_system(path), "
                "and construct its network: ltinet.construct(ltinet.load_system(path))"
            ) from None
        raise FileFormatError(
            f"{shown_path(path)} is not a readable safetensors file ({one_line(error)}); it may be damaged or cut off"
        ) from None


def _digest(content: str, tensors: Tensors) -> str:
    """SHA-256 of the description and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(_encoded(content))
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(_encoded(f"|{name}|{array.dtype.str}|{array.shape}|"))
        digest.update(array.tobytes())
    return digest.hexdigest()


def _encoded(text: str) -> bytes:
    """The bytes of a text; what damage makes of one may hold half a character, which has none of its own."""
    return text.encode("utf-8", "surrogatepass")
