"""Export of networks and series connections as ONNX files.

A series of networks and static maps becomes one graph, whose state is that of all networks side by side, in their
order. The manifest is stored as metadata of the file.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ltinet.errors import InvalidNetworkError
from ltinet.export import manifest
from ltinet.export.manifest import Export
from ltinet.export.onnx import graph
from ltinet.export.onnx.chunks import ChunkTables, select_chunks
from ltinet.export.onnx.graph import GraphBuilder, NetworkPorts
from ltinet.export.onnx.static_maps import MapNodes
from ltinet.export.step_model import (
    PRECISIONS,
    ExportSettings,
    Precision,
    StepModel,
    build_exported_model,
    growth_warnings,
)
from ltinet.export.tapped_delay_line import TappedModel, build_tapped_model
from ltinet.network.network_file import network_checksum
from ltinet.simulation.context import SimulationContext
from ltinet.systems.signal_names import names_or_defaults
from ltinet.systems.signal_settings import NO_SETTINGS

SUFFIX = ".onnx"


class NetworkPart(NamedTuple):
    """Network of a series connection; `engine` is the same network in the coordinates of its steps."""

    context: SimulationContext
    settings: ExportSettings
    engine: SimulationContext


class MapPart(NamedTuple):
    """Static map of a series connection, with its name and its numbers of inputs and outputs."""

    kind: str
    map: MapNodes
    n_inputs: int
    n_outputs: int


class _NetworkRun(NamedTuple):
    """Network with the tables of its run."""

    context: SimulationContext
    model: StepModel
    chunks: ChunkTables
    tapped: TappedModel | None = None

    @property
    def start(self) -> list[float]:
        """State before any sample."""
        size = graph.state_size(self.model) if self.tapped is None else graph.delayed_state_size(self.tapped)
        return [*map(float, self.model.start), *([0.0] * (size - self.model.n_states))]

    def nodes(self, build: GraphBuilder, ports: NetworkPorts) -> tuple[str, str]:
        """Add the nodes of a run; return the names of its outputs and of its last state."""
        if self.tapped is None:
            return graph.run_nodes(self.model, self.chunks, build, ports)
        return graph.delayed_run_nodes(self.tapped, self.chunks, build, ports)


def _network_run(part: NetworkPart) -> _NetworkRun:
    model = build_exported_model(part.engine, part.settings, by_increments=False)
    if not part.settings.signals.shifts_signals:
        return _NetworkRun(part.context, model, select_chunks(model))
    tapped = build_tapped_model(model, part.settings)
    return _NetworkRun(part.context, model, select_chunks(tapped.at_end), tapped)


def write_onnx(
    context: SimulationContext,
    path: str | PathLike[str],
    *,
    settings: ExportSettings,
    engine: SimulationContext | None = None,
) -> Export:
    """Write the graph of a network; `engine`, if given, is the same network in the coordinates of its steps."""
    graph.import_onnx()
    path = manifest.validate_export_path(path, suffix=SUFFIX)
    run = _network_run(NetworkPart(context, settings, engine or context))
    model = run.model if run.tapped is None else run.tapped
    build = GraphBuilder(PRECISIONS[settings.dtype])
    build.declare("u", ["batch", "time", model.n_inputs])
    build.declare("state", ["batch", len(run.start)])
    run.nodes(build, NetworkPorts())
    build.result("y", ["batch", "time", model.n_outputs])
    build.result("next_state", ["batch", len(run.start)])
    bound = manifest.long_run_bound(model, settings, terms=run.chunks.width)
    record = dict(manifest.build_manifest("onnx", context, settings, model=run.model, bound=bound, files=[]))
    record |= {"opset": graph.OPSET, "samples in a chunk": run.chunks.width, "initial state": run.start}
    _write_graph(path, build, record)
    return Export(path, (path.name,), record, growth_warnings(run.model))


def write_stack(
    parts: Sequence[NetworkPart | MapPart], path: str | PathLike[str], *, dtype: Precision, checksum: str
) -> Export:
    """Write the graph of a series connection, whose networks share one time step and one precision.

    Raise `InvalidNetworkError` if there is no network among the parts, or if their time steps differ.
    """
    graph.import_onnx()
    path = manifest.validate_export_path(path, suffix=SUFFIX)
    dt = _time_step(parts)
    runs = [part if isinstance(part, MapPart) else _network_run(part) for part in parts]
    networks = [run for run in runs if isinstance(run, _NetworkRun)]
    inputs, outputs = _channel_names(runs[0], "inputs"), _channel_names(runs[-1], "outputs")
    holds = {run.model.hold for run in networks}
    unknown = [None] * len(outputs)  # maps amplify errors by unknown factors
    facts: dict[str, Any] = {
        "made by": manifest.GENERATOR,
        "target": "onnx",
        "network": {"sha256": checksum, "states": sum(run.model.n_states for run in networks)},
        "inputs": inputs,
        "outputs": outputs,
        "dt": dt,
        "hold": holds.pop() if len(holds) == 1 else "of each part",
        "dtype": dtype,
        "bound": {"per step": unknown, "drift": unknown, "size": unknown},
        "files": [],
        "opset": graph.OPSET,
        "parts": [_part_facts(run) for run in runs],
        "initial state": [value for run in networks for value in run.start],
    }
    build = GraphBuilder(PRECISIONS[dtype])
    n_state = len(facts["initial state"])
    build.declare("u", ["batch", "time", len(inputs)])
    build.declare("state", ["batch", n_state])
    signal, first, next_states = "u", 0, []
    for run in runs:
        if isinstance(run, MapPart):
            signal = run.map.nodes(build, signal)
            continue
        last = first + len(run.start)
        state = build.op("Slice", "state", [first], [last], [1])
        signal, next_state = run.nodes(build, NetworkPorts(signal, state, None, None))
        next_states.append(next_state)
        first = last
    build.op("Identity", signal, name="y")
    build.op("Concat", *next_states, axis=1, name="next_state")
    build.result("y", ["batch", "time", len(outputs)])
    build.result("next_state", ["batch", n_state])
    _write_graph(path, build, facts)
    notes = dict.fromkeys(note for run in networks for note in growth_warnings(run.model))
    return Export(path, (path.name,), facts, tuple(notes))


def _write_graph(path: Path, build: GraphBuilder, record: Mapping[str, Any]) -> None:
    """Check the graph and write it with its manifest."""
    onnx = graph.import_onnx()
    opset = onnx.helper.make_opsetid("", graph.OPSET)
    model = onnx.helper.make_model(build.graph("network"), opset_imports=[opset], producer_name="ltinet")
    model.ir_version = graph.IR_VERSION
    onnx.helper.set_model_props(model, {"ltinet": manifest.manifest_bytes(record)})
    onnx.checker.check_model(model, full_check=True)
    manifest.write_export_file(path, model.SerializeToString(deterministic=True))


def _time_step(parts: Sequence[NetworkPart | MapPart]) -> float:
    """Return the time step that all networks share."""
    steps = list(dict.fromkeys(part.settings.dt for part in parts if isinstance(part, NetworkPart)))
    if not steps:
        raise InvalidNetworkError("the model contains no network and has no time step; export a Stack with a network")
    if len(steps) > 1:
        raise InvalidNetworkError(
            f"the networks of the model have different time steps, {steps[0]:g} and {steps[1]:g}; set one: network.at(dt)"
        )
    return steps[0]


def _channel_names(run: _NetworkRun | MapPart, kind: Literal["inputs", "outputs"]) -> list[str]:
    """Return the names of the inputs or outputs of a part."""
    if isinstance(run, MapPart):
        return list(names_or_defaults(None, kind, run.n_inputs if kind == "inputs" else run.n_outputs))
    return list((manifest.input_names if kind == "inputs" else manifest.output_names)(run.context))


def _part_facts(run: _NetworkRun | MapPart) -> dict[str, Any]:
    """Return the entry of a part in the manifest."""
    if isinstance(run, MapPart):
        return {"kind": run.kind, "inputs": run.n_inputs, "outputs": run.n_outputs}
    signals = NO_SETTINGS if run.tapped is None else run.tapped.settings
    network = {"sha256": network_checksum(run.context.stored._replace(settings=signals)), "states": run.model.n_states}
    facts = {"kind": "network", "network": network, "hold": run.model.hold, "samples in a chunk": run.chunks.width}
    if run.tapped is not None:
        facts["delays and operating point"] = manifest.describe_signal_settings(signals)
    return facts
