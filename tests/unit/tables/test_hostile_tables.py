"""Hostile tables: the reader neither hangs nor takes unbounded memory, and raises FileFormatError only."""

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ltinet import FileFormatError, read_table
from ltinet.tables.source import LONGEST_LINE

MOST_MEMORY = 200e6  # bytes; endless lines would take a gigabyte and more


class Endless(io.RawIOBase):
    """A stream that never ends and never breaks a line."""

    def __init__(self, piece: bytes) -> None:
        self._piece, self.n_read = piece * (1_000_000 // len(piece)), 0

    def read(self, size: int = -1) -> bytes:
        self.n_read += size
        return self._piece[:size]


@pytest.mark.parametrize("piece", [b"1", b"1,", b"\0", b"x ", b'"', b"0;", b"\xff", b"#", b"\xc3"])
@pytest.mark.parametrize("head", [b"", b"t,u\n0,1\n"])
def test_overlong_line(piece: bytes, head: bytes) -> None:
    stream = Endless(piece)
    body = io.BufferedReader(_Joined(head, stream))
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"line|UTF-8"):
        read_table(body)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stream.n_read < 10 * LONGEST_LINE
    assert most < MOST_MEMORY


class _Joined(io.RawIOBase):
    def __init__(self, head: bytes, rest: Endless) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        piece = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "content",
    [
        b"t," + b"u," * 500_000 + b"\n0,1\n",
        b"t,u\n0," + b"9" * 900_000 + b"\n",
        b"t,u\n0,1e" + b"9" * 900_000 + b"\n",
        b"t,u\n" + b'"' * 1001 + b"\n",
        b"\n" * 1_000_000,
        b"#" * 1_000_000 + b"\n",
        b"# c\n" * 300_000,
        b",\n" * 300_000,
        b"t,u\n0,1\n" + b"0,1\n" * 3,
        b"\xff\xfe\x00",
        b"\xef\xbb\xbf",
        b"t,u\n0,1\xc3",
        b"t,u\n9999-99-99T99:99:99Z,1\n",
        b"t,u\n2024-02-30T00:00:00Z,1\n",
        b"t,u\n1600-01-01T00:00:00Z,1\n",
        b"t,u\n2024-01-01T00:00:60Z,1\n",
        b"t,u\n2024-01-01T00:00:00Z,1\n2024-01-01T00:00:01,1\n",
    ],
)
def test_odd_tables_are_rejected(content: bytes) -> None:
    with pytest.raises(FileFormatError) as caught:
        read_table(io.BytesIO(content))
    assert len(str(caught.value)) < 400


SEPARATING = [b",", b";", b"\t", b" ", b"\n", b"\r\n", b'"', b"#", b"%", b"\0", b"=", b"'"]
CELLS = [b"t", b"u", b"1", b"0.5", b"-2e3", b"1,5", b"1.234", b"nan", b"2024-05-01T12:00:00Z", b"\xe9", b"(ms)"]
SIGNS = st.sampled_from(SEPARATING + CELLS)


@given(st.lists(SIGNS, max_size=40), st.sampled_from(["error", "hold", "linear"]))
@example([b"t", b",", b"u", b"\n", b"0.5", b",", b"1", b"\n"], "error")
def test_arbitrary_tables(signs: list[bytes], gaps) -> None:
    try:
        table = read_table(io.BytesIO(b"".join(signs)), gaps=gaps)
    except FileFormatError:
        return
    assert np.isfinite(table.values).all()
    assert np.isfinite(table.t).all()
    assert table.values.shape == (len(table.t), len(table.names))
