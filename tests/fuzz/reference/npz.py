"""NumPy archives: the directory at the end of a zip file, deflate, and Python's own reading of the array's header."""

import ast
import struct
import zlib

import numpy as np


def variables(data: bytes) -> dict:
    """All arrays of the archive."""
    found = {}
    for name, content in members(data):
        key = name.decode("utf-8", "replace").removesuffix(".npy")
        assert key not in found
        found[key] = array(content)
    return found


def members(data: bytes) -> list[tuple[bytes, bytes | None]]:
    """Names and contents; None for a content that is not stored as NumPy stores it, or does not match its checksum."""
    end = data.rfind(b"PK\x05\x06")
    assert end >= 0
    _, _, _, _, count, size, start, _ = struct.unpack("<4s4H2IH", data[end : end + 22])
    shift = end - size - start  # what stands before the archive, if anything does
    assert shift >= 0
    position, stop, found = end - size, end, []
    while position < stop:
        head = struct.unpack("<4s6H3I5H2I", data[position : position + 46])
        mark, _, _, flags, method, _, _, checksum, packed, whole, n_name, n_extra, n_comment, _, _, _, local = head
        assert mark == b"PK\x01\x02"
        name = data[position + 46 : position + 46 + n_name]
        assert len(name) == n_name
        assert b"\0" not in name
        position += 46 + n_name + n_extra + n_comment
        found.append((name, _content(data, shift + local, (flags, method, checksum, packed, whole))))
    assert position == stop
    assert len(found) == count or count == 0xFFFF
    return found


def _content(data: bytes, local: int, facts: tuple) -> bytes | None:
    flags, method, checksum, packed, whole = facts
    if flags & 1 or method not in (0, 8) or data[local : local + 4] != b"PK\x03\x04":
        return None
    n_name, n_extra = struct.unpack("<2H", data[local + 26 : local + 30])
    start = local + 30 + n_name + n_extra
    content = data[start : start + packed]
    try:
        content = content if method == 0 else zlib.decompressobj(-15).decompress(content)
    except zlib.error:
        return None
    content = content[:whole]
    return content if len(content) == whole and zlib.crc32(content) == checksum else None


def array(content: bytes | None) -> np.ndarray | None:
    """The array, None if it is none of real or complex numbers."""
    if content is None or content[:6] != b"\x93NUMPY" or content[6:8] not in (b"\1\0", b"\2\0", b"\3\0"):
        return None
    width = 2 if content[6] == 1 else 4
    start = 8 + width
    stop = start + int.from_bytes(content[8:start], "little")
    if not stop - start <= min(10_000, len(content) - start):
        return None
    try:
        text = content[start:stop].decode("utf-8" if content[6] == 3 else "latin-1")
        header = ast.literal_eval(text.strip())
        shape, descr, fortran = header["shape"], header["descr"], header["fortran_order"]
        sound = set(header) == {"shape", "descr", "fortran_order"} and text.count("'shape'") == 1
        sound &= isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        sound &= type(fortran) is bool and text.count("'descr'") == 1 and text.count("'fortran_order'") == 1
        dtype = np.dtype(descr)
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError, UnicodeDecodeError):
        return None
    count = 1
    for n in shape if sound else ():
        count *= n
    if not sound or dtype.kind not in "biufc" or len(content) - stop != count * dtype.itemsize:
        return None
    if dtype.kind == "b" and set(content[stop:]) - {0, 1}:
        return None
    flat = np.frombuffer(content[stop:] or b"", dtype) if count else np.zeros(0, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
