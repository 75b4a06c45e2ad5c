"""Bytes taken one after the other, never beyond their end."""

import struct
from typing import final


@final
class Cursor:
    """Takes little-endian whole numbers and parts of a block of bytes from its beginning to its end."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes that were not taken yet."""
        return len(self._content) - self.position

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            ValueError: there are not so many.
        """
        if not 0 <= count <= self.remaining:
            raise ValueError("a part of it is shorter than it claims")
        self.position += count
        return self._content[self.position - count : self.position]

    def unsigned(self, size: int) -> int:
        """The next whole number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def numbers(self, form: str) -> tuple[int, ...]:
        """The next numbers, described as in the module `struct`."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))

    def text(self) -> bytes:
        """The next text, up to the NUL that ends it."""
        end = self._content.find(b"\0", self.position)
        if end < 0:
            raise ValueError("a name in it has no end")
        content = self.take(end - self.position)
        self.position += 1
        return content

    def align(self, size: int) -> None:
        """Pass over what fills up to a multiple of `size`; the end needs no filling."""
        self.position = min(self.position + -self.position % size, len(self._content))

    def expect(self, mark: bytes, what: str) -> None:
        """Take a mark that must be here.

        Raises:
            ValueError: something else is.
        """
        if self.take(len(mark)) != mark:
            raise ValueError(f"where {what} should be there is something else")
