"""The two checksums of HDF5: Jenkins' lookup3 of its own structures, Fletcher's of chunks of data."""

import struct

import numpy as np

_MASK = 0xFFFFFFFF
_START = 0xDEADBEEF
_MODULUS = 65535


def require_checksum(content: bytes, what: str) -> None:
    """Compare the last four bytes with the checksum of those before them.

    Raises:
        ValueError: they differ.
    """
    if len(content) < 4 or lookup3(content[:-4]) != int.from_bytes(content[-4:], "little"):
        raise ValueError(f"the checksum of {what} does not match")


def lookup3(content: bytes) -> int:
    """Jenkins' hash "lookup3", `hashlittle` with initial value 0."""
    a = b = c = (_START + len(content)) & _MASK
    if not content:
        return c
    whole = max(len(content) - 1, 0) // 12 * 12  # the last one to twelve bytes are mixed in another way
    for first, second, third in struct.iter_unpack("<3I", content[:whole]):
        a, b, c = _mix((a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK)
    first, second, third = struct.unpack("<3I", content[whole:].ljust(12, b"\0"))
    return _last_mix((a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK)


def fletcher32(content: bytes) -> int:
    """Fletcher's checksum of 16-bit words, the high byte first, as HDF5 computes it."""
    words = np.frombuffer(content[: len(content) & ~1], ">u2").astype(np.uint64)
    if len(content) % 2:
        words = np.append(words, np.uint64(content[-1] << 8))
    total = int(words.sum())
    weights = np.arange(len(words), 0, -1, dtype=np.uint64)
    # Sums of products of 16-bit and shorter numbers: below 2⁶⁴ for every chunk of less than 2²⁴ words, so by portions.
    weighted = sum(int(np.dot(words[k : k + 65536], weights[k : k + 65536])) for k in range(0, len(words), 65536))
    return (_folded(weighted) << 16) | _folded(total)


def _folded(number: int) -> int:
    """Sums are folded into 16 bits, where 65535 stays what it is and is not 0."""
    return (number - 1) % _MODULUS + 1 if number else 0


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for shift in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _turned(c, shift)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _last_mix(a: int, b: int, c: int) -> int:
    for shift in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _turned(b, shift)) & _MASK
        a, b, c = b, c, a
    return b


def _turned(number: int, shift: int) -> int:
    return ((number << shift) | (number >> (32 - shift))) & _MASK
