"""Caches without locks: a cached property and a bounded least-recently-used cache.

Until Python 3.12 `functools.cached_property` holds one lock for all instances of a class while it computes. If another
thread holds this lock at the moment of a fork, the child process deadlocks. Without a lock two threads may compute the
same value twice; the results are equal, and the first one is kept.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    import functools

    class cached_property(functools.cached_property):  # noqa: N801 - the name of the original
        """`functools.cached_property` as of Python 3.12."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the cached value; compute it on first use."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values.setdefault(self.attrname, self.func(instance))
            return values[self.attrname]


__all__ = ["LRUCache", "cached_property"]


Value = TypeVar("Value")


@final
class LRUCache(Generic[Value]):
    """Bounded cache that evicts the least recently used value; several threads may use it.

    There is no lock, which a fork could leave locked in the child. Two threads may compute the same value at once.
    """

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value of a key; compute it if it is not cached."""
        try:
            value = self._values[key]
            self._values.move_to_end(key)
        except KeyError:  # not cached, or just evicted by another thread
            value = self._values.setdefault(key, compute())
            while len(self._values) > self.max_size:
                with suppress(KeyError):  # evicted by another thread
                    self._values.popitem(last=False)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
