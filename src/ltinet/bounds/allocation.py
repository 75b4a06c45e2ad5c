"""Who may err by how much: tolerances of single neurons so that their errors together stay within a target.

Where evaluations grow like a small power of 1/error they are nearly fewest in sum when all neurons add equally much to
the error of the outputs. Neurons that add less even at the loosest tolerance stay there, and leave their shares to the
others.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.correction import follow_error
from ltinet.bounds.layer_errors import LayerEquations
from ltinet.bounds.record import LayerRecord, measure_defect

_FASTEST_CHANGE = 30.0  # of a tolerance at once: errors are proportional to tolerances only roughly


def neuron_shares(equations: LayerEquations, record: LayerRecord, weights: Array) -> Array:
    """What the defect of each neuron alone does to the outputs at most, `(n_neurons, p)`; one followed error each."""
    measured = measure_defect(equations, record)
    shares = []
    for own in equations.places:
        mask = np.zeros(equations.n_states)
        mask[list(own)] = 1.0
        error = follow_error(
            equations.F, measured.integrated * mask, measured.seams * mask, lengths=record.lengths, rule=record.rule
        )
        values = np.concatenate([error.start[:, None], error.nodes], axis=1) @ weights.T
        series = np.einsum("kj,njc->nkc", record.rule.to_series, values)
        shares.append(np.max(np.sum(np.abs(series), axis=1), axis=0))
    return np.array(shares)


def equal_share(most: Array, *, budget: float) -> float:
    """The λ with Σ min(most_i, λ) = budget; infinite if all together are within the budget."""
    if np.sum(most) <= budget:
        return np.inf
    ordered = np.sort(most)
    below = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    levels = (budget - below) / np.arange(len(ordered), 0, -1)
    return float(levels[np.argmax(levels <= ordered)])


def next_tolerances(tolerances: Array, shares: Array, *, budget: float, loosest: float, tightest: float) -> Array:
    """Tolerances at which neurons are expected to add equal shares of the budget, or less if they cannot add more."""
    level = equal_share(shares * (loosest / tolerances), budget=budget)
    wanted = np.divide(level, shares, out=np.full_like(shares, np.inf), where=shares > 0.0)
    change = np.clip(wanted, 1.0 / _FASTEST_CHANGE, _FASTEST_CHANGE)
    return np.asarray(np.clip(tolerances * change, tightest, loosest))
