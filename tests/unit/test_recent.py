"""What was computed last is kept, the rest forgotten, whatever threads ask for at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ltinet._util.cache import LRUCache


def test_the_one_that_was_not_asked_for_the_longest_goes_first() -> None:
    made: list[str] = []
    kept = LRUCache[str](2)

    def ask(key: str) -> str:
        return kept.get(key, lambda: made.append(key) or key.upper())  # type: ignore[func-returns-value]

    assert [ask(key) for key in "abacab"] == list("ABACAB")
    assert made == list("abcb")  # a was asked for again before c came
    assert len(kept) == 2
    assert "c" not in kept


def test_threads_that_ask_at_once_get_what_they_asked_for() -> None:
    kept = LRUCache[int](3)

    def ask(seed: int) -> bool:
        keys = np.random.default_rng(seed).integers(8, size=5_000).tolist()
        return all(kept.get(key, lambda key=key: -key) == -key for key in keys)  # type: ignore[misc]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(16)))
    assert len(kept) <= 3
