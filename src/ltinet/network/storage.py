"""Network files: safetensors with versioned metadata, every bit restored or an error, nothing executed.

A file holds the packed parameters of all layers, the block-diagonal form they came from if there is one, and a SHA-256
of all of it: a damaged file is refused rather than read as another network.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.transformation import Product
from ltinet.errors import FileFormatError, LtinetError
from ltinet.model.atomic import written_whole
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network

FORMAT = "ltinet-network"
VERSION = 1
Tensors = Mapping[str, NDArray[Any]]


def write_network(path: str | Path, network: Network, form: BlockDiagonalForm | None) -> None:
    """Write a network and the form it came from; the file appears under its name only when it is complete."""
    tensors = _pack_network(network)
    description: dict[str, Any] = {"has_form": form is not None}
    if form is not None:
        tensors |= {f"form.{name}": array for name, array in _pack_form(form).items()}
        # Whole numbers and floats of NumPy would not pass as JSON.
        budget = None if form.budget is None else float(form.budget)
        seen = [(int(count), float(condition)) for count, condition in form.seen]
        description |= {"budget": budget, "seen": seen, "remarks": form.remarks}
    content = json.dumps(description, sort_keys=True)
    metadata = {"format": FORMAT, "version": str(VERSION), "content": content, "sha256": _digest(content, tensors)}
    if Path(path).exists() and not Path(path).is_file():
        raise FileFormatError(
            f"{path} is a folder or a device, not a file, and would be replaced; choose another place"
        )
    try:
        with written_whole(Path(path)) as temporary:
            temporary.write_bytes(save(dict(tensors), metadata))
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written ({error.strerror or error}); choose another place") from error


def read_network(path: str | Path) -> tuple[Network, BlockDiagonalForm | None]:
    """Read what `write_network` wrote, bit for bit.

    Raises:
        FileFormatError: there is no such file, it is damaged, not a network, or of a newer format.
    """
    metadata, tensors = _read(Path(path))
    if metadata.get("format") != FORMAT:
        raise FileFormatError(f"{path} is a safetensors file but not an ltinet network; write one with net.save(path)")
    version = metadata.get("version", "")
    if version != str(VERSION):
        raise FileFormatError(
            f"{path} has format version {version!r}, this ltinet reads version {VERSION}; upgrade ltinet to read it"
        )
    content = metadata.get("content", "")
    if metadata.get("sha256") != _digest(content, tensors):
        raise FileFormatError(
            f"{path} is damaged: its checksum does not match; restore it from a copy or build it again"
        )
    try:
        description = json.loads(content)
        _check_tensors(tensors, has_form=description["has_form"])
        network = _unpack_network(tensors)
        form = _unpack_form(tensors, description) if description["has_form"] else None
    except (LtinetError, KeyError, ValueError, TypeError, IndexError, MemoryError, RecursionError) as error:
        raise FileFormatError(f"{path} does not hold a complete network: {error}") from None
    return network, form


def _read(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise FileFormatError(f"there is no file {path}; check the path") from None
    except (SafetensorError, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise FileFormatError(
            f"{path} is not a readable safetensors file ({error}); it may be damaged or cut off"
        ) from None


def _digest(content: str, tensors: Tensors) -> str:
    """SHA-256 of the description and of name, type, shape and bytes of every tensor."""
    digest = hashlib.sha256(content.encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"|{name}|{array.dtype.str}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_tensors(tensors: Tensors, *, has_form: bool) -> None:
    """Exactly the tensors of this format in size and type: a right checksum says nothing of who computed it."""
    shapes = _network_shapes(tensors) | (_form_shapes(tensors) if has_form else {})
    if set(tensors) != set(shapes):
        raise ValueError(f"it has the tensors {', '.join(sorted(tensors))}, not {', '.join(sorted(shapes))}")
    for name, array in tensors.items():
        dtype = np.dtype(np.int64 if name in ("n_neurons", "form.block_sizes") else np.float64)
        if array.dtype != dtype or array.shape != shapes[name]:
            raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {dtype} of shape {shapes[name]}")


def _network_shapes(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    counts, (n_outputs, n_inputs) = tensors["n_neurons"].tolist(), tensors["Psi"].shape
    n_neurons, squares = sum(counts), (sum(count * count for count in counts),)
    n_states = n_neurons + int(np.count_nonzero(tensors["masses"]))
    shapes: dict[str, tuple[int, ...]] = {"n_neurons": (len(counts),), "masses": (n_neurons,), "C": squares}
    shapes |= {"K": squares, "E": (n_neurons, n_inputs), "V": (n_neurons, n_inputs)}
    return shapes | {"Phi": (n_outputs, n_states), "Psi": (n_outputs, n_inputs)}


def _form_shapes(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    sizes = tensors["form.block_sizes"].tolist()
    n = sum(sizes)
    shapes: dict[str, tuple[int, ...]] = {"block_sizes": (len(sizes),), "blocks": (sum(size * size for size in sizes),)}
    shapes |= {"T": (n, n), "T_inv": (n, n), "original": (n, n), "scaling": (n,), "eigenvalues": (n, 2)}
    return {f"form.{name}": shape for name, shape in shapes.items()}


def _pack_network(network: Network) -> dict[str, NDArray[Any]]:
    """All layers in few tensors: square matrices flattened one after the other, rows stacked."""
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


def _unpack_network(tensors: Tensors) -> Network:
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


def _pack_form(form: BlockDiagonalForm) -> dict[str, NDArray[Any]]:
    blocks = [form.block(index).ravel() for index in range(form.n_blocks)]
    eigenvalues = np.concatenate([np.zeros(0, dtype=complex), *form.eigenvalues])
    return {
        "block_sizes": np.array(form.block_sizes, dtype=np.int64),
        "blocks": np.concatenate([np.zeros(0), *blocks]),
        "T": np.ascontiguousarray(form.T),
        "T_inv": np.ascontiguousarray(form.T_inv),
        "eigenvalues": np.column_stack([eigenvalues.real, eigenvalues.imag]),
        "scaling": np.array(form.scaling),
        "original": np.array(form.original),
    }


def _unpack_form(tensors: Tensors, description: Mapping[str, Any]) -> BlockDiagonalForm:
    sizes = tensors["form.block_sizes"].tolist()
    A, start, entry = np.zeros((sum(sizes), sum(sizes))), 0, 0
    for size in sizes:
        A[start : start + size, start : start + size] = tensors["form.blocks"][entry : entry + size * size].reshape(
            size, size
        )
        start, entry = start + size, entry + size * size
    eigenvalues = np.ascontiguousarray(tensors["form.eigenvalues"]).view(np.complex128)[:, 0]
    for array in (A, tensors["form.scaling"], tensors["form.original"], eigenvalues):
        array.setflags(write=False)
    return BlockDiagonalForm(
        A=A,
        transformation=Product(tensors["form.T"], tensors["form.T_inv"]),
        block_sizes=tuple(sizes),
        eigenvalues=tuple(np.split(eigenvalues, np.cumsum(sizes)[:-1])) if sizes else (),
        scaling=tensors["form.scaling"],
        original=tensors["form.original"],
        budget=description["budget"],
        seen=tuple((int(count), float(condition)) for count, condition in description["seen"]),
        remarks=tuple(description["remarks"]),
    )
