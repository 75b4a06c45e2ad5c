"""Example 3.2 beside the paper."""

from typing import TYPE_CHECKING

import numpy as np

from ltinet.paper.accounts.accuracy import accuracy_numbers
from ltinet.paper.accounts.drawings import bounds_picture, draw_outputs_and_errors
from ltinet.paper.horizontal_layers import BUDGET, SEED, HorizontalLayers
from ltinet.paper.number import Number, exactly
from ltinet.paper.section import Picture, Section, Table
from ltinet.plotting import draw_condition, draw_weight_norm, new_figure
from ltinet.shown import count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "horizontal-layers"
SHOWN = (1, 5, 10)  # numbers of layers whose clusters and architectures the paper draws


def account(result: HorizontalLayers) -> Section:
    """All that the report says of Example 3.2."""
    return Section(
        name=NAME,
        label="3.2",
        title="The reason for horizontal layers",
        paragraphs=(
            "The state matrix is upper triangular, 10 × 10, with eigenvalues −4 + 2.5⁻ⁿ that crowd towards −4. The "
            "more layers, the fewer connections, but taking close eigenvalues apart needs an ill-conditioned "
            "transformation T, and the weights of the network grow with it. The paper therefore wants a bound on the "
            f"condition number; with C_t = {BUDGET:g} it chooses four layers.",
            "The paper counts n = 1…10. With these eigenvalues four layers never stay below 15; with n = 0…9, used "
            f"here, they do. Random entries are drawn with seed {SEED}. Layers are chosen by ltinet’s own search; the "
            "table below has K-means, the paper’s way, beside it. Both have orthonormal bases in every layer.",
        ),
        numbers=_numbers(result),
        pictures=_pictures(result),
        tables=(
            Table(
                "growth",
                "Condition number, weights and connections of networks of one to ten layers.",
                ("layers", "cond(T)", "cond(T), K-means", "norm of all weights", "connections"),
                tuple(
                    (net.n_layers, *values, net.n_connections)
                    for net, *values in zip(
                        result.nets, result.conditions, result.conditions_by_kmeans, result.weight_norms, strict=True
                    )
                ),
            ),
        ),
    )


def _numbers(result: HorizontalLayers) -> tuple[Number, ...]:
    rises = int(np.count_nonzero(np.diff(result.conditions) > 0.0))
    heavier = int(np.count_nonzero(np.diff(result.weight_norms) > 0.0))
    # "Roughly 4": to half an order.
    accuracy = accuracy_numbers(result.passes, example=NAME, orders="roughly 4", within=(3.5, 4.5))
    return (
        exactly(f"{NAME}.states", "states", here=result.nets[0].n_states, paper=10),
        exactly(f"{NAME}.inputs", "inputs", here=result.nets[0].n_inputs, paper=10),
        exactly(f"{NAME}.outputs", "outputs", here=result.nets[0].n_outputs, paper=10),
        exactly(f"{NAME}.networks", "networks constructed, of 1 to 10 layers", here=len(result.nets), paper=10),
        exactly(
            f"{NAME}.layers_within_budget", f"layers chosen for C_t = {BUDGET:g}",
            here=result.within_budget.n_layers, paper=4,
        ),
        Number(
            f"{NAME}.condition_of_4", "condition number at 4 layers",
            here=result.conditions[3], paper=f"≤ {BUDGET:g}", high=BUDGET,
        ),
        Number(
            f"{NAME}.condition_rises", "steps from n to n + 1 layers at which the condition number rises, of 9",
            here=rises, paper="“blows up”", low=9, high=9,
        ),
        Number(
            f"{NAME}.condition_growth", "condition number of 10 layers over that of 1",
            here=result.conditions[-1] / result.conditions[0], paper="“blows up”", low=1e6,
        ),
        Number(
            f"{NAME}.weights_rise", "steps from n to n + 1 layers at which the norm of the weights rises, of 9",
            here=heavier, paper="“blow up”", low=9, high=9,
        ),
        Number(
            f"{NAME}.weights_growth", "norm of the weights of 10 layers over that of 1",
            here=result.weight_norms[-1] / result.weight_norms[0], paper="“blow up”", low=1e4,
        ),
        *accuracy,
    )  # fmt: skip


def _pictures(result: HorizontalLayers) -> tuple[Picture, ...]:
    counts = ", ".join(map(str, SHOWN[:-1])) + f" and {SHOWN[-1]}"
    return (
        Picture(
            "growth", "Left: condition number of T against the number of layers, with the paper’s bound. Right: norm "
            "of all weights.",
            f"Both curves rise steeply, the condition number from 1 to {result.conditions[-1]:.0e}.",
            lambda: _draw_growth(result),
        ),
        Picture(
            "clusters", f"Clusters of eigenvalues and architectures of {counts} layers; a layer has one colour in "
            "both.",
            f"Eigenvalues between −4 and −3 over the networks of {counts} layers.",
            lambda: _draw_clusters(result),
        ),
        Picture(
            "outputs", "Outputs of the network of four layers, absolute and relative errors against lsim, by "
            "Algorithm 3 as in the paper, Algorithm A.1 and the exact engine.",
            "Three columns with equal outputs; errors fall from left to right.",
            lambda: draw_outputs_and_errors(result.passes),
        ),
        bounds_picture(result.passes),
    )  # fmt: skip


def _draw_growth(result: HorizontalLayers) -> "Figure":
    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2)
    counts = range(1, len(result.nets) + 1)
    chosen = result.within_budget.n_layers
    draw_condition(list(zip(counts, result.conditions, strict=True)), budget=BUDGET, chosen=chosen, ax=left)
    draw_weight_norm(list(zip(counts, result.weight_norms, strict=True)), chosen=chosen, ax=right)
    return figure


def _draw_clusters(result: HorizontalLayers) -> "Figure":
    figure = new_figure(13.0, 7.4)
    upper, lower = figure.subplots(2, len(SHOWN), height_ratios=(1.0, 1.7))
    for above, below, count in zip(upper, lower, SHOWN, strict=True):
        net = result.nets[count - 1]
        net.plot.spectrum(ax=above)
        above.set_title(count_of(count, "layer"), fontsize="medium")
        net.plot.architecture(ax=below)
    return figure
