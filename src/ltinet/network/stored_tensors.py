"""The tensors of a network file, declared: which there are, of which type and of which shape.

Shapes are made of named sizes, and the sizes follow from four tensors that say how much there is of everything.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tensors: TypeAlias = Mapping[str, NDArray[Any]]


class Tensor(NamedTuple):
    """One tensor of the format: float64, or int64 if it counts."""

    name: str
    axes: tuple[str, ...]
    counts: bool = False

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The type of its numbers."""
        return np.dtype(np.int64 if self.counts else np.float64)


NETWORK = (
    Tensor("n_neurons", ("layers",), counts=True),
    Tensor("masses", ("neurons",)),
    Tensor("C", ("couplings",)),
    Tensor("K", ("couplings",)),
    Tensor("E", ("neurons", "inputs")),
    Tensor("V", ("neurons", "inputs")),
    Tensor("Phi", ("outputs", "states")),
    Tensor("Psi", ("outputs", "inputs")),
)
"""All layers in few tensors: square matrices flattened one after the other, rows stacked."""

FORM = (
    Tensor("form.block_sizes", ("blocks",), counts=True),
    Tensor("form.blocks", ("block entries",)),
    Tensor("form.T", ("states", "states")),
    Tensor("form.T_inv", ("states", "states")),
    Tensor("form.original", ("states", "states")),
    Tensor("form.scaling", ("states",)),
    Tensor("form.eigenvalues", ("states", "parts")),
)
"""The block-diagonal form that the network was built from."""

SYSTEM = (
    Tensor("blocks.B", ("states", "inputs")),
    Tensor("blocks.C", ("outputs", "states")),
    Tensor("system.A", ("states", "states")),
    Tensor("system.B", ("states", "inputs")),
    Tensor("system.C", ("outputs", "states")),
    Tensor("system.D", ("outputs", "inputs")),
)
"""The system as it was given, which error bounds compare with, and in the coordinates of the blocks."""

DESCRIPTOR = (Tensor("system.E", ("states", "states")),)
"""E of a descriptor system; A and B are those beside it."""


def require_declared(tensors: Tensors, *, has_form: bool, has_system: bool, has_descriptor: bool) -> None:
    """Exactly the tensors of this format in size and type: a right checksum says nothing of who computed it.

    Raises:
        ValueError: one is missing, unknown, or of another type or shape.
    """
    parts = ((NETWORK, True), (FORM, has_form), (SYSTEM, has_system), (DESCRIPTOR, has_descriptor))
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
