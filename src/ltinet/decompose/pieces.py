"""Work on many rows at once, but not on all: temporary copies that outgrow the cache cost more than the work itself."""

from collections.abc import Iterator

_NUMBERS = 15_000  # 120 kB: above 128 kB an allocator fetches new pages from the system each time


def pieces(count: int, width: int) -> Iterator[slice]:
    """Slices that cover `count` rows of `width` numbers, each small enough for temporary copies of its rows."""
    rows = max(1, _NUMBERS // max(width, 1))
    return (slice(start, start + rows) for start in range(0, count, rows))
