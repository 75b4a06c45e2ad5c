"""MATLAB version 4: a header of five numbers, a name, and the data, again and again."""

import struct

import numpy as np


def variables(data: bytes) -> dict:
    """All variables of the file."""
    found = {}
    while data:
        word = struct.unpack("<I", data[:4])[0]
        order = "<" if word <= 9999 else ">"
        mopt, rows, columns, imaginary, name_size = struct.unpack(order + "iiiii", data[:20])
        m, o, p, t = (int(digit) for digit in f"{mopt:04}")
        assert m == {"<": 0, ">": 1}[order]
        assert o == 0
        code = "dfihHB"[p]
        assert t in (0, 1, 2)
        assert rows >= 0
        assert columns >= 0
        assert imaginary in (0, 1)
        assert 2 <= name_size <= 1024
        assert len(data) >= 20 + name_size
        name, end = data[20 : 20 + name_size - 1], data[20 + name_size - 1]
        assert end == 0
        assert b"\0" not in name
        count = rows * columns * (1 + imaginary)
        size = count * struct.calcsize(order + code)
        start = 20 + name_size
        assert len(data) >= start + size
        values = struct.unpack(f"{order}{count}{code}", data[start : start + size])
        data = data[start + size :]
        key = name.decode("latin-1")
        assert key not in found
        found[key] = None if imaginary or t == 1 else _value(values, rows, columns, is_sparse=t == 2)
    return found


def _value(values: tuple, rows: int, columns: int, *, is_sparse: bool) -> np.ndarray | None:
    table = [[values[row + column * rows] for column in range(columns)] for row in range(rows)]
    if not is_sparse:
        return np.array(table, dtype=float).reshape(rows, columns)
    if columns == 4:
        return None
    assert columns == 3
    *entries, (n_rows, n_columns, _) = table
    assert n_rows == int(n_rows)
    assert n_columns == int(n_columns)
    assert 0 <= n_rows * n_columns < 1e8
    filled = np.zeros((int(n_rows), int(n_columns)))
    taken = set()
    for row, column, value in entries:
        assert row == int(row)
        assert column == int(column)
        assert 1 <= row <= n_rows
        assert 1 <= column <= n_columns
        assert (row, column) not in taken
        taken.add((row, column))
        filled[int(row) - 1, int(column) - 1] = value
    return filled
