"""Example 3.1: diffusion on a periodic square.

A is symmetric, so that every neuron is a horizontal layer of its own. The domain has side 10 and 20×20 points, the
diffusivity is 0.8; all points are inputs and outputs. The input is a hat around t = 0.2 in the middle. Nothing is
random.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import ltinet
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet._util.progress import ProgressCallback
from ltinet.paper.common_results import (
    accuracy_numbers,
    architecture_figure,
    bounds_figure,
    draw_single_plot,
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
from ltinet.plotting import draw_evaluations_per_neuron


@dataclass(frozen=True, eq=False)
class Diffusion:
    """The network of Example 3.1 and its forward passes."""

    net: ltinet.DynamicNetwork
    eigenvalues: NDArray[np.float64]
    """Eigenvalues in the order of the layers, from 0 downwards."""
    n_distinct: int
    condition: float
    passes: ForwardPasses
    evaluations_full: int
    """Function evaluations of the full system, across the knots of the input as in the paper."""
    evaluations_full_from_knot_to_knot: int


def compute(effort: SolverEffort, *, progress: ProgressCallback) -> Diffusion:
    """Construct the network of Example 3.1 and run it with all algorithms."""
    progress("network")
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
        passes=run_all_methods(net, u, system=system, effort=effort, progress=progress),
        evaluations_full=evaluations_without_decoupling(system, u),
        evaluations_full_from_knot_to_knot=evaluations_without_decoupling(system, u, from_knot_to_knot=True),
    )


def count_distinct(values: NDArray[np.float64]) -> int:
    """Count the values that differ by more than the rounding errors of a decomposition."""
    rounding = rounding_tolerance(len(values), float(np.max(np.abs(values))))
    return 1 + int(np.count_nonzero(np.diff(np.sort(values)) > rounding))


EXAMPLE_NAME = "diffusion"
# Relative change of evaluation counts with rounding; empirical: largest between the kernels of kernel_bands.json.
COUNT_TOLERANCE = 0.05


def report_section(result: Diffusion) -> ReportSection:
    """Return the section of the report on Example 3.1."""
    return ReportSection(
        name=EXAMPLE_NAME,
        label="3.1",
        title="Diffusion equation: a state matrix that can be diagonalized unitarily",
        paragraphs=(
            "Heat spreads over a square with periodic boundaries, 20 × 20 points, diffusivity 0.8. The input is a hat "
            "in time around t = 0.2 in the middle of the square. The state matrix is symmetric, so the real Schur form "
            "is diagonal and every neuron is a horizontal layer of its own.",
            "The paper asks K-means for 400 clusters. The spectrum has fewer distinct values, and a diagonal form "
            "needs no clustering at all; none is done here.",
            "An adaptive solver that does not know the knots of a piecewise linear input steps over them, and its "
            "error control notices that late or not at all. The paper integrates in this way, and so does the row “as in "
            "the paper”; the other rows restart at the knots.",
        ),
        numbers=(
            *_architecture_numbers(result),
            *_evaluation_numbers(result),
            # "Roughly 1": to half an order.
            *accuracy_numbers(result.passes, example=EXAMPLE_NAME, orders="roughly 1", within=(0.5, 1.5)),
        ),
        pictures=_figures(result),
    )


def _architecture_numbers(result: Diffusion) -> tuple[ComparedNumber, ...]:
    net, values = result.net, result.eigenvalues
    rounding = rounding_tolerance(len(values), 25.6)  # of an eigenvalue of a symmetric matrix
    number, count = partial(compare, EXAMPLE_NAME), partial(compare_exactly, EXAMPLE_NAME)
    return (
        count("states", "states", net.n_states, paper=400),
        number("eigenvalue_largest", "largest eigenvalue", float(values.max()), paper=0.0, low=-rounding, high=rounding),
        number("eigenvalue_smallest", "smallest eigenvalue", float(values.min()),
               paper=-25.6, low=-25.6 - rounding, high=-25.6 + rounding),
        number("eigenvalues_distinct", "distinct eigenvalues", result.n_distinct, low=61, high=61,
               note="The paper asks for 400 clusters; but 11 values of sin²(πk/20) give 66 sums of two, of which six "
               "are equal to 1."),
        count("layers", "horizontal layers", net.n_layers, paper=400),
        count("first_order_neurons", "first-order neurons", net.n_first_order, paper=400),
        count("connections", "connections between neurons", net.n_connections, paper=0),
        number("condition", "condition number of T", result.condition, paper="unitary",
               low=1.0, high=1.0 + net.n_states * EPS),
    )  # fmt: skip


def _evaluation_numbers(result: Diffusion) -> tuple[ComparedNumber, ...]:
    crossing, restarting = result.passes.algorithm_3, result.passes.algorithm_3_from_knot_to_knot
    number = partial(compare, EXAMPLE_NAME)
    return (
        _evaluation_count("evaluations_full", "function evaluations of the full system",
                          result.evaluations_full, paper=1739),
        _evaluation_count("evaluations_most", "function evaluations of the neuron that needs most",
                          crossing.most_evaluations, paper=1718),
        number("evaluations_least", "function evaluations of the neuron that needs least", crossing.least_evaluations,
               paper="“vary a lot”", high=crossing.most_evaluations / 2,
               note="Less than half of the most counts as much variation."),
        number("evaluations_full_from_knot_to_knot", "full system, restarted at the knots",
               result.evaluations_full_from_knot_to_knot),
        number("evaluations_most_from_knot_to_knot", "neuron that needs most, restarted at the knots",
               restarting.most_evaluations),
    )  # fmt: skip


def _evaluation_count(name: str, meaning: str, here: int, *, paper: int) -> ComparedNumber:
    """Return an evaluation count, which is reproduced if rounding explains the difference."""
    low, high = math.ceil(paper - COUNT_TOLERANCE * paper), math.floor(paper + COUNT_TOLERANCE * paper)
    return compare(EXAMPLE_NAME, name, meaning, here, paper=paper, low=low, high=high)


def _figures(result: Diffusion) -> tuple[FigureRecipe, ...]:
    net = result.net
    evaluations, full = result.passes.algorithm_3.evaluations, result.evaluations_full
    draw_evaluations = partial(draw_evaluations_per_neuron, evaluations, full_system=full)
    fewest, most = result.passes.algorithm_3.least_evaluations, result.passes.algorithm_3.most_evaluations
    return (
        spectrum_figure(
            net, "Eigenvalues of the state matrix, in the order and the colors of the layers.",
            f"{net.n_layers} real eigenvalues from {math.floor(10 * result.eigenvalues.min()) / 10:g} to 0, one for "
            "each layer.",
        ),
        FigureRecipe(
            "evaluations", "Evaluations of the right-hand side of each neuron by Algorithm 3 as in the paper; colors "
            "as in the figure of eigenvalues.",
            f"Points between {fewest} and {most} evaluations, and a line for the full system at {full}.",
            lambda: draw_single_plot(draw_evaluations),
        ),
        architecture_figure(
            net, "The network: every layer has one first-order neuron.",
            f"{net.n_layers} solid balls between inputs and outputs, not connected with each other.",
        ),
        snapshots_figure(
            result.passes, "A warm spot in the middle that spreads; below it errors, smallest for the exact engine."
        ),
        bounds_figure(result.passes),
    )  # fmt: skip
