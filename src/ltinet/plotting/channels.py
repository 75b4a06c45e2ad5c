"""Labels of inputs and outputs, and the choice of input-output pairs to draw.

`ChannelLabels` resolves numbers and names (by default y1, y2, … and u1, u2, …, as in tables), shortens names, escapes
characters that matplotlib would typeset as formulas, and reads units at the end of names. `select_pairs` returns the
pairs (output, input) asked for, all of them, or the largest ones where all would be too many lines to distinguish;
`PairSelection` holds them with their styles and legend.
"""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, sanitize, suggest_names
from ltinet.errors import PlottingError
from ltinet.plotting.colours import (
    MAX_LEGEND_LINES,
    Dashes,
    add_side_key,
    legend_title,
    line_handles,
    line_styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Labels.

MAX_LETTERS = 28  # longer names would take the space of the plot
_UNIT = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$")


class ChannelLabels:
    """Labels of the inputs or of the outputs of a plot."""

    def __init__(self, count: int, names: Sequence[str] | None, *, noun: str) -> None:
        if names is not None and (isinstance(names, str) or len(names) != count):
            raise PlottingError(f"{noun} names must be one for each of {format_count(count, noun)}, got {names!r}")
        self.count, self.noun = count, noun
        self._are_given = names is not None
        letter = {"input": "u", "output": "y"}.get(noun, noun)
        defaults = (f"{letter}{index + 1}" for index in range(count))
        self._names = tuple(defaults if names is None else map(str, names))

    def index(self, channel: Any, *, argument: str) -> int:
        """Return the index of a channel from its name or index, counted from 0.

        Raises:
            PlottingError: the channel does not exist.
        """
        if isinstance(channel, str):
            if channel not in self._names:
                raise PlottingError(
                    f"{argument}: there is no {self.noun} {sanitize(repr(channel))}; "
                    f"{suggest_names(channel, self._names)}"
                )
            return self._names.index(channel)
        try:
            number = -1 if isinstance(channel, (bool, np.bool_)) else operator.index(channel)
        except TypeError:
            number = -1
        if not 0 <= number < self.count:
            raise PlottingError(
                f"{argument}: there is no {self.noun} {sanitize(repr(channel))} of {format_count(self.count, self.noun)}; give "
                "its name, or its number from 0 on"
            )
        return number

    def names_of(self, indices: Sequence[int]) -> tuple[str, ...] | None:
        """Return names of some channels; None for all channels if none was named."""
        if not self._are_given and len(indices) == self.count:
            return None
        return tuple(self._names[index] for index in indices)

    def short(self, index: int) -> str:
        """Return the label in a legend: the name on one line, shortened if it is long."""
        return escape_label(self._names[index])

    def full(self, index: int, letters: int = MAX_LETTERS) -> str:
        """Return the label of an axis with room for so many letters: the name, on up to three lines if it is long."""
        return "\n".join(wrap(escape_label(self._names[index], longest=2 * letters), letters)[:3])

    def unit(self, index: int) -> str | None:
        """Return the unit at the end of the name, as in "Force (N)" or "speed [m/s]"."""
        match = _UNIT.search(self._names[index])
        return None if match is None else match[1]

    def together(self, indices: Sequence[int], letters: int = MAX_LETTERS) -> str:
        """Return the label of an axis that several channels share, with their unit if they have one."""
        if len(indices) == 1:
            return self.full(indices[0], letters)
        units = {self.unit(index) for index in indices}
        unit = units.pop() if len(units) == 1 else None
        return f"{self.noun}s" if unit is None else f"{self.noun}s ({escape_label(unit)})"


def escape_label(name: str, *, longest: int = MAX_LETTERS) -> str:
    """Return a name as a label for matplotlib: one line of limited length, with dollar signs escaped.

    The unit at the end of a name is not truncated.
    """
    line = " ".join(name.split())
    unit = _UNIT.search(line)
    end = "" if unit is None or len(line) <= longest else f" {unit[0].strip()}"
    line = sanitize(line, longest=longest) if not 0 < len(end) < longest // 2 else (
        f"{sanitize(line[: len(line) - len(end)], longest=longest - len(end))}{end}"
    )  # fmt: skip
    line = line.replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line  # legends omit labels that begin with an underscore


# Pairs of outputs and inputs.

Pair = tuple[int | str, int | str]
"""An output and an input, each by index, counted from 0, or by name."""
_MAX_PAIRS = MAX_LEGEND_LINES  # unless pairs are given
_LETTER, _SAMPLE, _ROW = 0.07, 0.7, 0.19  # inches of a key: a letter, the line before a name, a row
_BESIDE = 0.36  # of the width: what a key beside the axes may take


@dataclass(frozen=True)
class PairSelection:
    """Pairs (output, input) of a plot, the largest ones if there are too many, and their labels."""

    chosen: tuple[tuple[int, int], ...]
    outputs: ChannelLabels
    inputs: ChannelLabels
    dashed: bool = True
    """True if lines differ in dashes as well as in colors."""

    @property
    def count(self) -> int:
        """Number of all pairs."""
        return self.outputs.count * self.inputs.count

    @property
    def styles(self) -> tuple[tuple[str, Dashes], ...]:
        """Colors and dashes of the lines."""
        styles = line_styles(len(self.chosen))
        return styles if self.dashed else tuple((colour, "-") for colour, _ in styles)

    def add_key(self, axes: "Axes") -> None:
        """Add a key beside the axes with the number of omitted pairs, unless there is only one pair."""
        if self.count > 1:
            title = legend_title(self.title, len(self.chosen), self.count)
            add_side_key(axes, self.styles, list(map(self.name, self.chosen)), title=title)

    def rows_below(self, canvas_width: float) -> int:
        """Return the rows of a legend below axes on a canvas of this width in inches; 0 if the key stands beside them."""
        if self.count == 1 or len(self.chosen) > MAX_LEGEND_LINES or self._width <= _BESIDE * canvas_width:
            return 0
        return -(-len(self.chosen) // self._columns(canvas_width))

    def height_below(self, canvas_width: float) -> float:
        """Return the height in inches of a legend below the axes; 0 if it fits beside them."""
        rows = self.rows_below(canvas_width)
        return _ROW * (rows + 1) if rows else 0.0

    def add_key_below(self, figure: "Figure | SubFigure") -> None:
        """Add a legend below all axes of a figure with constrained layout, unless there is only one pair."""
        if self.count == 1:
            return
        title = legend_title(self.title, len(self.chosen), self.count, separator=" ")
        figure.legend(
            handles=line_handles(self.styles, list(map(self.name, self.chosen))), title=title, loc="outside lower center",
            ncols=self._columns(figure.bbox.width / figure.figure.dpi), frameon=False, fontsize="small",
            title_fontsize="small",
        )  # fmt: skip

    @property
    def _width(self) -> float:
        """Width in inches of a label in a legend."""
        return _SAMPLE + _LETTER * max(len(self.name(pair)) for pair in self.chosen)

    def _columns(self, canvas_width: float) -> int:
        return min(max(int(canvas_width / self._width), 1), len(self.chosen))

    @property
    def title(self) -> str:
        """Title of the legend."""
        if self.inputs.count == 1:
            return "output"
        return "input" if self.outputs.count == 1 else "output ← input"

    def name(self, pair: tuple[int, int]) -> str:
        """Return the label of a pair, without the input or output if there is only one."""
        if self.inputs.count == 1:
            return self.outputs.short(pair[0])
        if self.outputs.count == 1:
            return self.inputs.short(pair[1])
        return f"{self.outputs.short(pair[0])} ← {self.inputs.short(pair[1])}"


def select_pairs(
    sizes: Array,
    pairs: Sequence[Pair] | None = None,
    *,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    max_pairs: int = _MAX_PAIRS,
) -> PairSelection:
    """Return the given pairs, or all, or the `max_pairs` pairs of largest size; `sizes` is `(p, m)`."""
    outputs = ChannelLabels(sizes.shape[0], names, noun="output")
    inputs = ChannelLabels(sizes.shape[1], input_names, noun="input")
    if pairs is not None:
        return PairSelection(_validate_pairs(pairs, outputs, inputs), outputs, inputs)
    largest = np.argsort(-np.nan_to_num(sizes, nan=np.inf), axis=None, kind="stable")[:max_pairs]
    rows, columns = np.unravel_index(np.sort(largest), sizes.shape)
    return PairSelection(tuple(zip(rows.tolist(), columns.tolist(), strict=True)), outputs, inputs)


def _validate_pairs(
    pairs: Sequence[Pair], outputs: ChannelLabels, inputs: ChannelLabels
) -> tuple[tuple[int, int], ...]:
    try:
        chosen = [(output, input) for output, input in pairs]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or any(isinstance(pair, str) for pair in pairs):
        raise PlottingError(
            f"pairs must be pairs (output, input) by index or name, such as [(0, 0), (1, 0)], got {sanitize(repr(pairs))}"
        )
    return tuple((outputs.index(i, argument="pairs"), inputs.index(j, argument="pairs")) for i, j in chosen)
