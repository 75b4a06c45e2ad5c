"""Evenly spaced samples: the fastest of the ways through them.

Single steps (`single_steps`) suit many inputs and outputs, blocks of time (`time_blocks`) are for any state at the
start, and fast convolution (`convolution`) is for long runs from rest through many states.
"""

from ltinet.solve.steps.convolution import Convolution, convolution, width_for
from ltinet.solve.steps.even_walk import NestedBlocks
from ltinet.solve.steps.one_step import OneStep
from ltinet.solve.steps.run_times import RunTimes
from ltinet.solve.steps.single_steps import SingleSteps, single_steps
from ltinet.solve.steps.states_in_blocks import states_in_blocks
from ltinet.solve.steps.time_blocks import TimeBlocks, time_blocks

# Transforms round relative to the largest outputs: what they save must be worth that.
_WORTH_SECONDS, _WORTH_SHARE = 1e-4, 0.1
_FEW_FOR_CONVOLUTION = 32  # states up to which the predicted saving is smaller than the uncertainty of the prediction
_NARROW = 16  # steps in a block within which states are products: their weights grow with the square of it
_MOST_PARAMETERS = 2**19  # numbers in the Markov parameters of half a run, for memory


def uniform_grid(step: OneStep, n_times: int) -> SingleSteps | TimeBlocks:
    """Prepare a grid for about `n_times` samples, from any state; blocks as wide as is fastest and possible."""
    K = step.widest_block(RunTimes(step.system, step.length, n_times).best_width)
    while K > 1:
        blocks = time_blocks(step, K)
        if blocks is not None:
            return blocks
        K //= 2
    return single_steps(step)


def nested_blocks(step: OneStep, wide: TimeBlocks) -> NestedBlocks:
    """Prepare states within the blocks of outputs; where those are narrow they are their own narrower ones.

    What fades within a narrow block goes on to the next, as it does in outputs: bounds follow from these states.
    """
    width = min(wide.width, _NARROW)
    narrow = wide if width == wide.width else time_blocks(step, width, fades_below=0.0)
    return NestedBlocks(wide, narrow or wide, states_in_blocks(step, width if narrow else wide.width))


def fast_convolution(step: OneStep, n_times: int) -> Convolution | None:
    """Prepare a grid for up to `n_times` samples from rest; None where other ways are faster or more accurate."""
    system = step.system
    n_parameters = system.n_inputs * system.n_outputs * width_for(n_times)
    if n_times < 2 or not 0 < n_parameters <= _MOST_PARAMETERS or system.n_states <= _FEW_FOR_CONVOLUTION:
        return None
    times = RunTimes(system, step.length, n_times)
    saved = times.in_blocks - times.by_convolution
    if saved <= max(_WORTH_SECONDS, _WORTH_SHARE * times.in_blocks):
        return None
    found = convolution(step, n_times)
    return None if found.grows else found
