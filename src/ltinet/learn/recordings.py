"""The recordings of a model on a GPU: made when the same kernels are asked for a third time, and the last few kept."""

from collections import Counter
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor
from torch.utils import _pytree

from ltinet.learn.recorded import Recording, Replay
from ltinet.learn.ways import Kernels, Plan

_CALLS_BEFORE = 2  # a recording takes as long as some tens of calls: one that is used once or twice is not made
_MOST_KEPT = 4  # each holds the memory of what it computes
_MOST_COUNTED = 1000


@final
class Recordings:
    """Recordings by what they depend on; a copy of a model begins without any."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Recording, Any]] = {}
        self._calls: Counter[Any] = Counter()
        self.failure: str | None = None
        """Why recording was given up: kernels are then made call by call."""

    def kernels(self, key: Any, make: Callable[..., Kernels], given: tuple[Tensor, ...]) -> Kernels | None:
        """Kernels made by a recording, or None while there is none."""
        if key not in self._kept:
            self._calls[key] += 1
            if len(self._calls) > _MOST_COUNTED:
                self._calls.clear()
            if self.failure is not None or self._calls[key] <= _CALLS_BEFORE:
                return None
            self._record(key, make, given)
        if key not in self._kept:
            return None
        recording, spec = self._kept[key]
        made: Kernels = _pytree.tree_unflatten(list(Replay.apply(recording, *given)), spec)
        return made

    def _record(self, key: Any, make: Callable[..., Kernels], given: tuple[Tensor, ...]) -> None:
        found: list[Any] = []

        def flat(*own: Tensor) -> tuple[Tensor, ...]:
            leaves, spec = _pytree.tree_flatten(make(*own))
            found[:] = [spec]
            return tuple(leaves)

        try:
            recording = Recording(flat, given)
        except RuntimeError as error:
            self.failure = str(error)
            return
        while len(self._kept) >= _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = recording, found[0]

    def __deepcopy__(self, memo: Any) -> "Recordings":
        return Recordings()

    def __reduce__(self) -> tuple[type["Recordings"], tuple[()]]:
        return Recordings, ()


def can_record(parameters: list[Any], plan: Plan) -> bool:
    """Whether kernels may come from a recording: plain parameters on a GPU, outside of transforms and recordings."""
    return (
        plan.way != "steps"
        and all(type(own) is torch.nn.Parameter and own.is_cuda for own in parameters)
        and not torch._C._are_functorch_transforms_active()
        and not torch.cuda.is_current_stream_capturing()
    )


def key_of(plan: Plan, steps: int, dtype: torch.dtype) -> tuple[Any, ...]:
    """What kernels of a plan depend on beside the network: the length of a record, or its rest, or nothing."""
    if plan.way == "scan":
        return plan.way, dtype
    if plan.way == "convolution":
        return plan.way, dtype, steps
    width = min(plan.width, steps)
    return plan.way, dtype, width, steps % width
