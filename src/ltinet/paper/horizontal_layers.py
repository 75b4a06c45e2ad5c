"""Example 3.2: why neurons are put together in horizontal layers. Taking close eigenvalues apart costs accuracy.

A is upper triangular, 10×10, entries above the diagonal from U[0, 0.1) with seed 0. Its eigenvalues −4 + 2.5⁻ⁿ crowd
towards −4. The paper counts n = 1…10; its own condition numbers come out with n = 0…9, which is what is used here.
"""

from dataclasses import dataclass

import ltinet
from ltinet.paper.forward_passes import Effort, ForwardPasses, run_every_way
from ltinet.paper.inputs import sines
from ltinet.paper.kmeans import kmeans
from ltinet.paper.telling import Tell

SEED = 0
BUDGET = 15.0
"""The paper's threshold C_t for the condition number."""


@dataclass(frozen=True, eq=False)
class HorizontalLayers:
    """Networks of one to ten layers for the same system, and the forward passes of the one that the paper chooses."""

    nets: tuple[ltinet.DynamicNetwork, ...]
    conditions: tuple[float, ...]
    conditions_by_kmeans: tuple[float, ...]
    """The same with K-means clusters of eigenvalues for layers, as in the paper."""
    weight_norms: tuple[float, ...]
    within_budget: ltinet.DynamicNetwork
    """What the budget C_t = 15 chooses by itself."""
    passes: ForwardPasses


def compute(effort: Effort, *, tell: Tell) -> HorizontalLayers:
    """Construct the ten networks of Example 3.2 and run the one with four layers in every way."""
    tell("networks of 1 to 10 layers")
    system = ltinet.named_system("triangular", seed=SEED)
    nets = tuple(ltinet.construct(system, n_layers=count) for count in range(1, 11))
    return HorizontalLayers(
        nets=nets,
        conditions=tuple(net.form.condition for net in nets if net.form is not None),
        conditions_by_kmeans=tuple(
            ltinet.block_diagonalize(system.A, clustering=kmeans(n)).condition for n in range(1, 11)
        ),
        weight_norms=tuple(net.weight_norm for net in nets),
        within_budget=ltinet.construct(system, max_condition=BUDGET),
        passes=run_every_way(nets[3], sines(), system=system, effort=effort, tell=tell),
    )
