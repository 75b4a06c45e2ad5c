"""Moves between devices that leave numbers in double precision: what single precision costs, training cannot undo."""

from collections.abc import Callable

from torch import Tensor


def keeping_double(move: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What a module applies to its tensors, but for a change of type."""

    def moved(tensor: Tensor) -> Tensor:
        asked = move(tensor)
        return asked if asked.dtype == tensor.dtype else tensor.to(asked.device)

    return moved
