"""Requests of the page and their responses: views, descriptions of uploads, downloads, and errors as sentences.

`HANDLERS` has a function for each kind, which a worker process calls. Downloads are the network file, C code, an ONNX
graph, the standalone page, and a Python script that reproduces the numbers of a view.
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
from ltinet.explorer.files import Upload, file_bytes, read_upload
from ltinet.explorer.page import render_shared_page
from ltinet.explorer.state import ViewState, parse_state
from ltinet.explorer.subject import CHIRP, EXAMPLES, N_TIMES, REDUCTION_TOLERANCE, ExcitationRun, find_upload
from ltinet.explorer.uploaded_tables import guess_roles, parse_reading_options
from ltinet.explorer.view_service import ViewService
from ltinet.explorer.views import JSONObject, encode_json
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork
from ltinet.tables.table import Table

JSON_TYPE = "application/json"


class PageResponse(NamedTuple):
    """Response to a request of the page; `name` is the file name of a download."""

    status: int
    content: bytes
    type: str = JSON_TYPE
    name: str = ""


def error_response(sentence: str, status: int) -> PageResponse:
    """Return a response with an error message."""
    return PageResponse(status, json.dumps({"error": sentence}).encode())


def describe_upload(service: ViewService, state: ViewState) -> JSONObject:
    """Return the kind of a file, its name and its sizes; for a table its columns."""
    file = find_upload(service.files, state.system.removeprefix("file:"))
    content = read_upload(file)
    name = sanitize(file.name)
    if isinstance(content, Table):
        names = [*map(sanitize, content.names)]
        roles = guess_roles(content.names, content.values)
        return {"name": name, "kind": "table", "columns": names, "roles": roles, "rows": len(content.t)}
    sizes = {"n_states": content.n_states, "n_inputs": content.n_inputs, "n_outputs": content.n_outputs}
    return {"name": name, "kind": "network" if file.suffix == ".safetensors" else "system", **sizes}


_HEADER = '''"""Reproduces a view of `ltinet explore`: {address}"""

import dataclasses

import numpy as np

import ltinet
'''


def generate_script(service: ViewService, state: ViewState) -> str:
    """Return a Python script that computes `net`, its `solution` and its frequency response `H` at `omega`."""
    run, subject = service.run(state)[0], service.subject(state)
    reduction: list[str] = []
    error_of_reduction: list[str] = []  # which bounds include
    if subject.reduction is not None:
        goal = f"order={state.order}" if state.order is not None else f"tolerance={REDUCTION_TOLERANCE!r}"
        reduction = [f"reduced = ltinet.reduce(system, {goal})", "system = reduced.system"]
        error_of_reduction = ["net = dataclasses.replace(net, reduction_error=reduced.h2_bound())"]
    elif subject.reduction_error is not None:
        error_of_reduction = ["net = dataclasses.replace(net, reduction_error=network.reduction_error)"]
    parts = [
        _HEADER.format(address=state.query().replace('"', "")),
        *_system(service, state),
        *reduction,
        f"net = ltinet.condition_tradeoff(system).within({state.k!r}).network",
        *error_of_reduction,
        "print(net)",
        "",
        *_input_lines(service, state, run),
        *_signal_setting_lines(run, service.cached_view(state).net),
        f"solution = moved.simulate(u, t, x0=x0, hold={run.hold!r})",
        f'print("largest |y|", np.abs(solution.y[:, {state.output - 1}]).max())',
        f'print("certified error", solution.error_bound()[{state.output - 1}])',
        "omega = system.plot_frequencies()",
        "H = net.frequency_response(omega)",
    ]
    return "\n".join(parts) + "\n"


def _system(service: ViewService, state: ViewState) -> list[str]:
    kind, _, name = state.system.partition(":")
    if kind == "example":
        example = EXAMPLES[name]
        parameters = "".join(f", {key}={value!r}" for key, value in example.parameters.items())
        return [f"system = ltinet.named_system({example.name!r}{parameters})"]
    file = find_upload(service.files, name)
    content = read_upload(file)
    if isinstance(content, NonlinearModel):
        return [f"system = ltinet.load_system({file.name!r}).linear"]
    if isinstance(content, NonlinearNetwork):
        return [f"system = ltinet.load({file.name!r}).model.linear"]
    if file.suffix == ".safetensors":
        return [f"network = ltinet.load({file.name!r})", "system = network.system or network.to_state_space()"]
    if isinstance(content, Table):
        resample = parse_reading_options(file.options).get("resample")
        resampled = "" if resample is None else f", resample={resample!r}"
        return [
            _read_table_line(file),
            f"u, y = table.values[:, {_indices(state.drive)}], table.values[:, {_indices(state.answer)}]",
            f"result = ltinet.identify(u, y, t=table.t{resampled})",
            f"system = result.system.with_names(inputs={_names(content, state.drive)}, "
            f"outputs={_names(content, state.answer)})",
        ]
    return [f"system = ltinet.load_system({file.name!r})"]


def _read_table_line(file: Upload) -> str:
    options = {key: value for key, value in parse_reading_options(file.options).items() if key != "resample"}
    more = "".join(f", {key}={value!r}" for key, value in options.items())
    return f'table = ltinet.read_table({file.name!r}, gaps="split"{more})'


def _input_lines(service: ViewService, state: ViewState, run: ExcitationRun) -> list[str]:
    if state.u.startswith("file:"):
        file, count = find_upload(service.files, state.u.removeprefix("file:")), run.u.shape[1]
        chosen = state.drive if len(state.drive) == count else tuple(range(1, count + 1))
        return [
            _read_table_line(file),
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
    """Return the lines that set the signal settings of the run, in deviations from the operating point."""
    settings = run.settings
    if settings == net.signal_settings or not net.signal_settings.shifts_signals:
        return ["moved = net"]
    delays = (f"{name}={list(getattr(settings, name) or ()) or 0}" for name in ("input_delay", "output_delay"))
    changes = f"{', '.join(delays)}, u0=0, y0=0"
    return [f"moved = net.with_signal_settings({changes})"]


def _names(table: Table, numbers: tuple[int, ...]) -> list[str]:
    return [table.names[number - 1] for number in numbers]


def _indices(numbers: tuple[int, ...]) -> list[int]:
    return [number - 1 for number in numbers]


_BINARY_TYPE = "application/octet-stream"


def network_file(service: ViewService, state: ViewState) -> PageResponse:
    """Return the network as `net.save` writes it."""
    content = file_bytes(service.cached_view(state).net.save, ".safetensors")
    return PageResponse(200, content, _BINARY_TYPE, "network.safetensors")


def script_file(service: ViewService, state: ViewState) -> PageResponse:
    """Return the script that reproduces the view."""
    return PageResponse(200, generate_script(service, state).encode(), "text/x-python; charset=utf-8", "view.py")


def onnx_file(service: ViewService, state: ViewState) -> PageResponse:
    """Return the network as an ONNX graph, for the time step of the response."""
    net, dt = service.cached_view(state).net, _step(service, state)
    return PageResponse(200, file_bytes(lambda path: net.export_onnx(path, dt), ".onnx"), _BINARY_TYPE, "network.onnx")


def c_file(service: ViewService, state: ViewState) -> PageResponse:
    """Return the network as a zipped folder of C99, for the time step of the response."""
    net, dt = service.cached_view(state).net, _step(service, state)
    archive = io.BytesIO()

    def export(path: Path) -> None:
        net.export_c(path, dt)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for file in sorted(path.rglob("*")):
                target.writestr(f"network_c/{file.relative_to(path)}", file.read_bytes())
        path.rename(path.with_name("exported"))
        path.write_bytes(archive.getvalue())

    return PageResponse(200, file_bytes(export, ""), "application/zip", "network_c.zip")


def page_file(service: ViewService, state: ViewState) -> PageResponse:
    """Return the standalone page."""
    return PageResponse(200, render_shared_page(service, state).encode(), "text/html; charset=utf-8", "explore.html")


def _step(service: ViewService, state: ViewState) -> float:
    t = service.run(state)[0].t
    return float((t[-1] - t[0]) / (len(t) - 1))


RequestHandler = Callable[[ViewService, ViewState], Any]

HANDLERS: Mapping[str, RequestHandler] = {
    "view": ViewService.view_json,
    "prepare": ViewService.prepare,
    "band": ViewService.band,
    "engines": ViewService.engines,
    "open": describe_upload,
    "network": network_file,
    "script": script_file,
    "c": c_file,
    "onnx": onnx_file,
    "page": page_file,
}
"""Functions that compute the responses, by kind of request."""
SINGLE_KINDS = ("engines", "open")
"""Requests that are often cancelled, or read files that are not trusted: each has a process of its own."""


def answer_request(service: ViewService, kind: str, query: Mapping[str, str]) -> PageResponse:
    """Return the response to a request; errors become messages."""
    try:
        result = HANDLERS[kind](service, parse_state(query))
    except LtinetError as error:
        return error_response(str(error), 400)
    except MemoryError:
        return error_response("not enough memory; use a smaller system, or reduce it first", 400)
    except Exception as error:
        # The page shows any error and continues.
        reason = f"{type(error).__name__}: {sanitize(error, longest=200)}"
        return error_response(f"ltinet could not compute this ({reason})", 500)
    if isinstance(result, PageResponse):
        return result
    return PageResponse(200, result if isinstance(result, bytes) else encode_json(result))
