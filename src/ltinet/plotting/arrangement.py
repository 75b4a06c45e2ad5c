"""Where the neurons of a network stand in its drawing: numbers only, nothing is drawn here.

Up to twelve layers have a row each. Of more, the largest coupled layers have a row each, and layers of one neuron stand
side by side on a grid, one ball for each layer. What does not fit is counted in words, never dropped in silence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ltinet.shown import count_of

_ROWS = 12  # layers that have a row each
_COUPLED = 5  # rows of coupled layers where there are more layers than that
_COLUMNS = 24  # balls side by side that can still be told apart
_GRID_ROWS = 18
_GAP = 3  # places that the words for neurons left out take
_LABEL = 2.6  # width kept free for the name of a layer
_SIDE = 2.6  # between a column of inputs or outputs and the layers, where wires fan out
_SHORT_SIDE = 1.4  # and where there is but one band that they lead to
_LEAST_COLUMNS = 6  # of a grid: above it stands how many layers it has
_BETWEEN = 0.3  # between bands
_FLATTEST = 0.7  # least room above a row for the arcs of its connections


@dataclass(frozen=True)
class Ball:
    """A neuron of a layer and its place."""

    layer: int
    neuron: int
    x: float
    y: float


@dataclass(frozen=True)
class Words:
    """A text and its place."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Band:
    """A box around the neurons of one layer, or around many layers of one neuron each."""

    layer: int | None
    label: Words
    balls: tuple[Ball, ...]
    words: tuple[Words, ...]
    bottom: float
    top: float
    room: float
    """Height above the balls for the arcs of connections."""


@dataclass(frozen=True)
class Arrangement:
    """Bands from top to bottom between x = `left` and `right`; inputs stand at x = 0, outputs at x = `width`."""

    bands: tuple[Band, ...]
    left: float
    right: float
    width: float
    height: float

    @property
    def is_condensed(self) -> bool:
        """Whether layers share a band, so that rows do not name them all."""
        return any(band.layer is None for band in self.bands)


@dataclass(frozen=True)
class _Plan:
    """What a band holds before it has a place: rows of (layer, neuron), or words."""

    layer: int | None
    label: str
    rows: tuple[tuple[tuple[int, int] | str, ...], ...]
    has_arcs: bool = False

    @property
    def columns(self) -> int:
        return max((sum(_width(cell) for cell in row) for row in self.rows), default=0)

    @property
    def height(self) -> float:
        """Without arcs: a row of balls each, and above a grid its name."""
        return len(self.rows) + (0.2 if self.layer is not None else 1.1)


def arrange(sizes: Sequence[int], *, connected: Sequence[bool], aspect: float) -> Arrangement:
    """Place the neurons of layers of these sizes; height over width comes as near to `aspect` as it can.

    `connected` says of each layer whether its neurons feed each other: above those, arcs need room.
    """
    layers = [_layer_plan(layer, size, connected=connected[layer]) for layer, size in enumerate(sizes)]
    plans = layers if len(layers) <= _ROWS else _condensed(layers, sizes, aspect=aspect)
    columns = max((plan.columns for plan in plans), default=0)
    side = _SIDE if len(plans) > 1 else _SHORT_SIDE
    width = 2.0 * side + _LABEL + max(columns, 3) + 0.4
    fixed = sum(plan.height + _BETWEEN for plan in plans)
    arcs = sum(plan.has_arcs for plan in plans)
    room = min(max((aspect * width - fixed) / max(arcs, 1), _FLATTEST), max(0.3 * columns, _FLATTEST))
    height = fixed + arcs * room
    width = max(width, height / aspect)
    left, right = side, width - side
    bands, top = [], height
    for plan in plans:
        band = _place(plan, left=left, right=right, top=top, room=room if plan.has_arcs else 0.0)
        bands.append(band)
        top = band.bottom - _BETWEEN
    return Arrangement(tuple(bands), left, right, width, height)


def _layer_plan(layer: int, size: int, *, connected: bool) -> _Plan:
    """One row in the order of solution, the last neuron first, so that signals run from left to right."""
    order: list[tuple[int, int] | str] = [(layer, neuron) for neuron in range(size - 1, -1, -1)]
    if size > _COLUMNS:
        kept = (_COLUMNS - _GAP) // 2
        order = [*order[:kept], f"… {size - 2 * kept} …", *order[-kept:]]
    return _Plan(layer, f"layer {layer}", (tuple(order),), has_arcs=connected and size > 2)


def _condensed(layers: Sequence[_Plan], sizes: Sequence[int], *, aspect: float) -> list[_Plan]:
    coupled = [layer for layer, size in enumerate(sizes) if size > 1]
    singles = [layer for layer, size in enumerate(sizes) if size == 1]
    largest = sorted(sorted(coupled, key=lambda layer: -sizes[layer])[:_COUPLED])
    plans = [layers[layer] for layer in largest]
    rest = [sizes[layer] for layer in coupled if layer not in largest]
    if rest:
        between = f"{min(rest)} to {max(rest)}" if min(rest) < max(rest) else f"{min(rest)}"
        plans.append(_Plan(None, f"… and {count_of(len(rest), 'more layer')} of {between} neurons each", ()))
    if singles:
        above = sum(plan.height + _BETWEEN for plan in plans)
        least = max((plan.columns for plan in plans), default=_LEAST_COLUMNS)
        plans.append(_grid_plan(singles, columns=_grid_columns(len(singles), least, above=above, aspect=aspect)))
    return plans


def _grid_columns(count: int, least: int, *, above: float, aspect: float) -> int:
    """How many columns fill a drawing of this aspect, below what stands above them."""
    side = _SIDE if above else _SHORT_SIDE

    def distance(columns: int) -> float:
        rows = min(math.ceil(count / columns), _GRID_ROWS)
        return abs(math.log((above + rows + 0.9) / (2.0 * side + _LABEL + columns + 0.4) / aspect))

    least = min(max(least, math.ceil(count / _GRID_ROWS)), _COLUMNS)
    return min(range(least, _COLUMNS + 1), key=distance)


def _grid_plan(singles: Sequence[int], *, columns: int) -> _Plan:
    """Layers of one neuron in reading order; beyond what fits, the first and the last of them."""
    cells: list[tuple[int, int]] = [(layer, 0) for layer in singles]
    rows: list[tuple[tuple[int, int] | str, ...]] = [
        tuple(cells[start : start + columns]) for start in range(0, len(cells), columns)
    ]
    if len(rows) > _GRID_ROWS:
        half = _GRID_ROWS // 2
        shown = columns * half + sum(map(len, rows[-half:]))
        rows = [*rows[:half], (f"… {len(singles) - shown} more layers of one neuron …",), *rows[-half:]]
    return _Plan(None, f"{count_of(len(singles), 'layer')} of one neuron each", tuple(rows))


def _place(plan: _Plan, *, left: float, right: float, top: float, room: float) -> Band:
    bottom = top - plan.height - room
    start = left + (_LABEL if plan.layer is not None else 0.0)
    y = top - (0.9 if plan.layer is None else room + 0.1) - 0.5
    label = Words(plan.label, left + 0.25, y if plan.layer is not None else top - 0.55)
    balls, words = [], []
    first = (start + right - plan.columns) / 2.0
    for row in plan.rows:
        x = first
        for cell in row:
            middle = x + _width(cell) / 2.0
            if isinstance(cell, str):
                words.append(Words(cell, (start + right) / 2.0 if len(row) == 1 else middle, y))
            else:
                balls.append(Ball(*cell, middle, y))
            x += _width(cell)
        y -= 1.0
    return Band(plan.layer, label, tuple(balls), tuple(words), bottom, top, room)


def _width(cell: tuple[int, int] | str) -> int:
    return _GAP if isinstance(cell, str) else 1
