"""A system in block coordinates, ż = A z + B u, y = C z + D u with A block diagonal: what a network stands for.

The exact engine runs here. The second-order form of a neuron divides by the coupling b of its pair, so that its weights
grow as 1/b where two eigenvalues nearly coincide; the blocks themselves do not.
"""

from dataclasses import dataclass, field

import numpy as np

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.operator import Operator
from ltinet.decompose.transformation import Product
from ltinet.model.matrices import Matrix, read_only
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.entry_errors import with_turning_vectors
from ltinet.network.rounding import Magnitudes, without_rounding
from ltinet.tolerances import sum_rounding


@dataclass(frozen=True, eq=False)
class BlockSystem:
    """Blocks of pattern G (Definition 4) side by side: in each, real eigenvalues first, then pairs as 2×2 blocks."""

    A: Matrix
    """That of the form."""
    B: Matrix
    C: Matrix
    D: Matrix
    block_sizes: tuple[int, ...]
    reals_per_block: tuple[int, ...]
    magnitudes: Magnitudes | None = field(default=None, repr=False)
    """None for entries that are known as they stand."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks; each is one horizontal layer."""
        return len(self.block_sizes)

    @property
    def slices(self) -> list[slice]:
        """Where the states of each block stand."""
        stops = np.cumsum(self.block_sizes, dtype=np.intp).tolist()
        return [slice(stop - size, stop) for size, stop in zip(self.block_sizes, stops, strict=True)]


def in_block_coordinates(system: SystemMatrices, form: BlockDiagonalForm) -> BlockSystem:
    """The system with x = T z: T⁻¹B and C T beside the blocks of the form, zero where they are rounding errors only.

    An entry of T⁻¹B is a sum whose terms have sizes that add up to |T⁻¹||B| there. A small entry beside large ones of
    other states is no rounding error; one that is small against its own terms is.
    """
    T = form.transformation
    B, C = T.to_blocks(system.B), T.from_blocks(system.C)
    terms: Magnitudes | None = None
    if not (isinstance(T, Product) and _has_single_entries(system)):  # else nothing is summed
        terms = Magnitudes(T.magnitudes.to_blocks(np.abs(system.B)), T.magnitudes.from_blocks(np.abs(system.C)))
        noise = sum_rounding(system.n_states)
        B, C = without_rounding(B, noise * terms.B), without_rounding(C, noise * terms.C)
    if system.n_inputs + system.n_outputs < system.n_states and not isinstance(T, Operator):
        # With as many inputs and outputs as states this would take longer than all else.
        terms = with_turning_vectors(terms or Magnitudes(np.abs(B), np.abs(C)), form, B=B, C=C)
    return BlockSystem(form.A, read_only(B), read_only(C), system.D, form.block_sizes, form.reals_per_block, terms)


def _has_single_entries(system: SystemMatrices) -> bool:
    """Whether each input acts on one state at most, and each output shows one."""
    return all(bool((np.count_nonzero(entries, axis=0) <= 1).all()) for entries in (system.B, system.C.T))
