"""Trainable parts of a network: their names, the parameters behind each, and which are trained by default.

`DynamicNetwork` imports this module for its signatures, so it must not import PyTorch.
"""

from collections.abc import Iterable
from typing import TypeAlias

from ltinet.errors import InvalidNetworkError

Parts: TypeAlias = bool | str | Iterable[str]
"""What is trained: True for all that keeps a network stable, False for nothing, or parts of it by their names."""

PARTS: dict[str, tuple[str, ...]] = {
    "poles": ("log_decay", "frequency", "log_above", "log_below"),
    "held": ("held_rates",),
    "couplings": ("couplings",),
    "B": ("B",),
    "C": ("C",),
    "D": ("D",),
}
"""The names by which parts of a network are trained or left alone, and their parameters."""
USUAL_PARTS = ("poles", "couplings", "B", "C", "D")


def checked_parts(trainable: Parts) -> tuple[str, ...]:
    """The parts that are to be trained, by name."""
    if isinstance(trainable, bool):
        return USUAL_PARTS if trainable else ()
    names = (trainable,) if isinstance(trainable, str) else tuple(trainable)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise InvalidNetworkError(
            f"trainable names {', '.join(map(repr, unknown))}; the parts of a network are {', '.join(PARTS)}, True for "
            "all but held, False for none"
        )
    return names
