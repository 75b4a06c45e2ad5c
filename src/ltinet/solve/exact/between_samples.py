"""How far outputs between samples are off beyond the states at them: the step of a fraction of an interval, measured.

Outputs between two samples come from the state at the first by a step of a length of its own. For coupled blocks that
is an exponential of its own, or a series through some of these, and neither is off by what the step of a whole interval
is off. Such steps are looked at in every octave below the longest, beside such of twice the digits.
"""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.step_rounding import StepSizes
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.exact.true_steps import BETWEEN, WITHIN, step_errors
from ltinet.solve.steps.short_steps import is_short, size_in_best_units
from ltinet.tolerances import LARGEST

_MANY = 16  # states from which on one place is looked at: exponentials in pairs of doubles take milliseconds each
_OCTAVES = 24  # at most


class BlockErrors(NamedTuple):
    """By how much the steps of a coupled block are off, at most."""

    modes: slice
    """Where the states of the block stand."""
    inputs_of_longest: Array
    """`(n, m)`: states after a step as long as that between samples, per unit of the inputs at both its ends."""
    outputs_per_state: Array
    """`(p, n)`: outputs after a step within an interval, per unit of the states at samples."""
    outputs_per_input: Array
    """`(p, m)`, per unit of the inputs."""

    def outputs(self, sizes: StepSizes) -> Array:
        """Of outputs between samples, `(cells, p)`."""
        return np.asarray(
            sizes.begun[:, self.modes] @ self.outputs_per_state.T + sizes.inputs @ self.outputs_per_input.T
        )


def block_errors(arrays: EngineArrays, longest: float, *, linear: bool) -> list[BlockErrors]:
    """Look at the blocks of an engine; short steps are series whose every entry is right to its last digits."""
    found = []
    for modes, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        size = size_in_best_units(block.F)
        if is_short(block.F, longest, size=size):
            continue
        octaves = math.ceil(math.log2(max(2.0, min(size * longest, LARGEST))))
        places = np.array(WITHIN if len(block.F) <= _MANY else WITHIN[:1])
        lengths = longest * np.multiply.outer(0.5 ** np.arange(min(octaves, _OCTAVES)), places)
        off = step_errors(block, lengths, linear=linear)
        weights = BETWEEN * np.abs(block.C)
        per_state, per_input = (weights @ part.max(axis=0) for part in off)
        found.append(BlockErrors(modes, off.per_input[0], per_state, per_input))
    return found
