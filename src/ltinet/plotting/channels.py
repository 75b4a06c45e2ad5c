"""Labels of inputs and outputs, and the choice of input-output pairs to draw.

`ChannelLabels` resolves numbers and names, shortens names, escapes characters that matplotlib would typeset as
formulas, and reads units at the end of names. `select_pairs` returns the pairs (output, input) asked for, all of
them, or the largest ones where all would be too many lines to distinguish; `PairSelection` holds them with their
styles and legend.
"""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array, Complex
from ltinet._util.text import format_count, sanitize, suggest_names
from ltinet.errors import PlottingError
from ltinet.plotting.colours import Dashes, add_side_legend, line_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

# MERGED ltinet.plotting.channels
# Names of inputs and outputs as drawings write them, and the units that they end with.

_LONGEST = 28  # letters: longer names would take the room of the drawing
_UNIT = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$")


class ChannelLabels:
    """The inputs or the outputs of a drawing: how many there are, and how each is called."""

    def __init__(self, count: int, names: Sequence[str] | None, *, noun: str) -> None:
        if names is not None and (isinstance(names, str) or len(names) != count):
            raise PlottingError(f"{noun} names are {names!r}; give one for each of {format_count(count, noun)}")
        self.count, self.noun = count, noun
        self._names = None if names is None else tuple(str(name) for name in names)

    def place(self, wanted: Any, *, argument: str) -> int:
        """The index of a channel that is given by its name or by its number, counted from 0.

        Raises:
            PlottingError: there is no such one.
        """
        if isinstance(wanted, str):
            letter = {"input": "u", "output": "y"}.get(self.noun, self.noun)
            known = self._names or tuple(f"{letter}{index + 1}" for index in range(self.count))
            if wanted not in known:
                raise PlottingError(
                    f"{argument}: there is no {self.noun} {sanitize(repr(wanted))}; {suggest_names(wanted, known)}"
                )
            return known.index(wanted)
        try:
            number = -1 if isinstance(wanted, (bool, np.bool_)) else operator.index(wanted)
        except TypeError:
            number = -1
        if not 0 <= number < self.count:
            raise PlottingError(
                f"{argument}: there is no {self.noun} {sanitize(repr(wanted))} of {format_count(self.count, self.noun)}; give "
                "its name, or its number from 0 on"
            )
        return number

    def names_of(self, indices: Sequence[int]) -> tuple[str, ...] | None:
        """The names of some of them, numbers where some are chosen of those that have none; None for all of these."""
        if self._names is None and len(indices) == self.count:
            return None
        return tuple(f"{self.noun} {index}" if self._names is None else self._names[index] for index in indices)

    def short(self, index: int) -> str:
        """What stands in a legend that says what it lists: the name, or the number where there is none."""
        return str(index) if self._names is None else escape_label(self._names[index])

    def full(self, index: int) -> str:
        """What stands alone along an axis: the name, on two lines if it is long, or "output 3"."""
        if self._names is None:
            return f"{self.noun} {index}"
        return "\n".join(wrap(escape_label(self._names[index], longest=2 * _LONGEST), _LONGEST)[:2])

    def unit(self, index: int) -> str | None:
        """The unit at the end of the name, as in "Force (N)" or "speed [m/s]"."""
        found = None if self._names is None else _UNIT.search(self._names[index])
        return None if found is None else found[1]

    def together(self, indices: Sequence[int]) -> str:
        """What an axis is called that several of them share: their unit, where they have one."""
        if len(indices) == 1:
            return self.full(indices[0])
        units = {self.unit(index) for index in indices}
        unit = units.pop() if len(units) == 1 else None
        return f"{self.noun}s" if unit is None else f"{self.noun}s ({escape_label(unit)})"


def escape_label(name: str, *, longest: int = _LONGEST) -> str:
    """A name from anywhere as matplotlib shall write it: one line, not too long, no formula begun by a dollar sign.

    Of a name that is too long the unit at its end stays.
    """
    line = " ".join(name.split())
    unit = _UNIT.search(line)
    end = "" if unit is None or len(line) <= longest else f" {unit[0].strip()}"
    line = sanitize(line, longest=longest) if not 0 < len(end) < longest // 2 else (
        f"{sanitize(line[: len(line) - len(end)], longest=longest - len(end))}{end}"
    )  # fmt: skip
    line = line.replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line  # legends leave out what begins with an underscore


# MERGED ltinet.plotting.channels
# Pairs of an output and an input: which of them are drawn, and how they are called.

Pair = tuple[int | str, int | str]
"""An output and an input, each by its number, counted from 0, or by its name."""
_MAX_PAIRS = 10  # lines that can be told apart
_LETTER, _SAMPLE, _ROW = 0.07, 0.7, 0.19  # inches of a key: a letter, the line before a name, a row
_BESIDE = 0.36  # of the width: what a key beside the axes may take


@dataclass(frozen=True)
class PairSelection:
    """The pairs (output, input) of a drawing, the largest of all where they are too many, and their names."""

    chosen: tuple[tuple[int, int], ...]
    outputs: ChannelLabels
    inputs: ChannelLabels
    dashed: bool = True
    """Whether lines have dashes besides colours."""

    @property
    def count(self) -> int:
        """How many there are in all."""
        return self.outputs.count * self.inputs.count

    @property
    def styles(self) -> tuple[tuple[str, Dashes], ...]:
        """(colour, dashes) of each."""
        return line_styles(len(self.chosen))

    def add_key(self, axes: "Axes") -> None:
        """Say beside the axes which line is which pair, and how many are left out, unless there is but one."""
        if self.count > 1:
            some = len(self.chosen) < self.count
            count = f"\n({len(self.chosen)} of {self.count})" if some else ""
            add_side_legend(axes, self.handles, title=f"{self.title}{count}")

    def rows_below(self, canvas_width: float) -> int:
        """How many rows the key takes below axes on a canvas of so many inches; none where it may stand beside them."""
        if self.count == 1 or self._width <= _BESIDE * canvas_width:
            return 0
        return -(-len(self.chosen) // self._columns(canvas_width))

    def height_below(self, canvas_width: float) -> float:
        """Inches that the key takes below axes, none where it stands beside them."""
        rows = self.rows_below(canvas_width)
        return _ROW * (rows + 1) if rows else 0.0

    def add_key_below(self, figure: "Figure | SubFigure") -> None:
        """Say below all axes of a figure which line is which pair, in as many columns as fit, unless there is but one.

        The figure must be one that makes room by itself.
        """
        if self.count == 1:
            return
        some = len(self.chosen) < self.count
        title = f"{self.title} ({len(self.chosen)} of {self.count})" if some else self.title
        figure.legend(
            handles=self.handles, title=title, loc="outside lower center",
            ncols=self._columns(figure.bbox.width / figure.figure.dpi), frameon=False, fontsize="small",
            title_fontsize="small",
        )  # fmt: skip

    @property
    def _width(self) -> float:
        """Inches that a name takes in a key."""
        return _SAMPLE + _LETTER * max(len(self.name(pair)) for pair in self.chosen)

    def _columns(self, canvas_width: float) -> int:
        return min(max(int(canvas_width / self._width), 1), len(self.chosen))

    @property
    def handles(self) -> list["Line2D"]:
        """A short line for each pair, with its name."""
        from matplotlib.lines import Line2D

        return [
            Line2D([], [], color=colour, linestyle=dashes if self.dashed else "-", label=self.name(pair))
            for pair, (colour, dashes) in zip(self.chosen, self.styles, strict=True)
        ]

    @property
    def title(self) -> str:
        """What the names list."""
        if self.inputs.count == 1:
            return "output"
        return "input" if self.outputs.count == 1 else "output ← input"

    def name(self, pair: tuple[int, int]) -> str:
        """The name of a pair; of a single input or output nothing is said."""
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
    most: int = _MAX_PAIRS,
) -> PairSelection:
    """The pairs asked for, or all, or the ten of largest size where there are more; `sizes` is `(p, m)`."""
    outputs = ChannelLabels(sizes.shape[0], names, noun="output")
    inputs = ChannelLabels(sizes.shape[1], input_names, noun="input")
    if pairs is not None:
        return PairSelection(_validate_pairs(pairs, outputs, inputs), outputs, inputs)
    largest = np.argsort(-np.nan_to_num(sizes, nan=np.inf), axis=None, kind="stable")[:most]
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
            f"pairs is {sanitize(repr(pairs))}; give pairs (output, input), such as [(0, 0), (1, 0)], by number or by name"
        )
    return tuple((outputs.place(i, argument="pairs"), inputs.place(j, argument="pairs")) for i, j in chosen)


def validate_frequency_response(H: ArrayLike) -> Complex:
    """Frequency responses `(K, p, m)`; a single one may come as `(K,)`."""
    try:
        values = np.asarray(H, dtype=np.complex128)
    except (TypeError, ValueError):
        raise PlottingError("H must be an array of complex numbers, such as net.frequency_response(omega)") from None
    values = values[:, None, None] if values.ndim == 1 else values
    if values.ndim != 3:
        raise PlottingError(f"H has shape {values.shape}; give (frequencies, outputs, inputs)")
    return values


def peak_gains(H: Complex) -> Array:
    """The largest finite |H| of every pair, 0 where there is none."""
    sizes = np.abs(H)
    return np.asarray(np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0, initial=0.0))
