"""A system in block coordinates, ż = A z + B u, y = C z + D u with A block diagonal: what a network stands for.

The exact engine runs here. The second-order form of a neuron divides by the coupling b of its pair, so that its weights
grow as 1/b where two eigenvalues nearly coincide; the blocks themselves do not.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.matrices import Matrix, read_only
from ltinet.model.state_space import StateSpace


@dataclass(frozen=True, eq=False)
class BlockSystem:
    """Blocks of pattern G (Definition 4) side by side: in each, real eigenvalues first, then pairs as 2×2 blocks."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    block_sizes: tuple[int, ...]
    reals_per_block: tuple[int, ...]

    @property
    def n_blocks(self) -> int:
        """Number of blocks; each is one horizontal layer."""
        return len(self.block_sizes)

    @property
    def slices(self) -> list[slice]:
        """Where the states of each block stand."""
        stops = np.cumsum(self.block_sizes, dtype=np.intp).tolist()
        return [slice(stop - size, stop) for size, stop in zip(self.block_sizes, stops, strict=True)]


def in_block_coordinates(system: StateSpace, form: BlockDiagonalForm) -> BlockSystem:
    """The system with x = T z: T⁻¹B and C T beside the blocks of the form."""
    B, C = form.transformation.to_blocks(system.B), form.transformation.from_blocks(system.C)
    return BlockSystem(form.A, read_only(B), read_only(C), system.D, form.block_sizes, form.reals_per_block)
