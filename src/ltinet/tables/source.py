"""Source of a table: numbered blocks of whole lines of text, from a file or a stream.

Sizes are bounded: overlong lines, bytes that are invalid in the given encoding and NUL bytes are rejected with their
line number.
"""

import codecs
import io
import os
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, final

import numpy as np

from ltinet.errors import FileFormatError

BLOCK_BYTES = 1 << 20
"""Bytes read at a time."""
LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is accepted."""
HEAD_BYTES = 1 << 16
"""Bytes of the beginning in which the format is detected, if that many arrive without a pause."""
_PAUSE = 0.3  # s without new data after which the format is detected in what a stream has delivered so far
_FOREIGN_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LINE_FEED = 10


@final
@dataclass(frozen=True)
class TextBlock:
    """Whole lines, each ended by a line feed, and the number of the first of them."""

    content: bytes
    first_line: int


def count_lines(content: bytes) -> int:
    """Count line feeds; ten times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(content, dtype=np.uint8) == _LINE_FEED))


def read_blocks(stream: BinaryIO, *, title: str, encoding: str = "utf-8") -> Iterator[TextBlock]:
    """Yield the text in UTF-8, with line feeds and without a byte-order mark.

    The first block holds enough for the detection of the format. Raises FileFormatError where the content is not
    text, or a line is too long.
    """
    line = 1
    for content in _split_at_lines(_decode(_read_head_first(stream), title, encoding), title):
        if b"\0" in content:
            place = line + content[: content.index(b"\0")].count(b"\n")
            raise FileFormatError(
                f"{title}, line {place} has a NUL byte, which text cannot have; it may be a binary file, or in another "
                'encoding: name it, as in encoding="utf-16"'
            )
        yield TextBlock(content, line)
        line += count_lines(content)


def _read_head_first(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the beginning in one piece, as far as it arrives before a pause, then block after block."""
    read: Any = getattr(stream, "read1", stream.read)  # what a pipe has, without waiting for a full block
    head = b""
    while len(head) < HEAD_BYTES and not (b"\n" in head and not _has_more(stream)) and (piece := read(BLOCK_BYTES)):
        head += piece
    if head:
        yield head
    while piece := read(BLOCK_BYTES):
        yield piece


def _has_more(stream: BinaryIO) -> bool:
    """Return whether data arrive within the pause; True where the operating system cannot tell."""
    try:
        descriptor = stream.fileno()
    except (OSError, AttributeError):
        return True
    return os.name == "nt" or bool(select.select([descriptor], [], [], _PAUSE)[0])


def _decode(pieces: Iterator[bytes], title: str, encoding: str) -> Iterator[bytes]:
    """Re-encode pieces of text as UTF-8, with line feeds at the ends of lines."""
    is_utf8 = codecs.lookup(encoding).name in ("utf-8", "ascii")
    characters = codecs.getincrementaldecoder("utf-8-sig" if is_utf8 else encoding)()
    decoder = io.IncrementalNewlineDecoder(characters, translate=True)
    line = 1
    for number, piece in enumerate(pieces):
        if number == 0 and is_utf8 and piece.startswith(_FOREIGN_MARKS):
            raise FileFormatError(
                f'{title} is not text in UTF-8 but in UTF-16; read it with encoding="utf-16", or save it as UTF-8'
            )
        try:
            text = decoder.decode(piece)
        except UnicodeDecodeError as error:
            place = line + error.object[: error.start].count(b"\n")
            raise FileFormatError(
                f"{title}, line {place} is not text in {encoding.upper()}; name its encoding, as in "
                'encoding="cp1252", or save it as UTF-8'
            ) from None
        line += text.count("\n")
        yield text.encode("utf-8", "replace")
    try:
        yield decoder.decode(b"", final=True).encode("utf-8", "replace")
    except UnicodeDecodeError:
        raise FileFormatError(f"{title}, line {line} ends in the middle of a character; it may be cut off") from None


def _split_at_lines(pieces: Iterator[bytes], title: str) -> Iterator[bytes]:
    """Yield pieces that end with a line feed; the last line is completed."""
    rest, lines = b"", 1
    for piece in pieces:
        text = rest + piece
        end = text.rfind(b"\n") + 1
        rest = text[end:]
        # Only the first line and the rest may be longer than a block: all others lie within one piece.
        if end and text.find(b"\n") > LONGEST_LINE:
            raise _line_too_long(lines, title)
        if end:
            yield text[:end]
            lines += count_lines(text)
        if len(rest) > LONGEST_LINE:
            raise _line_too_long(lines, title)
    if rest:
        yield rest + b"\n"


def _line_too_long(line: int, title: str) -> FileFormatError:
    return FileFormatError(
        f"{title}, line {line} is longer than {LONGEST_LINE} bytes; a table has one line for each time: is it text?"
    )
