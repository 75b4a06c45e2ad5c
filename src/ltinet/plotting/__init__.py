"""Plots of networks, systems, forms and solutions with matplotlib."""

from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.colours import layer_colour, layer_marker
from ltinet.plotting.comparison import draw_comparison, draw_errors_and_bounds, draw_learning_curve, draw_snapshots
from ltinet.plotting.figures import new_figure, save_figure
from ltinet.plotting.frequency_response import draw_bode, draw_nyquist, draw_uncertain_bode
from ltinet.plotting.identification import draw_correlations, draw_measured, draw_orders, draw_uncertain_poles
from ltinet.plotting.layers import (
    draw_evaluations_per_layer,
    draw_evaluations_per_neuron,
    draw_pole_zero_map,
    draw_sparsity,
    draw_spectrum,
)
from ltinet.plotting.reduction import draw_hankel_values, draw_reduction_error
from ltinet.plotting.time_response import draw_outputs, draw_responses, draw_solution
from ltinet.plotting.tradeoff import draw_condition, draw_tradeoff, draw_weight_norm

__all__ = [
    "draw_architecture",
    "draw_bode",
    "draw_comparison",
    "draw_condition",
    "draw_correlations",
    "draw_errors_and_bounds",
    "draw_evaluations_per_layer",
    "draw_evaluations_per_neuron",
    "draw_hankel_values",
    "draw_learning_curve",
    "draw_measured",
    "draw_nyquist",
    "draw_orders",
    "draw_outputs",
    "draw_pole_zero_map",
    "draw_reduction_error",
    "draw_responses",
    "draw_snapshots",
    "draw_solution",
    "draw_sparsity",
    "draw_spectrum",
    "draw_tradeoff",
    "draw_uncertain_bode",
    "draw_uncertain_poles",
    "draw_weight_norm",
    "layer_colour",
    "layer_marker",
    "new_figure",
    "save_figure",
]
