"""Hypothesis: pyarrow, where it is installed, changes no bit of what is read and written, and no refusal."""

import io
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltinet import FileFormatError, read_table
from ltinet.tables import numbers, writing

PLAIN = ["1", "-0", "+5", ".5", "5.", "1e5", "1E-7", " 7 ", "4.9e-324", "9007199254740993", "1.7976931348623157e308"]
ODD = ["1e", "-", ".", "", "1e400", "0x10", "1_0", "inf", "1-2", "--1", "1 2", "1,5"]
CELL = st.one_of(
    st.sampled_from(PLAIN), st.sampled_from(PLAIN + ODD), st.floats(allow_nan=False, allow_infinity=False).map(repr)
)


@pytest.fixture(scope="module")
def with_arrow() -> Iterator[None]:
    """Let pyarrow read and write the smallest tables, too."""
    pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "_WORTH_ARROW", 0)
        patch.setattr(writing, "_WORTH_ARROW", 0)
        yield


def outcome(content: bytes) -> tuple[bytes, bytes] | str:
    try:
        table = read_table(io.BytesIO(content))
    except FileFormatError as error:
        return str(error)
    return table.t.tobytes(), table.values.tobytes()


@pytest.mark.usefixtures("with_arrow")
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), st.sampled_from(",;\t"))
def test_the_same_array_or_the_same_refusal(cells: list[tuple[str, str]], delimiter: str) -> None:
    lines = [delimiter.join([str(k), *row]) for k, row in enumerate(cells)]
    content = "\n".join([delimiter.join("tuv"), *lines, ""]).encode()
    by_arrow = outcome(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "arrow", lambda: None)
        by_numpy = outcome(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltinet.tables.rows._plain", lambda *_: None)
        row_by_row = outcome(content)
    assert by_arrow == by_numpy == row_by_row


@pytest.mark.usefixtures("with_arrow")
@given(st.lists(st.floats(), min_size=1, max_size=50))
def test_the_same_text(values: list[float]) -> None:
    table = np.array([values, values[::-1]]).T
    expected = "".join(f"{first!r},{second!r}\n" for first, second in table.tolist())
    assert b"".join(writing.lines_of_numbers(table)).decode() == expected


@pytest.mark.usefixtures("with_arrow")
def test_the_same_text_at_every_size() -> None:
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-25, 25, (20_000, 3)) * rng.choice([-1.0, 1.0], (20_000, 3))
    short = np.round(rng.standard_normal((20_000, 3)), 3) * 10.0 ** rng.integers(-12, 18, (20_000, 3))
    for table in (sizes, short):
        expected = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
        assert b"".join(writing.lines_of_numbers(table)).decode() == expected


def test_numbers_are_written_without_pyarrow_as_repr_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "arrow", lambda: None)
    table = np.random.default_rng(0).standard_normal((10_000, 3)) * 10.0 ** np.arange(-8, 16, 8)
    expected = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
    assert b"".join(writing.lines_of_numbers(table)).decode() == expected
    assert b"".join(writing.lines_of_numbers(np.zeros((2, 0)))) == b"\n\n"
