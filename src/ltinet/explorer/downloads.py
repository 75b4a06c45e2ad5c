"""What can be taken away: the network as a file, as C, as ONNX, the script of a view, and the page itself."""

import io
import zipfile
from pathlib import Path

from ltinet.explorer.answer import Answer
from ltinet.explorer.desk import Desk
from ltinet.explorer.files import written
from ltinet.explorer.script import script_of
from ltinet.explorer.shared_page import shared_page
from ltinet.explorer.state import State

_BYTES = "application/octet-stream"


def network_file(desk: Desk, state: State) -> Answer:
    """The network as `net.save` writes it."""
    return Answer(200, written(desk.seen(state).net.save, ".safetensors"), _BYTES, "network.safetensors")


def script_file(desk: Desk, state: State) -> Answer:
    """The script that gives the numbers of the view again."""
    return Answer(200, script_of(desk, state).encode(), "text/x-python; charset=utf-8", "view.py")


def onnx_file(desk: Desk, state: State) -> Answer:
    """The network as an ONNX graph, for the time step of the response."""
    net, dt = desk.seen(state).net, _step(desk, state)
    return Answer(200, written(lambda path: net.export_onnx(path, dt), ".onnx"), _BYTES, "network.onnx")


def c_file(desk: Desk, state: State) -> Answer:
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

    return Answer(200, written(export, ""), "application/zip", "network_c.zip")


def page_file(desk: Desk, state: State) -> Answer:
    """The page as one file that needs no server."""
    return Answer(200, shared_page(desk, state).encode(), "text/html; charset=utf-8", "explore.html")


def _step(desk: Desk, state: State) -> float:
    t = desk.run(state)[0].t
    return float((t[-1] - t[0]) / (len(t) - 1))
