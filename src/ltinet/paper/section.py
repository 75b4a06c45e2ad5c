"""What the report has of one example, before it is written: text, numbers, tables, and figures yet to be drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ltinet.paper.number import Number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn when it is asked for."""

    name: str
    """Its files are called that, with the name of the example in front."""
    caption: str
    text: str
    """What it shows, for those who cannot see it."""
    draw: Callable[[], "Figure"]


@dataclass(frozen=True)
class Table:
    """Figures that are no verdicts: a caption, headings and rows."""

    name: str
    caption: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[float | str]]


@dataclass(frozen=True)
class Section:
    """One example: `label` is the paper's number of its section."""

    name: str
    label: str
    title: str
    paragraphs: tuple[str, ...]
    numbers: tuple[Number, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...] = ()
