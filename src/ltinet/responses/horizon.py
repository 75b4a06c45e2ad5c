"""How long a response is worth looking at, from the modes alone: nothing is run."""

from ltinet.analysis.dc_gain import dc_gain
from ltinet.model.system_matrices import SystemMatrices
from ltinet.responses.run import pushed_modes
from ltinet.responses.times import span_of
from ltinet.solve.prepared import PreparedNetwork


def suggested_end(prepared: PreparedNetwork, system: SystemMatrices, *, input: int, output: int) -> float:
    """The time by which the answer of an output to a step of an input shows what there is to see."""
    modes = pushed_modes(prepared, system, input, output, to_step=True)
    return span_of(modes, dc_gain(system)[output : output + 1, input : input + 1]).end
