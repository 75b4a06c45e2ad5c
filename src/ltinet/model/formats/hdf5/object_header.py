"""The messages that describe an object, in both of the forms in which HDF5 writes them."""

from collections.abc import Iterator
from typing import NamedTuple, final

from ltinet.model.formats.hdf5.checksum import require_checksum
from ltinet.model.formats.hdf5.container import Container
from ltinet.model.formats.hdf5.cursor import Cursor

DATASPACE, LINK_INFO, DATATYPE, OLD_FILL, FILL, LINK, EXTERNAL, LAYOUT = 1, 2, 3, 4, 5, 6, 7, 8
GROUP_INFO, FILTERS, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE, CHANGED = 10, 11, 12, 16, 17, 18
ATTRIBUTE_INFO, REFERENCE_COUNT = 21, 22

_EMPTY = 0
_KNOWN = {_EMPTY, *range(DATASPACE, LAYOUT + 1), *range(GROUP_INFO, ATTRIBUTE + 1)} | {
    *range(CONTINUATION, CHANGED + 1), ATTRIBUTE_INFO, REFERENCE_COUNT
}  # fmt: skip
# Of what begins with a version, which is zero, and two marks: how many bytes follow always, and for each mark.
_MARKED = {LINK_INFO: (16, 8, 8), GROUP_INFO: (0, 4, 4), ATTRIBUTE_INFO: (16, 2, 8)}
_CAN_BE_SHARED = {DATASPACE, DATATYPE, OLD_FILL, FILL, FILTERS, ATTRIBUTE}
_SHARED, _NEVER_SHARED, _WAS_UNKNOWN, _SHAREABLE = 0x02, 0x04, 0x20, 0x40
_MOST_BLOCKS = 1000


class Message(NamedTuple):
    """One fact about an object."""

    kind: int
    flags: int
    content: bytes

    def cursor(self) -> Cursor:
        """Its content, to be taken apart.

        Raises:
            ValueError: the content lies elsewhere, shared by several objects.
        """
        if self.flags & _SHARED:
            raise ValueError("it shares descriptions between objects, which MATLAB does not and is not known here")
        return Cursor(self.content)


@final
class ObjectHeader:
    """All messages of the object at an address."""

    def __init__(self, container: Container, address: int) -> None:
        self.messages = tuple(_messages(container, address))

    def find(self, kind: int) -> Message | None:
        """The message of a kind of which an object has one or none.

        Raises:
            ValueError: it has several.
        """
        found = [message for message in self.messages if message.kind == kind]
        if len(found) > 1:
            raise ValueError("an object in it is described twice")
        return found[0] if found else None

    def need(self, kind: int, what: str) -> Message:
        """The message of a kind that must be there.

        Raises:
            ValueError: it is not there, or several are.
        """
        message = self.find(kind)
        if message is None:
            raise ValueError(f"an object in it has no {what}")
        return message


def _messages(container: Container, address: int) -> Iterator[Message]:
    if container.bytes_at(address, 4) == b"OHDR":
        yield from _new_messages(container, address)
    else:
        yield from _old_messages(container, address)


def _old_messages(container: Container, address: int) -> Iterator[Message]:
    version, _, expected, _, size, _ = Cursor(container.bytes_at(address, 16)).numbers("BBHIII")
    if version != 1:
        raise ValueError("where an object should be there is something else")
    blocks, seen, count = [(address + 16, size)], {address + 16}, 0
    for start, length in blocks:  # grows while it is walked
        cursor = Cursor(container.bytes_at(start, length))
        while cursor.remaining and count < expected:
            kind, length, flags, _, _ = cursor.numbers("HHBBH")
            message = _known(Message(kind, flags, cursor.take(length)))
            count += 1
            if kind == CONTINUATION:
                _follow(message, blocks, seen)
            yield message
        if cursor.remaining:
            raise ValueError("an object in it has more messages than it says")
    if count != expected:
        raise ValueError("an object in it has fewer messages than it says")


def _new_messages(container: Container, address: int) -> Iterator[Message]:
    head = Cursor(container.up_to(address, 64))
    head.expect(b"OHDR", "an object")
    version, flags = head.numbers("BB")
    if version != 2 or flags & 0xC0:
        raise ValueError(f"it has version {version} of object headers, which is not known here")
    head.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
    size = head.unsigned(1 << (flags & 0x03))
    first = head.position
    blocks, seen = [(address, first + size + 4)], {address}
    for index, (start, length) in enumerate(blocks):  # grows while it is walked
        content = container.bytes_at(start, length)
        require_checksum(content, "an object")
        cursor = Cursor(content[:-4])
        if index == 0:
            cursor.take(first)
        else:
            cursor.expect(b"OCHK", "the rest of an object")
        prefix = 6 if flags & 0x04 else 4
        has_gap = False
        while cursor.remaining >= prefix:
            kind, length, message_flags = cursor.numbers("BHB")
            cursor.take(prefix - 4)
            message = _known(Message(kind, message_flags, cursor.take(length)))
            has_gap |= kind == _EMPTY
            if kind == CONTINUATION:
                _follow(message, blocks, seen)
            yield message
        if cursor.remaining and has_gap:  # a few bytes at the end, unless an empty message could have taken them
            raise ValueError("an object in it has a gap")


def _known(message: Message) -> Message:
    is_shared = bool(message.flags & (_SHARED | _SHAREABLE))
    may_be = message.kind in _CAN_BE_SHARED and not message.flags & _NEVER_SHARED
    if message.flags & _WAS_UNKNOWN or (is_shared and not may_be):
        raise ValueError("an object in it has marks that contradict each other")
    if message.kind == CHANGED and (len(message.content) < 8 or message.content[0] != 1):
        raise ValueError("an object in it was changed at no time")
    if message.kind == REFERENCE_COUNT and message.content[:1] != b"\0":
        raise ValueError(f"an object in it has a message of kind {message.kind} in a version that is not known")
    if message.kind in _MARKED:
        _require_marks(message.kind, Cursor(message.content))
    if message.kind not in _KNOWN:
        raise ValueError(f"an object in it has a message of kind {message.kind}, which MATLAB does not write")
    return message


def _require_marks(kind: int, cursor: Cursor) -> None:
    always, first, second = _MARKED[kind]
    version, marks = cursor.numbers("BB")
    if version != 0 or marks & ~0x03:
        raise ValueError(
            f"an object in it has a message of kind {kind} in version {version} with marks {marks:#04x}, of which not "
            f"all are known here"
        )
    cursor.take(always + (first if marks & 0x01 else 0) + (second if marks & 0x02 else 0))


def _follow(message: Message, blocks: list[tuple[int, int]], seen: set[int]) -> None:
    """Add the block that continues an object; one that leads back would never end."""
    start, length = message.cursor().numbers("QQ")
    if start in seen or length == 0 or len(blocks) >= _MOST_BLOCKS:
        raise ValueError("the description of an object leads back to itself, or nowhere")
    seen.add(start)
    blocks.append((start, length))
