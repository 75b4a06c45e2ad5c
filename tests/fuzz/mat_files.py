"""Valid `.mat` files of versions 4 and 5, and changes that reach inside of what is compressed."""

import io
import struct
import zlib

import numpy as np
from scipy import sparse
from scipy.io import savemat

from fuzz.mutations import Generator, mutate, pick

A = np.array([[-1.0, 2.0, 0.0], [0.0, -3.0, 0.5], [1e-3, 0.0, -2.0]])
B = np.array([[1.0, 0.0], [0.0, 2.0], [-0.1, 1e-300]])
C = np.array([[1.0, 0.0, 5e-324]])
PLAIN = {"A": A, "B": B, "C": C}


def mat5_seeds() -> list[bytes]:
    """Dense and sparse, compressed and not, of many types, both byte orders, with things beside the matrices."""
    nested: object = np.array([[1.0]])
    for _ in range(4):
        nested = np.array([[nested]], dtype=object)
    mixed = {
        "A": sparse.csc_array(A),
        "B": np.int8([[1, 0], [0, 2], [3, -4]]),
        "C": np.array([[True, False, True]]),
        "D": np.zeros((0, 0)),
        "Ts": 0.0,
        "note": "text",
        "parts": {"a": 1.0, "b": {"c": "x"}},
        "cells": nested,
        "z": np.array([[1j]]),
    }
    every = [PLAIN, mixed, {"A": sparse.csc_array(A), "B": sparse.csc_array(B), "C": sparse.csc_array(C)}]
    every.append({"A": A.astype(np.float32), "B": np.uint16([[1], [2], [3]]), "C": np.zeros((0, 3)), "D": []})
    files = [_saved(variables, do_compression=packed) for variables in every for packed in (False, True)]
    return [*files, *(_big_endian(PLAIN, is_compressed=packed) for packed in (False, True))]


def mat4_seeds() -> list[bytes]:
    """Dense and sparse, of several types, both byte orders, with text beside the matrices."""
    mixed = {"A": sparse.csc_array(A), "B": np.int16([[1, 0], [0, 2], [3, -4]]), "C": C, "note": "text"}
    files = [_saved(variables, format="4") for variables in (PLAIN, mixed, {**PLAIN, "D": np.array([[0.0, 7.0]])})]
    numbers = {"A": ("f8", 0), "B": ("i4", 20), "C": ("f4", 10)}
    big = b""
    for name, (code, kind) in numbers.items():
        head = struct.pack(">5i", 1000 + kind, *PLAIN[name].shape, 0, 2)
        big += head + name.encode() + b"\0" + PLAIN[name].astype(f">{code}").tobytes(order="F")
    return [*files, big]


def change_mat4(data: bytes, rng: Generator) -> bytes:
    """Any bytes; there is nothing to look through."""
    return mutate(data, rng)


def change_mat5(data: bytes, rng: Generator) -> bytes:
    """Half of the changes are made inside of a variable, which is packed again and as long as it says."""
    if rng.integers(2):
        return mutate(data, rng)
    order = "<" if data[126:128] == b"IM" else ">"
    parts, position = [], 128
    while position < len(data):
        kind, length = struct.unpack_from(f"{order}II", data, position)
        parts.append((kind, data[position + 8 : position + 8 + length]))
        position += 8 + length
    at = int(rng.integers(len(parts)))
    kind, content = parts[at]
    if kind == 15:
        content = zlib.decompress(content)
        inside = mutate(content[8:], rng)
        length = len(inside) if rng.integers(8) else int(rng.integers(2**32))
        content = zlib.compress(content[:4] + struct.pack(f"{order}I", length) + inside)
        content = mutate(content, rng) if not rng.integers(8) else content
    else:
        content = mutate(content, rng)
    parts[at] = (kind, content)
    if not rng.integers(8):
        parts.insert(int(rng.integers(len(parts))), pick(parts, rng))
    return data[:128] + b"".join(struct.pack(f"{order}II", kind, len(content)) + content for kind, content in parts)


def _saved(variables, **options) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables, **options)
    return stream.getvalue()


def _big_endian(variables, *, is_compressed: bool) -> bytes:
    """As MATLAB wrote on machines of the other byte order; no library here writes it."""
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    for name, matrix in variables.items():
        parts = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, *matrix.shape)
        parts += struct.pack(">HH4s", 1, 1, name.encode())  # one byte fits into the tag
        content = matrix.astype(">f8").tobytes(order="F")
        parts += struct.pack(">II", 9, len(content)) + content
        element = struct.pack(">II", 14, len(parts)) + parts
        if is_compressed:
            packed = zlib.compress(element)
            element = struct.pack(">II", 15, len(packed)) + packed
        head += element
    return head
