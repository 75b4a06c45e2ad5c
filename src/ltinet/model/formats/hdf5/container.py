"""The file as HDF5 sees it: where addresses count from, and the object that everything hangs from."""

from typing import final

from ltinet.model.formats.hdf5.checksum import require_checksum
from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.opening import OpenedFile

SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNDEFINED = 2**64 - 1
"""The address of what does not exist."""
PLACES = (0, 512)
"""Where the signature may stand: at the start, or behind MATLAB's header."""

_LONGEST_SUPERBLOCK = 128
_KNOWN_FLAGS = 0x7


@final
class Container:
    """An HDF5 file; addresses count from its signature, and nothing lies behind its end."""

    def __init__(self, file: OpenedFile) -> None:
        self._file = file
        self.members_per_node, self.nodes_per_node, self.chunks_per_node = 8, 32, 64
        """Room in the nodes of trees, which the file has whether it is used or not."""
        self._base = next((place for place in PLACES if _has_signature(file, place)), -1)
        if self._base < 0:
            raise ValueError("it is not an HDF5 file")
        count = min(file.length - self._base, _LONGEST_SUPERBLOCK)
        content = file.bytes_at(self._base, count)
        cursor = Cursor(content)
        cursor.expect(SIGNATURE, "the signature")
        version = cursor.unsigned(1)
        if version > 3:
            raise ValueError(f"it has version {version} of the HDF5 superblock, which is not known here")
        self.root = self._old_root(cursor, version) if version < 2 else self._new_root(cursor, content)

    def bytes_at(self, address: int, count: int) -> bytes:
        """`count` bytes at an address.

        Raises:
            ValueError: the file does not have them.
        """
        if self._base + address + count > self._end:
            raise ValueError(f"it says that it ends at byte {self._end}, and needs {count} bytes from {address} on")
        return self._file.bytes_at(self._base + address, count)

    def up_to(self, address: int, count: int) -> bytes:
        """At most `count` bytes at an address, fewer where the file ends."""
        return self.bytes_at(address, max(0, min(count, self._end - self._base - address)))

    def _old_root(self, cursor: Cursor, version: int) -> int:
        versions = cursor.take(4)
        sizes = cursor.take(2)
        if versions[:2] + versions[3:] != bytes(3):
            raise ValueError("it has parts of a version that is not known here")
        cursor.take(1)
        leaf, internal, flags = cursor.numbers("HHI")
        self.members_per_node, self.nodes_per_node = 2 * leaf, 2 * internal
        if version == 1:
            chunks, _ = cursor.numbers("HH")
            self.chunks_per_node = 2 * chunks
        if 0 in (self.members_per_node, self.nodes_per_node, self.chunks_per_node):
            raise ValueError("its groups or chunks have no room for any")
        base, extension, end, driver = cursor.numbers("4Q")
        self._check(sizes, flags, base, end)
        if driver != UNDEFINED or extension != UNDEFINED:
            raise ValueError("its data lie in other files, or in a form that MATLAB does not write")
        _, root, kind, _, _, _ = cursor.numbers("QQIIQQ")
        if kind > 2:
            raise ValueError("its root is of a kind that is not known here")
        return root

    def _new_root(self, cursor: Cursor, content: bytes) -> int:
        sizes = cursor.take(2)
        flags = cursor.unsigned(1)
        base, _, end, root = cursor.numbers("4Q")
        require_checksum(content[: cursor.position + 4], "the superblock")
        self._check(sizes, flags, base, end)
        return root

    def _check(self, sizes: bytes, flags: int, base: int, end: int) -> None:
        if sizes != b"\x08\x08" or flags & ~_KNOWN_FLAGS:
            raise ValueError("it has addresses that are not of 8 bytes, which is not known here")
        if base != self._base:
            raise ValueError(f"it says that it begins at byte {base}, and begins at {self._base}")
        if end > self._file.length:
            raise ValueError(f"it is cut off: it says that it has {end} bytes, and has {self._file.length}")
        self._end = end


def _has_signature(file: OpenedFile, place: int) -> bool:
    size = len(SIGNATURE)
    return file.length >= place + size and file.bytes_at(place, size) == SIGNATURE
