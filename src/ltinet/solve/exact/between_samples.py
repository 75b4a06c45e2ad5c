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
from ltinet.solve.exact.engine_arrays import EngineArrays
from ltinet.solve.exact.true_steps import BETWEEN, WITHIN, largest_off
from ltinet.solve.steps.short_steps import is_short, size_in_best_units
from ltinet.tolerances import LARGEST

_MANY = 64  # states from which on one place is looked at
_OCTAVES = 24  # at most


class BetweenSamples(NamedTuple):
    """By how much outputs of a coupled block are off after a step within an interval, at most."""

    own: slice
    per_state: Array
    """`(p, n)`, per unit of the states at samples."""
    per_input: Array
    """`(p, m)`."""

    def outputs(self, sizes: StepSizes) -> Array:
        """`(cells, p)`."""
        return np.asarray(sizes.begun[:, self.own] @ self.per_state.T + sizes.inputs @ self.per_input.T)


def between_samples(arrays: EngineArrays, longest: float, *, linear: bool) -> list[BetweenSamples]:
    """Look at the blocks of an engine; short steps are series whose every entry is right to its last digits."""
    found = []
    for own, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        size = size_in_best_units(block.F)
        if is_short(block.F, longest, size=size):
            continue
        octaves = math.ceil(math.log2(max(2.0, min(size * longest, LARGEST))))
        places = np.array(WITHIN if len(block.F) <= _MANY else WITHIN[:1])
        lengths = longest * np.multiply.outer(0.5 ** np.arange(min(octaves, _OCTAVES)), places)
        off = largest_off(block, lengths, linear=linear)
        weights = BETWEEN * np.abs(block.C)
        found.append(BetweenSamples(own, weights @ off.per_state, weights @ off.per_input))
    return found
