"""The lines of a text file in portions, plain or gzipped, so that no file has to fit into memory as text."""

import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, final

from ltinet.model.formats.limits import most_inflated
from ltinet.model.formats.opening import OpenedFile

_PORTION = 1 << 20
_LONGEST_LINE = 1 << 16
_GZIP = 31  # for zlib: a gzip header and checksum, and the widest window


@final
class Lines:
    r"""Lines one by one, then the rest in portions of whole lines; they end in \n or \r\n."""

    def __init__(self, stream: BinaryIO | io.BufferedReader, most_bytes: int) -> None:
        self._stream = stream
        self.most_bytes = most_bytes
        """An upper bound on what is still to come, from the length of the file."""
        self.number = 0
        """Lines before the next one, for messages."""

    def next_line(self) -> bytes | None:
        """The next line, without its end; None where there is none."""
        line = self._stream.readline(_LONGEST_LINE)
        self._require_whole(line)
        self.most_bytes -= len(line)
        self.number += 1
        return line.removesuffix(b"\n").removesuffix(b"\r") if line else None

    def portions(self) -> Iterator[bytes]:
        r"""What follows, in portions of whole lines with \n between them; `number` counts those before each portion."""
        while portion := self._stream.read(_PORTION):
            if not portion.endswith(b"\n"):
                rest = self._stream.readline(_LONGEST_LINE)
                self._require_whole(rest)
                portion += rest
            portion = portion.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r")
            yield portion
            self.number += portion.count(b"\n") + 1

    def _require_whole(self, line: bytes) -> None:
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            raise ValueError(f"it has a line of more than {_LONGEST_LINE} characters")


def lines_of(file: OpenedFile, *, is_compressed: bool) -> Lines:
    """The lines of a file; a gzipped one is inflated portion by portion."""
    if not is_compressed:
        return Lines(file.stream, file.length)
    return Lines(io.BufferedReader(_Inflated(file.stream), _PORTION), most_inflated(file.length))


@final
class _Inflated(io.RawIOBase):
    """What a gzipped stream holds, never more at a time than is asked for, each member with its checksum.

    Python's own reader takes the name in the header byte by byte, which for a damaged file may take minutes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._machine = zlib.decompressobj(_GZIP)
        self._compressed = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while True:
            self._compressed = self._compressed or self._stream.read(_PORTION)
            if self._machine.eof and self._compressed:  # another member follows
                self._machine = zlib.decompressobj(_GZIP)
            elif not self._compressed:
                if not self._machine.eof:
                    raise ValueError("it ends in the middle of its compressed text")
                return 0
            part = self._machine.decompress(self._compressed, len(view))
            self._compressed = self._machine.unused_data if self._machine.eof else self._machine.unconsumed_tail
            if part:
                view[: len(part)] = part
                return len(part)
