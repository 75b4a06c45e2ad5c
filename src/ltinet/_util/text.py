"""Text for messages: sanitised names and paths, shortened lists, counts and aligned rows.

Names of variables, columns and files come from the authors of files. Printed unchanged they could move the cursor,
retitle a terminal or reverse the reading direction, and a long one could fill the screen. The functions here escape
every character that is not printable and limit the length.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

# MERGED ltinet._util.text
# Text that somebody else wrote, made fit for a message: no control characters, no endless names, no endless lists.
#
# Names of variables, of columns and of files come from whoever made the file. Printed as they are they could move the
# cursor, retitle a terminal or turn the reading direction round, and one message could fill a screen.

_MAX_NAME_LENGTH = 60
_MAX_PATH_LENGTH = 240
_MAX_NAMES = 10
_MAX_LISTED = 5  # names in a line of their own


def escape_control_characters(text: object) -> str:
    r"""The text with every character that does not print itself written as an escape: `\x1b`, `\n`, `\u202e`.

    Besides control characters these are marks that change the direction of writing, lone surrogates (bytes of a path
    that are not text) and all spaces but the plain one.
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(mark if mark.isprintable() else _escape(mark) for mark in plain)


def sanitize(text: object, *, longest: int = _MAX_NAME_LENGTH) -> str:
    """The text without control characters, cut to at most `longest` characters."""
    plain = escape_control_characters(
        str(text)[: longest + 1]
    )  # escapes only grow: what is cut anyway need not be escaped
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def format_path(path: object) -> str:
    """A path without control characters; of a very long one the beginning and the end, which names the file."""
    plain = escape_control_characters(path)
    if len(plain) <= _MAX_PATH_LENGTH:
        return plain
    half = (_MAX_PATH_LENGTH - 1) // 2
    return f"{plain[:half]}…{plain[-half:]}"


def format_names(names: Collection[object]) -> str:
    """The first names in the order of the alphabet, and how many there are besides; "nothing" if there is none."""
    first = sorted(map(str, names))[:_MAX_NAMES]
    more = [f"… and {len(names) - len(first)} more"] if len(names) > len(first) else []
    return ", ".join([*(sanitize(name) for name in first), *more]) or "nothing"


def suggest_names(name: object, known: Sequence[str]) -> str:
    """What may have been meant by a name that nobody knows, and else what there is."""
    by_small_letters = {other.casefold(): other for other in known}
    matches = get_close_matches(str(name).casefold(), list(by_small_letters), n=3, cutoff=0.5)
    if matches:
        return f"did you mean {' or '.join(repr(sanitize(by_small_letters[match])) for match in matches)}?"
    return f"known are {format_first_names(known)}" if known else "there are none"


def format_first_names(names: Sequence[str]) -> str:
    """The first names in their own order, and how many there are in all."""
    more = [f"… ({len(names)} in all)"] if len(names) > _MAX_LISTED else []
    return ", ".join([*(sanitize(name) for name in names[:_MAX_LISTED]), *more]) or "none"


def format_count(number: int, noun: str) -> str:
    """A number and what it counts: "1 layer", "2 layers"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """A title, and below it labels and values as aligned lines."""
    width = max(len(label) for label, _ in rows)
    return "\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in rows)])


def _escape(mark: str) -> str:
    return mark.encode("unicode_escape").decode("ascii")
