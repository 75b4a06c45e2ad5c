"""Text that somebody else wrote, made fit for a message: no control characters, no endless names, no endless lists.

Names of variables, of columns and of files come from whoever made the file. Printed as they are they could move the
cursor, retitle a terminal or turn the reading direction round, and one message could fill a screen.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

_LONGEST_NAME = 60
_LONGEST_PATH = 240
_MOST_NAMES = 10
_FEW = 5  # names in a line of their own


def without_controls(text: object) -> str:
    r"""The text with every character that does not print itself written as an escape: `\x1b`, `\n`, `\u202e`.

    Besides control characters these are marks that change the direction of writing, lone surrogates (bytes of a path
    that are not text) and all spaces but the plain one.
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in plain)


def shown(text: object, *, longest: int = _LONGEST_NAME) -> str:
    """The text without control characters, cut to at most `longest` characters."""
    plain = without_controls(str(text)[: longest + 1])  # escapes only grow: what is cut anyway need not be escaped
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def shown_path(path: object) -> str:
    """A path without control characters; of a very long one the beginning and the end, which names the file."""
    plain = without_controls(path)
    if len(plain) <= _LONGEST_PATH:
        return plain
    half = (_LONGEST_PATH - 1) // 2
    return f"{plain[:half]}…{plain[-half:]}"


def shown_names(names: Collection[object]) -> str:
    """The first names in the order of the alphabet, and how many there are besides; "nothing" if there is none."""
    first = sorted(map(str, names))[:_MOST_NAMES]
    more = [f"… and {len(names) - len(first)} more"] if len(names) > len(first) else []
    return ", ".join([*(shown(name) for name in first), *more]) or "nothing"


def near(name: object, known: Sequence[str]) -> str:
    """What may have been meant by a name that nobody knows, and else what there is."""
    by_small_letters = {other.casefold(): other for other in known}
    matches = get_close_matches(str(name).casefold(), list(by_small_letters), n=3, cutoff=0.5)
    if matches:
        return f"did you mean {' or '.join(repr(shown(by_small_letters[match])) for match in matches)}?"
    return f"known are {shown_first(known)}" if known else "there are none"


def shown_first(names: Sequence[str]) -> str:
    """The first names in their own order, and how many there are in all."""
    more = [f"… ({len(names)} in all)"] if len(names) > _FEW else []
    return ", ".join([*(shown(name) for name in names[:_FEW]), *more]) or "none"


def count_of(number: int, noun: str) -> str:
    """A number and what it counts: "1 layer", "2 layers"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it labels and values as aligned lines."""
    width = max(len(label) for label, _ in rows)
    return "\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in rows)])


def _escaped(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")
