"""Page session, for HTTP and for notebooks: the uploads of one page and the backend that computes for it."""

import json
from collections.abc import Mapping
from typing import Any, final

from ltinet.errors import LtinetError
from ltinet.explorer.files import MAX_UPLOAD_BYTES, TABLE_SUFFIXES, Upload, UploadStore, upload_hash
from ltinet.explorer.requests import PageResponse, error_response
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.subject import EXAMPLES
from ltinet.explorer.worker_manager import WorkerManager


@final
class PageSession:
    """State of one page: its first view, its files, and its backend.

    A table that the page starts with is fetched by the page and uploaded as a dropped one is.
    """

    def __init__(self, backend: WorkerManager, file: Upload | None = None) -> None:
        self.backend, self.uploads, self.first = backend, UploadStore(), ViewState()
        self._prepared: tuple[Any, ...] = ()
        self.table = file if file is not None and file.suffix in TABLE_SUFFIXES else None
        if file is not None and self.table is None:
            digest = self.uploads.keep(file, {"name": file.title, "kind": "given"})
            self.first = ViewState(system=f"file:{digest}")

    def start_data(self) -> dict[str, Any]:
        """Return the data with which the page starts: its first view, examples and files."""
        return {
            "first": self.first.query(),
            "examples": [{"name": f"example:{name}", "title": example.title} for name, example in EXAMPLES.items()],
            "files": self.uploads.listed(),
            "table": None if self.table is None else self.table.name,
            "most_bytes": MAX_UPLOAD_BYTES,
        }

    def table_file(self) -> PageResponse:
        """Return the table that the page starts with."""
        if self.table is None:
            return error_response("this page was started without a table", 404)
        return PageResponse(200, self.table.content, "application/octet-stream")

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str) -> PageResponse:
        """Return the response to a request for a state."""
        try:
            state = parse_state(query)
        except LtinetError as error:
            return error_response(str(error), 400)
        files = self.uploads.of(state.files)
        if kind == "view" and state.subject != self._prepared:
            self._prepared = state.subject
            self.backend.send("prepare", query, tab=tab, files=files)
        return self.backend.ask(kind, query, tab=tab, files=files)

    def drop(self, file: Upload, *, tab: str) -> PageResponse:
        """Return the description of an uploaded file; one that cannot be read is not stored."""
        digest = upload_hash(file)
        answer = self.backend.ask("open", {"system": f"file:{digest}"}, tab=tab, files={digest: file})
        if answer.status != 200:
            self.backend.forget(digest)
            return answer
        description = {"hash": digest, **json.loads(answer.content)}
        for removed in self.uploads.add(file, description):
            self.backend.forget(removed)
        return PageResponse(200, json.dumps(description).encode())


def upload_too_large() -> PageResponse:
    """Return the response to a file above the size limit."""
    return error_response(f"the file is too large; the limit is {MAX_UPLOAD_BYTES // 2**20} MB", 413)
