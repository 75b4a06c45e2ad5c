"""Example 3.1: heat spreads over a periodic square. A is symmetric, so every neuron is a horizontal layer of its own.

The domain has side 10 and 20×20 points, the diffusivity is 0.8; all points are inputs and outputs. Heat comes as a hat
around t = 0.2 in the middle. Nothing is random.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import ltinet
from ltinet.paper.forward_passes import Effort, ForwardPasses, evaluations_in_one_piece, run_every_way
from ltinet.paper.inputs import heat_pulse
from ltinet.paper.telling import Tell


@dataclass(frozen=True, eq=False)
class Diffusion:
    """The network of Example 3.1 and its forward passes."""

    net: ltinet.DynamicNetwork
    eigenvalues: NDArray[np.float64]
    """In the order of the layers, from 0 down."""
    n_distinct: int
    condition: float
    passes: ForwardPasses
    evaluations_full: int
    """Evaluations of the full system, across the knots of the input as in the paper."""
    evaluations_full_from_knot_to_knot: int


def compute(effort: Effort, *, tell: Tell) -> Diffusion:
    """Construct the network of Example 3.1 and run it in every way."""
    tell("network")
    system = ltinet.named_system("diffusion")
    net = ltinet.construct(system)  # no clustering: A is symmetric, and its Schur form diagonal
    assert net.form is not None  # noqa: S101 - `construct` always gives one
    eigenvalues = np.concatenate(net.form.eigenvalues).real

    u = heat_pulse()
    return Diffusion(
        net=net,
        eigenvalues=eigenvalues,
        n_distinct=count_distinct(eigenvalues),
        condition=net.form.condition,
        passes=run_every_way(net, u, system=system, effort=effort, tell=tell),
        evaluations_full=evaluations_in_one_piece(system, u),
        evaluations_full_from_knot_to_knot=evaluations_in_one_piece(system, u, from_knot_to_knot=True),
    )


def count_distinct(values: NDArray[np.float64]) -> int:
    """Values that differ by more than rounding: 10 n eps times the largest of them."""
    rounding = 10 * len(values) * np.finfo(np.float64).eps * np.max(np.abs(values))
    return 1 + int(np.count_nonzero(np.diff(np.sort(values)) > rounding))
