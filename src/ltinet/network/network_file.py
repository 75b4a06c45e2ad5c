"""Reading and writing of network files.

A file holds the parameters of all layers, the block-diagonal form and the original system if they are known, and a
SHA-256 of all of it. Every bit is restored or an error is raised, and nothing is executed. A damaged file, and a file
with a correct checksum but invalid contents, is rejected when it is loaded.
"""

from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import rounding_tolerance
from ltinet._util.text import format_path, sanitize
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.transformation import DenseTransformation, ImplicitTransformation
from ltinet.errors import FileFormatError, LtinetError
from ltinet.io.file_access import DEFAULT_MAX_BYTES, as_path, error_text
from ltinet.network.block_system import BlockSystem
from ltinet.network.file_format import (
    FileDescription,
    Tensors,
    checksum,
    encode_description,
    parse_description,
    read_safetensors,
    validate_tensors,
    write_safetensors,
)
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.network.realization import modal_blocks, recover_block_system
from ltinet.systems.matrices import Matrix, make_read_only
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

# Networks, forms and systems as tensors


SUFFIX = ".safetensors"


def pack_network(network: Network) -> dict[str, NDArray[Any]]:
    """Return all layers as few tensors: square matrices flattened one after the other, rows stacked."""
    layers = network.layers
    return {
        "n_neurons": np.array([layer.n_neurons for layer in layers], dtype=np.int64),
        "masses": np.concatenate([np.zeros(0), *(layer.M.diagonal() for layer in layers)]),
        "C": np.concatenate([np.zeros(0), *(layer.C.ravel() for layer in layers)]),
        "K": np.concatenate([np.zeros(0), *(layer.K.ravel() for layer in layers)]),
        "E": np.vstack([np.zeros((0, network.n_inputs)), *(layer.E for layer in layers)]),
        "V": np.vstack([np.zeros((0, network.n_inputs)), *(layer.V for layer in layers)]),
        "Phi": network.output_weights,
        "Psi": np.array(network.Psi),
    }


def unpack_network(tensors: Tensors) -> Network:
    """Return the network of tensors with valid types and shapes; raise LtinetError if their values are invalid."""
    layers, Phi = [], []
    row = square = column = 0
    for count in tensors["n_neurons"].tolist():
        rows, entries = slice(row, row + count), slice(square, square + count * count)
        C, K = tensors["C"][entries].reshape(count, count), tensors["K"][entries].reshape(count, count)
        layer = HorizontalLayer(np.diag(tensors["masses"][rows]), C, K, tensors["E"][rows], tensors["V"][rows])
        layers.append(layer)
        Phi.append(tensors["Phi"][:, column : column + layer.n_states])
        row, square, column = rows.stop, entries.stop, column + layer.n_states
    return Network(layers, Phi, tensors["Psi"])


def pack_form(form: BlockDiagonalForm) -> dict[str, NDArray[Any]]:
    """Return the form as tensors, A_bd by its blocks."""
    blocks = [form.block(index).ravel() for index in range(form.n_blocks)]
    eigenvalues = np.concatenate([np.zeros(0, dtype=complex), *form.eigenvalues])
    return {
        "form.block_sizes": np.array(form.block_sizes, dtype=np.int64),
        "form.blocks": np.concatenate([np.zeros(0), *blocks]),
        "form.T": np.ascontiguousarray(form.T),
        "form.T_inv": np.ascontiguousarray(form.T_inv),
        "form.eigenvalues": np.column_stack([eigenvalues.real, eigenvalues.imag]),
        "form.scaling": np.array(form.scaling),
        "form.original": np.array(form.original),
    }


def unpack_form(tensors: Tensors, description: FileDescription) -> BlockDiagonalForm:
    """Return the form of tensors with valid types and shapes."""
    sizes = tensors["form.block_sizes"].tolist()
    entries = np.split(tensors["form.blocks"], np.cumsum(np.square(sizes))[:-1]) if sizes else []
    blocks = [part.reshape(size, size) for part, size in zip(entries, sizes, strict=True)]
    A = linalg.block_diag(*blocks) if blocks else np.zeros((0, 0))
    eigenvalues = np.ascontiguousarray(tensors["form.eigenvalues"]).view(np.complex128)[:, 0]
    return BlockDiagonalForm(
        A=make_read_only(A),
        transformation=DenseTransformation(tensors["form.T"], tensors["form.T_inv"]),
        block_sizes=tuple(sizes),
        eigenvalues=tuple(np.split(eigenvalues, np.cumsum(sizes)[:-1])) if sizes else (),
        scaling=tensors["form.scaling"],
        original=tensors["form.original"],
        budget=description.budget,
        candidates=description.candidates,
        decisions=description.decisions,
    )


def pack_system(system: SystemMatrices, block_system: BlockSystem) -> dict[str, NDArray[Any]]:
    """Return the given system, and its B and C in block coordinates, as tensors."""
    tensors = {"blocks.B": np.ascontiguousarray(block_system.B), "blocks.C": np.ascontiguousarray(block_system.C)}
    tensors |= {"system.C": system.C, "system.D": system.D}
    if system.descriptor is None:
        return tensors | {"system.A": system.A, "system.B": system.B}
    E, A, B = system.descriptor
    return tensors | {"system.A": A, "system.B": B, "system.E": E}


def unpack_system(tensors: Tensors, form: BlockDiagonalForm) -> tuple[SystemMatrices, BlockSystem]:
    """Return the system of tensors with valid types and shapes; raise LtinetError if their values are invalid."""
    A, B, C, D = (tensors[f"system.{name}"] for name in "ABCD")
    system = SystemMatrices(A, B, C, D, tensors.get("system.E"))
    B_blocks, C_blocks = tensors["blocks.B"], tensors["blocks.C"]
    return system, BlockSystem(form.A, B_blocks, C_blocks, system.D, form.block_sizes, form.reals_per_block)


# Validation


def validate_finite_tensors(tensors: Tensors) -> None:
    """Raise ValueError if a tensor has NaN or infinities."""
    for name, array in tensors.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has entries that are not finite")


def validate_leading_coefficients(network: Network) -> None:
    """Raise ValueError if m or, for a first-order neuron, c is so small that dividing by it overflows."""
    for index, layer in enumerate(network.layers):
        leading = np.where(layer.is_second_order, layer.M.diagonal(), layer.C.diagonal())
        with np.errstate(over="ignore"):
            unit = np.ones((len(leading), 1))
            solved = [matrix / leading[:, None] for matrix in (unit, layer.C, layer.K, layer.E, layer.V)]
        if not all(np.isfinite(matrix).all() for matrix in solved):
            raise ValueError(f"a neuron of layer {index} has m or c too small for the equation to be divided by it")


def validate_block_system(network: Network, form: BlockDiagonalForm | None) -> None:
    """Raise ValueError if block coordinates that the file does not contain cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            system = modal_blocks(network).system if form is None else recover_block_system(network, form)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"its blocks cannot be computed: {error}") from None
    if not all(np.isfinite(matrix).all() for matrix in (system.A, system.B, system.C, system.D)):
        raise ValueError("its blocks are not finite")


def validate_form(tensors: Tensors) -> None:
    """Raise ValueError if the parts of a form contradict each other.

    scaling must consist of powers of two, complex eigenvalues come in pairs, and T_inv be the inverse of T.
    """
    scaling: NDArray[np.float64] = tensors["form.scaling"]
    mantissas, _ = np.frexp(scaling)
    if not np.all(mantissas == 0.5):
        raise ValueError("form.scaling has entries that are not powers of two")
    imaginary = np.split(tensors["form.eigenvalues"][:, 1], np.cumsum(tensors["form.block_sizes"])[:-1])
    if any(np.count_nonzero(part > 0.0) != np.count_nonzero(part < 0.0) for part in imaginary):
        raise ValueError("form.eigenvalues has complex numbers without their conjugates")
    with np.errstate(over="ignore"):
        T, inverse = tensors["form.T"] / scaling[:, None], tensors["form.T_inv"] * scaling
    if not (np.isfinite(T).all() and np.isfinite(inverse).all()):
        raise ValueError("form.T divided by form.scaling is not finite")
    if not _is_inverse(T, inverse):
        raise ValueError("form.T_inv is not the inverse of form.T")


def _is_inverse(T: Matrix, inverse: Matrix) -> bool:
    """Return whether T · inverse maps one vector to itself up to rounding, by a few products with a vector.

    A stably computed inverse has an error of n·eps·|T⁻¹||T||T⁻¹|, which is multiplied by T once more. Any inverse is
    accepted for a T so ill-conditioned that this exceeds the vector itself.
    """
    vector = np.cos(np.arange(len(T)))  # no entry is zero, and no two are equal
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.linalg.norm(T @ (inverse @ vector) - vector)
        growth = np.abs(vector)
        for matrix in (inverse, T, inverse, T):
            growth = np.abs(matrix) @ growth
        return not error > rounding_tolerance(len(T), float(np.linalg.norm(growth)))


# Reading and writing

FORMAT = "ltinet-network"
VERSION = 4
"""Newest version of the format: 1 of ltinet 0.1.0, without the system; 3 with signal settings; 4 with a time step."""
_CONTINUOUS_VERSION = 3  # of networks in continuous time, which need no newer reader
_READABLE_VERSIONS = ("1", "2", "3", "4")


class StoredNetwork(NamedTuple):
    """Contents of a network file: a network and, if known, its form, system and settings."""

    network: Network
    form: BlockDiagonalForm | None = None
    system: SystemMatrices | None = None
    block_system: BlockSystem | None = None
    reduction_error: float | None = None
    """H2 norm of the error of a reduction; None if the system was not reduced."""
    settings: SignalSettings = NO_SETTINGS
    """Delays, operating point, hold and sample time."""
    dt: float | None = None
    """Time step of a network in discrete time; None in continuous time."""


def write_network(path: str | PathLike[str], stored: StoredNetwork) -> None:
    """Write a network, its form and its system, with the same bytes each time.

    The file appears under its name only when it is complete. A system is stored only together with its form and blocks.
    Raises FileFormatError if the path has another suffix than .safetensors, or cannot be written.
    """
    path = as_path(path)
    if path.suffix.lower() not in (SUFFIX, ""):
        raise FileFormatError(
            f"{format_path(path)} must end in {SUFFIX}, the format of network files; save_system(system, path) writes "
            ".npz and .mat files"
        )
    if has_implicit_transformation(stored.form):
        raise FileFormatError(
            f"{format_path(path)} is not written: T of this network of {stored.network.n_states} states is an operator, "
            "not an array; store the model with save_system(net.system, path), and construct the network from it again"
        )
    content, tensors = pack_stored(stored)
    version = _CONTINUOUS_VERSION if stored.dt is None else VERSION
    write_safetensors(path, tensors, content, kind=FORMAT, version=version)


def network_checksum(stored: StoredNetwork) -> str:
    """Return the SHA-256 that a file of the network contains, which identifies the source of exported files.

    Where T is an operator no such file can be written; the checksum is then that of the network alone.
    """
    network_only = StoredNetwork(stored.network, settings=stored.settings, dt=stored.dt)
    return checksum(*pack_stored(network_only if has_implicit_transformation(stored.form) else stored))


def has_implicit_transformation(form: BlockDiagonalForm | None) -> bool:
    """Return whether T is an operator, as for large structured models."""
    return form is not None and isinstance(form.transformation, ImplicitTransformation)


def read_network(path: str | PathLike[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> StoredNetwork:
    """Read a file of `write_network`, bit for bit.

    Raises FileFormatError if there is no such file, or it is damaged, not a network, too large, or of a newer format.
    """
    path = as_path(path)
    metadata, tensors = read_safetensors(path, partial(_validate_metadata, path), max_bytes=max_bytes)
    try:
        return unpack_stored(tensors, parse_description(metadata.get("content", ""), version=int(metadata["version"])))
    except (LtinetError, ValueError, MemoryError, RecursionError) as error:
        raise FileFormatError(f"{format_path(path)} does not hold a complete network: {error_text(error)}") from None


def pack_stored(stored: StoredNetwork) -> tuple[str, Tensors]:
    """Return the description and the tensors of a network."""
    network, form, system, block_system, reduction_error, settings, dt = stored
    tensors = pack_network(network) | ({} if form is None else pack_form(form))
    if form is None or block_system is None:
        system = None
    if system is not None and block_system is not None:
        tensors |= pack_system(system, block_system)
    return encode_description(form, system, reduction_error=reduction_error, settings=settings, dt=dt), tensors


def unpack_stored(tensors: Tensors, description: FileDescription) -> StoredNetwork:
    """Return the network of validated tensors."""
    validate_tensors(tensors, description)
    validate_finite_tensors(tensors)
    network = unpack_network(tensors)
    validate_leading_coefficients(network)
    dt = description.dt
    settings = description.settings.validate_for(n_inputs=network.n_inputs, n_outputs=network.n_outputs, dt=dt)
    form = None
    if description.has_form:
        validate_form(tensors)
        form = unpack_form(tensors, description)
    if form is None or not description.has_system:
        validate_block_system(network, form)
        return StoredNetwork(network, form, reduction_error=description.reduction_error, settings=settings, dt=dt)
    system, block_system = unpack_system(tensors, form)
    system = system.with_names(description.names).with_time_step(dt)
    return StoredNetwork(network, form, system, block_system, description.reduction_error, settings, dt)


def _validate_metadata(path: Path, metadata: Mapping[str, str]) -> None:
    """Raise FileFormatError unless the file is a network of a readable version."""
    if metadata.get("format") != FORMAT:
        raise FileFormatError(
            f"{format_path(path)} is a safetensors file but not an ltinet network; write one with net.save(path)"
        )
    version = metadata.get("version", "")
    if version not in _READABLE_VERSIONS:
        raise FileFormatError(
            f"{format_path(path)} has format version {sanitize(repr(version))}, this ltinet reads up to {VERSION}; "
            "upgrade ltinet to read it"
        )
