"""What is said of every example alike: how exact the forward passes are, and which algorithm is better."""

import math

from ltinet.paper.forward_passes import ForwardPass, ForwardPasses
from ltinet.paper.number import NOTHING, Number

# Twelve digits are what `lsim`, with a matrix exponential of the whole system, can be trusted to have here.
LSIM_AGREES = 1e-12
# A bound is safe if it is not below the error, which is itself known to the digits of the exact engine only, and useful
# if it is not a thousand times above it.
ROUNDING, USEFUL = 1e-2, 1e3


def accuracy_numbers(
    passes: ForwardPasses, *, example: str, orders: str = NOTHING, within: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[Number, ...]:
    """Errors of all passes; `orders` is what the paper says Algorithm A.1 gains, `within` what counts as that."""
    error = "largest error against the exact engine"
    solved = passes.algorithm_3.n_layers_solved, passes.algorithm_a1.n_layers_solved
    return (
        Number(
            f"{example}.exact_against_lsim",
            "exact engine against lsim, relative to the largest output",
            here=passes.exact_against_lsim,
            high=LSIM_AGREES,
        ),
        Number(
            f"{example}.error_algorithm_3",
            f"Algorithm 3 as in the paper, across the knots of the input: {error}",
            here=passes.algorithm_3.error,
        ),
        Number(
            f"{example}.error_algorithm_3_from_knot_to_knot",
            f"Algorithm 3, restarted at the knots: {error}",
            here=passes.algorithm_3_from_knot_to_knot.error,
        ),
        Number(f"{example}.error_algorithm_a1", f"Algorithm A.1: {error}", here=passes.algorithm_a1.error),
        Number(
            f"{example}.orders_gained",
            "orders of magnitude by which Algorithm A.1 is better than Algorithm 3 as in the paper",
            here=passes.orders_gained,
            paper=orders,
            low=within[0],
            high=within[1],
            note="" if solved[0] == solved[1] else f"Of {solved[0]} layers in Algorithm 3 and {solved[1]} in A.1.",
        ),
        Number(
            f"{example}.orders_gained_by_intervals",
            "the same where Algorithm 3, too, restarts at the knots",
            here=passes.orders_gained_by_intervals,
            note="What short intervals alone are worth; the rest of the gain comes from restarting at the knots.",
        ),
        *(_bound_number(run, example=example, name=name, label=label) for name, label, run in _bounded(passes)),
    )


def _bounded(passes: ForwardPasses) -> tuple[tuple[str, str, ForwardPass], ...]:
    return (
        ("algorithm_3", "Algorithm 3 as in the paper", passes.algorithm_3),
        ("algorithm_a1", "Algorithm A.1", passes.algorithm_a1),
    )


def _bound_number(run: ForwardPass, *, example: str, name: str, label: str) -> Number:
    return Number(
        f"{example}.bound_over_error_{name}",
        f"{label}: bound of the largest error over that error",
        here=run.bound / run.error,
        low=1.0 - ROUNDING,
        high=USEFUL,
    )
