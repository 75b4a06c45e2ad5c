"""Pairs of an output and an input: which of them are drawn, and how they are called."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array, Complex
from ltinet.errors import PlottingError
from ltinet.plotting.colours import Dashes, add_side_legend, line_styles
from ltinet.plotting.names import Channels
from ltinet.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

Pair = tuple[int | str, int | str]
"""An output and an input, each by its number, counted from 0, or by its name."""
_PAIRS = 10  # lines that can be told apart
_LETTER, _SAMPLE, _ROW = 0.07, 0.7, 0.19  # inches of a key: a letter, the line before a name, a row
_BESIDE = 0.36  # of the width: what a key beside the axes may take


@dataclass(frozen=True)
class Pairs:
    """The pairs (output, input) of a drawing, the largest of all where they are too many, and their names."""

    chosen: tuple[tuple[int, int], ...]
    outputs: Channels
    inputs: Channels
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


def pairs_of(
    sizes: Array,
    pairs: Sequence[Pair] | None = None,
    *,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    most: int = _PAIRS,
) -> Pairs:
    """The pairs asked for, or all, or the ten of largest size where there are more; `sizes` is `(p, m)`."""
    outputs = Channels(sizes.shape[0], names, noun="output")
    inputs = Channels(sizes.shape[1], input_names, noun="input")
    if pairs is not None:
        return Pairs(_checked(pairs, outputs, inputs), outputs, inputs)
    largest = np.argsort(-np.nan_to_num(sizes, nan=np.inf), axis=None, kind="stable")[:most]
    rows, columns = np.unravel_index(np.sort(largest), sizes.shape)
    return Pairs(tuple(zip(rows.tolist(), columns.tolist(), strict=True)), outputs, inputs)


def _checked(pairs: Sequence[Pair], outputs: Channels, inputs: Channels) -> tuple[tuple[int, int], ...]:
    try:
        chosen = [(output, input) for output, input in pairs]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or any(isinstance(pair, str) for pair in pairs):
        raise PlottingError(
            f"pairs is {shown(repr(pairs))}; give pairs (output, input), such as [(0, 0), (1, 0)], by number or by name"
        )
    return tuple((outputs.place(i, argument="pairs"), inputs.place(j, argument="pairs")) for i, j in chosen)


def checked_responses(H: ArrayLike) -> Complex:
    """Frequency responses `(K, p, m)`; a single one may come as `(K,)`."""
    try:
        values = np.asarray(H, dtype=np.complex128)
    except (TypeError, ValueError):
        raise PlottingError("H must be an array of complex numbers, such as net.frequency_response(omega)") from None
    values = values[:, None, None] if values.ndim == 1 else values
    if values.ndim != 3:
        raise PlottingError(f"H has shape {values.shape}; give (frequencies, outputs, inputs)")
    return values


def peaks_of(H: Complex) -> Array:
    """The largest finite |H| of every pair, 0 where there is none."""
    sizes = np.abs(H)
    return np.asarray(np.max(np.where(np.isfinite(sizes), sizes, 0.0), axis=0, initial=0.0))
