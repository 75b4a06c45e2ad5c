"""One link from a group to a member, in the newer of the two forms."""

from ltinet.model.formats.hdf5.cursor import Cursor

_HARD, _SOFT, _EXTERNAL = 0, 1, 64
_KINDS = {_SOFT: "a link by name", _EXTERNAL: "a link into another file"}


def parse_link(cursor: Cursor) -> tuple[bytes, int | str]:
    """The name, and the address or what kind of link it is instead.

    Raises:
        ValueError: this is no link.
    """
    version, flags = cursor.numbers("BB")
    if version != 1 or flags & 0xE0:
        raise ValueError(f"it has version {version} of links, which is not known here")
    kind = cursor.unsigned(1) if flags & 0x08 else _HARD
    cursor.take(8 if flags & 0x04 else 0)
    cursor.take(1 if flags & 0x10 else 0)
    name = cursor.take(cursor.unsigned(1 << (flags & 0x03)))
    if not name or 0 in name:
        raise ValueError("a member of a group has no proper name")
    return name, cursor.unsigned(8) if kind == _HARD else _KINDS.get(kind, "a link of another kind")
