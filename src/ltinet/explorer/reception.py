"""Where a page asks, whether over HTTP or from a notebook: the files that were dropped there, and who computes."""

import json
from collections.abc import Mapping
from typing import Any, Protocol, final

from ltinet.errors import LtinetError
from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.examples import EXAMPLES
from ltinet.explorer.files import DroppedFile
from ltinet.explorer.state import State, state_of
from ltinet.explorer.uploads import MOST_BYTES, Uploads, hash_of


class Computing(Protocol):
    """Who answers questions, and can be told to stop."""

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str, files: Mapping[str, DroppedFile]) -> Answer:
        """The answer to a question."""
        ...

    def cancel(self, tab: str, kind: str = "") -> None:
        """End whatever a tab waits for, or what it waits for of one kind."""
        ...

    def forget(self, digest: str) -> None:
        """Drop a file."""
        ...


@final
class Reception:
    """One page: what it begins with, its files, and who computes for it."""

    def __init__(self, staff: Computing, file: DroppedFile | None = None) -> None:
        self.staff, self.uploads, self.first = staff, Uploads(), State()
        if file is not None:
            digest = self.uploads.keep(file, {"name": file.title, "kind": "given"})
            self.first = State(system=f"file:{digest}")

    def told(self) -> dict[str, Any]:
        """What the page begins with: what there is to choose from."""
        return {
            "first": self.first.query(),
            "examples": [{"name": f"example:{name}", "title": own.title} for name, own in EXAMPLES.items()],
            "files": self.uploads.listed(),
            "most_bytes": MOST_BYTES,
        }

    def ask(self, kind: str, query: Mapping[str, str], *, tab: str) -> Answer:
        """The answer to a question about a state."""
        try:
            state = state_of(query)
        except LtinetError as error:
            return failed(str(error), 400)
        return self.staff.ask(kind, query, tab=tab, files=self.uploads.of(state.files))

    def drop(self, file: DroppedFile, *, tab: str) -> Answer:
        """What a file holds; one that cannot be read is not kept."""
        digest = hash_of(file)
        answer = self.staff.ask("open", {"system": f"file:{digest}"}, tab=tab, files={digest: file})
        if answer.status != 200:
            self.staff.forget(digest)
            return answer
        told = {"hash": digest, **json.loads(answer.content)}
        for gone in self.uploads.add(file, told):
            self.staff.forget(gone)
        return Answer(200, json.dumps(told).encode())


def too_large() -> Answer:
    """What is said of a file that is not taken."""
    return failed(f"the file is too large: at most {MOST_BYTES // 2**20} MB are taken here", 413)
