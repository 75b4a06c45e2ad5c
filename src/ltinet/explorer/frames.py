"""Messages between processes: a header in JSON and bytes behind it, their lengths in front. Nothing is pickled."""

import json
import struct
from typing import Any, NamedTuple, Protocol

_LENGTHS = struct.Struct("!II")


class Frame(NamedTuple):
    """One message."""

    header: dict[str, Any]
    content: bytes = b""

    def packed(self) -> bytes:
        """As it travels."""
        header = json.dumps(self.header).encode()
        return _LENGTHS.pack(len(header), len(self.content)) + header + self.content


class Receiving(Protocol):
    """The end of a socket."""

    def recv(self, size: int, /) -> bytes:
        """Some bytes, none at the end."""
        ...


def read_frame(source: Receiving) -> Frame | None:
    """The next message; None where the other side is gone."""
    lengths = _exactly(source, _LENGTHS.size)
    if lengths is None:
        return None
    n_header, n_content = _LENGTHS.unpack(lengths)
    header, content = _exactly(source, n_header), _exactly(source, n_content)
    return None if header is None or content is None else Frame(json.loads(header), content)


def unpacked(content: bytes) -> Frame | None:
    """A message that was gathered; None where it is not complete."""
    if len(content) < _LENGTHS.size:
        return None
    n_header, n_content = _LENGTHS.unpack_from(content)
    start = _LENGTHS.size + n_header
    if len(content) != start + n_content:
        return None
    return Frame(json.loads(content[_LENGTHS.size : start]), content[start:])


def _exactly(source: Receiving, count: int) -> bytes | None:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
