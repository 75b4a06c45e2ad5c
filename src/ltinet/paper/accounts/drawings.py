"""The figures that several examples have: the same drawings of other networks and other passes."""

from typing import TYPE_CHECKING

import numpy as np

import ltinet
from ltinet.paper.forward_passes import ForwardPasses
from ltinet.paper.inputs import TIMES
from ltinet.paper.section import Picture
from ltinet.plotting import draw_comparison, draw_errors_and_bounds, draw_snapshots, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SNAPSHOTS = (0.2, 0.5, 1.0, 1.5, 2.0)
"""Five times, as in the paper, which does not say which: the heat comes between 0.1 and 0.3 and then spreads."""


def draw_network_spectrum(net: ltinet.DynamicNetwork) -> "Figure":
    """Eigenvalues in the colours of their layers."""
    figure = new_figure(6.4, 4.2)
    net.plot.spectrum(ax=figure.subplots())
    return figure


def draw_network(net: ltinet.DynamicNetwork) -> "Figure":
    """The architecture."""
    figure = new_figure(8.4, 5.4)
    net.plot.architecture(ax=figure.subplots())
    return figure


def draw_fields(passes: ForwardPasses) -> "Figure":
    """Snapshots of the paper's two algorithms, the exact engine and lsim, and what the three differ from lsim by."""
    at = np.searchsorted(TIMES, np.array(SNAPSHOTS) - 1e-9)  # 0.1 has no exact binary form
    side = round(passes.exact.shape[1] ** 0.5)
    solutions = {
        "Algorithm 3": passes.algorithm_3.y,
        "Algorithm A.1": passes.algorithm_a1.y,
        "exact engine": passes.exact,
    }
    figure = new_figure(10.0, 11.6)
    draw_snapshots(
        SNAPSHOTS,
        {name: y[at].reshape(-1, side, side) for name, y in solutions.items()},
        reference=passes.lsim[at].reshape(-1, side, side),
        reference_name="lsim",
        quantity="temperature",
        extent=(-0.25, 9.75, -0.25, 9.75),  # points 0, 0.5, …, 9.5 lie in the middle of their squares
        figure=figure,
    )
    return figure


def draw_outputs_and_errors(passes: ForwardPasses) -> "Figure":
    """Outputs, absolute and relative errors against lsim of the paper's two algorithms and the exact engine."""
    steps = len(passes.algorithm_3.y)
    figure = new_figure(12.0, 7.0)
    draw_comparison(
        TIMES[:steps],
        {
            "Algorithm 3": passes.algorithm_3.y,
            "Algorithm A.1": passes.algorithm_a1.y,
            "exact engine": passes.exact[:steps],
        },
        reference=passes.lsim[:steps],
        reference_name="lsim",
        figure=figure,
    )
    return figure


def bounds_picture(passes: ForwardPasses) -> Picture:
    """Error and bound together."""
    return Picture(
        "bounds", "Largest error of any output over time and the bound that the solution gives of it (triangles): "
        "Algorithms 3 and A.1 against the exact engine, the exact engine against lsim.",
        "Every line of triangles lies above the thin line of its colour.",
        lambda: _draw_bounds(passes),
    )  # fmt: skip


def _draw_bounds(passes: ForwardPasses) -> "Figure":
    steps = len(passes.algorithm_3.y)
    exact = np.max(np.abs(passes.exact - passes.lsim), axis=1)
    figure = new_figure(7.6, 4.2)
    draw_errors_and_bounds(
        TIMES[:steps],
        {
            "Algorithm 3": (passes.algorithm_3.errors, passes.algorithm_3.bounds),
            "Algorithm A.1": (passes.algorithm_a1.errors, passes.algorithm_a1.bounds),
            "exact engine": (exact[:steps], passes.exact_bounds[:steps]),
        },
        ax=figure.subplots(),
    )
    return figure
