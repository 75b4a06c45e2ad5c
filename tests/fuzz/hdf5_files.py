"""Valid `.mat` files of version 7.3, and changes to them: bytes, chunks, links, and checksums that match again."""

import io
import re

import h5py
import numpy as np

from fuzz.mat_files import A, B, C
from fuzz.mutations import BINARY, Generator, flip_bits, mutate, pick, set_word

_CLASS = np.bytes_("double")


def mat73_seeds() -> list[bytes]:
    """In one piece, compact and in chunks; sparse; older and newer forms of the format; with and without user block."""
    files = [_written(_plain), _written(fill_sparse), _written(_others), _written(_plain, userblock_size=0)]
    files += [_written(_chunked(**filters)) for filters in _FILTERS]
    return [*files, _written(_plain, libver="v108"), _written(fill_sparse, libver="v108"), _written(_compact)]


def change_mat73(data: bytes, rng: Generator) -> bytes:
    """Anywhere, where something stands, in the contents of sparse matrices and chunks, or by links to elsewhere."""
    what = int(rng.integers(5))
    if what == 0:
        return mutate(data, rng)
    if what == 1:
        return _written(pick((_sparse_with, _chunk_with, _linked), rng)(rng))
    for _ in range(pick((1, 1, 2), rng)):  # near bytes that are not zero: most of a file is empty room
        marks = [match.start() for match in re.finditer(rb"[^\0]", data[512:])] or [0]
        at = 512 + pick(marks, rng) & ~7
        data = (
            data[:at]
            + pick((set_word, flip_bits, pick(BINARY[:4], rng)), rng)(data[at : at + 16], rng)
            + data[at + 16 :]
        )
    return with_checksums(data) if rng.integers(2) else data


def _written(fill, **options) -> bytes:
    stream = io.BytesIO()
    with h5py.File(stream, "w", **{"userblock_size": 512} | options) as file:
        fill(file)
    data = stream.getvalue()
    return data if options else b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + data[128:]


def _plain(file) -> None:
    for name, matrix in {"A": A, "B": B, "C": C}.items():
        file.create_dataset(name, data=matrix.T).attrs["MATLAB_class"] = _CLASS
    file.create_group("#refs#")


def _compact(file) -> None:
    for name, matrix in {"A": A, "B": B, "C": C}.items():
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(matrix.T.shape)
        h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F64LE, space, dcpl=properties)
        file[name][...] = matrix.T
        file[name].attrs["MATLAB_class"] = _CLASS


_FILTERS = (
    {"compression": "gzip"},
    {"compression": "gzip", "shuffle": True},
    {"compression": "gzip", "fletcher32": True},
    {"shuffle": True},
    {},
)


def _chunked(**filters):
    def fill(file) -> None:
        for name, matrix in {"A": A, "B": B, "C": C}.items():
            chunks = tuple(min(size, 2) for size in matrix.T.shape)
            file.create_dataset(name, data=matrix.T, chunks=chunks, **filters).attrs["MATLAB_class"] = _CLASS

    return fill


def _others(file) -> None:
    file.create_dataset("A", data=np.int16([[-1, 0], [2, -3]])).attrs["MATLAB_class"] = np.bytes_("int16")
    file.create_dataset("B", data=np.uint8([[1, 0]])).attrs["MATLAB_class"] = np.bytes_("logical")
    empty = file.create_dataset("C", data=np.array([0, 2], dtype=np.uint64))
    empty.attrs["MATLAB_class"], empty.attrs["MATLAB_empty"] = _CLASS, np.uint8(1)
    file.create_dataset("Ts", data=np.zeros((1, 1))).attrs["MATLAB_class"] = _CLASS
    file.create_dataset("note", data=np.uint16([[65], [66]])).attrs["MATLAB_class"] = np.bytes_("char")
    file.create_dataset("big", data=np.ones((2, 2), ">f4"))


def fill_sparse(file, parts=None) -> None:
    starts, rows, data = (
        np.array([0, 2, 4, 6]),
        np.array([0, 2, 0, 1, 1, 2]),
        np.array([-1.0, 1e-3, 2.0, -3.0, 0.5, -2.0]),
    )
    parts = parts or {"data": data, "ir": rows.astype(np.uint64), "jc": starts.astype(np.uint64)}
    group = file.create_group("A")
    group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = _CLASS, np.uint64(3)
    for name, values in parts.items():
        group.create_dataset(name, data=values)
    for name, matrix in {"B": B, "C": C}.items():
        file.create_dataset(name, data=matrix.T).attrs["MATLAB_class"] = _CLASS


def _sparse_with(rng: Generator):
    """Indices as a program that means harm would choose them."""
    rows, starts = np.array([0, 2, 0, 1, 1, 2]), np.array([0, 2, 4, 6])
    values = (-1, 3, 4, 100, 2**31, 2**62, 0, 1, 2)
    target = pick((rows, starts), rng)
    target[int(rng.integers(len(target)))] = pick(values, rng)
    if not rng.integers(4):
        rows = rows[: int(rng.integers(len(rows)))]
    dtype = pick((np.uint64, np.int64, np.float64), rng)
    with np.errstate(all="ignore"):
        parts = {"data": np.arange(1.0, 7.0), "ir": rows.astype(dtype), "jc": starts.astype(dtype)}
    if not rng.integers(6):
        del parts[pick(sorted(parts), rng)]
    return lambda file: fill_sparse(file, parts)


def _chunk_with(rng: Generator):
    """A chunk that unfolds to something else than a chunk."""

    def fill(file) -> None:
        import zlib

        _chunked(compression="gzip")(file)
        content = mutate(zlib.decompress(file["A"].id.read_direct_chunk((0, 0))[1]), rng)
        file["A"].id.write_direct_chunk((0, 0), zlib.compress(content), filter_mask=int(rng.integers(4)) & 1)

    return fill


def _linked(rng: Generator):
    """Members that lie outside of the file, or are found by another name."""

    def fill(file) -> None:
        _plain(file)
        del file["A"]
        kind = int(rng.integers(4))
        if kind == 0:
            file["A"] = h5py.SoftLink("/B")
        elif kind == 1:
            file["A"] = h5py.ExternalLink("/etc/passwd", "/A")
        elif kind == 2:
            file.create_dataset("A", (3, 3), "f8", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
        else:
            layout = h5py.VirtualLayout((3, 3), "f8")
            layout[...] = h5py.VirtualSource("/etc/passwd", "A", (3, 3))
            file.create_virtual_dataset("A", layout)

    return fill


def with_checksums(data: bytes) -> bytes:
    """Give the object headers of the newer form checksums that match, so that changes reach what lies behind them."""
    changed = bytearray(data)
    for match in re.finditer(rb"OHDR\x02", data):
        start, flags = match.start(), data[match.end()]
        first = start + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        stop = first + width + int.from_bytes(data[first : first + width], "little")
        if stop + 4 <= len(data):
            changed[stop : stop + 4] = jenkins(bytes(changed[start:stop])).to_bytes(4, "little")
    return bytes(changed)


def jenkins(key: bytes) -> int:
    """Bob Jenkins' public-domain `hashlittle`, transcribed line by line."""
    mask = 0xFFFFFFFF

    def rot(x, k):
        return ((x << k) & mask) | (x >> (32 - k))

    a = b = c = (0xDEADBEEF + len(key)) & mask
    while len(key) > 12:
        a = (a + int.from_bytes(key[:4], "little")) & mask
        b = (b + int.from_bytes(key[4:8], "little")) & mask
        c = (c + int.from_bytes(key[8:12], "little")) & mask
        a = ((a - c) & mask) ^ rot(c, 4)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 6)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 8)
        b = (b + a) & mask
        a = ((a - c) & mask) ^ rot(c, 16)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 19)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 4)
        b = (b + a) & mask
        key = key[12:]
    if not key:
        return c
    key = key.ljust(12, b"\0")
    a = (a + int.from_bytes(key[:4], "little")) & mask
    b = (b + int.from_bytes(key[4:8], "little")) & mask
    c = (c + int.from_bytes(key[8:12], "little")) & mask
    c = ((c ^ b) - rot(b, 14)) & mask
    a = ((a ^ c) - rot(c, 11)) & mask
    b = ((b ^ a) - rot(a, 25)) & mask
    c = ((c ^ b) - rot(b, 16)) & mask
    a = ((a ^ c) - rot(c, 4)) & mask
    b = ((b ^ a) - rot(a, 14)) & mask
    return ((c ^ b) - rot(b, 24)) & mask
