"""Command-line program `ltinet`: its commands, exit codes and signals.

Exit codes: 0 on success, 2 with one line on stderr for invalid input, 130 after an interrupt, 141 for a closed pipe.
Only a bug shows a traceback. SIGTERM and SIGHUP become exceptions, so that temporary files are removed; afterwards
the process ends by the same signal. This belongs in the program: a library must leave signals to its user.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, final

import typer

import ltinet
from ltinet._util.text import escape_control_characters
from ltinet.cli.compare import compare
from ltinet.cli.construct import construct
from ltinet.cli.explore import explore
from ltinet.cli.export import export
from ltinet.cli.identify import identify
from ltinet.cli.info import info
from ltinet.cli.io import write_stdout
from ltinet.cli.plot import plot
from ltinet.cli.reduce import reduce
from ltinet.cli.reproduce import reproduce
from ltinet.cli.response import response
from ltinet.cli.simulate import simulate
from ltinet.cli.sources import bash_completions
from ltinet.errors import LtinetError

EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
# What comes through typer from a library of which nobody at a terminal has heard.
_PLAIN = {
    "Input should be a valid number, unable to parse string as a number": "this is no number",
    "Input should be a valid integer, unable to parse string as an integer": "this is no whole number",
}
_LONGEST = 1000  # characters of a complaint: what was typed may be longer than what is to be said about it


def run_and_report(program: Callable[[], Any]) -> int:
    """Run the program; failures that are not its own become one line on stderr. A bug keeps its traceback."""
    try:
        code = program()
        write_stdout("")  # flush what is left, while a failure can still be told
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except Exception as error:
        line = _error_line(error)
        if line is None:
            raise
        return _report_error(line, EXIT_REFUSED)
    if code == EXIT_INTERRUPTED:  # newer versions of typer return it, older ones raise Abort
        return _report_error("interrupted", EXIT_INTERRUPTED)
    return code if isinstance(code, int) else 0


def _error_line(error: Exception) -> str | None:
    """What to tell of a failure; None for what can only be a bug."""
    if isinstance(error, LtinetError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use a smaller system or fewer samples"
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename else reason
    if hasattr(error, "format_message"):  # how typer tells of wrong arguments; it exports no class of theirs
        return _argument_error_line(error)
    return None


def _argument_error_line(error: Any) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().strip().rstrip(".").replace("Value error, ", "")
    for pydantic, plain in _PLAIN.items():
        message = message.replace(pydantic, plain)
    return f"{message}; see {context.command_path if context else 'ltinet'} --help"


def _report_error(message: str, code: int) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"ltinet: {_one_line(message)}\n")
    return code


def _one_line(message: str) -> str:
    """The message without line breaks and control characters; of a very long one the beginning and the end."""
    plain = escape_control_characters(" ".join(message.split()))
    half = (_LONGEST - 3) // 2
    return plain if len(plain) <= _LONGEST else f"{plain[:half]} … {plain[-half:]}"


_NAMES = ("SIGTERM", "SIGHUP")


@final
class StopRequest(BaseException):
    """Raised where a signal arrived; no handler of ordinary errors takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Turn requests to stop into exceptions, and end as the signal would have ended the process at once.

    A signal that is ignored, as `nohup` has it, stays ignored.
    """
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    heeded = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _: FrameType | None) -> None:
        for other in heeded:
            signal.signal(other, signal.SIG_IGN)  # a second one must not disturb the clearing away
        raise StopRequest(number)

    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    except StopRequest as request:
        _end_by_signal(request.number)
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


def _end_by_signal(number: int) -> None:
    """Whoever waits for this process learns that a signal ended it."""
    if sys.stderr is not None:
        sys.stderr.write(f"ltinet: stopped by {signal.Signals(number).name}\n")
        sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


app = typer.Typer(
    name="ltinet",
    help="Sparse continuous-time neural networks from linear time-invariant systems, constructed without training.",
    epilog="Give - instead of a file to read standard input or to write standard output.",
    rich_markup_mode=None,  # without frames help fits into 80 columns, and into a pipe
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)
for command in (info, response, identify, compare, reduce, construct, simulate, export, plot, explore, reproduce):
    app.command()(command)


def main() -> None:
    """Run the program with the arguments of this process, and end the process with its exit code."""
    if not sys.warnoptions:
        # What matters in NumPy's warnings, results that are not finite, is an error of the command.
        warnings.simplefilter("ignore")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without → or ‖ shows a question mark instead of failing
            stream.reconfigure(errors="replace")
    answers = bash_completions()
    if answers is not None:
        write_stdout("\n".join(answers) + "\n")
        sys.exit(0)
    with signals_as_exceptions():
        code = run_and_report(lambda: app(prog_name="ltinet", standalone_mode=False))
    sys.exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"ltinet {ltinet.__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has printed it
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        write_stdout(context.get_help() + "\n")
