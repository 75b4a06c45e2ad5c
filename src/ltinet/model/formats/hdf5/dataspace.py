"""The shape of a dataset or an attribute."""

from ltinet.model.formats.hdf5.cursor import Cursor
from ltinet.model.formats.limits import MOST_AXES

_NULL = 2


def parse_shape(cursor: Cursor) -> tuple[int, ...] | None:
    """The lengths of all axes, () for a single number, None for no value at all.

    Raises:
        ValueError: this is no shape.
    """
    version, rank, flags = cursor.numbers("BBB")
    if version == 1:
        cursor.take(5)
        kind = 1
    elif version == 2:
        kind = cursor.unsigned(1)
    else:
        raise ValueError(f"it has version {version} of shapes, which is not known here")
    if rank > MOST_AXES or flags & ~0x01 or kind > _NULL or (kind != 1 and rank):
        raise ValueError(f"it has a shape of {rank} axes that cannot be")
    shape = cursor.numbers(f"{rank}Q")
    if flags & 0x01 and any(most < size for size, most in zip(shape, cursor.numbers(f"{rank}Q"), strict=True)):
        raise ValueError("it has an axis that is longer than it may be")
    return None if kind == _NULL else shape
