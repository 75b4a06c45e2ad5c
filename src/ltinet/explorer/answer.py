"""What is sent back to a page: data, a file to keep, or a sentence that says why there is neither."""

import json
from typing import NamedTuple

JSON = "application/json"


class Answer(NamedTuple):
    """What is sent back; `name` is that of a download."""

    status: int
    content: bytes
    type: str = JSON
    name: str = ""


def failed(sentence: str, status: int) -> Answer:
    """A sentence for the page."""
    return Answer(status, json.dumps({"error": sentence}).encode())
