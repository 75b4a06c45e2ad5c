"""What was computed last, and no more of it than a limit: memory stays what it is however long somebody plays."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, final

Value = TypeVar("Value")


@final
class Recent(Generic[Value]):
    """At most `most` values by their keys; the one that was not asked for the longest goes first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made where it is not kept."""
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)
