"""Matrix Market text, line by line, number by number."""

import gzip
import re

import numpy as np

_REAL = re.compile(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_WHOLE = re.compile(rb"[-+]?[0-9]+")


def variables(folder: dict[str, bytes]) -> dict:
    """All matrices of a folder, given as the contents of its files."""
    found = {}
    for name, data in folder.items():
        text = gzip.decompress(data) if name.endswith(".gz") else data
        key = name.removesuffix(".gz").removesuffix(".mtx")
        assert key not in found
        try:
            found[key] = matrix(text)
        except (AssertionError, ValueError, OverflowError, IndexError):
            found[key] = None
    return found


def matrix(text: bytes) -> np.ndarray:
    """The matrix of one file."""
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    words = lines[0].lower().split()
    assert words[:2] == [b"%%matrixmarket", b"matrix"]
    layout, field, symmetry = words[2:]
    body = [line for line in lines[1:] if line.strip(b" \t")]
    while body[0].startswith(b"%"):
        del body[0]
    # A comment between blank lines and the size is one, too; afterwards there are numbers only.
    sizes = [_whole(word) for word in _words(body[0])]
    assert all(word.isdigit() for word in _words(body[0]))
    entries = [_words(line) for line in body[1:]]
    if layout == b"array":
        return _array(sizes, entries, field, symmetry)
    assert layout == b"coordinate"
    return _coordinate(sizes, entries, field, symmetry)


def _array(sizes: list[int], entries: list, field: bytes, symmetry: bytes) -> np.ndarray:
    rows, columns = sizes
    assert field in (b"real", b"double", b"integer", b"unsigned-integer")
    filled = np.zeros((rows, columns))
    assert symmetry == b"general" or rows == columns
    first = {b"general": lambda _: 0, b"symmetric": lambda c: c, b"skew-symmetric": lambda c: c + 1}[symmetry]
    places = [(row, column) for column in range(columns) for row in range(first(column), rows)]
    assert len(places) == len(entries)
    for (row, column), (word,) in zip(places, entries, strict=True):
        _put(filled, row, column, _number(word, field), symmetry)
    return filled


def _coordinate(sizes: list[int], entries: list, field: bytes, symmetry: bytes) -> np.ndarray:
    rows, columns, count = sizes
    assert field in (b"real", b"double", b"integer", b"unsigned-integer", b"pattern")
    assert symmetry in (b"general", b"symmetric", b"skew-symmetric")
    assert symmetry == b"general" or rows == columns
    assert len(entries) == count
    filled, taken = np.zeros((rows, columns)), set()
    for words in entries:
        assert len(words) == (2 if field == b"pattern" else 3)
        row, column = _whole(words[0]) - 1, _whole(words[1]) - 1
        assert 0 <= row < rows
        assert 0 <= column < columns
        assert (row, column) not in taken
        assert symmetry == b"general" or row > column or (row == column and symmetry == b"symmetric")
        taken.add((row, column))
        _put(filled, row, column, 1.0 if field == b"pattern" else _number(words[2], field), symmetry)
    return filled


def _put(filled: np.ndarray, row: int, column: int, value: float, symmetry: bytes) -> None:
    filled[row, column] = value
    if symmetry != b"general" and row != column:
        filled[column, row] = -value if symmetry == b"skew-symmetric" else value


def _words(line: bytes) -> list[bytes]:
    return [word for word in re.split(rb"[ \t]+", line) if word]


def _whole(word: bytes) -> int:
    assert _WHOLE.fullmatch(word)
    return int(word)


def _number(word: bytes, field: bytes) -> float:
    if b"integer" in field:
        return float(_whole(word))
    assert _REAL.fullmatch(word)
    return float(word)
