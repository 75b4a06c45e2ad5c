"""Files that were dropped, in memory, under the hash of their bytes; few of them, and none too large."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, final

from ltinet.explorer.files import DroppedFile

MOST_BYTES = 64 * 2**20  # of one file
_MOST_FILES = 8
_MOST_IN_ALL = 256 * 2**20


@final
class Uploads:
    """What was dropped last; what was given when the page was started stays."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, DroppedFile] = OrderedDict()
        self._told: dict[str, Mapping[str, Any]] = {}
        self._kept: set[str] = set()
        self._lock = threading.Lock()

    def keep(self, file: DroppedFile, told: Mapping[str, Any]) -> str:
        """Keep a file for as long as the page lives; its hash."""
        digest = hash_of(file)
        self._kept.add(digest)
        self.add(file, told)
        return digest

    def add(self, file: DroppedFile, told: Mapping[str, Any]) -> list[str]:
        """Add a file and what was found in it; hashes of those that had to go."""
        with self._lock:
            digest = hash_of(file)
            self._files[digest], self._told[digest] = file, told
            self._files.move_to_end(digest)
            return self._shrink(digest)

    def of(self, hashes: tuple[str, ...]) -> dict[str, DroppedFile]:
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


def hash_of(file: DroppedFile) -> str:
    """What a file is called: the hash of its kind and its bytes."""
    return hashlib.sha256(file.suffix.encode() + b"\0" + file.content).hexdigest()
