"""How the program ends: 0 when done, 2 with one line on stderr when it cannot be done, 130 when interrupted."""

import sys
from collections.abc import Callable
from typing import Any

import typer

from ltinet.cli.streams import send
from ltinet.errors import LtinetError
from ltinet.shown import without_controls

REFUSED = 2
INTERRUPTED = 130
# What comes through typer from a library of which nobody at a terminal has heard.
_PLAIN = {
    "Input should be a valid number, unable to parse string as a number": "this is no number",
    "Input should be a valid integer, unable to parse string as an integer": "this is no whole number",
}
_LONGEST = 1000  # characters of a complaint: what was typed may be longer than what is to be said about it


def exit_code_of(program: Callable[[], Any]) -> int:
    """Run the program; failures that are not its own become one line on stderr. A bug keeps its traceback."""
    try:
        code = program()
        send("")  # flush what is left, while a failure can still be told
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except Exception as error:
        line = _line_about(error)
        if line is None:
            raise
        return _complain(line, REFUSED)
    if code == INTERRUPTED:  # newer versions of typer return it, older ones raise Abort
        return _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _line_about(error: Exception) -> str | None:
    """What to tell of a failure; None for what can only be a bug."""
    if isinstance(error, LtinetError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use a smaller system or fewer samples"
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename else reason
    if hasattr(error, "format_message"):  # how typer tells of wrong arguments; it exports no class of theirs
        return _about_arguments(error)
    return None


def _about_arguments(error: Any) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip().rstrip(".").replace("Value error, ", "")
    for pydantic, plain in _PLAIN.items():
        message = message.replace(pydantic, plain)
    return f"{message}; see {context.command_path if context else 'ltinet'} --help"


def _complain(message: str, code: int) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"ltinet: {_one_line(message)}\n")
    return code


def _one_line(message: str) -> str:
    """The message without line breaks and control characters; of a very long one the beginning and the end."""
    plain = without_controls(" ".join(message.split()))
    half = (_LONGEST - 3) // 2
    return plain if len(plain) <= _LONGEST else f"{plain[:half]} … {plain[-half:]}"
