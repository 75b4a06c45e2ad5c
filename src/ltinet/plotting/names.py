"""Names of inputs and outputs as drawings write them, and the units that they end with."""

import operator
import re
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from ltinet.errors import PlottingError
from ltinet.shown import count_of, near, shown

_LONGEST = 28  # letters: longer names would take the room of the drawing
_UNIT = re.compile(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*$")


class Channels:
    """The inputs or the outputs of a drawing: how many there are, and how each is called."""

    def __init__(self, count: int, names: Sequence[str] | None, *, noun: str) -> None:
        if names is not None and (isinstance(names, str) or len(names) != count):
            raise PlottingError(f"{noun} names are {names!r}; give one for each of {count_of(count, noun)}")
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
                raise PlottingError(f"{argument}: there is no {self.noun} {shown(repr(wanted))}; {near(wanted, known)}")
            return known.index(wanted)
        try:
            number = -1 if isinstance(wanted, (bool, np.bool_)) else operator.index(wanted)
        except TypeError:
            number = -1
        if not 0 <= number < self.count:
            raise PlottingError(
                f"{argument}: there is no {self.noun} {shown(repr(wanted))} of {count_of(self.count, self.noun)}; give "
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
        return str(index) if self._names is None else drawn_text(self._names[index])

    def full(self, index: int) -> str:
        """What stands alone along an axis: the name, on two lines if it is long, or "output 3"."""
        if self._names is None:
            return f"{self.noun} {index}"
        return "\n".join(wrap(drawn_text(self._names[index], longest=2 * _LONGEST), _LONGEST)[:2])

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
        return f"{self.noun}s" if unit is None else f"{self.noun}s ({drawn_text(unit)})"


def drawn_text(name: str, *, longest: int = _LONGEST) -> str:
    """A name from anywhere as matplotlib shall write it: one line, not too long, no formula begun by a dollar sign.

    Of a name that is too long the unit at its end stays.
    """
    line = " ".join(name.split())
    unit = _UNIT.search(line)
    end = "" if unit is None or len(line) <= longest else f" {unit[0].strip()}"
    line = shown(line, longest=longest) if not 0 < len(end) < longest // 2 else (
        f"{shown(line[: len(line) - len(end)], longest=longest - len(end))}{end}"
    )  # fmt: skip
    line = line.replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line  # legends leave out what begins with an underscore
