"""Hypothesis: a real-looking table is read rightly, or refused with the option that helps; none is read wrongly."""

import io
from dataclasses import replace

import numpy as np
import pytest

from ltinet import FileFormatError, Table, read_table
from real_tables import KINDS, RealTable, real_table

N_TABLES = 300
TABLES = [real_table(seed) for seed in range(N_TABLES)]


def outcome(table: RealTable, **options) -> Table | str:
    """What is read, or why nothing is; where 1.234 leaves the decimal mark open, the table's own is said."""
    try:
        return read_table(io.BytesIO(table.content), **options)
    except FileFormatError as error:
        told = str(error)
    if "a little or a lot more" in told and table.refused != 'decimal=","' and "decimal" not in options:
        return outcome(table, decimal="." if 'decimal="."' in told else ",", **options)
    return told


def assert_right(read: Table | str, table: RealTable) -> None:
    """Values bit by bit; times to the rounding of their units, of stamps to the microseconds that are written."""
    assert isinstance(read, Table), read
    np.testing.assert_array_equal(read.values, table.values)
    if read.start is None:
        np.testing.assert_allclose(read.t, table.t, rtol=4e-16)
    else:
        np.testing.assert_allclose(read.t, table.t - table.t[0], rtol=0, atol=1.1e-6)


def test_there_are_enough_of_every_kind() -> None:
    assert N_TABLES // len(KINDS) >= 8


@pytest.mark.default_cases(93)
@pytest.mark.parametrize("seed", range(N_TABLES))
def test_real_tables(seed: int) -> None:
    table = TABLES[seed]
    read = outcome(table)
    if isinstance(read, str):
        assert table.refused is not None, read
        assert table.refused in read
    else:
        assert_right(read, table)
    if table.options:
        assert_right(outcome(table, **table.options), table)


@pytest.mark.parametrize("seed", range(0, N_TABLES, 3))
def test_a_nul_byte_anywhere_is_refused(seed: int) -> None:
    table = TABLES[seed]
    place = int(np.random.default_rng(seed).integers(0, len(table.content)))
    damaged = table.content[:place] + b"\x00" + table.content[place:]
    with pytest.raises(FileFormatError, match=r"NUL|line|encoding"):
        read_table(io.BytesIO(damaged), **{"encoding": "utf-8", **table.options})


@pytest.mark.parametrize("seed", range(1, N_TABLES, 3))
def test_truncated_table(seed: int) -> None:
    """Whole rows are those of the table; in the last one, which the cut may have shortened, nobody can see it."""
    table = TABLES[seed]
    place = int(np.random.default_rng(seed).integers(1, len(table.content)))
    read = outcome(replace(table, content=table.content[:place]), **table.options)
    if isinstance(read, Table):
        whole = len(read.t) - 1
        np.testing.assert_array_equal(read.values[:whole], table.values[:whole])
