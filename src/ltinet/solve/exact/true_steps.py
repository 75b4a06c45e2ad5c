"""Steps of a coupled block to twice the digits, beside which those that the engine takes are measured."""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.double_steps import double_steps
from ltinet.solve.steps.propagators import matrix_steps

WITHIN = (1.0, 0.9, 0.77, 0.66, 0.54)  # of the longest length of an octave: where steps are looked at
BETWEEN = 3.0  # by how much steps may be farther off than at the lengths looked at: 2.6 was seen in 2,000 drawn ones


class StepErrors(NamedTuple):
    """By how much steps of the engine are off, per unit of a state and of an input at both ends; NaN is infinite."""

    per_state: Array
    """`(lengths, n, n)`."""
    per_input: Array
    """`(lengths, n, m)`."""


def step_errors(block: DenseBlock, lengths: Array, *, linear: bool) -> StepErrors:
    """Those of steps of some lengths, whose rows halve."""
    found = matrix_steps(block.F, block.G, lengths.ravel(), linear=linear)
    true = double_steps(block.F, block.G, lengths, linear=linear)
    with np.errstate(invalid="ignore"):
        off = [np.abs((own - high) - low) for own, (high, low) in zip(found, true, strict=True)]
        parts = off[0], off[1] + off[2]
    return StepErrors(*(np.where(np.isnan(part), np.inf, part) for part in parts))
