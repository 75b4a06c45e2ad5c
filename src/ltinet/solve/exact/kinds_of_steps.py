"""How the modes of an engine step: numbers side by side, and one coupled block after the other."""

from functools import partial

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.step_rounding import DenseSteps, ScalarSteps
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.propagators import matrix_steps


def kinds_of_steps(
    arrays: EngineArrays, h: float, width: int, *, shares: Array | None, repeats: bool
) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
    """Which modes step how, so many samples of one length, or up to it, at a time."""
    scalars = slice(0, arrays.n_scalars)
    inputs, outputs = arrays.mode_inputs[scalars], arrays.mode_outputs[:, scalars]
    doubled = 1 << (width - 1).bit_length()  # exponentials of blocks are known at powers of two
    first = ScalarSteps(arrays.system.rates, inputs, outputs, h, width, shares, repeats)
    dense = [
        DenseSteps(block.F, np.abs(block.G), block.C, h, doubled, shares, repeats, partial(_exponential, block))
        for block in arrays.system.blocks
    ]
    return [(scalars, first), *zip(arrays.mode_slices, dense, strict=True)]


def _exponential(block: DenseBlock, length: float) -> Array:
    """The engine's e^{Fh} of a coupled block."""
    return np.asarray(matrix_steps(block.F, block.G, np.array([length]), linear=True).P[0])
