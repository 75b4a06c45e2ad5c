"""Numbers of channels, pieces, steps and the like."""

from ltinet.errors import InvalidNetworkError


def require_counts(**counts: int | None) -> None:
    """Refuse what is to be a whole number of at least one, or left out.

    Raises:
        InvalidNetworkError: one is not.
    """
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise InvalidNetworkError(f"{name} is {count!r}; give a whole number of at least one")
