"""Property test: pyarrow, NumPy and the row-by-row parser give the same arrays, bit by bit, and the same errors."""

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltinet import FileFormatError, read_table
from ltinet.tables import rows

PLAIN = ["1", "-0", "+5", ".5", "5.", "1e5", "1E-7", " 7 ", "4.9e-324", "9007199254740993", "1.7976931348623157e308"]
ODD = ["1e", "-", ".", "", "1e400", "0x10", "1_0", "inf", "1-2", "--1", "1 2", "1,5"]
CELL = st.one_of(
    st.sampled_from(PLAIN), st.sampled_from(PLAIN + ODD), st.floats(allow_nan=False, allow_infinity=False).map(repr)
)


@pytest.fixture(scope="module")
def with_arrow() -> Iterator[None]:
    """Let pyarrow read the smallest tables, too."""
    pytest.importorskip("pyarrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_MIN_ARROW_BYTES", 0)
        yield


def outcome(content: bytes) -> tuple[bytes, bytes] | str:
    try:
        table = read_table(io.BytesIO(content))
    except FileFormatError as error:
        return str(error)
    return table.t.tobytes(), table.values.tobytes()


@pytest.mark.usefixtures("with_arrow")
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), st.sampled_from(",;\t"))
def test_parsers_agree(cells: list[tuple[str, str]], delimiter: str) -> None:
    lines = [delimiter.join([str(k), *row]) for k, row in enumerate(cells)]
    content = "\n".join([delimiter.join("tuv"), *lines, ""]).encode()
    by_arrow = outcome(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "import_pyarrow", lambda: None)
        by_numpy = outcome(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltinet.tables.rows._parse_fast", lambda *_: None)
        row_by_row = outcome(content)
    assert by_arrow == by_numpy == row_by_row
