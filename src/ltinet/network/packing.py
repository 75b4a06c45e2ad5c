"""Networks, forms and systems as a few tensors, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.transformation import Product
from ltinet.model.matrices import read_only
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.description import Description
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.network.stored_tensors import Tensors


def pack_network(network: Network) -> dict[str, NDArray[Any]]:
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


def unpack_network(tensors: Tensors) -> Network:
    """The network of tensors that are known to have the right types and shapes.

    Raises:
        LtinetError: their numbers do not make a network.
    """
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
    """The form a network came from; of A_bd the blocks only."""
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


def unpack_form(tensors: Tensors, description: Description) -> BlockDiagonalForm:
    """The form of tensors that are known to have the right types and shapes."""
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
        budget=description.budget,
        seen=description.seen,
        remarks=description.remarks,
    )


def pack_system(system: SystemMatrices, blocks: BlockSystem) -> dict[str, NDArray[Any]]:
    """The system as it was given, and what is not in the form of it in block coordinates."""
    tensors = {"blocks.B": np.ascontiguousarray(blocks.B), "blocks.C": np.ascontiguousarray(blocks.C)}
    tensors |= {"system.C": system.C, "system.D": system.D}
    if system.descriptor is None:
        return tensors | {"system.A": system.A, "system.B": system.B}
    E, A, B = system.descriptor
    return tensors | {"system.A": A, "system.B": B, "system.E": E}


def unpack_system(tensors: Tensors, form: BlockDiagonalForm) -> tuple[SystemMatrices, BlockSystem]:
    """The system of tensors that are known to have the right types and shapes.

    Raises:
        LtinetError: their numbers do not make a system.
    """
    A, B, C, D = (tensors[f"system.{name}"] for name in "ABCD")
    system = SystemMatrices(A, B, C, D, tensors.get("system.E"))
    own_B, own_C = read_only(tensors["blocks.B"]), read_only(tensors["blocks.C"])
    return system, BlockSystem(form.A, own_B, own_C, system.D, form.block_sizes, form.reals_per_block)
