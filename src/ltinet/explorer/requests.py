"""Requests of the page and their responses: views, descriptions of uploads, downloads, and errors as sentences.

`VIEWS` are answered by the process that holds the caches; `JOBS` may take long and run in a child process that can
be terminated. Downloads are the network file, C code, an ONNX graph, the standalone page, and a Python script that
reproduces the numbers of a view.
"""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ltinet._util.text import sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import LtinetError
from ltinet.explorer.excitation import CHIRP, N_TIMES, ExcitationRun
from ltinet.explorer.files import file_bytes, read_upload
from ltinet.explorer.page import render_shared_page
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.subject import EXAMPLES, find_upload
from ltinet.explorer.view_service import ViewService
from ltinet.explorer.views import JSONObject, encode_json
from ltinet.tables.table import Table

JSON_TYPE = "application/json"


class PageResponse(NamedTuple):
    """What is sent back; `name` is that of a download."""

    status: int
    content: bytes
    type: str = JSON_TYPE
    name: str = ""


def error_response(sentence: str, status: int) -> PageResponse:
    """A sentence for the page."""
    return PageResponse(status, json.dumps({"error": sentence}).encode())


def describe_upload(desk: ViewService, state: ViewState) -> JSONObject:
    """The kind of a file, and of a table its columns."""
    file = find_upload(desk.files, state.system.removeprefix("file:"))
    held = read_upload(file)
    told: JSONObject = {"name": sanitize(file.name)}
    if isinstance(held, Table):
        return {**told, "kind": "table", "columns": [sanitize(name) for name in held.names], "rows": len(held.t)}
    kind = "network" if isinstance(held, DynamicNetwork) else "system"
    return {**told, "kind": kind, "n_states": held.n_states, "n_inputs": held.n_inputs, "n_outputs": held.n_outputs}


_BEGINNING = '''"""A view of `ltinet explore`, reproduced; {address}"""

import dataclasses

import numpy as np

import ltinet
'''


def generate_script(desk: ViewService, state: ViewState) -> str:
    """Python that ends with `net`, its `solution` and its answer `H` to the frequencies `omega`."""
    run = desk.run(state)[0]
    parts = [
        _BEGINNING.format(address=state.query().replace('"', "")),
        *_system(desk, state),
        *_reduction(desk, state),
        f"net = ltinet.condition_tradeoff(system).within({state.k!r}).network",
        *_reduction_error_lines(desk, state),
        "print(net)",
        "",
        *_input_lines(desk, state, run),
        *_signal_setting_lines(run, desk.seen(state).net),
        f"solution = moved.simulate(u, t, x0=x0, hold={run.hold!r})",
        f'print("largest |y|", np.abs(solution.y[:, {state.output - 1}]).max())',
        f'print("certified error", solution.error_bound()[{state.output - 1}])',
        "omega = system.plot_frequencies()",
        "H = net.frequency_response(omega)",
    ]
    return "\n".join(parts) + "\n"


def _system(desk: ViewService, state: ViewState) -> list[str]:
    kind, _, name = state.system.partition(":")
    if kind == "example":
        own = EXAMPLES[name]
        given = "".join(f", {key}={value!r}" for key, value in own.parameters.items())
        return [f"system = ltinet.named_system({own.name!r}{given})"]
    file = find_upload(desk.files, name)
    if file.suffix == ".safetensors":
        return [f"given = ltinet.load({file.name!r})", "system = given.system or given.to_state_space()"]
    held = read_upload(file)
    if isinstance(held, Table):
        return [
            f"table = ltinet.read_table({file.name!r})",
            f"u, y = table.values[:, {_indices(state.drive)}], table.values[:, {_indices(state.answer)}]",
            "found = ltinet.identify(u, y, dt=(table.t[-1] - table.t[0]) / (len(table.t) - 1))",
            f"system = found.system.with_names(inputs={_names(held, state.drive)}, "
            f"outputs={_names(held, state.answer)})",
        ]
    return [f"system = ltinet.load_system({file.name!r})"]


def _reduction(desk: ViewService, state: ViewState) -> list[str]:
    found = desk.subject(state).reduction
    if found is None:
        return []
    wanted = f"order={state.order}" if state.order is not None else "tolerance=1e-06"
    return [f"reduced = ltinet.reduce(system, {wanted})", "system = reduced.system"]


def _reduction_error_lines(desk: ViewService, state: ViewState) -> list[str]:
    """Bounds count what a reduction left out."""
    subject = desk.subject(state)
    if subject.reduction is not None:
        return ["net = dataclasses.replace(net, reduction_error=reduced.h2_bound())"]
    if subject.reduction_error is not None:
        return ["net = dataclasses.replace(net, reduction_error=given.reduction_error)"]
    return []


def _input_lines(desk: ViewService, state: ViewState, run: ExcitationRun) -> list[str]:
    if state.u.startswith("file:"):
        file, count = find_upload(desk.files, state.u.removeprefix("file:")), run.u.shape[1]
        chosen = state.drive if len(state.drive) == count else tuple(range(1, count + 1))
        return [
            f"table = ltinet.read_table({file.name!r})",
            f"t, u, x0 = table.t, table.values[:, {_indices(chosen)}], None",
        ]
    lines = [
        f"t = np.linspace(0.0, {float(run.t[-1])!r}, {N_TIMES})",
        f"u, x0 = np.zeros((len(t), {run.u.shape[1]})), None",
    ]
    driven = state.input - 1
    if state.u == "impulse":
        return [*lines, f"x0 = system.B[:, {driven}]"]
    if state.u == "step":
        return [*lines, f"u[:, {driven}] = 1.0"]
    return [*lines, "share = t / t[-1]", f"u[:, {driven}] = {CHIRP}"]


def _signal_setting_lines(run: ExcitationRun, net: DynamicNetwork) -> list[str]:
    """The network with the signal settings of the run: curves are deviations from the operating point."""
    own = run.settings
    if own == net.signal_settings or not net.signal_settings.shifts_signals:
        return ["moved = net"]
    changes = f"input_delay={_listed(own.input_delay)}, output_delay={_listed(own.output_delay)}, u0=0, y0=0"
    return [f"moved = net.with_signal_settings({changes})"]


def _listed(numbers: tuple[float, ...] | None) -> list[float] | int:
    return 0 if numbers is None else list(numbers)


def _names(table: Table, numbers: tuple[int, ...]) -> list[str]:
    return [table.names[number - 1] for number in numbers]


def _indices(numbers: tuple[int, ...]) -> list[int]:
    return [number - 1 for number in numbers]


_BYTES = "application/octet-stream"


def network_file(desk: ViewService, state: ViewState) -> PageResponse:
    """The network as `net.save` writes it."""
    return PageResponse(200, file_bytes(desk.seen(state).net.save, ".safetensors"), _BYTES, "network.safetensors")


def script_file(desk: ViewService, state: ViewState) -> PageResponse:
    """The script that gives the numbers of the view again."""
    return PageResponse(200, generate_script(desk, state).encode(), "text/x-python; charset=utf-8", "view.py")


def onnx_file(desk: ViewService, state: ViewState) -> PageResponse:
    """The network as an ONNX graph, for the time step of the response."""
    net, dt = desk.seen(state).net, _step(desk, state)
    return PageResponse(200, file_bytes(lambda path: net.export_onnx(path, dt), ".onnx"), _BYTES, "network.onnx")


def c_file(desk: ViewService, state: ViewState) -> PageResponse:
    """The network as a folder of C99 in an archive, for the time step of the response."""
    net, dt = desk.seen(state).net, _step(desk, state)
    archive = io.BytesIO()

    def export(path: Path) -> None:
        net.export_c(path, dt)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for file in sorted(path.rglob("*")):
                target.writestr(f"network_c/{file.relative_to(path)}", file.read_bytes())
        path.rename(path.with_name("exported"))
        path.write_bytes(archive.getvalue())

    return PageResponse(200, file_bytes(export, ""), "application/zip", "network_c.zip")


def page_file(desk: ViewService, state: ViewState) -> PageResponse:
    """The page as one file that needs no server."""
    return PageResponse(200, render_shared_page(desk, state).encode(), "text/html; charset=utf-8", "explore.html")


def _step(desk: ViewService, state: ViewState) -> float:
    t = desk.run(state)[0].t
    return float((t[-1] - t[0]) / (len(t) - 1))


RequestHandler = Callable[[ViewService, ViewState], Any]

VIEWS: Mapping[str, RequestHandler] = {"view": ViewService.written_view}
"""What is answered at once, by the process that keeps what it computed."""
JOBS: Mapping[str, RequestHandler] = {
    "band": ViewService.band,
    "engines": ViewService.engines,
    "open": describe_upload,
    "network": network_file,
    "script": script_file,
    "c": c_file,
    "onnx": onnx_file,
    "page": page_file,
}
"""What may take long, by a process of its own that can be ended."""


def answer_request(desk: ViewService, kind: str, query: Mapping[str, str]) -> PageResponse:
    """The answer to a question, or a sentence that says why there is none."""
    try:
        found = {**VIEWS, **JOBS}[kind](desk, parse_state(query))
    except LtinetError as error:
        return error_response(str(error), 400)
    except MemoryError:
        return error_response("there is not enough memory for this; try a smaller system, or reduce it first", 400)
    except Exception as error:
        # Whatever it is, the page says it and goes on.
        return error_response(
            f"ltinet could not compute this ({type(error).__name__}: {sanitize(error, longest=200)})", 500
        )
    if isinstance(found, PageResponse):
        return found
    return PageResponse(200, found if isinstance(found, bytes) else encode_json(found))
