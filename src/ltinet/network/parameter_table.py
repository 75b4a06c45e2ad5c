"""The parameters of a network as a table, a neuron in each row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ltinet.views import left_out, shown_places

_HEADINGS = ("layer", "neuron", "m", "c", "k", "w", "φ")
_MOST_NUMBERS = 4  # of weights: a neuron of a large layer has hundreds

Sets = Sequence[Sequence[float]]


def parameter_table(
    M: Sets, C: Sets, K: Sets, W: Sequence[Sequence[ArrayLike]], Phi: Sequence[Sequence[ArrayLike]]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headings and rows; of long weights the first numbers, of many neurons the first and the last."""
    neurons = [(layer, own) for layer, masses in enumerate(M) for own in range(len(masses))]
    rows = []
    for place in shown_places(len(neurons)):
        if place is None:
            rows.append(left_out(len(neurons), len(_HEADINGS)))
            continue
        layer, own = neurons[place]
        numbers = (f"{sets[layer][own]:.5g}" for sets in (M, C, K))
        rows.append([str(layer), str(own), *numbers, _weights(W[layer][own]), _weights(Phi[layer][own])])
    return _HEADINGS, rows


def _weights(values: ArrayLike) -> str:
    """The first numbers of a matrix, row by row."""
    flat = np.ravel(values).tolist()
    first = [f"{value:.5g}" for value in flat[:_MOST_NUMBERS]]
    more = [f"… ({len(flat)})"] if len(flat) > len(first) else []
    return f"[{', '.join([*first, *more])}]"
