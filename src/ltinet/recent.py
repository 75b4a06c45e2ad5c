"""What was computed last, and no more of it than a limit: memory stays what it is however long somebody plays."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar, final

Value = TypeVar("Value")


@final
class Recent(Generic[Value]):
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
