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

# MERGED ltinet._util.cache
# What is computed once and kept with its object, without a lock.
#
# Until Python 3.12 `functools.cached_property` holds one lock for all objects of a class while it computes. If another
# thread is there in the moment of a fork, nobody ever releases it in the child. What two threads compute at once is the
# same here, and the first of them is kept.

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    import functools

    class cached_property(functools.cached_property):  # noqa: N801 - the name that it stands for
        """`functools.cached_property` as of Python 3.12."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """The kept value."""
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept.setdefault(self.attrname, self.func(instance))
            return kept[self.attrname]


__all__ = ["LRUCache", "cached_property"]


# MERGED ltinet._util.cache
# What was computed last, and no more of it than a limit: memory stays what it is however long somebody plays.

Value = TypeVar("Value")


@final
class LRUCache(Generic[Value]):
    """At most `most` values by their keys; the one that was not asked for the longest goes first.

    Several threads may ask at once. There is no lock: what two of them make at the same time is the same, and one held
    in the moment of a fork would stay held in the child for ever.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made where it is not kept."""
        try:
            value = self._kept[key]
            self._kept.move_to_end(key)
        except KeyError:  # not kept, or another thread has just let it go
            value = self._kept.setdefault(key, make())
            while len(self._kept) > self.most:
                with suppress(KeyError):  # another thread was faster
                    self._kept.popitem(last=False)
        return value

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)
