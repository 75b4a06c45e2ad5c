"""What is computed once and kept with its object, without a lock.

Until Python 3.12 `functools.cached_property` holds one lock for all objects of a class while it computes. If another
thread is there in the moment of a fork, nobody ever releases it in the child. What two threads compute at once is the
same here, and the first of them is kept.
"""

import sys
from typing import TYPE_CHECKING, Any

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


__all__ = ["cached_property"]
