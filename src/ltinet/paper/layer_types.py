"""Example 3.3: layers of first-order neurons, of second-order neurons, and of both, in one network.

The paper shows its 134 eigenvalues only in a figure. Here they lie in six clusters that satisfy all that its text
states: 44 are real, 45 are pairs; two clusters are real, two complex, and two lie across the real axis and give mixed
layers. The system "blobs" defines them; the report lists the centres. Entries above the diagonal blocks, B, C, D and
the rotation that hides the structure are drawn with seed 0. K-means has a fixed random start too.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import ltinet
from ltinet._util.progress import ProgressCallback
from ltinet.paper.common_results import (
    accuracy_numbers,
    architecture_figure,
    bounds_figure,
    draw_outputs_and_errors,
    draw_single_plot,
    layer_evaluations_figure,
    spectrum_figure,
)
from ltinet.paper.comparison import ComparedNumber, compare, compare_exactly
from ltinet.paper.forward_passes import (
    ForwardPasses,
    SolverEffort,
    evaluations_without_decoupling,
    kmeans,
    run_all_methods,
    sine_inputs,
)
from ltinet.paper.report import FigureRecipe, ReportSection, ReportTable
from ltinet.plotting import draw_condition, layer_colour, layer_marker, new_figure
from ltinet.systems.named_systems import BLOB_RADIUS, BLOBS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEED = 0


@dataclass(frozen=True, eq=False)
class LayerTypes:
    """The network of six layers, condition numbers of other numbers of layers, and the forward passes."""

    net: ltinet.DynamicNetwork
    conditions: Mapping[int, float]
    """Values of cond(T) by the number of K-means clusters."""
    condition_of_seven: float
    """Value of cond(T) for the best seven layers that ltinet finds without K-means."""
    passes: ForwardPasses
    evaluations_full: int


def compute(effort: SolverEffort, *, progress: ProgressCallback) -> LayerTypes:
    """Cluster the eigenvalues of Example 3.3 with K-means, as the paper does, and run the network with all algorithms."""
    progress("networks of 1 to 9 clusters")
    system = ltinet.named_system("blobs", seed=SEED)
    nets = {count: ltinet.construct(system, clustering=kmeans(count)) for count in range(1, 10)}
    u = sine_inputs()
    return LayerTypes(
        net=nets[6],
        conditions={count: net.form.condition for count, net in nets.items() if net.form is not None},
        condition_of_seven=ltinet.block_diagonalize(system.A, n_blocks=7).condition,
        passes=run_all_methods(nets[6], u, system=system, effort=effort, progress=progress),
        evaluations_full=evaluations_without_decoupling(system, u, stop=effort.stop),
    )


EXAMPLE_NAME = "layer-types"


def report_section(result: LayerTypes) -> ReportSection:
    """Return the section of the report on Example 3.3."""
    return ReportSection(
        name=EXAMPLE_NAME,
        label="3.3",
        title="A state matrix with different kinds of clusters of eigenvalues",
        paragraphs=(
            "A dense system with 134 states, whose eigenvalues lie in six well separated groups, gives a network with "
            "layers of first-order neurons, of second-order neurons and of both. K-means with six clusters finds the "
            "groups; a seventh cluster splits one of them, and the condition number blows up.",
            "The paper shows its eigenvalues only in a figure. Those used here are listed below: six clusters of radius "
            f"{BLOB_RADIUS:g} that satisfy all statements of the text. Reals lie evenly on an interval of the real axis, pairs "
            "in a sunflower pattern, no two closer than 0.013, because rounding in the rotation moves the eigenvalues "
            "of this matrix by up to a thousandth. Centers were chosen so far apart that six layers have the paper’s "
            f"condition number. Seed {SEED} for all random entries and for K-means.",
        ),
        numbers=_numbers(result),
        pictures=_figures(result),
        tables=(
            ReportTable(
                "blobs",
                f"Clusters of eigenvalues: centers, and numbers of eigenvalues within a radius of {BLOB_RADIUS:g}.",
                ("real part", "imaginary part ±", "real eigenvalues", "pairs"),
                BLOBS,
            ),
            ReportTable(
                "clusters",
                "Condition number of T against the number of K-means clusters.",
                ("clusters", "cond(T)"),
                tuple(result.conditions.items()),
            ),
        ),
    )


def _numbers(result: LayerTypes) -> tuple[ComparedNumber, ...]:
    net = result.net
    kinds = Counter(layer.kind for layer in net.layers)
    means = result.passes.algorithm_3.mean_evaluations
    number, count = partial(compare, EXAMPLE_NAME), partial(compare_exactly, EXAMPLE_NAME)
    return (
        count("states", "states", net.n_states, paper=134),
        count("inputs", "inputs", net.n_inputs, paper=10),
        count("outputs", "outputs", net.n_outputs, paper=4),
        count("reals", "real eigenvalues", net.n_first_order, paper=44),
        count("pairs", "pairs of complex eigenvalues", net.n_second_order, paper=45),
        count("layers", "horizontal layers", net.n_layers, paper=6),
        count("kinds", "kinds of layers: first order, second order, mixed", len(kinds), paper=3),
        number("condition_of_6", "condition number at six clusters", result.conditions[6],
               paper=11.2, low=10.0, high=12.4,
               note="To a tenth; the centers of the clusters were chosen to give this value."),
        number("condition_of_7", "condition number at seven clusters", result.conditions[7],
               paper=7.57e6, low=7.57e5, high=7.57e7,
               note="To a factor of ten; the paper does not print its eigenvalues."),
        number("condition_of_7_searched", "condition number of the best seven layers found without K-means",
               result.condition_of_seven),
        number("evaluations_ratio", "function evaluations per neuron: layer with most over layer with least",
               max(means) / min(means), paper="“high variation”", low=1.5,
               note="Averages over the neurons of a layer, Algorithm 3 as in the paper."),
        # The paper does not say by how much errors are lower.
        *accuracy_numbers(result.passes, example=EXAMPLE_NAME, orders="lower", within=(0.0, math.inf)),
    )  # fmt: skip


def _figures(result: LayerTypes) -> tuple[FigureRecipe, ...]:
    net = result.net
    means = result.passes.algorithm_3.mean_evaluations
    kinds = ", ".join(f"{layer.n_first_order} + {layer.n_second_order}" for layer in net.layers)
    draw_conditions = partial(draw_condition, list(result.conditions.items()), chosen=net.n_layers)
    return (
        spectrum_figure(
            net, "Eigenvalues in the colors of their clusters.",
            "Six groups of points: two on the real axis, two pairs of groups off it, two across it.",
        ),
        FigureRecipe(
            "close-up", "The six clusters in the upper half plane: every point is a real eigenvalue or a pair.",
            "Six panels: even rows of points on the real axis, discs of points off it, and both together.",
            lambda: _draw_close_up(result),
        ),
        architecture_figure(
            net, "The network: solid balls are first-order neurons, yin-yang balls second-order ones; "
            "colors as in the figure of eigenvalues.",
            f"Six rows of neurons; first-order + second-order: {kinds}.",
        ),
        layer_evaluations_figure(
            result.passes, result.evaluations_full,
            "Bars for six layers: " + ", ".join(f"{mean:.0f}" for mean in means) + ".",
        ),
        FigureRecipe(
            "condition", "Condition number of T against the number of K-means clusters.",
            "From left to right: " + ", ".join(f"{condition:.3g}" for condition in result.conditions.values()) + ".",
            lambda: draw_single_plot(draw_conditions),
        ),
        FigureRecipe(
            "outputs", "Outputs, absolute and relative errors against lsim, by Algorithm 3 as in the paper, Algorithm "
            "A.1 and the exact engine.",
            "Three columns with equal outputs; errors fall from left to right.",
            lambda: draw_outputs_and_errors(result.passes),
        ),
        bounds_figure(result.passes),
    )  # fmt: skip


def _draw_close_up(result: LayerTypes) -> "Figure":
    figure = new_figure(9.6, 5.0)
    n_layers = result.net.n_layers
    for index, (axes, layer) in enumerate(zip(figure.subplots(2, 3).flat, result.net.layers, strict=True)):
        poles = np.array([pole for neuron in layer.neurons for pole in neuron.poles if pole.imag >= 0.0])
        color, marker = layer_colour(index, n_layers=n_layers), layer_marker(index, n_layers=n_layers)
        axes.scatter(poles.real, poles.imag, color=color, marker=marker, edgecolors="0.2", linewidths=0.4)
        axes.set_title(f"layer {index}: {layer.kind}", fontsize="medium")
        axes.set_aspect("equal", adjustable="datalim")
        axes.locator_params(nbins=5)
    figure.supxlabel("real part (1/time)", fontsize="medium")
    figure.supylabel("imaginary part (1/time)", fontsize="medium")
    return figure
