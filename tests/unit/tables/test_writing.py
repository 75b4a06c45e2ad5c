"""Hypothesis: many numbers at once are written as `repr` writes each of them, to the last sign."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ltinet.tables.writing import TEXT_WIDTH, format_rows, shortest_decimals

N = 30_000


def texts_of(numbers: np.ndarray) -> list[str]:
    return [row.tobytes().replace(b"\0", b"").decode() for row in shortest_decimals(numbers)]


@given(arrays(np.float64, st.integers(1, 40)))
def test_any_numbers(numbers: np.ndarray) -> None:
    assert texts_of(numbers) == list(map(repr, numbers.tolist()))


def families(rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Numbers of every size, short decimals, whole ones, powers and their neighbours: where rules of writing change."""
    yield rng.integers(0, 2**64, size=N, dtype=np.uint64).view(np.float64)
    yield 10.0 ** rng.uniform(-30, 18, N) * rng.choice([-1.0, 1.0], N)
    yield rng.standard_normal(N)
    for n_decimals in (0, 3, 15, 16):
        yield np.round(rng.standard_normal(N), n_decimals)
    yield rng.integers(-(10**6), 10**6, N) * 1e-5
    yield np.arange(N) * 10.0 ** -rng.integers(0, 9)
    yield rng.integers(-(2**53), 2**53, N) * 2.0 ** rng.integers(-60, 10, N)
    yield np.nextafter(10.0 ** rng.integers(-20, 15, N), rng.choice([-np.inf, np.inf], N))
    yield 2.0 ** rng.integers(-300, 60, N)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_drawn_numbers(seed: int) -> None:
    for numbers in families(np.random.default_rng(seed)):
        assert texts_of(numbers) == list(map(repr, numbers.tolist()))


def test_most_numbers_are_not_left_to_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing would be tested here but repr itself, and nothing would be gained."""
    left = []
    monkeypatch.setattr("ltinet.tables.writing.repr", lambda number: left.append(number) or "", raising=False)
    shortest_decimals(np.random.default_rng(0).standard_normal(N))
    assert len(left) < N / 1000


def test_rows_and_columns() -> None:
    table = np.random.default_rng(0).standard_normal((10_000, 3))
    expected = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
    assert b"".join(format_rows(table)).decode() == expected
    assert b"".join(format_rows(table[:2])).decode() == "".join(expected.splitlines(keepends=True)[:2])
    assert b"".join(format_rows(np.zeros((2, 0)))) == b"\n\n"
    assert max(map(len, map(repr, [-1.2345678901234567e-308, -1.2345678901234567e300]))) < TEXT_WIDTH
