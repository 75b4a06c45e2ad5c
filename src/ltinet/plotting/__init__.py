"""Drawings of networks, forms and solutions with matplotlib: data in, Axes out."""

from ltinet.plotting.architecture import draw_architecture
from ltinet.plotting.bode import draw_bode
from ltinet.plotting.canvas import new_figure, save_figure
from ltinet.plotting.colours import layer_colour, layer_marker
from ltinet.plotting.comparison import draw_comparison
from ltinet.plotting.conditioning import draw_condition, draw_weight_norm
from ltinet.plotting.correlations import draw_correlations
from ltinet.plotting.error_bounds import draw_errors_and_bounds
from ltinet.plotting.evaluations import draw_evaluations_per_layer, draw_evaluations_per_neuron
from ltinet.plotting.ladder import draw_ladder
from ltinet.plotting.learning_curve import draw_learning_curve
from ltinet.plotting.measured import draw_measured
from ltinet.plotting.nyquist import draw_nyquist
from ltinet.plotting.orders import draw_orders
from ltinet.plotting.reduction import draw_hankel_values, draw_reduction_error
from ltinet.plotting.response_grid import draw_responses
from ltinet.plotting.snapshots import draw_snapshots
from ltinet.plotting.solution_panels import draw_solution
from ltinet.plotting.sparsity import draw_sparsity
from ltinet.plotting.spectrum import draw_spectrum
from ltinet.plotting.trajectory import draw_outputs
from ltinet.plotting.uncertain_bode import draw_uncertain_bode
from ltinet.plotting.uncertain_poles import draw_uncertain_poles

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
    "draw_ladder",
    "draw_learning_curve",
    "draw_measured",
    "draw_nyquist",
    "draw_orders",
    "draw_outputs",
    "draw_reduction_error",
    "draw_responses",
    "draw_snapshots",
    "draw_solution",
    "draw_sparsity",
    "draw_spectrum",
    "draw_uncertain_bode",
    "draw_uncertain_poles",
    "draw_weight_norm",
    "layer_colour",
    "layer_marker",
    "new_figure",
    "save_figure",
]
