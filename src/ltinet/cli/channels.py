"""Inputs and outputs as the command line counts them: from 1, as tables do, or by the names of their columns."""

import csv
from collections.abc import Sequence

import typer

from ltinet.shown import shown, shown_names


def channel_names(count: int, letter: str, known: Sequence[str] | None = None) -> list[str]:
    """The names that are known, or u1, u2, … and y1, y2, …, as tables have them."""
    return list(known) if known is not None else [f"{letter}{place + 1}" for place in range(count)]


def chosen_channel(text: str | None, names: Sequence[str], *, option: str, noun: str) -> int | None:
    """The place of a channel from 0 on, None for all of them.

    Raises:
        typer.BadParameter: there is no such one.
    """
    if text is None:
        return None
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= len(names):
        return int(text) - 1
    numbered = f"a number from 1 to {len(names)}, or one of " if len(names) > 1 else ""
    raise typer.BadParameter(
        f"{shown(repr(text))} is no {noun} of this system; give {numbered}{shown_names(names)}, or leave it out",
        param_hint=f"'{option}'",
    )


def listed_names(text: str | None) -> list[str] | None:
    """Names with commas between them; one with a comma of its own stands in quotation marks, as in CSV."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
