"""From a question to what is sent back: which questions there are, and what becomes of errors."""

from collections.abc import Callable, Mapping
from typing import Any

from ltinet.errors import LtinetError
from ltinet.explorer.answer import Answer, failed
from ltinet.explorer.desk import Desk
from ltinet.explorer.downloads import c_file, network_file, onnx_file, page_file, script_file
from ltinet.explorer.opening import told_of
from ltinet.explorer.state import State, state_of
from ltinet.explorer.views.numbers import written
from ltinet.shown import shown

Question = Callable[[Desk, State], Any]

VIEWS: Mapping[str, Question] = {"view": Desk.written_view}
"""What is answered at once, by the process that keeps what it computed."""
JOBS: Mapping[str, Question] = {
    "band": Desk.band,
    "engines": Desk.engines,
    "open": told_of,
    "network": network_file,
    "script": script_file,
    "c": c_file,
    "onnx": onnx_file,
    "page": page_file,
}
"""What may take long, by a process of its own that can be ended."""


def answered(desk: Desk, kind: str, query: Mapping[str, str]) -> Answer:
    """The answer to a question, or a sentence that says why there is none."""
    try:
        found = {**VIEWS, **JOBS}[kind](desk, state_of(query))
    except LtinetError as error:
        return failed(str(error), 400)
    except MemoryError:
        return failed("there is not enough memory for this; try a smaller system, or reduce it first", 400)
    except Exception as error:
        # Whatever it is, the page says it and goes on.
        return failed(f"ltinet could not compute this ({type(error).__name__}: {shown(error, longest=200)})", 500)
    if isinstance(found, Answer):
        return found
    return Answer(200, found if isinstance(found, bytes) else written(found))
