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
from ltinet.cli.connect import connect
from ltinet.cli.construct import construct
from ltinet.cli.explore import explore
from ltinet.cli.export import export
from ltinet.cli.identify import identify
from ltinet.cli.info import info
from ltinet.cli.io import write_stdout
from ltinet.cli.margin import margin
from ltinet.cli.plot import plot
from ltinet.cli.reduce import reduce
from ltinet.cli.reproduce import reproduce
from ltinet.cli.response import response
from ltinet.cli.simulate import simulate
from ltinet.cli.sources import bash_completions
from ltinet.errors import LtinetError

EXIT_INVALID_INPUT = 2
EXIT_INTERRUPTED = 130
# Messages of pydantic, which reach the user through typer, in the words of the other messages.
_PLAIN_MESSAGES = {
    "Input should be a valid number, unable to parse string as a number": "this is not a number",
    "Input should be a valid integer, unable to parse string as an integer": "this is not an integer",
}
_MAX_MESSAGE_LENGTH = 1000  # characters: messages quote arguments, which may be of any length


def run_and_report(program: Callable[[], Any]) -> int:
    """Run the program and return its exit code; errors of input are reported in one line, bugs keep their traceback."""
    try:
        code = program()
        write_stdout("")  # flush now, while a failure can still be reported
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except typer.Exit as exit_request:
        return exit_request.exit_code
    except Exception as error:
        line = _error_line(error)
        if line is None:
            raise
        return _report_error(line, EXIT_INVALID_INPUT)
    if code == EXIT_INTERRUPTED:  # newer versions of typer return it, older ones raise Abort
        return _report_error("interrupted", EXIT_INTERRUPTED)
    return code if isinstance(code, int) else 0


def _error_line(error: Exception) -> str | None:
    """Return the message for an error of input or of the system; None for an exception that must be a bug."""
    if isinstance(error, LtinetError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; use a smaller system or fewer samples"
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename}: {reason}" if error.filename else reason
    if hasattr(error, "format_message"):  # typer's errors of arguments, whose class it does not export
        context = getattr(error, "ctx", None)
        message = error.format_message().strip().rstrip(".").replace("Value error, ", "")
        for pydantic, plain in _PLAIN_MESSAGES.items():
            message = message.replace(pydantic, plain)
        return f"{message}; see {context.command_path if context else 'ltinet'} --help"
    return None


def _report_error(message: str, code: int) -> int:
    """Write a message to stderr as one line without control characters, shortened in the middle if it is very long."""
    if sys.stderr is not None:
        line = escape_control_characters(" ".join(message.split()))
        if len(line) > _MAX_MESSAGE_LENGTH:
            half = (_MAX_MESSAGE_LENGTH - 3) // 2
            line = f"{line[:half]} … {line[-half:]}"
        sys.stderr.write(f"ltinet: {line}\n")
    return code


_STOP_SIGNALS = ("SIGTERM", "SIGHUP")


@final
class StopRequest(BaseException):
    """Request to stop by a signal, raised where it arrives; no `Exception`, so that handlers of errors let it pass."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into exceptions, so that temporary files are removed, and end the process by the signal.

    A signal that is ignored, as under `nohup`, stays ignored.
    """
    numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _: FrameType | None) -> None:
        for other in handled:
            signal.signal(other, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
        raise StopRequest(number)

    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    except StopRequest as request:
        if sys.stderr is not None:
            sys.stderr.write(f"ltinet: stopped by {signal.Signals(request.number).name}\n")
            sys.stderr.flush()
        signal.signal(request.number, signal.SIG_DFL)
        os.kill(os.getpid(), request.number)  # the parent process sees which signal ended this one
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


app = typer.Typer(
    name="ltinet",
    help="Sparse continuous-time neural networks from linear time-invariant systems, constructed without training.",
    epilog="Use - instead of a file name for standard input or standard output.",
    rich_markup_mode=None,  # without frames help fits into 80 columns and into a pipe
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)
for command in (
    info,
    response,
    margin,
    identify,
    compare,
    reduce,
    connect,
    construct,
    simulate,
    export,
    plot,
    explore,
    reproduce,
):
    app.command()(command)


def main() -> None:
    """Run the program with the arguments of this process and exit with its code."""
    if not sys.warnoptions:
        # NumPy warns of results that are not finite; commands report these as errors.
        warnings.simplefilter("ignore")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without → or ‖ shows a question mark instead of failing
            stream.reconfigure(errors="replace")
    completions = bash_completions()
    if completions is not None:
        write_stdout("\n".join(completions) + "\n")
        sys.exit(0)
    with signals_as_exceptions():
        code = run_and_report(lambda: app(prog_name="ltinet", standalone_mode=False))
    sys.exit(code)


def _print_version(requested: bool) -> None:
    if requested:
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
