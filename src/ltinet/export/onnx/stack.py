"""Networks and static maps in a row as one graph, whose state is that of all networks side by side, in their order."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

from ltinet.errors import InvalidNetworkError
from ltinet.export.manifest import Export, input_names, made_by, moves_of, output_names
from ltinet.export.onnx.builder import OPSET, GraphBuilder, imported
from ltinet.export.onnx.chunks import Chunks, chunks_of
from ltinet.export.onnx.delays import delayed_initial_state, delayed_nodes
from ltinet.export.onnx.export import SUFFIX, initial_state, write_graph
from ltinet.export.onnx.graph import Ends, columns, run_nodes
from ltinet.export.onnx.maps import MapNodes
from ltinet.export.places import checked_file
from ltinet.export.settings import PRECISIONS, ExportSettings, Precision, exported_model, remarks_on
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import TappedModel, tapped_model
from ltinet.model.names import names_or_numbers
from ltinet.model.signal_settings import NO_SETTINGS
from ltinet.network.files import network_checksum
from ltinet.solve.prepared import PreparedNetwork


class NetworkPart(NamedTuple):
    """A network with its step, hold and start, and the same one as steps are to be taken."""

    prepared: PreparedNetwork
    settings: ExportSettings
    engine: PreparedNetwork


class MapPart(NamedTuple):
    """A map: what it is called, how many numbers go in and come out."""

    kind: str
    map: MapNodes
    n_inputs: int
    n_outputs: int


class _Run(NamedTuple):
    prepared: PreparedNetwork
    model: StepModel
    chunks: Chunks
    tapped: TappedModel | None = None

    @property
    def start(self) -> list[float]:
        """The state that it begins in."""
        return initial_state(self.model) if self.tapped is None else delayed_initial_state(self.tapped)

    def nodes(self, build: GraphBuilder, ends: Ends) -> tuple[str, str]:
        """The nodes of its run; the names of its outputs and of its last state."""
        if self.tapped is None:
            return run_nodes(self.model, self.chunks, build, ends)
        return delayed_nodes(self.tapped, self.chunks, build, ends)


def write_stack(
    parts: Sequence[NetworkPart | MapPart], path: str | PathLike[str], *, dtype: Precision, checksum: str
) -> Export:
    """Write the graph of parts in a row, which share one time step and one precision.

    Raises:
        InvalidNetworkError: there is no network among the parts, or their time steps differ.
    """
    imported()
    place = checked_file(path, suffix=SUFFIX)
    dt = _time_step(parts)
    runs = [part if isinstance(part, MapPart) else _run_of(part) for part in parts]
    build = GraphBuilder(PRECISIONS[dtype])
    facts: dict[str, Any] = {
        "made by": made_by(),
        "target": "onnx",
        "network": {"sha256": checksum, "states": _n_states(runs)},
    }
    facts |= {"inputs": _input_names(runs[0]), "outputs": _output_names(runs[-1]), "dt": dt, "hold": _hold(runs)}
    facts |= {"dtype": dtype, "bound": _no_bound(len(facts["outputs"])), "files": [], "opset": OPSET}
    facts |= {"parts": [_facts(run) for run in runs]}
    facts |= {"initial state": [number for run in _networks(runs) for number in run.start]}
    _graph(runs, build, sizes=(len(facts["inputs"]), len(facts["outputs"]), len(facts["initial state"])))
    write_graph(place, build, facts)
    remarks = dict.fromkeys(remark for run in _networks(runs) for remark in remarks_on(run.model))
    return Export(place, (place.name,), facts, tuple(remarks))


def _graph(runs: Sequence[_Run | MapPart], build: GraphBuilder, *, sizes: tuple[int, int, int]) -> None:
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
        signal, end = run.nodes(build, Ends(signal, state, None, None))
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


def _run_of(part: NetworkPart) -> _Run:
    model = exported_model(part.engine, part.settings, by_increments=False)
    if not part.settings.signals.moves_signals:
        return _Run(part.prepared, model, chunks_of(model))
    tapped = tapped_model(model, part.settings)
    return _Run(part.prepared, model, chunks_of(tapped.at_end), tapped)


def _networks(runs: Sequence[_Run | MapPart]) -> list[_Run]:
    return [run for run in runs if isinstance(run, _Run)]


def _n_states(runs: Sequence[_Run | MapPart]) -> int:
    return sum(run.model.n_states for run in _networks(runs))


def _hold(runs: Sequence[_Run | MapPart]) -> str:
    holds = {run.model.hold for run in _networks(runs)}
    return holds.pop() if len(holds) == 1 else "of each part"


def _no_bound(n_outputs: int) -> dict[str, Any]:
    """Nobody has bounded what maps make of errors; unknown is null."""
    return {"per step": [None] * n_outputs, "drift": [None] * n_outputs, "size": [None] * n_outputs}


def _input_names(first: _Run | MapPart) -> list[str]:
    if isinstance(first, MapPart):
        return list(names_or_numbers(None, "inputs", first.n_inputs))
    return list(input_names(first.prepared))


def _output_names(last: _Run | MapPart) -> list[str]:
    if isinstance(last, MapPart):
        return list(names_or_numbers(None, "outputs", last.n_outputs))
    return list(output_names(last.prepared))


def _facts(run: _Run | MapPart) -> dict[str, Any]:
    """A part in the manifest."""
    if isinstance(run, MapPart):
        return {"kind": run.kind, "inputs": run.n_inputs, "outputs": run.n_outputs}
    signals = NO_SETTINGS if run.tapped is None else run.tapped.settings
    network = {"sha256": network_checksum(run.prepared.stored._replace(settings=signals)), "states": run.model.n_states}
    facts = {"kind": "network", "network": network, "hold": run.model.hold, "samples in a chunk": run.chunks.width}
    return facts | ({} if run.tapped is None else {"delays and operating point": moves_of(signals)})
