"""Example 3.2: accuracy and the number of horizontal layers.

Separating close eigenvalues costs accuracy, which is why neurons are grouped in layers. A is upper triangular, 10×10,
with entries above the diagonal from U[0, 0.1) with seed 0. Its eigenvalues −4 + 2.5⁻ⁿ accumulate at −4. The paper
counts n = 1…10; its condition numbers are obtained with n = 0…9, which is used here.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import ltinet
from ltinet._util.progress import ProgressCallback
from ltinet._util.text import format_count
from ltinet.paper.common_results import accuracy_numbers, bounds_figure, draw_outputs_and_errors
from ltinet.paper.comparison import ComparedNumber, compare, compare_exactly
from ltinet.paper.forward_passes import (
    ForwardPasses,
    SolverEffort,
    kmeans,
    run_all_methods,
    sine_inputs,
)
from ltinet.paper.report import FigureRecipe, ReportSection, ReportTable
from ltinet.plotting import draw_condition, draw_weight_norm, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 0
MAX_CONDITION = 15.0
"""The paper's threshold C_t for the condition number."""


@dataclass(frozen=True, eq=False)
class HorizontalLayers:
    """Networks of one to ten layers for the same system, and the forward passes of the one that the paper chooses."""

    nets: tuple[ltinet.DynamicNetwork, ...]
    conditions: tuple[float, ...]
    conditions_by_kmeans: tuple[float, ...]
    """Condition numbers with K-means clusters of eigenvalues as layers, as in the paper."""
    weight_norms: tuple[float, ...]
    within_budget: ltinet.DynamicNetwork
    """Network with the number of layers that the limit C_t = 15 gives."""
    passes: ForwardPasses


def compute(effort: SolverEffort, *, progress: ProgressCallback) -> HorizontalLayers:
    """Construct the ten networks of Example 3.2 and run the one with four layers with all algorithms."""
    progress("networks of 1 to 10 layers")
    system = ltinet.named_system("triangular", seed=SEED)
    nets = tuple(ltinet.construct(system, n_layers=count) for count in range(1, 11))
    forms = [ltinet.block_diagonalize(system.A, clustering=kmeans(count)) for count in range(1, 11)]
    return HorizontalLayers(
        nets=nets,
        conditions=tuple(net.form.condition for net in nets if net.form is not None),
        conditions_by_kmeans=tuple(form.condition for form in forms),
        weight_norms=tuple(net.weight_norm for net in nets),
        within_budget=ltinet.construct(system, max_condition=MAX_CONDITION),
        passes=run_all_methods(nets[3], sine_inputs(), system=system, effort=effort, progress=progress),
    )


EXAMPLE_NAME = "horizontal-layers"
DRAWN_LAYER_COUNTS = (1, 5, 10)  # numbers of layers whose clusters and architectures the paper draws


def report_section(result: HorizontalLayers) -> ReportSection:
    """Return the section of the report on Example 3.2."""
    columns = zip(result.nets, result.conditions, result.conditions_by_kmeans, result.weight_norms, strict=True)
    return ReportSection(
        name=EXAMPLE_NAME,
        label="3.2",
        title="The reason for horizontal layers",
        paragraphs=(
            "The state matrix is upper triangular, 10 × 10, with eigenvalues −4 + 2.5⁻ⁿ that accumulate at −4. The "
            "more layers, the fewer connections, but separating close eigenvalues needs an ill-conditioned "
            "transformation T, and the weights of the network grow with it. The paper therefore uses a limit on the "
            f"condition number; with C_t = {MAX_CONDITION:g} it chooses four layers.",
            "The paper counts n = 1…10. With these eigenvalues four layers never stay below 15; with n = 0…9, used "
            f"here, they do. Random entries are drawn with seed {SEED}. Layers are chosen by ltinet’s search; the "
            "table below also has K-means, as in the paper. Both have orthonormal bases in every layer.",
        ),
        numbers=_numbers(result),
        pictures=_figures(result),
        tables=(
            ReportTable(
                "growth",
                "Condition number, weights and connections of networks of one to ten layers.",
                ("layers", "cond(T)", "cond(T), K-means", "norm of all weights", "connections"),
                tuple((net.n_layers, *values, net.n_connections) for net, *values in columns),
            ),
        ),
    )


def _numbers(result: HorizontalLayers) -> tuple[ComparedNumber, ...]:
    n_rises = int(np.count_nonzero(np.diff(result.conditions) > 0.0))
    n_weight_rises = int(np.count_nonzero(np.diff(result.weight_norms) > 0.0))
    number, count = partial(compare, EXAMPLE_NAME), partial(compare_exactly, EXAMPLE_NAME)
    return (
        count("states", "states", result.nets[0].n_states, paper=10),
        count("inputs", "inputs", result.nets[0].n_inputs, paper=10),
        count("outputs", "outputs", result.nets[0].n_outputs, paper=10),
        count("networks", "networks constructed, of 1 to 10 layers", len(result.nets), paper=10),
        count("layers_within_budget", f"layers chosen for C_t = {MAX_CONDITION:g}", result.within_budget.n_layers, paper=4),
        number("condition_of_4", "condition number at 4 layers", result.conditions[3],
               paper=f"≤ {MAX_CONDITION:g}", high=MAX_CONDITION),
        number("condition_rises", "steps from n to n + 1 layers at which the condition number rises, of 9", n_rises,
               paper="“blows up”", low=9, high=9),
        number("condition_growth", "condition number of 10 layers over that of 1",
               result.conditions[-1] / result.conditions[0], paper="“blows up”", low=1e6),
        number("weights_rise", "steps from n to n + 1 layers at which the norm of the weights rises, of 9",
               n_weight_rises, paper="“blow up”", low=9, high=9),
        number("weights_growth", "norm of the weights of 10 layers over that of 1",
               result.weight_norms[-1] / result.weight_norms[0], paper="“blow up”", low=1e4),
        # "Roughly 4": to half an order.
        *accuracy_numbers(result.passes, example=EXAMPLE_NAME, orders="roughly 4", within=(3.5, 4.5)),
    )  # fmt: skip


def _figures(result: HorizontalLayers) -> tuple[FigureRecipe, ...]:
    counts = ", ".join(map(str, DRAWN_LAYER_COUNTS[:-1])) + f" and {DRAWN_LAYER_COUNTS[-1]}"
    return (
        FigureRecipe(
            "growth", "Left: condition number of T against the number of layers, with the paper’s limit. Right: norm "
            "of all weights.",
            f"Both curves rise steeply, the condition number from 1 to {result.conditions[-1]:.0e}.",
            lambda: _draw_growth(result),
        ),
        FigureRecipe(
            "clusters", f"Clusters of eigenvalues and architectures of {counts} layers; a layer has one color in "
            "both.",
            f"Eigenvalues between −4 and −3 over the networks of {counts} layers.",
            lambda: _draw_clusters(result),
        ),
        FigureRecipe(
            "outputs", "Outputs of the network of four layers, absolute and relative errors against lsim, by "
            "Algorithm 3 as in the paper, Algorithm A.1 and the exact engine.",
            "Three columns with equal outputs; errors fall from left to right.",
            lambda: draw_outputs_and_errors(result.passes),
        ),
        bounds_figure(result.passes),
    )  # fmt: skip


def _draw_growth(result: HorizontalLayers) -> "Figure":
    figure = new_figure(9.6, 3.8)
    left, right = figure.subplots(1, 2)
    counts = range(1, len(result.nets) + 1)
    chosen = result.within_budget.n_layers
    draw_condition(list(zip(counts, result.conditions, strict=True)), budget=MAX_CONDITION, chosen=chosen, ax=left)
    draw_weight_norm(list(zip(counts, result.weight_norms, strict=True)), chosen=chosen, ax=right)
    return figure


def _draw_clusters(result: HorizontalLayers) -> "Figure":
    figure = new_figure(13.0, 7.4)
    upper, lower = figure.subplots(2, len(DRAWN_LAYER_COUNTS), height_ratios=(1.0, 1.7))
    for above, below, count in zip(upper, lower, DRAWN_LAYER_COUNTS, strict=True):
        net = result.nets[count - 1]
        net.plot.spectrum(ax=above)
        above.set_title(format_count(count, "layer"), fontsize="medium")
        net.plot.architecture(ax=below)
    return figure
