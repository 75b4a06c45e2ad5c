"""Rows of tables of numbers: text that reads back as the same numbers, line by line."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ltinet.export.sample_files import ROWS_PER_CHUNK, csv_rows


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=st.floats(allow_nan=False)))
def test_numbers_read_back_bit_for_bit(table: np.ndarray) -> None:
    lines = b"".join(csv_rows(table)).decode().splitlines()
    numbers = np.array([[float(cell) for cell in line.split(",")] for line in lines])
    assert numbers.tobytes() == table.tobytes()


def test_rows_and_columns() -> None:
    table = np.random.default_rng(0).standard_normal((ROWS_PER_CHUNK + 2000, 3))
    expected = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
    assert b"".join(csv_rows(table)).decode() == expected
    assert b"".join(csv_rows(table[:2])).decode() == "".join(expected.splitlines(keepends=True)[:2])
    assert b"".join(csv_rows(np.zeros((2, 0)))) == b"\n\n"
