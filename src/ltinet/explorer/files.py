"""Files that live in memory: what a dropped one holds, read by the readers of the library, and objects as such files.

The readers want paths. What they read is put into a folder of the memory (/dev/shm) where there is one, under a name of
our own, and is gone when they have read it.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, LtinetError
from ltinet.loading import load
from ltinet.shown import shown
from ltinet.state_space import StateSpace
from ltinet.systems import load_system, save_system
from ltinet.tables.table import Table, read_table

Held = StateSpace | DynamicNetwork | Table
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of memory, in which nothing outlives the call
_MOST_BYTES = 256 * 2**20  # that the arrays of a file may take
_TABLES = (".csv", ".tsv", ".txt", ".dat")
_KINDS = (".mat", ".npz", ".safetensors", *_TABLES)


class DroppedFile(NamedTuple):
    """Bytes under the name that somebody gave them, which says what kind they are and nothing else."""

    name: str
    content: bytes

    @property
    def title(self) -> str:
        """Its name without folders and suffix, fit to be shown."""
        return shown(Path(self.name).stem if "\0" not in self.name else self.name)

    @property
    def suffix(self) -> str:
        """What its name ends in, small letters."""
        return Path(self.name).suffix.lower() if "\0" not in self.name else ""


def read_dropped(file: DroppedFile) -> Held:
    """The system, network or table in a file.

    Raises:
        LtinetError: it is none of them, damaged or too large; the message calls it by its name.
    """
    if file.suffix not in _KINDS:
        raise FileFormatError(f"{shown(file.name)} is of an unknown kind; drop one that ends in {', '.join(_KINDS)}")
    with _folder() as folder:
        path = folder / f"dropped{file.suffix}"
        path.write_bytes(file.content)
        try:
            return _read(path, file.suffix)
        except LtinetError as error:
            raise FileFormatError(str(error).replace(str(path), shown(file.name))) from None


def as_dropped(thing: StateSpace | DynamicNetwork, name: str) -> DroppedFile:
    """A system or a network as a file, which holds every bit of it."""
    if isinstance(thing, DynamicNetwork):
        return DroppedFile(f"{name}.safetensors", written(thing.save, ".safetensors"))
    return DroppedFile(f"{name}.npz", written(lambda path: save_system(thing, path), ".npz"))


def written(write: Callable[[Path], object], suffix: str) -> bytes:
    """What a function writes to the path that it is called with."""
    with _folder() as folder:
        path = folder / f"written{suffix}"
        write(path)
        return path.read_bytes()


def _read(path: Path, suffix: str) -> Held:
    if suffix == ".safetensors":
        return load(path, max_bytes=_MOST_BYTES)
    return read_table(path) if suffix in _TABLES else load_system(path, max_bytes=_MOST_BYTES)


@contextmanager
def _folder() -> Iterator[Path]:
    home = _IN_MEMORY if os.path.isdir(_IN_MEMORY) and os.access(_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="ltinet-", dir=home) as folder:
        yield Path(folder)
