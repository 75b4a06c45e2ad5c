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


def outcome(content: bytes, **options: object) -> tuple[bytes, bytes] | str:
    try:
        table = read_table(io.BytesIO(content), **options)
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


NOTE = st.sampled_from(["ok", "", "1,5", "a.b", "# c", '"x"', "5 %"])
CLOCK = st.sampled_from(["08:00:00,5", "8:00:00.5", "", "08:00 PM", "8", "\x01"])
COMMA = st.sampled_from(["1,5", "-0", "1.5", "1.234,5", "", " 7 ", "\x01", "1\x015"])


@given(st.lists(st.tuples(NOTE, CLOCK, COMMA), min_size=1, max_size=4))
def test_parsers_agree_on_stamps_and_chosen_columns(cells: list[tuple[str, str, str]]) -> None:
    lines = [f"{note};{13 + k}.03.2026;{clock};{value}" for k, (note, clock, value) in enumerate(cells)]
    first = "ok;12.03.2026;08:00:00,5;0,5"
    content = "\n".join(["Note;Date;Time;v", first, *lines, ""]).encode()
    options = {"columns": "v", "day_first": True, "decimal": ",", "zone": "UTC"}
    fast = outcome(content, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltinet.tables.rows._parse_fast", lambda *_: None)
        assert outcome(content, **options) == fast
