"""Example SM2.2: heat spreads and drifts. A is not normal, and forty boundary points share the eigenvalue zero.

The domain is [0, 10]×[0, 9.5] with 20×20 points, periodic in x; the rows at the top and the bottom stay as states that
nothing but the input moves. Diffusivity 1.4, drift 0.6 along x. The input is that of Example 3.1. Nothing is random.
"""

from dataclasses import dataclass

import numpy as np

import ltinet
from ltinet.paper.forward_passes import Effort, ForwardPasses, evaluations_in_one_piece, run_every_way
from ltinet.paper.inputs import heat_pulse
from ltinet.paper.telling import Tell


@dataclass(frozen=True, eq=False)
class ConvectionDiffusion:
    """The network of Example SM2.2 and its forward passes."""

    net: ltinet.DynamicNetwork
    n_zeros: int
    """Eigenvalues that are zero to rounding."""
    n_reals: int
    """Real eigenvalues besides."""
    n_pairs: int
    condition: float
    condition_of_one_more_layer: float
    passes: ForwardPasses
    evaluations_full: int


def compute(effort: Effort, *, tell: Tell) -> ConvectionDiffusion:
    """Construct the network of Example SM2.2 and run it in every way."""
    tell("network")
    system = ltinet.named_system("convection_diffusion")
    net = ltinet.construct(system)  # the number of layers is a result
    form = net.form
    assert form is not None  # noqa: S101 - `construct` always gives one
    values = np.concatenate(form.eigenvalues)
    rounding = 10 * len(values) * np.finfo(np.float64).eps * np.linalg.norm(system.A, 2)
    n_zeros = int(np.count_nonzero(np.abs(values) <= rounding))

    u = heat_pulse()
    return ConvectionDiffusion(
        net=net,
        n_zeros=n_zeros,
        n_reals=int(np.count_nonzero(values.imag == 0.0)) - n_zeros,
        n_pairs=int(np.count_nonzero(values.imag > 0.0)),
        condition=form.condition,
        condition_of_one_more_layer=ltinet.block_diagonalize(system.A, n_blocks=net.n_layers + 1).condition,
        passes=run_every_way(net, u, system=system, effort=effort, tell=tell),
        evaluations_full=evaluations_in_one_piece(system, u, stop=effort.stop),
    )
