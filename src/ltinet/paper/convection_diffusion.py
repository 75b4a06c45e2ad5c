"""Example SM2.2: convection and diffusion with a nonnormal A and forty boundary points that share the eigenvalue zero.

The domain is [0, 10]×[0, 9.5] with 20×20 points, periodic in x; the rows at the top and the bottom stay as states that
only the input moves. Diffusivity 1.4, drift 0.6 along x. The input is that of Example 3.1. Nothing is random.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

import ltinet
from ltinet._util.floating_point import rounding_tolerance
from ltinet._util.progress import ProgressCallback
from ltinet.paper.common_results import (
    LSIM_AGREEMENT,
    accuracy_numbers,
    architecture_figure,
    bounds_figure,
    layer_evaluations_figure,
    snapshots_figure,
    spectrum_figure,
)
from ltinet.paper.comparison import ComparedNumber, compare, compare_exactly
from ltinet.paper.forward_passes import (
    ForwardPasses,
    SolverEffort,
    evaluations_without_decoupling,
    heat_pulse,
    run_all_methods,
)
from ltinet.paper.report import FigureRecipe, ReportSection


@dataclass(frozen=True, eq=False)
class ConvectionDiffusion:
    """The network of Example SM2.2 and its forward passes."""

    net: ltinet.DynamicNetwork
    n_zeros: int
    """Number of eigenvalues that are zero up to rounding."""
    n_reals: int
    """Number of other real eigenvalues."""
    n_pairs: int
    condition: float
    condition_of_one_more_layer: float
    passes: ForwardPasses
    evaluations_full: int


def compute(effort: SolverEffort, *, progress: ProgressCallback) -> ConvectionDiffusion:
    """Construct the network of Example SM2.2 and run it with all algorithms."""
    progress("network")
    system = ltinet.named_system("convection_diffusion")
    net = ltinet.construct(system)  # the number of layers is a result of the algorithm
    form = net.form
    assert form is not None  # noqa: S101 - `construct` always gives one
    values = np.concatenate(form.eigenvalues)
    rounding = rounding_tolerance(len(values), float(np.linalg.norm(system.A, 2)))
    n_zeros = int(np.count_nonzero(np.abs(values) <= rounding))

    u = heat_pulse()
    return ConvectionDiffusion(
        net=net,
        n_zeros=n_zeros,
        n_reals=int(np.count_nonzero(values.imag == 0.0)) - n_zeros,
        n_pairs=int(np.count_nonzero(values.imag > 0.0)),
        condition=form.condition,
        condition_of_one_more_layer=ltinet.block_diagonalize(system.A, n_blocks=net.n_layers + 1).condition,
        passes=run_all_methods(net, u, system=system, effort=effort, progress=progress),
        evaluations_full=evaluations_without_decoupling(system, u, stop=effort.stop),
    )


EXAMPLE_NAME = "convection-diffusion"


def report_section(result: ConvectionDiffusion) -> ReportSection:
    """Return the section of the report on Example SM2.2."""
    return ReportSection(
        name=EXAMPLE_NAME,
        label="SM2.2",
        title="Convection–diffusion equation: a state matrix that is not normal",
        paragraphs=(
            "Heat spreads and drifts along x on [0, 10] × [0, 9.5], 20 × 20 points, periodic in x and zero at the top "
            "and the bottom. The points of these two rows remain as states that only the input moves: forty "
            "eigenvalues zero, which the paper puts into one layer of forty neurons.",
            "Layers are chosen by ltinet’s search without a given number of layers, and have orthonormal bases, "
            "for which cond(T) is within a factor √L of the lowest that the same L layers can have.",
            "The paper warns of one more layer, because the zeros would have to be separated. They are not coupled, so "
            "that this need not increase the condition number, which the table has.",
        ),
        numbers=_numbers(result),
        pictures=_figures(result),
    )


def _numbers(result: ConvectionDiffusion) -> tuple[ComparedNumber, ...]:
    net = result.net
    means = result.passes.algorithm_3.mean_evaluations
    others = {layer.n_neurons for layer in net.layers[1:]}
    number, count = partial(compare, EXAMPLE_NAME), partial(compare_exactly, EXAMPLE_NAME)
    relative_error = result.passes.algorithm_3.error / float(np.max(np.abs(result.passes.exact)))
    return (
        count("states", "states", net.n_states, paper=400),
        count("zeros", "eigenvalues zero", result.n_zeros, paper=40),
        count("reals", "other real eigenvalues", result.n_reals, paper=36),
        count("pairs", "pairs of complex eigenvalues", result.n_pairs, paper=162),
        count("layers", "horizontal layers", net.n_layers, paper=199),
        count("first_layer", "neurons of the first layer", net.layers[0].n_neurons, paper=40),
        count("other_layers", "most neurons in any other layer", max(others), paper=1),
        count("second_order_neurons", "second-order neurons", net.n_second_order, paper=162),
        number("condition", "condition number of T", result.condition, paper=7.42,
               low=1.0, high=6.17, lower_is_better=True),
        number("condition_of_one_more", "condition number of 200 layers", result.condition_of_one_more_layer,
               paper="“unrealistic”"),
        number("evaluations_ratio", "function evaluations per neuron: layer with most over layer with least",
               max(means) / min(means), paper="“high variation”", low=1.5,
               note="Averages over the neurons of a layer, Algorithm 3 as in the paper."),
        number("relative_error_algorithm_3", "Algorithm 3 as in the paper: largest error over largest output",
               relative_error, paper="“machine precision”", high=LSIM_AGREEMENT,
               note="A solver with a tolerance of 10⁻¹⁰ that crosses knots does not reach machine precision; the exact "
               "engine does."),
        *accuracy_numbers(result.passes, example=EXAMPLE_NAME),
    )  # fmt: skip


def _figures(result: ConvectionDiffusion) -> tuple[FigureRecipe, ...]:
    net = result.net
    return (
        spectrum_figure(
            net, "Eigenvalues in the colors of their layers.",
            "Real and complex eigenvalues with real parts from 0 downwards.",
        ),
        layer_evaluations_figure(
            result.passes, result.evaluations_full,
            f"Bars for {len(result.passes.algorithm_3.mean_evaluations)} of {net.n_layers} layers, and a line for the "
            f"full system at {result.evaluations_full}.",
        ),
        architecture_figure(
            net, "The network: the first layer has forty neurons, which are not connected, the others one each.",
            "A row of forty solid balls, and below it a grid of solid and yin-yang balls.",
        ),
        snapshots_figure(
            result.passes,
            "A warm spot in the middle that spreads and drifts to the right; below it errors, smallest for the exact "
            "engine.",
        ),
        bounds_figure(result.passes),
    )  # fmt: skip
