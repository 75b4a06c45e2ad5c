"""Sampled signals and initial states in files: CSV tables, `.npz` and `.mat` arrays.

File formats belong to the interface, so they are here and not in `ltinet.signals`, whose signals are arrays.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet._util.progress import track_progress
from ltinet._util.text import format_count, format_names, format_path, sanitize
from ltinet.cli.io import display_name, is_stream, open_stream, temporary_input
from ltinet.cli.options import typed_option_names
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.export.sample_files import WRITERS
from ltinet.io.file_access import DEFAULT_MAX_BYTES, translate_read_errors
from ltinet.io.system_files import format_of_file
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import TableChunk, TableReader
from ltinet.tables.source import BLOCK_BYTES
from ltinet.tables.table import Table, collect_table

_FORMATS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".dat": "csv", ".lvm": "csv", ".npz": "npz", ".mat": "mat"}


@dataclass(frozen=True)
class Samples:
    """Times `(T,)` and values of channels at these times, `(T, channels)` or with batch axes in front."""

    title: str
    """Name of the source, for messages."""
    t: Array
    values: Array


def output_format(target: str, file_format: str | None) -> str:
    """Return the format of a table to write: the option, or that of the target's suffix."""
    if file_format is not None:
        if file_format not in WRITERS:
            raise FileFormatError(f"--format is {sanitize(repr(file_format))}; known formats are {', '.join(WRITERS)}")
        return file_format
    if is_stream(target):
        return "csv"
    suffix = Path(target).suffix.lower()
    if suffix.removeprefix(".") not in WRITERS:
        raise FileFormatError(
            f"{format_path(target)} has an unknown suffix; use .csv, .npz or .mat, or choose one with --format"
        )
    return suffix.removeprefix(".")


@contextmanager
def open_samples(name: str, options: TableOptions) -> Iterator[Samples | TableReader]:
    """Yield times and inputs from a file, a pipe, or standard input: arrays, or a table that is still to be read.

    Raise `FileFormatError` if the file does not exist, is damaged, or does not hold numbers with times.
    """
    title = display_name(name)
    if is_stream(name):
        with open_stream(name) as (stream, suffix):
            if suffix == ".csv":
                yield TableReader(stream, title=title, options=options)
                return
            with temporary_input(stream.read(), title) as file:
                yield _arrays(file, title)
        return
    path = Path(name)
    if path.is_dir() or not path.exists():
        raise FileFormatError(f"{title} is a folder, not a table" if path.is_dir() else f"there is no file {title}")
    if _FORMATS.get(path.suffix.lower()) == "csv":
        with path.open("rb") as stream:
            yield TableReader(stream, title=title, options=options)
    else:
        yield _arrays(path, title)


def read_columns(name: str, options: TableOptions) -> Table:
    """Return the columns of a table of measurements that the options choose."""
    try:
        with typed_option_names(), open_samples(name, options) as source:
            if not isinstance(source, TableReader):
                raise FileFormatError(
                    f"{source.title} holds arrays; give a table with inputs and outputs, as in a .csv"
                )
            return read_whole_table(source, name)
    except FileFormatError as error:
        message = str(error).replace("columns must", "--inputs and --outputs must")
        raise FileFormatError(
            message.replace('others with --columns "…"', "others with --inputs and --outputs")
        ) from None


def read_whole_table(source: TableReader, name: str) -> Table:
    """Return all of a table, with a progress bar."""
    total = None if is_stream(name) else max(Path(name).stat().st_size // BLOCK_BYTES, 1)

    def watched(chunks: Iterable[TableChunk]) -> Iterable[TableChunk]:
        return track_progress(chunks, total=total, noun=f"reading {source.title}")

    return collect_table(source, watched)


def _arrays(path: Path, title: str) -> Samples:
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None or kind == "csv":
        raise FileFormatError(f"{format_path(path)} has an unknown suffix; known formats are .csv, .npz and .mat")
    arrays = read_arrays(path, ("t", "u"), title=title)
    t, values = arrays["t"], np.atleast_1d(arrays["u"])
    if t.size != max(t.shape, default=1):
        raise FileFormatError(f"{title}: t has shape {t.shape}; it must be a list of times")
    t = t.ravel()
    if kind == "mat" and values.shape == (1, len(t)):  # MATLAB's vectors are rows as often as columns
        values = values.T
    return Samples(title, t, values[:, None] if values.ndim == 1 else values)


def read_arrays(path: Path, names: Collection[str], *, title: str) -> dict[str, Array]:
    """Return real arrays by name from a `.npz` or `.mat` file; nothing is unpickled.

    Raise `FileFormatError` if the file cannot be read or an array is missing or not of real numbers, `InvalidSystemError`
    if it is not of numbers.
    """
    with translate_read_errors(title):
        file_format = format_of_file(path)
        variables = file_format.list_variables(path)
        contents = file_format.read(path, names, max_bytes=DEFAULT_MAX_BYTES)
    missing = [name for name in names if name not in contents]
    if missing:
        raise FileFormatError(f"{title} has no {missing[0]} (it holds {format_names(variables)})")
    arrays = {name: np.asarray(contents[name]) for name in names}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise FileFormatError(f"{title}: {name} has the type {array.dtype}; it must hold real numbers")
    return {name: array.astype(np.float64) for name, array in arrays.items()}


def parse_initial_state(text: str, n_states: int) -> NDArray[np.float64]:
    """Return an initial state with one finite number for each state, from numbers separated by commas or from a file.

    Raise `InvalidSignalError` for another number of values, and `FileFormatError` for a file without x0.
    """
    if state_source(text):
        state = read_arrays(Path(text), ("x0",), title=format_path(text))["x0"].ravel()
    else:
        try:
            state = np.array([float(part) for part in text.split(",")])
        except ValueError:
            raise InvalidSignalError(
                f"--x0 is {sanitize(repr(text))}; give numbers separated by commas, as in 1,0,-2, or a .npz or .mat file "
                "with x0"
            ) from None
    if len(state) != n_states:
        raise InvalidSignalError(
            f"--x0 has {format_count(len(state), 'number')}, but the system has {format_count(n_states, 'state')}; give one "
            "for each, or a .npz or .mat file with x0"
        )
    if not np.all(np.isfinite(state)):
        raise InvalidSignalError("--x0 has numbers that are not finite; replace NaN and infinities")
    return state


def state_source(text: str | None) -> dict[str, str]:
    """Return the file of an initial state by its noun for messages; an empty mapping if it is not in a file."""
    return {"the initial state": text} if text is not None and Path(text).suffix.lower() in (".npz", ".mat") else {}
