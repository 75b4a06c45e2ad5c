"""Text for messages: sanitised names and paths, shortened lists, counts and aligned rows.

Names of variables, columns and files come from the authors of files. Printed unchanged they could move the cursor,
retitle a terminal or reverse the reading direction, and a long one could fill the screen. The functions here escape
every character that is not printable and limit the length.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches

_MAX_NAME_LENGTH = 60  # characters
_MAX_PATH_LENGTH = 240  # characters
_MAX_SORTED_NAMES = 10  # in a message
_MAX_FIRST_NAMES = 5  # in a message


def escape_control_characters(text: object) -> str:
    r"""Return the text with characters that are not printable as escapes: `\x1b`, `\n`, `\u202e`.

    Besides control characters these are marks that change the direction of writing, lone surrogates (bytes of a path
    that are not text) and all spaces other than the ordinary one.
    """
    characters = str(text)
    if characters.isprintable():
        return characters
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in characters)


def sanitize(text: object, *, longest: int = _MAX_NAME_LENGTH) -> str:
    """Return the text without control characters, truncated to `longest` characters."""
    plain = escape_control_characters(str(text)[: longest + 1])  # escapes only lengthen the text
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def format_path(path: object) -> str:
    """Return a path without control characters; long ones are shortened in the middle."""
    plain = escape_control_characters(path)
    if len(plain) <= _MAX_PATH_LENGTH:
        return plain
    half = (_MAX_PATH_LENGTH - 1) // 2
    return f"{plain[:half]}…{plain[-half:]}"


def format_names(names: Collection[object]) -> str:
    """Join the first names in alphabetical order, with the number of further ones; "nothing" for an empty list."""
    first = sorted(map(str, names))[:_MAX_SORTED_NAMES]
    more = [f"… and {len(names) - len(first)} more"] if len(names) > len(first) else []
    return ", ".join([*(sanitize(name) for name in first), *more]) or "nothing"


def suggest_names(name: object, known: Sequence[str]) -> str:
    """Suggest similar names for an unknown one, or list the known names."""
    by_lowercase = {other.casefold(): other for other in known}
    matches = get_close_matches(str(name).casefold(), list(by_lowercase), n=3, cutoff=0.5)
    if matches:
        return f"did you mean {' or '.join(repr(sanitize(by_lowercase[match])) for match in matches)}?"
    return f"known are {format_first_names(known)}" if known else "there are none"


def format_first_names(names: Sequence[str]) -> str:
    """Join the first names in their order, with the total number if some are omitted."""
    more = [f"… ({len(names)} in all)"] if len(names) > _MAX_FIRST_NAMES else []
    return ", ".join([*(sanitize(name) for name in names[:_MAX_FIRST_NAMES]), *more]) or "none"


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number and its noun: "1 layer", "2 layers"; `plural` is needed where it has no s, "2 entries"."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def install_hint(extra: str) -> str:
    """Return how an extra is installed, from a package index or in a clone."""
    return f'install it with pip install "ltinet[{extra}]", or in a clone with pip install ".[{extra}]"'


def format_rows(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Format labels and values as aligned lines below a title."""
    width = max(len(label) for label, _ in rows)
    return "\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in rows)])
