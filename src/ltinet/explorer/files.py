"""Uploaded files held in memory: reading them with the readers of the library, and a store with size limits.

The readers need paths. The content is written to a temporary folder in memory (/dev/shm) where there is one, under a
name of our own, and deleted after reading. The store keys files by the hash of their kind and bytes and drops the
oldest ones.
"""

import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

from ltinet._util.text import sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, LtinetError
from ltinet.files import load, load_system, save_system
from ltinet.state_space import StateSpace
from ltinet.tables.table import Table, read_table

UploadContent = StateSpace | DynamicNetwork | Table
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of memory, in which nothing outlives the call
_MOST_BYTES = 256 * 2**20  # that the arrays of a file may take
_TABLES = (".csv", ".tsv", ".txt", ".dat")
_KINDS = (".mat", ".npz", ".safetensors", *_TABLES)


class Upload(NamedTuple):
    """Bytes under the name that somebody gave them, which says what kind they are and nothing else."""

    name: str
    content: bytes

    @property
    def title(self) -> str:
        """Its name without folders and suffix, fit to be shown."""
        return sanitize(Path(self.name).stem if "\0" not in self.name else self.name)

    @property
    def suffix(self) -> str:
        """What its name ends in, small letters."""
        return Path(self.name).suffix.lower() if "\0" not in self.name else ""


def read_upload(file: Upload) -> UploadContent:
    """The system, network or table in a file.

    Raises:
        LtinetError: it is none of them, damaged or too large; the message calls it by its name.
    """
    if file.suffix not in _KINDS:
        raise FileFormatError(f"{sanitize(file.name)} is of an unknown kind; drop one that ends in {', '.join(_KINDS)}")
    with _temporary_folder() as folder:
        path = folder / f"dropped{file.suffix}"
        path.write_bytes(file.content)
        try:
            return _read(path, file.suffix)
        except LtinetError as error:
            raise FileFormatError(str(error).replace(str(path), sanitize(file.name))) from None


def to_upload(thing: StateSpace | DynamicNetwork, name: str) -> Upload:
    """A system or a network as a file, which holds every bit of it."""
    if isinstance(thing, DynamicNetwork):
        return Upload(f"{name}.safetensors", file_bytes(thing.save, ".safetensors"))
    return Upload(f"{name}.npz", file_bytes(lambda path: save_system(thing, path), ".npz"))


def file_bytes(write: Callable[[Path], object], suffix: str) -> bytes:
    """What a function writes to the path that it is called with."""
    with _temporary_folder() as folder:
        path = folder / f"file_bytes{suffix}"
        write(path)
        return path.read_bytes()


def _read(path: Path, suffix: str) -> UploadContent:
    if suffix == ".safetensors":
        return load(path, max_bytes=_MOST_BYTES)
    return read_table(path) if suffix in _TABLES else load_system(path, max_bytes=_MOST_BYTES)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    home = _IN_MEMORY if os.path.isdir(_IN_MEMORY) and os.access(_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="ltinet-", dir=home) as folder:
        yield Path(folder)


MAX_UPLOAD_BYTES = 64 * 2**20  # of one file
_MOST_FILES = 8
_MOST_IN_ALL = 256 * 2**20


@final
class UploadStore:
    """What was dropped last; what was given when the page was started stays."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, Upload] = OrderedDict()
        self._told: dict[str, Mapping[str, Any]] = {}
        self._kept: set[str] = set()
        self._lock = threading.Lock()

    def keep(self, file: Upload, told: Mapping[str, Any]) -> str:
        """Keep a file for as long as the page lives; its hash."""
        digest = upload_hash(file)
        self._kept.add(digest)
        self.add(file, told)
        return digest

    def add(self, file: Upload, told: Mapping[str, Any]) -> list[str]:
        """Add a file and what was found in it; hashes of those that had to go."""
        with self._lock:
            digest = upload_hash(file)
            self._files[digest], self._told[digest] = file, told
            self._files.move_to_end(digest)
            return self._shrink(digest)

    def of(self, hashes: tuple[str, ...]) -> dict[str, Upload]:
        """Those of the files that are here."""
        with self._lock:
            return {digest: self._files[digest] for digest in hashes if digest in self._files}

    def listed(self) -> list[dict[str, Any]]:
        """What is here, for the page."""
        with self._lock:
            return [{"hash": digest, **self._told[digest]} for digest in self._files]

    def _shrink(self, newest: str) -> list[str]:
        gone = []
        for digest in list(self._files):
            total = sum(len(file.content) for file in self._files.values())
            if len(self._files) <= _MOST_FILES and total <= _MOST_IN_ALL:
                break
            if digest not in self._kept and digest != newest:
                del self._files[digest], self._told[digest]
                gone.append(digest)
        return gone


def upload_hash(file: Upload) -> str:
    """What a file is called: the hash of its kind and its bytes."""
    return hashlib.sha256(file.suffix.encode() + b"\0" + file.content).hexdigest()
