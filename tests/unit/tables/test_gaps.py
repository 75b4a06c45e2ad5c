"""Filling of gaps: chunked filling equals that of the whole table, and notes report it."""

import io
from itertools import pairwise

import numpy as np
import pytest

from ltinet import FileFormatError, read_table
from ltinet.tables.reading import GapFiller, Samples


@pytest.mark.parametrize("policy", ["hold", "linear"])
@pytest.mark.parametrize("seed", range(20))
def test_chunked_filling(policy, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 40, 3
    t = np.cumsum(rng.uniform(0.1, 2.0, n_rows))
    exact = rng.standard_normal((n_rows, n_columns))
    missing = rng.random((n_rows, n_columns)) < 0.4
    missing[[0, -1]] = False
    values = np.where(missing, np.nan, exact)
    expected = exact.copy()
    for column in range(n_columns):
        known = np.flatnonzero(~missing[:, column])
        if policy == "linear":
            expected[:, column] = np.interp(t, t[known], exact[known, column])
        else:
            expected[:, column] = exact[known[np.searchsorted(known, np.arange(n_rows), side="right") - 1], column]
    filler = GapFiller(policy, ("a", "b", "c"), "table")
    cuts = [0, *sorted(rng.choice(np.arange(1, n_rows), 6, replace=False).tolist()), n_rows]
    parts = [filler.fill(Samples(t[i:j], values[i:j], np.arange(i, j))) for i, j in pairwise(cuts)]
    filler.finish()
    np.testing.assert_array_equal(np.concatenate([part.t for part in parts]), t)
    # Lines between the same two values; one that begins at a row in between may be rounded twice.
    np.testing.assert_allclose(np.concatenate([part.values for part in parts]), expected, rtol=1e-14, atol=1e-14)
    assert filler.n_filled == missing.sum()


def test_notes() -> None:
    table = read_table(io.BytesIO(b"t,u\n0,1\n1,\n2,NA\n3,4\n"), gaps="linear")
    assert table.values.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table.notes == ("2 gaps filled by straight lines",)


@pytest.mark.parametrize(
    ("content", "policy", "expected"),
    [
        (b"t,u\n0,\n1,1\n", "hold", "line 2, column 'u': this gap cannot be filled, since no value comes before it"),
        (b"t,u\n0,1\n1,\n", "linear", "line 3, column 'u': this gap cannot be filled, since no value follows it"),
        (b"t,u\n0,1\n,2\n", "hold", "line 3, column 't': the cell is empty; every row needs its time"),
        (b"t,u\n0,1\n1,\n", "error", 'gaps="hold"'),
    ],
)
def test_gaps_that_cannot_be_filled(content: bytes, policy, expected: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read_table(io.BytesIO(content), gaps=policy)
    assert expected in str(caught.value)
