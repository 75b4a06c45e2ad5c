"""Accuracy numbers and figures that the examples of the paper share.

Errors and bounds of the forward passes, spectra and architectures of networks, snapshots of fields, and outputs with
their errors.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.paper.comparison import NOT_PRINTED, ComparedNumber, compare
from ltinet.paper.forward_passes import SAMPLE_TIMES, ForwardPass, ForwardPasses
from ltinet.paper.report import FigureRecipe
from ltinet.plotting import (
    draw_comparison,
    draw_errors_and_bounds,
    draw_evaluations_per_layer,
    draw_snapshots,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Relative accuracy of `lsim` with a matrix exponential of the whole system, in these examples; empirical.
LSIM_AGREEMENT = 1e-12
# Limits on bound/error. A bound is safe if it is not below the error, which is known to about 1 %, because the exact
# engine has errors too; it is useful if it is at most a thousand times the error.
MIN_BOUND_RATIO, MAX_BOUND_RATIO = 0.99, 1e3


def accuracy_numbers(
    passes: ForwardPasses,
    *,
    example: str,
    orders: str = NOT_PRINTED,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[ComparedNumber, ...]:
    """Return the errors of all passes; `orders` is the gain of Algorithm A.1 in the paper, `within` its limits."""
    error = "largest error against the exact engine"
    solved = passes.algorithm_3.n_layers_solved, passes.algorithm_a1.n_layers_solved
    gain = "orders of magnitude by which Algorithm A.1 is better than Algorithm 3"

    number = partial(compare, example)

    def ratio(name: str, label: str, run: ForwardPass) -> ComparedNumber:
        meaning = f"{label}: bound of the largest error over that error (at least one digit of the largest output)"
        limits = {"low": MIN_BOUND_RATIO, "high": MAX_BOUND_RATIO}
        # An error below the last digit of the largest output is due to chance and counts as that digit.
        ratio_to_error = run.bound / max(run.error, EPS * float(np.max(np.abs(run.y))))
        return number(f"bound_over_error_{name}", meaning, ratio_to_error, **limits)

    return (
        number("exact_against_lsim", "exact engine against lsim, relative to the largest output",
               passes.exact_against_lsim, high=LSIM_AGREEMENT),
        number("error_algorithm_3", f"Algorithm 3 as in the paper, across the knots of the input: {error}",
               passes.algorithm_3.error),
        number("error_algorithm_3_from_knot_to_knot", f"Algorithm 3, restarted at the knots: {error}",
               passes.algorithm_3_from_knot_to_knot.error),
        number("error_algorithm_a1", f"Algorithm A.1: {error}", passes.algorithm_a1.error),
        number("orders_gained", f"{gain} as in the paper", passes.orders_gained,
               paper=orders, low=within[0], high=within[1],
               note="" if solved[0] == solved[1] else f"Of {solved[0]} layers in Algorithm 3 and {solved[1]} in A.1."),
        number("orders_gained_by_intervals", f"{gain} restarted at the knots", passes.orders_gained_by_intervals,
               note="The gain of short intervals alone; the rest of the gain comes from restarting at the knots."),
        ratio("algorithm_3", "Algorithm 3 as in the paper", passes.algorithm_3),
        ratio("algorithm_a1", "Algorithm A.1", passes.algorithm_a1),
    )  # fmt: skip


SNAPSHOT_TIMES = (0.2, 0.5, 1.0, 1.5, 2.0)
"""Five times as in the paper, which does not print them: the input acts between 0.1 and 0.3, then heat spreads."""


def draw_single_plot(draw: Callable[..., Any], *, size: tuple[float, float] = (6.4, 4.2)) -> "Figure":
    """Return a figure of a size in inches with what `draw(ax=axes)` draws."""
    figure = new_figure(*size)
    draw(ax=figure.subplots())
    return figure


def spectrum_figure(net: ltinet.DynamicNetwork, caption: str, text: str) -> FigureRecipe:
    """Return the recipe of a figure with the eigenvalues in the colors of their layers."""
    return FigureRecipe("spectrum", caption, text, lambda: draw_single_plot(net.plot.spectrum))


def architecture_figure(net: ltinet.DynamicNetwork, caption: str, text: str) -> FigureRecipe:
    """Return the recipe of a figure with the architecture of a network."""
    return FigureRecipe("architecture", caption, text, lambda: draw_single_plot(net.plot.architecture, size=(8.4, 5.4)))


def snapshots_figure(passes: ForwardPasses, text: str) -> FigureRecipe:
    """Return the recipe of snapshots of the paper's two algorithms, the exact engine and lsim, with differences."""
    return FigureRecipe(
        "snapshots", "The temperature at five times by Algorithm 3 as in the paper, Algorithm A.1, the exact "
        "engine and lsim, and the absolute difference of each from lsim, on different scales.",
        text, lambda: _draw_fields(passes),
    )  # fmt: skip


def _draw_fields(passes: ForwardPasses) -> "Figure":
    at = np.searchsorted(SAMPLE_TIMES, np.array(SNAPSHOT_TIMES) - 1e-9)  # 0.1 has no exact binary form
    side = round(passes.exact.shape[1] ** 0.5)
    figure = new_figure(10.0, 11.6)
    draw_snapshots(
        SNAPSHOT_TIMES,
        {name: y[at].reshape(-1, side, side) for name, y in passes.outputs.items()},
        reference=passes.lsim[at].reshape(-1, side, side),
        reference_name="lsim",
        quantity="temperature",
        extent=(-0.25, 9.75, -0.25, 9.75),  # points 0, 0.5, …, 9.5 lie in the middle of their squares
        figure=figure,
    )
    return figure


def draw_outputs_and_errors(passes: ForwardPasses) -> "Figure":
    """Draw outputs, absolute and relative errors against lsim of the paper's two algorithms and the exact engine."""
    steps = len(passes.algorithm_3.y)
    figure = new_figure(12.0, 7.0)
    draw_comparison(
        SAMPLE_TIMES[:steps],
        {name: y[:steps] for name, y in passes.outputs.items()},
        reference=passes.lsim[:steps],
        reference_name="lsim",
        figure=figure,
    )
    return figure


def layer_evaluations_figure(passes: ForwardPasses, evaluations_full: int, text: str) -> FigureRecipe:
    """Return the recipe of a figure with the evaluations of each layer, and those of the full system as a line."""
    draw = partial(draw_evaluations_per_layer, passes.algorithm_3.evaluations, full_system=evaluations_full)
    return FigureRecipe(
        "evaluations", "Function evaluations of each layer by Algorithm 3 as in the paper, averaged over its "
        "neurons; colors as in the figure of eigenvalues.",
        text, lambda: draw_single_plot(draw),
    )  # fmt: skip


def bounds_figure(passes: ForwardPasses) -> FigureRecipe:
    """Return the recipe of a figure with errors and bounds."""
    return FigureRecipe(
        "bounds", "Largest error of any output over time and its bound by `error_bound` (triangles): "
        "Algorithms 3 and A.1 against the exact engine, the exact engine against lsim.",
        "Every line of triangles lies above the thin line of its colour.",
        lambda: _draw_bounds(passes),
    )  # fmt: skip


def _draw_bounds(passes: ForwardPasses) -> "Figure":
    steps = len(passes.algorithm_3.y)
    exact = np.max(np.abs(passes.exact - passes.lsim), axis=1)
    figure = new_figure(7.6, 4.2)
    draw_errors_and_bounds(
        SAMPLE_TIMES[:steps],
        {
            "Algorithm 3": (passes.algorithm_3.errors, passes.algorithm_3.bounds),
            "Algorithm A.1": (passes.algorithm_a1.errors, passes.algorithm_a1.bounds),
            "exact engine": (exact[:steps], passes.exact_bounds[:steps]),
        },
        ax=figure.subplots(),
    )
    return figure
