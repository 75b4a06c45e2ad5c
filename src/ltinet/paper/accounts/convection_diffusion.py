"""Example SM2.2 beside the paper."""

from typing import TYPE_CHECKING

import numpy as np

from ltinet.paper.accounts.accuracy import LSIM_AGREES, accuracy_numbers
from ltinet.paper.accounts.drawings import bounds_picture, draw_fields, draw_network, draw_network_spectrum
from ltinet.paper.convection_diffusion import ConvectionDiffusion
from ltinet.paper.number import Number, exactly
from ltinet.paper.section import Picture, Section
from ltinet.plotting import draw_evaluations_per_layer, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "convection-diffusion"


def account(result: ConvectionDiffusion) -> Section:
    """All that the report says of Example SM2.2."""
    return Section(
        name=NAME,
        label="SM2.2",
        title="Convection–diffusion equation: a state matrix that is not normal",
        paragraphs=(
            "Heat spreads and drifts along x on [0, 10] × [0, 9.5], 20 × 20 points, periodic in x and zero at the top "
            "and the bottom. The points of these two rows stay as states that nothing but the input moves: forty "
            "eigenvalues zero, which the paper puts into one layer of forty neurons.",
            "Layers are chosen by ltinet’s own search, which is not told their number, and have orthonormal bases, "
            "for which cond(T) is within a factor √L of the lowest that the same L layers can have.",
            "The paper warns of one layer more, because the zeros would have to be taken apart. They are not connected "
            "with each other, so that this need not cost anything; the table has the condition number.",
        ),
        numbers=_numbers(result),
        pictures=_pictures(result),
    )


def _numbers(result: ConvectionDiffusion) -> tuple[Number, ...]:
    net = result.net
    means = result.passes.algorithm_3.mean_evaluations
    others = {layer.n_neurons for layer in net.layers[1:]}
    return (
        exactly(f"{NAME}.states", "states", here=net.n_states, paper=400),
        exactly(f"{NAME}.zeros", "eigenvalues zero", here=result.n_zeros, paper=40),
        exactly(f"{NAME}.reals", "other real eigenvalues", here=result.n_reals, paper=36),
        exactly(f"{NAME}.pairs", "pairs of complex eigenvalues", here=result.n_pairs, paper=162),
        exactly(f"{NAME}.layers", "horizontal layers", here=net.n_layers, paper=199),
        exactly(f"{NAME}.first_layer", "neurons of the first layer", here=net.layers[0].n_neurons, paper=40),
        exactly(f"{NAME}.other_layers", "most neurons in any other layer", here=max(others), paper=1),
        exactly(f"{NAME}.second_order_neurons", "second-order neurons", here=net.n_second_order, paper=162),
        Number(
            f"{NAME}.condition", "condition number of T", here=result.condition, paper=7.42,
            low=1.0, high=6.17, lower_is_better=True,
        ),
        Number(
            f"{NAME}.condition_of_one_more", "condition number of 200 layers",
            here=result.condition_of_one_more_layer, paper="“unrealistic”",
        ),
        Number(
            f"{NAME}.evaluations_ratio", "function evaluations per neuron: layer with most over layer with least",
            here=max(means) / min(means), paper="“high variation”", low=1.5,
            note="Averages over the neurons of a layer, Algorithm 3 as in the paper.",
        ),
        Number(
            f"{NAME}.relative_error_algorithm_3", "Algorithm 3 as in the paper: largest error over largest output",
            here=result.passes.algorithm_3.error / float(np.max(np.abs(result.passes.exact))),
            paper="“machine precision”", high=LSIM_AGREES,
            note="A solver with a tolerance of 10⁻¹⁰ that crosses knots does not come to machine precision; the exact "
            "engine does.",
        ),
        *accuracy_numbers(result.passes, example=NAME),
    )  # fmt: skip


def _pictures(result: ConvectionDiffusion) -> tuple[Picture, ...]:
    net = result.net
    return (
        Picture(
            "spectrum", "Eigenvalues in the colours of their layers.",
            "Real and complex eigenvalues with real parts from 0 downwards.",
            lambda: draw_network_spectrum(net),
        ),
        Picture(
            "evaluations", "Function evaluations of each layer by Algorithm 3 as in the paper, averaged over its "
            "neurons; colours as in the figure of eigenvalues.",
            f"Bars for {len(result.passes.algorithm_3.mean_evaluations)} of {net.n_layers} layers, and a line for the "
            f"full system at {result.evaluations_full}.",
            lambda: _draw_evaluations(result),
        ),
        Picture(
            "architecture", "The network: the first layer has forty neurons, which are not connected, the others one "
            "each.",
            "A row of forty solid balls, and below it a grid of solid and yin-yang balls.",
            lambda: draw_network(net),
        ),
        Picture(
            "snapshots", "The temperature at five times by Algorithm 3 as in the paper, Algorithm A.1, the exact "
            "engine and lsim, and the absolute difference of each from lsim. Mind the scales.",
            "A warm spot in the middle that spreads and drifts to the right; below it errors, smallest for the exact "
            "engine.",
            lambda: draw_fields(result.passes),
        ),
        bounds_picture(result.passes),
    )  # fmt: skip


def _draw_evaluations(result: ConvectionDiffusion) -> "Figure":
    figure = new_figure(6.4, 4.2)
    draw_evaluations_per_layer(
        result.passes.algorithm_3.evaluations, full_system=result.evaluations_full, ax=figure.subplots()
    )
    return figure
