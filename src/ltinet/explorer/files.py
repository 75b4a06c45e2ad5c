"""Uploaded files held in memory: reading them with the readers of the library, and a store with size limits.

The readers need paths. The content is written to a temporary folder in memory (/dev/shm) where there is one, under a
name chosen here, and deleted after reading. The store keys files by the hash of their name, options and bytes and removes
the oldest ones.
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

from ltinet._util.text import format_path, sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, LtinetError
from ltinet.explorer.uploaded_tables import page_messages, read_uploaded_table
from ltinet.files import load, load_system, save_system
from ltinet.io.system_files import SYSTEM_SUFFIXES
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork
from ltinet.state_space import StateSpace
from ltinet.tables.table import Table

UploadContent = StateSpace | NonlinearModel | DynamicNetwork | NonlinearNetwork | Table
_MEMORY_FOLDER = "/dev/shm"  # noqa: S108 - a folder of memory, in which nothing outlives the call
_MAX_ARRAY_BYTES = 256 * 2**20  # in one file
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".dat")
_KINDS = (*SYSTEM_SUFFIXES, ".safetensors", *TABLE_SUFFIXES)


class Upload(NamedTuple):
    """Content of a file and its name, which is used for its suffix and its title only."""

    name: str
    content: bytes
    options: str = ""
    """How a table is read, as in `decimal=,&day_first=true`."""

    @property
    def title(self) -> str:
        """Name without folders and suffix, sanitized."""
        return sanitize(Path(self.name).stem if "\0" not in self.name else self.name)

    @property
    def suffix(self) -> str:
        """Suffix in lower case."""
        return Path(self.name).suffix.lower() if "\0" not in self.name else ""


def read_upload(file: Upload) -> UploadContent:
    """Return the system, network or table in a file.

    Raise `LtinetError` for other, damaged or too large files; the message contains the file's name.
    """
    if file.suffix not in _KINDS:
        raise FileFormatError(f"{sanitize(file.name)} has an unknown suffix; known formats are {', '.join(_KINDS)}")
    with _temporary_folder() as folder:
        path = folder / f"dropped{file.suffix}"
        path.write_bytes(file.content)
        try:
            if file.suffix == ".safetensors":
                return load(path, max_bytes=_MAX_ARRAY_BYTES)
            if file.suffix in TABLE_SUFFIXES:
                return read_uploaded_table(path, file.options)
            return load_system(path, max_bytes=_MAX_ARRAY_BYTES)
        except LtinetError as error:
            message = str(error).replace(str(path), sanitize(file.name))
            raise FileFormatError(page_messages(message) if file.suffix in TABLE_SUFFIXES else message) from None


def table_upload(path: Path) -> Upload:
    """Return the file of a table; raise `FileFormatError` if it is too large for the page, or cannot be read."""
    try:
        if path.stat().st_size > MAX_UPLOAD_BYTES:
            raise FileFormatError(
                f"{format_path(path)} is too large for the page; the limit is {MAX_UPLOAD_BYTES // 2**20} MB"
            )
        return Upload(path.name, path.read_bytes())
    except OSError as error:
        raise FileFormatError(f"{format_path(path)} cannot be read: {error.strerror or error}") from None


def to_upload(model: StateSpace | NonlinearModel | DynamicNetwork | NonlinearNetwork, name: str) -> Upload:
    """Return a system or a network as a file, bit for bit."""
    if isinstance(model, DynamicNetwork | NonlinearNetwork):
        return Upload(f"{name}.safetensors", file_bytes(model.save, ".safetensors"))
    return Upload(f"{name}.npz", file_bytes(lambda path: save_system(model, path), ".npz"))


def file_bytes(write: Callable[[Path], object], suffix: str) -> bytes:
    """Return the bytes that a function writes to the path that it is called with."""
    with _temporary_folder() as folder:
        path = folder / f"file_bytes{suffix}"
        write(path)
        return path.read_bytes()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    home = _MEMORY_FOLDER if os.path.isdir(_MEMORY_FOLDER) and os.access(_MEMORY_FOLDER, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="ltinet-", dir=home) as folder:
        yield Path(folder)


MAX_UPLOAD_BYTES = 64 * 2**20  # of one file
MAX_OPTIONS = 1000  # characters
_MAX_FILES = 8
_MAX_TOTAL_BYTES = 256 * 2**20


@final
class UploadStore:
    """The latest uploads; the file with which the page was started stays."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, Upload] = OrderedDict()
        self._descriptions: dict[str, Mapping[str, Any]] = {}
        self._permanent: set[str] = set()
        self._lock = threading.Lock()

    def keep(self, file: Upload, description: Mapping[str, Any]) -> str:
        """Store a file as long as the page exists; return its hash."""
        digest = upload_hash(file)
        self._permanent.add(digest)
        self.add(file, description)
        return digest

    def add(self, file: Upload, description: Mapping[str, Any]) -> list[str]:
        """Store a file with its description; return the hashes of files that were removed."""
        with self._lock:
            newest, removed = upload_hash(file), []
            self._files[newest], self._descriptions[newest] = file, description
            self._files.move_to_end(newest)
            for digest in list(self._files):
                total = sum(len(file.content) for file in self._files.values())
                if len(self._files) <= _MAX_FILES and total <= _MAX_TOTAL_BYTES:
                    break
                if digest not in self._permanent and digest != newest:
                    del self._files[digest], self._descriptions[digest]
                    removed.append(digest)
            return removed

    def of(self, hashes: tuple[str, ...]) -> dict[str, Upload]:
        """Return those of the files that are stored."""
        with self._lock:
            return {digest: self._files[digest] for digest in hashes if digest in self._files}

    def listed(self) -> list[dict[str, Any]]:
        """Return hashes and descriptions for the page."""
        with self._lock:
            return [{"hash": digest, **self._descriptions[digest]} for digest in self._files]


def upload_hash(file: Upload) -> str:
    """Return the key of a file: the hash of its name, its options and its bytes."""
    head = "\0".join([file.name, file.options] if file.options else [file.name])
    return hashlib.sha256(head.encode(errors="replace") + b"\0" + file.content).hexdigest()
