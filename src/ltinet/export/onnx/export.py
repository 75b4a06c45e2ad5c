"""Export of networks and series connections as ONNX files.

A series of networks and static maps becomes one graph, whose state is that of all networks side by side, in their
order. The manifest is stored as metadata of the file.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ltinet.errors import InvalidNetworkError
from ltinet.export.manifest import (
    Export,
    build_manifest,
    describe_signal_settings,
    generator_name,
    input_names,
    long_run_bound,
    manifest_bytes,
    output_names,
    validate_export_path,
    write_export_file,
)
from ltinet.export.onnx.chunks import ChunkTables, select_chunks
from ltinet.export.onnx.graph import (
    IR_VERSION,
    OPSET,
    GraphBuilder,
    NetworkPorts,
    columns,
    delayed_initial_state,
    import_onnx,
    run_graph,
    run_nodes,
    state_size,
    write_delayed_graph,
    write_delayed_nodes,
)
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


def write_onnx(
    prepared: SimulationContext,
    path: str | PathLike[str],
    *,
    settings: ExportSettings,
    engine: SimulationContext | None = None,
) -> Export:
    """Write the graph of a network, with the steps of another one that is the same where that is given."""
    import_onnx()
    place = validate_export_path(path, suffix=SUFFIX)
    model = build_exported_model(engine or prepared, settings, by_increments=False)
    build = GraphBuilder(PRECISIONS[settings.dtype])
    if settings.signals.shifts_signals:
        tapped = build_tapped_model(model, settings)
        chunks, start = select_chunks(tapped.at_end), delayed_initial_state(tapped)
        write_delayed_graph(tapped, chunks, build)
        bound = long_run_bound(tapped, settings, terms=chunks.width)
    else:
        chunks, start = select_chunks(model), initial_state(model)
        run_graph(model, chunks, build)
        bound = long_run_bound(model, settings, terms=chunks.width)
    manifest = dict(build_manifest("onnx", prepared, settings, model=model, bound=bound, files=[]))
    manifest |= {"opset": OPSET, "samples in a chunk": chunks.width, "initial state": start}
    write_graph(place, build, manifest)
    return Export(place, (place.name,), manifest, growth_warnings(model))


def initial_state(model: StepModel) -> list[float]:
    """The state that a run begins in, before any sample."""
    return [*map(float, model.start), *([0.0] * (state_size(model) - model.n_states))]


def write_graph(place: Path, build: GraphBuilder, manifest: Mapping[str, Any]) -> None:
    """Write what was built, checked, with its manifest."""
    onnx = import_onnx()
    written = onnx.helper.make_model(
        build.graph("network"), opset_imports=[onnx.helper.make_opsetid("", OPSET)], producer_name="ltinet"
    )
    written.ir_version = IR_VERSION
    onnx.helper.set_model_props(written, {"ltinet": manifest_bytes(manifest)})
    onnx.checker.check_model(written, full_check=True)
    write_export_file(place, written.SerializeToString(deterministic=True))


class NetworkPart(NamedTuple):
    """A network with its step, hold and start, and the same one as steps are to be taken."""

    prepared: SimulationContext
    settings: ExportSettings
    engine: SimulationContext


class MapPart(NamedTuple):
    """A map: what it is called, how many numbers go in and come out."""

    kind: str
    map: MapNodes
    n_inputs: int
    n_outputs: int


class _NetworkRun(NamedTuple):
    prepared: SimulationContext
    model: StepModel
    chunks: ChunkTables
    tapped: TappedModel | None = None

    @property
    def start(self) -> list[float]:
        """The state that it begins in."""
        return initial_state(self.model) if self.tapped is None else delayed_initial_state(self.tapped)

    def nodes(self, build: GraphBuilder, ends: NetworkPorts) -> tuple[str, str]:
        """The nodes of its run; the names of its outputs and of its last state."""
        if self.tapped is None:
            return run_nodes(self.model, self.chunks, build, ends)
        return write_delayed_nodes(self.tapped, self.chunks, build, ends)


def write_stack(
    parts: Sequence[NetworkPart | MapPart], path: str | PathLike[str], *, dtype: Precision, checksum: str
) -> Export:
    """Write the graph of parts in a row, which share one time step and one precision.

    Raises:
        InvalidNetworkError: there is no network among the parts, or their time steps differ.
    """
    import_onnx()
    place = validate_export_path(path, suffix=SUFFIX)
    dt = _time_step(parts)
    runs = [part if isinstance(part, MapPart) else _network_run(part) for part in parts]
    build = GraphBuilder(PRECISIONS[dtype])
    facts: dict[str, Any] = {
        "made by": generator_name(),
        "target": "onnx",
        "network": {"sha256": checksum, "states": _n_states(runs)},
    }
    facts |= {"inputs": _input_names(runs[0]), "outputs": _output_names(runs[-1]), "dt": dt, "hold": _common_hold(runs)}
    facts |= {"dtype": dtype, "bound": _unknown_bounds(len(facts["outputs"])), "files": [], "opset": OPSET}
    facts |= {"parts": [_part_facts(run) for run in runs]}
    facts |= {"initial state": [number for run in _networks(runs) for number in run.start]}
    _build_graph(runs, build, sizes=(len(facts["inputs"]), len(facts["outputs"]), len(facts["initial state"])))
    write_graph(place, build, facts)
    notes = dict.fromkeys(note for run in _networks(runs) for note in growth_warnings(run.model))
    return Export(place, (place.name,), facts, tuple(notes))


def _build_graph(runs: Sequence[_NetworkRun | MapPart], build: GraphBuilder, *, sizes: tuple[int, int, int]) -> None:
    """From u and the state to y and the next state, part by part."""
    n_inputs, n_outputs, n_numbers = sizes
    build.declare("u", ["batch", "time", n_inputs])
    build.declare("state", ["batch", n_numbers])
    signal, first, after = "u", 0, []
    for run in runs:
        if isinstance(run, MapPart):
            signal = run.map.nodes(build, signal)
            continue
        last = first + len(run.start)
        state = build.op("Slice", "state", *columns(build, first, last))
        signal, end = run.nodes(build, NetworkPorts(signal, state, None, None))
        after.append(end)
        first = last
    build.op("Identity", signal, name="y")
    build.op("Concat", *after, axis=1, name="next_state")
    build.result("y", ["batch", "time", n_outputs])
    build.result("next_state", ["batch", n_numbers])


def _time_step(parts: Sequence[NetworkPart | MapPart]) -> float:
    steps = list(dict.fromkeys(part.settings.dt for part in parts if isinstance(part, NetworkPart)))
    if not steps:
        raise InvalidNetworkError("the model has no network in it, so that it knows no step of time; give a stack")
    if len(steps) > 1:
        raise InvalidNetworkError(
            f"the networks of the model have time steps {steps[0]:g} and {steps[1]:g}; give them one: network.at(dt)"
        )
    return steps[0]


def _network_run(part: NetworkPart) -> _NetworkRun:
    model = build_exported_model(part.engine, part.settings, by_increments=False)
    if not part.settings.signals.shifts_signals:
        return _NetworkRun(part.prepared, model, select_chunks(model))
    tapped = build_tapped_model(model, part.settings)
    return _NetworkRun(part.prepared, model, select_chunks(tapped.at_end), tapped)


def _networks(runs: Sequence[_NetworkRun | MapPart]) -> list[_NetworkRun]:
    return [run for run in runs if isinstance(run, _NetworkRun)]


def _n_states(runs: Sequence[_NetworkRun | MapPart]) -> int:
    return sum(run.model.n_states for run in _networks(runs))


def _common_hold(runs: Sequence[_NetworkRun | MapPart]) -> str:
    holds = {run.model.hold for run in _networks(runs)}
    return holds.pop() if len(holds) == 1 else "of each part"


def _unknown_bounds(n_outputs: int) -> dict[str, Any]:
    """Nobody has bounded what maps make of errors; unknown is null."""
    return {"per step": [None] * n_outputs, "drift": [None] * n_outputs, "size": [None] * n_outputs}


def _input_names(first: _NetworkRun | MapPart) -> list[str]:
    if isinstance(first, MapPart):
        return list(names_or_defaults(None, "inputs", first.n_inputs))
    return list(input_names(first.prepared))


def _output_names(last: _NetworkRun | MapPart) -> list[str]:
    if isinstance(last, MapPart):
        return list(names_or_defaults(None, "outputs", last.n_outputs))
    return list(output_names(last.prepared))


def _part_facts(run: _NetworkRun | MapPart) -> dict[str, Any]:
    """A part in the manifest."""
    if isinstance(run, MapPart):
        return {"kind": run.kind, "inputs": run.n_inputs, "outputs": run.n_outputs}
    signals = NO_SETTINGS if run.tapped is None else run.tapped.settings
    network = {"sha256": network_checksum(run.prepared.stored._replace(settings=signals)), "states": run.model.n_states}
    facts = {"kind": "network", "network": network, "hold": run.model.hold, "samples in a chunk": run.chunks.width}
    return facts | ({} if run.tapped is None else {"delays and operating point": describe_signal_settings(signals)})
