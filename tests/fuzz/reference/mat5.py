"""MATLAB version 5, by the tables of the format's description: one function that opens an element, one for a matrix."""

import struct
import zlib
from collections.abc import Collection

import numpy as np

_STORAGE = {
    1: np.int8, 2: np.uint8, 3: np.int16, 4: np.uint16, 5: np.int32, 6: np.uint32, 7: np.float32, 9: np.float64,
    12: np.int64, 13: np.uint64,
}  # fmt: skip
_CHARACTERS = (1, 2, 16)


def variables(data: bytes, names: Collection[str]) -> dict:
    """Those of the variables that are there; of the others only the headers are looked at."""
    assert len(data) >= 128
    endian = {b"IM": "little", b"MI": "big"}[data[126:128]]
    assert int.from_bytes(data[124:126], endian) == 0x0100
    found = {}
    rest = data[128:]
    while rest:
        kind, body, rest = element(rest, endian, padded=False)
        assert kind in (14, 15)
        start = zlib.decompressobj().decompress(body, 4104)[8:] if kind == 15 else body
        name = header(start, endian)[0]
        assert name not in found
        if kind == 15 and name in names:
            unpacker = zlib.decompressobj()
            inner = unpacker.decompress(body) + unpacker.flush()
            assert unpacker.eof
            assert not unpacker.unused_data
            kind, body, left = element(inner, endian, padded=False)
            assert kind == 14
            assert not left
        if name:
            found[name] = matrix(body, endian) if name in names else None
    return found


def element(data: bytes, endian: str, *, padded: bool = True) -> tuple[int, bytes, bytes]:
    """Type, content, and what follows."""
    assert len(data) >= 8
    word = int.from_bytes(data[:4], endian)
    kind, short = word & 0xFFFF, word >> 16
    if padded and short:
        assert short <= 4
        return kind, data[4 : 4 + short], data[8:]
    assert not short
    count = int.from_bytes(data[4:8], endian)
    assert len(data) >= 8 + count
    end = 8 + count + (-count % 8 if padded else 0)
    return kind, data[8 : 8 + count], data[end:]


def header(body: bytes, endian: str) -> tuple[str, int, tuple, bytes]:
    """Name, class (0 for complex numbers), shape, and what follows."""
    kind, flags, body = element(body, endian)
    assert kind == 6
    assert len(flags) == 8
    word = int.from_bytes(flags[:4], endian)
    family, is_complex = word & 0xFF, word & 0x800
    shape = ()
    if family != 17:
        kind, sizes, body = element(body, endian)
        assert kind in (5, 6)
        assert len(sizes) % 4 == 0
        sign = "i" if kind == 5 else "I"
        shape = struct.unpack(f"{'<' if endian == 'little' else '>'}{len(sizes) // 4}{sign}", sizes)
        assert 2 <= len(shape) <= 32
        assert min(shape) >= 0
    kind, name, body = element(body, endian)
    assert kind in _CHARACTERS
    return name.decode("latin-1"), 0 if is_complex else family, shape, body


def matrix(body: bytes, endian: str) -> np.ndarray | None:
    """The value of a matrix; None where it does not hold real numbers."""
    _, family, shape, body = header(body, endian)
    if not 5 <= family <= 15:
        return None
    if family == 5:
        return sparse(body, shape, endian)
    values, body = numbers(body, endian)
    assert not body
    size = 1
    for length in shape:
        size *= length
    assert len(values) == size
    return values.reshape(shape[::-1]).T


def sparse(body: bytes, shape: tuple, endian: str) -> np.ndarray:
    """Filled in entry by entry."""
    assert len(shape) == 2
    parts = []
    for expected in ((5, 6), (5, 6), tuple(_STORAGE)):
        kind, _, _ = element(body, endian)
        assert kind in expected
        values, body = numbers(body, endian)
        parts.append(values.tolist())
    assert not body
    rows, starts, values = parts
    assert len(starts) == shape[1] + 1
    assert starts[0] == 0
    filled = np.zeros(shape)
    taken = set()
    for column in range(shape[1]):
        assert starts[column] <= starts[column + 1]
        for entry in range(starts[column], starts[column + 1]):
            assert 0 <= rows[entry] < shape[0]
            assert (rows[entry], column) not in taken
            taken.add((rows[entry], column))
            filled[rows[entry], column] = values[entry]
    return filled


def numbers(body: bytes, endian: str) -> tuple[np.ndarray, bytes]:
    """A list of numbers, and what follows."""
    kind, content, rest = element(body, endian)
    dtype = np.dtype(_STORAGE[kind]).newbyteorder("<" if endian == "little" else ">")
    assert len(content) % dtype.itemsize == 0
    return np.array(
        [value for (value,) in struct.iter_unpack(_code(dtype), content)], dtype=dtype.newbyteorder("=")
    ), rest


def _code(dtype: np.dtype) -> str:
    letters = {
        "i1": "b",
        "u1": "B",
        "i2": "h",
        "u2": "H",
        "i4": "i",
        "u4": "I",
        "f4": "f",
        "f8": "d",
        "i8": "q",
        "u8": "Q",
    }
    order = ">" if dtype.str.startswith(">") else "<"
    return order + letters[f"{dtype.kind}{dtype.itemsize}"]
