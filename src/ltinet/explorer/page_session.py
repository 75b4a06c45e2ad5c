"""Page session: the uploads of one page and the backend that computes for it.

The session is the same for HTTP and for notebooks. `InProcessWorker` is the backend where no process can be forked:
it computes in the calling thread and cannot be interrupted.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any, Protocol, final

from ltinet.errors import LtinetError
from ltinet.explorer.files import MAX_UPLOAD_BYTES, Upload, UploadStore, upload_hash
from ltinet.explorer.requests import PageResponse, answer_request, error_response
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.subject import EXAMPLES
from ltinet.explorer.view_service import ViewService


@final
class InProcessWorker:
    """A desk, and one question after the other."""

    def __init__(self) -> None:
        self._desk, self._lock = ViewService(), threading.Lock()

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:  # noqa: ARG002
        """The answer to a question."""
        with self._lock:
            self._desk.files.update(files)
            return answer_request(self._desk, kind, query)

    def cancel(self, tab: str, kind: str = "") -> None:
        """Nothing: a thread cannot be ended."""

    def forget(self, digest: str) -> None:
        """Drop a file."""
        with self._lock:
            self._desk.files.pop(digest, None)


class ComputeBackend(Protocol):
    """Who answers questions, and can be told to stop."""

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, Upload]) -> PageResponse:
        """The answer to a question."""
        ...

    def cancel(self, tab: str, kind: str = "") -> None:
        """End whatever a tab waits for, or what it waits for of one kind."""
        ...

    def forget(self, digest: str) -> None:
        """Drop a file."""
        ...


@final
class PageSession:
    """One page: what it begins with, its files, and who computes for it."""

    def __init__(self, staff: ComputeBackend, file: Upload | None = None) -> None:
        self.staff, self.uploads, self.first = staff, UploadStore(), ViewState()
        if file is not None:
            digest = self.uploads.keep(file, {"name": file.title, "kind": "given"})
            self.first = ViewState(system=f"file:{digest}")

    def told(self) -> dict[str, Any]:
        """What the page begins with: what there is to choose from."""
        return {
            "first": self.first.query(),
            "examples": [{"name": f"example:{name}", "title": own.title} for name, own in EXAMPLES.items()],
            "files": self.uploads.listed(),
            "most_bytes": MAX_UPLOAD_BYTES,
        }

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str) -> PageResponse:
        """The answer to a question about a state."""
        try:
            state = parse_state(query)
        except LtinetError as error:
            return error_response(str(error), 400)
        return self.staff.ask(kind, query, tab=tab, files=self.uploads.of(state.files))

    def drop(self, file: Upload, *, tab: str) -> PageResponse:
        """What a file holds; one that cannot be read is not kept."""
        digest = upload_hash(file)
        answer = self.staff.ask("open", {"system": f"file:{digest}"}, tab=tab, files={digest: file})
        if answer.status != 200:
            self.staff.forget(digest)
            return answer
        told = {"hash": digest, **json.loads(answer.content)}
        for gone in self.uploads.add(file, told):
            self.staff.forget(gone)
        return PageResponse(200, json.dumps(told).encode())


def upload_too_large() -> PageResponse:
    """What is said of a file that is not taken."""
    return error_response(f"the file is too large: at most {MAX_UPLOAD_BYTES // 2**20} MB are taken here", 413)
