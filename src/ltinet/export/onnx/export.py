"""A file of ONNX: the graph of a network, and its manifest as metadata."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ltinet.export.manifest import Export, as_json, bound_after_many_steps, manifest_of
from ltinet.export.onnx.builder import IR_VERSION, OPSET, GraphBuilder, imported
from ltinet.export.onnx.chunks import chunks_of
from ltinet.export.onnx.delays import delayed_graph, delayed_initial_state
from ltinet.export.onnx.graph import run_graph, state_size
from ltinet.export.places import checked_file, write_export_file
from ltinet.export.settings import PRECISIONS, ExportSettings, exported_model, remarks_on
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import tapped_model
from ltinet.solve.prepared import PreparedNetwork

SUFFIX = ".onnx"


def write_onnx(
    prepared: PreparedNetwork,
    path: str | PathLike[str],
    *,
    settings: ExportSettings,
    engine: PreparedNetwork | None = None,
) -> Export:
    """Write the graph of a network, with the steps of another one that is the same where that is given."""
    imported()
    place = checked_file(path, suffix=SUFFIX)
    model = exported_model(engine or prepared, settings, by_increments=False)
    build = GraphBuilder(PRECISIONS[settings.dtype])
    if settings.signals.moves_signals:
        tapped = tapped_model(model, settings)
        chunks, start = chunks_of(tapped.at_end), delayed_initial_state(tapped)
        delayed_graph(tapped, chunks, build)
        bound = bound_after_many_steps(tapped, settings, terms=chunks.width)
    else:
        chunks, start = chunks_of(model), initial_state(model)
        run_graph(model, chunks, build)
        bound = bound_after_many_steps(model, settings, terms=chunks.width)
    manifest = dict(manifest_of("onnx", prepared, settings, model=model, bound=bound, files=[]))
    manifest |= {"opset": OPSET, "samples in a chunk": chunks.width, "initial state": start}
    write_graph(place, build, manifest)
    return Export(place, (place.name,), manifest, remarks_on(model))


def initial_state(model: StepModel) -> list[float]:
    """The state that a run begins in, before any sample."""
    return [*map(float, model.start), *([0.0] * (state_size(model) - model.n_states))]


def write_graph(place: Path, build: GraphBuilder, manifest: Mapping[str, Any]) -> None:
    """Write what was built, checked, with its manifest."""
    onnx = imported()
    written = onnx.helper.make_model(
        build.graph("network"), opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="ltinet"
    )
    written.ir_version = IR_VERSION
    onnx.helper.set_model_props(written, {"ltinet": as_json(manifest)})
    onnx.checker.check_model(written, full_check=True)
    write_export_file(place, written.SerializeToString(deterministic=True))
