"""Changes to bytes and to text, drawn at random: those that no format is asked about."""

import re
from collections.abc import Callable, Sequence

import numpy as np

Generator = np.random.Generator
Mutation = Callable[[bytes, Generator], bytes]

_BYTES = (0, 1, 2, 7, 0x0A, 0x20, 0x25, 0x2D, 0x30, 0x7F, 0x80, 0xFE, 0xFF)
_WORDS = (0, 1, 2, 3, 4, 8, 100, 127, 128, 255, 256, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)
_TOKENS = (
    b"0", b"1", b"2", b"3", b"4", b"-1", b"1000000", b"30000 30000 1", b"99999999999999999999", b"2abc", b"-1,5",
    b"1e400", b"nan", b"inf", b"1_0", b"0x10", b"1 2", b"", b"\0", b"1\x002", b".", b"-", b"1e", b"1.5", b"+2", b"1d3",
    b"\xff", b"%", b"True", b"()", b"(", b"|O", b"<f8", b">f8", b"<f16", b"|b1", b"|S3", b"general", b"symmetric",
    b"skew-symmetric", b"pattern", b"complex", b"integer", b"real", b"array", b"coordinate", b"hermitian", b"vector",
)  # fmt: skip
_TOKEN = re.compile(rb"[A-Za-z<>|%]+[A-Za-z0-9_-]*|[-+0-9.eE]+")


def pick(choices: Sequence, rng: Generator):
    """One of them; `rng.choice` would make an array of them first."""
    return choices[int(rng.integers(len(choices)))]


def place(data: bytes, rng: Generator) -> int:
    """A position in the data."""
    return int(rng.integers(len(data))) if data else 0


def flip_bits(data: bytes, rng: Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if changed:
            changed[place(data, rng)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def set_bytes(data: bytes, rng: Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if changed:
            changed[place(data, rng)] = pick(_BYTES, rng) if rng.integers(2) else int(rng.integers(256))
    return bytes(changed)


def set_word(data: bytes, rng: Generator) -> bytes:
    """A whole number of two, four or eight bytes, where one is likely to stand, becomes another one."""
    size = pick((2, 4, 8), rng)
    at = place(data, rng) // size * size if rng.integers(4) else place(data, rng)
    order = pick(("little", "little", "little", "big"), rng)
    old = int.from_bytes(data[at : at + size], order)
    new = pick((*_WORDS, old + 1, old - 1, old * 2, len(data), at), rng)
    return data[:at] + (new % 2 ** (8 * size)).to_bytes(size, order) + data[at + size :]


def cut_off(data: bytes, rng: Generator) -> bytes:
    return data[: place(data, rng)]


def remove(data: bytes, rng: Generator) -> bytes:
    at, count = place(data, rng), int(rng.integers(1, 17))
    return data[:at] + data[at + count :]


def insert(data: bytes, rng: Generator) -> bytes:
    at, count = place(data, rng), int(rng.integers(1, 17))
    return data[:at] + (rng.bytes(count) if rng.integers(2) else bytes(count)) + data[at:]


def duplicate(data: bytes, rng: Generator) -> bytes:
    """A part comes once more, behind itself or anywhere."""
    start = place(data, rng)
    part = data[start : start + int(rng.integers(1, 257))]
    at = place(data, rng) if rng.integers(2) else start
    return data[:at] + part + data[at:]


def overwrite(data: bytes, rng: Generator) -> bytes:
    """A part of the data stands in the place of another."""
    start, at = place(data, rng), place(data, rng)
    part = data[start : start + int(rng.integers(1, 65))]
    return data[:at] + part + data[at + len(part) :]


def replace_token(data: bytes, rng: Generator) -> bytes:
    """A word or a number of a text becomes another one."""
    tokens = list(_TOKEN.finditer(data))
    if not tokens:
        return flip_bits(data, rng)
    # The first ones are the header, where most is decided.
    token = tokens[int(len(tokens) * rng.random() ** 3)]
    return data[: token.start()] + pick(_TOKENS, rng) + data[token.end() :]


def change_digit(data: bytes, rng: Generator) -> bytes:
    """A number stays one, but becomes another."""
    digits = [match.start() for match in re.finditer(rb"[0-9]", data)]
    if not digits:
        return flip_bits(data, rng)
    at = pick(digits, rng)
    return data[:at] + b"%d" % rng.integers(10) + data[at + 1 :]


def change_lines(data: bytes, rng: Generator) -> bytes:
    """A line is left out, repeated, moved or made blank."""
    lines = data.split(b"\n")
    at, other = place(lines, rng), place(lines, rng)
    what = int(rng.integers(5))
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(other, lines[at])
    elif what == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 3:
        lines.insert(at, pick((b"", b"   ", b"% text", b"\t", b"1 1 1", b"0 0 0", b"\r"), rng))
    else:
        return data.replace(b"\n", pick((b"\r\n", b"\r", b"\n\n", b" "), rng))
    return b"\n".join(lines)


BINARY: tuple[Mutation, ...] = (
    flip_bits, set_bytes, set_word, set_word, set_word, cut_off, remove, insert, duplicate, overwrite,
)  # fmt: skip
TEXT: tuple[Mutation, ...] = (
    change_digit, change_digit, change_digit, replace_token, replace_token, replace_token, replace_token,
    change_lines, change_lines, flip_bits, set_bytes, cut_off, remove, insert, duplicate,
)  # fmt: skip


def mutate(data: bytes, rng: Generator, choices: Sequence[Mutation] = BINARY) -> bytes:
    """One change, sometimes two or three."""
    for _ in range(pick((1, 1, 1, 2, 3), rng)):
        data = pick(choices, rng)(data, rng)
    return data
