"""Example 3.3: layers of first-order neurons, of second-order neurons, and of both, in one network.

The paper shows its 134 eigenvalues only as a picture. Here they lie in six blobs that keep all that its text says: 44
are real, 45 are pairs; two blobs are real, two complex, and two lie across the real axis and give mixed layers. The
system "blobs" says where; the report lists the centres. Entries above the diagonal blocks, B, C, D and the rotation
that hides the structure are drawn with seed 0. K-means has a random start, which is fixed too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import ltinet
from ltinet.paper.forward_passes import Effort, ForwardPasses, evaluations_in_one_piece, run_every_way
from ltinet.paper.inputs import sines
from ltinet.paper.kmeans import kmeans
from ltinet.paper.telling import Tell

SEED = 0


@dataclass(frozen=True, eq=False)
class LayerTypes:
    """The network of six layers, what more layers would cost, and the forward passes."""

    net: ltinet.DynamicNetwork
    conditions: Mapping[int, float]
    """cond(T) for every number of K-means clusters tried."""
    condition_of_seven: float
    """cond(T) of the best seven layers that ltinet finds without K-means."""
    passes: ForwardPasses
    evaluations_full: int


def compute(effort: Effort, *, tell: Tell) -> LayerTypes:
    """Cluster the eigenvalues of Example 3.3 with K-means, as the paper does, and run the network in every way."""
    tell("networks of 1 to 9 clusters")
    system = ltinet.named_system("blobs", seed=SEED)
    nets = {count: ltinet.construct(system, clustering=kmeans(count)) for count in range(1, 10)}
    u = sines()
    return LayerTypes(
        net=nets[6],
        conditions={count: net.form.condition for count, net in nets.items() if net.form is not None},
        condition_of_seven=ltinet.block_diagonalize(system.A, n_blocks=7).condition,
        passes=run_every_way(nets[6], u, system=system, effort=effort, tell=tell),
        evaluations_full=evaluations_in_one_piece(system, u, stop=effort.stop),
    )
