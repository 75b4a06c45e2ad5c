"""No command writes over what it reads: not under another name, through a link, nor through a redirection."""

import io
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from ltinet.cli.streams import STANDARD
from ltinet.errors import FileFormatError
from ltinet.shown import shown_path

_Identity = tuple[int, int]


def refuse_overwriting(target: str, sources: Mapping[str, str]) -> None:
    """Refuse a target that is one of the files read, by their identity and not by their names.

    `sources` says what each of them is, for the message. A folder stands for the files in it.

    Raises:
        FileFormatError: it is.
    """
    written = next(_identities(target, sys.stdout), None)
    for what, source in sources.items():
        if written is not None and written in _identities(source, sys.stdin):
            title = "standard output goes to" if target == STANDARD else f"{shown_path(target)} is"
            raise FileFormatError(
                f"{title} the file that {what} comes from, {_title(source)}; writing would destroy it: name another "
                "file with -o"
            )


def _identities(name: str, standard: TextIO | None) -> Iterator[_Identity]:
    """Device and number of a file, or of those in a folder; nothing for pipes, devices and what is not there."""
    try:
        found = os.fstat(_descriptor(standard)) if name == STANDARD else os.stat(name)
    except (OSError, ValueError):
        return
    if stat.S_ISREG(found.st_mode):
        yield found.st_dev, found.st_ino
    elif stat.S_ISDIR(found.st_mode):
        for file in Path(name).iterdir():
            if file.is_file():
                yield file.stat().st_dev, file.stat().st_ino


def _descriptor(stream: TextIO | None) -> int:
    if stream is None:
        raise io.UnsupportedOperation("closed")  # an OSError, as for a stream that is no file
    return stream.fileno()


def _title(source: str) -> str:
    return "through standard input" if source == STANDARD else shown_path(source)
