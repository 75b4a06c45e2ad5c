"""Source of a table: numbered blocks of whole lines of text, from a file or a stream.

Sizes are bounded: lines that do not end, bytes that are not text in the given encoding and control characters are
refused with their line number.
"""

import codecs
import os
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, final

import numpy as np

from ltinet.errors import FileFormatError

# MERGED ltinet.tables.source
# Text in blocks of whole lines, from a file or as a stream brings it, with the number of each block's first line.
#
# No size is believed and none is unbounded: a line that does not end, bytes that are no text and signs that no table has
# are refused where they stand.

BLOCK_BYTES = 1 << 20
"""Bytes read at a time."""
LONGEST_LINE = 1 << 20
HEAD_BYTES = 1 << 16
"""Bytes that are looked at before anything is decided, if so many come."""
_PAUSE = 0.3  # seconds without news after which what a stream has brought so far must do
_FOREIGN_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_LINE_FEED = 10

Read = Callable[[], bytes]


@final
@dataclass(frozen=True)
class TextBlock:
    """Whole lines, each ended by a line feed, and the number of the first of them."""

    content: bytes
    first_line: int


def count_lines(content: bytes) -> int:
    """How many line feeds there are; ten times as fast as bytes count themselves."""
    return int(np.count_nonzero(np.frombuffer(content, dtype=np.uint8) == _LINE_FEED))


def block_reader(stream: BinaryIO) -> Read:
    """A function that gives what the stream has, at most a block of it, and nothing at its end.

    A pipe gives what has arrived, without waiting for more.
    """
    if hasattr(stream, "read1"):
        return lambda: stream.read1(BLOCK_BYTES)
    return lambda: stream.read(BLOCK_BYTES) or b""


def read_blocks(stream: BinaryIO, *, title: str, encoding: str = "utf-8") -> Iterator[TextBlock]:
    """The text in UTF-8, with line feeds, without a byte-order mark; the first block is all that decisions need.

    Raises:
        FileFormatError: what comes is no text, or a line does not end.
    """
    line = 1
    for content in _whole_lines(_decoded(_first_together(stream), title, encoding), title):
        if b"\0" in content:
            place = line + content[: content.index(b"\0")].count(b"\n")
            raise FileFormatError(f"{title}, line {place} has a NUL byte, which no text has; {_NO_TEXT}")
        yield TextBlock(content, line)
        line += count_lines(content)


_NO_TEXT = 'it may be a binary file, or in another encoding: say which, as in encoding="utf-16"'


def _first_together(stream: BinaryIO) -> Iterator[bytes]:
    """What the stream gives; the beginning as one piece, or as much of it as comes before a pause."""
    read = block_reader(stream)
    head = b""
    while len(head) < HEAD_BYTES:
        if b"\n" in head and not _has_more(stream):
            break
        piece = read()
        if not piece:
            break
        head += piece
    if head:
        yield head
    while piece := read():
        yield piece


def _has_more(stream: BinaryIO) -> bool:
    """Whether more comes within a moment; True where the system cannot say."""
    try:
        descriptor = stream.fileno()
    except (OSError, AttributeError):
        return True
    if os.name == "nt":
        return True
    return bool(select.select([descriptor], [], [], _PAUSE)[0])


def _decoded(pieces: Iterator[bytes], title: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8-sig" if _is_utf8(encoding) else encoding)()
    line = 1
    for number, piece in enumerate(pieces):
        if number == 0 and _is_utf8(encoding) and piece.startswith(_FOREIGN_MARKS):
            raise FileFormatError(
                f'{title} is not text in UTF-8 but in UTF-16; say so with encoding="utf-16", or save it as UTF-8'
            )
        if number and piece.isascii() and _is_utf8(encoding) and not decoder.getstate()[0]:
            yield piece
            line += count_lines(piece)
            continue
        try:
            text = decoder.decode(piece)
        except UnicodeDecodeError as error:
            place = line + error.object[: error.start].count(b"\n")
            raise FileFormatError(
                f"{title}, line {place} is not text in {encoding.upper()}; say which encoding it is in, as in "
                'encoding="cp1252", or save it as UTF-8'
            ) from None
        line += text.count("\n")
        yield text.encode("utf-8", "replace")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise FileFormatError(f"{title}, line {line} ends in the middle of a character; it may be cut off") from None


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "ascii")


def _whole_lines(pieces: Iterator[bytes], title: str) -> Iterator[bytes]:
    """The same with line feeds only, cut after one of them; the last line gets its own."""
    rest, lines = b"", 1
    for piece in pieces:
        held = b"\r" if piece.endswith(b"\r") else b""  # a line feed may follow
        whole = _with_line_feeds(rest + piece[: len(piece) - len(held)])
        end = whole.rfind(b"\n") + 1
        if end:
            if whole.find(b"\n") > LONGEST_LINE:  # all others lie within one piece, and are shorter than this
                raise _endless(lines, title)
            yield whole[:end]
            lines += count_lines(whole)
        rest = whole[end:] + held
        if len(rest) > LONGEST_LINE:
            raise _endless(lines, title)
    if rest:
        yield _with_line_feeds(rest).removesuffix(b"\n") + b"\n"


def _with_line_feeds(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in content else content


def _endless(line: int, title: str) -> FileFormatError:
    return FileFormatError(
        f"{title}, line {line} is longer than {LONGEST_LINE} bytes; a table has a line for each time: is it text?"
    )
