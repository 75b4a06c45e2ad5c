"""ONNX graph of a network: run in blocks of time, delays and operating point.

    u (batch, time, m), state (batch, n_state)  →  y (batch, time, p), next_state

in real arithmetic with free batch and time. With a linear hold the state also says whether there was a sample. The
state of a model with delays holds, side by side,

    z, whether there was a sample, the last samples of v = u − u0, the same as ends of lines (linear hold only),
    the rows of partial outputs, and the outputs that wait.

Its taps are derived in `tapped_delay_line`; the core runs as with a linear hold whose Γ₀ is zero,
z_k = P z_{k−1} + Γ x_k.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import install_hint
from ltinet.errors import MissingDependencyError
from ltinet.export.onnx.chunks import ChunkTables, StateCarry
from ltinet.export.step_model import StepModel
from ltinet.export.tapped_delay_line import TappedModel

OPSET = 17
IR_VERSION = 8


def import_onnx() -> Any:
    """Return the module onnx; raise `MissingDependencyError` if it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise MissingDependencyError(f"onnx is not installed; {install_hint('onnx')}") from error
    return onnx


class GraphBuilder:
    """Builder of an ONNX graph; every value has a name."""

    def __init__(self, precision: type[np.floating[Any]], *, prefix: str = "") -> None:
        self._onnx = import_onnx()
        self._precision = precision
        self._type = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
        self._nodes: list[Any] = []
        self._tables: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._outputs_by_node: dict[tuple[Any, ...], str] = {}
        self._integers: dict[tuple[Any, ...], str] = {}
        self._count, self._prefix = 0, prefix

    def subgraph(self) -> "GraphBuilder":
        """Return a builder for the body of a loop, with names that differ from those of this graph."""
        return GraphBuilder(self._precision, prefix=f"{self._new('loop')}_")

    def declare(self, name: str, shape: Sequence[Any]) -> None:
        """Declare an input; a shape has numbers, and names or None for free dimensions."""
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def result(self, name: str, shape: Sequence[Any]) -> None:
        """Declare an output."""
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def op(self, kind: str, *inputs: str | list[int] | NDArray[Any], name: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return its name; equal nodes are added once.

        Inputs are names of values, lists of integers (shapes and indices), or arrays of constants.
        """
        values = tuple(map(self._input_name, inputs))
        key = (kind, values, repr(attributes))
        if name is None and key in self._outputs_by_node:
            return self._outputs_by_node[key]
        output = name or self._new(kind.lower())
        # Nodes need names: onnxruntime 1.20 names fused nodes after their parts and rejects duplicates.
        self._nodes.append(self._onnx.helper.make_node(kind, list(values), [output], name=output, **attributes))
        self._outputs_by_node[key] = output
        return output

    def scan(self, body: "GraphBuilder", first: str, rows: str) -> str:
        """Add a loop over rows with one state; return the name of its output rows."""
        last, outputs, graph = self._new("last"), self._new("rows"), body.graph("round")
        options = {"name": last, "body": graph, "num_scan_inputs": 1}
        self._nodes.append(self._onnx.helper.make_node("Scan", [first, rows], [last, outputs], **options))
        return outputs

    def cast(self, integers: str) -> str:
        """Convert integers to the precision of the graph."""
        return self.op("Cast", integers, to=self._type)

    def table(self, values: NDArray[Any]) -> str:
        """Add a constant in the precision of the graph."""
        return self._constant(np.ascontiguousarray(values, dtype=self._precision))

    def integers(self, values: Any) -> str:
        """Add integers, for shapes and indices; equal ones are added once."""
        array = np.asarray(values, dtype=np.int64)
        key = (array.shape, *array.ravel().tolist())
        if key not in self._integers:
            self._integers[key] = self._constant(array)
        return self._integers[key]

    def graph(self, name: str) -> Any:
        """Return the graph."""
        return self._onnx.helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._tables)

    def _input_name(self, value: str | list[int] | NDArray[Any]) -> str:
        if isinstance(value, str):
            return value
        return self.integers(value) if isinstance(value, list) else self.table(value)

    def _constant(self, array: NDArray[Any]) -> str:
        name = self._new("table")
        self._tables.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}{kind}_{self._count}"


class NetworkPorts(NamedTuple):
    """Names of inputs and outputs of a network's nodes; None for a generated name."""

    u: str = "u"
    state: str = "state"
    y: str | None = "y"
    next_state: str | None = "next_state"


def run_nodes(model: StepModel, chunks: ChunkTables, build: GraphBuilder, ports: NetworkPorts) -> tuple[str, str]:
    """Add the nodes of a run; return the names of its outputs and of its last state."""
    if not model.n_states:
        y = build.op("MatMul", ports.u, model.D.T, name=ports.y)
        return y, build.op("Identity", ports.state, name=ports.next_state)
    m, p, K = chunks.shift.shape[0], model.n_outputs, chunks.width
    shape = build.op("Shape", ports.u)
    batch = build.op("Slice", shape, [0], [1])
    time = build.op("Slice", shape, [1], [2])
    u = ports.u
    if not model.n_inputs:  # one input that is zero
        u = build.op("Expand", np.zeros((1, 1, 1)), build.op("Concat", batch, time, [1], axis=0))
    n_chunks = build.op("Max", _ceiling_division(build, time, K), [1])  # a signal may have no samples
    blocks = _reshape_to_chunks(build, u, (batch, time), n_chunks, size=K, columns=m)
    w = _initial_chunk_state(model, chunks, build, ports.state, blocks)
    added = build.op("MatMul", blocks, chunks.into_state)  # (batch, chunks, n)
    starts, last = _carry_states(chunks, build, added, w, batch=batch, n_chunks=n_chunks)
    rest, tail = _last_chunk(build, u, time, n_chunks, width=K, columns=m)
    after = _state_after_last(chunks, build, last, rest, build.op("MatMul", tail, chunks.into_state))
    outputs = build.op("MatMul", blocks, chunks.from_inputs)
    outputs = build.op("Add", build.op("MatMul", starts, chunks.from_state), outputs)
    n_padded = build.op("Mul", n_chunks, [K])
    rows = build.op("Reshape", outputs, build.op("Concat", batch, n_padded, [p], axis=0))
    y = build.op("Slice", rows, [0], time, [1], name=ports.y)
    return y, _final_state(model, chunks, build, after, time, ports)


def state_size(model: StepModel) -> int:
    """Return the size of a state; with a linear hold it also stores whether there was a sample."""
    return model.n_states + (1 if model.hold == "linear" else 0)


def _initial_chunk_state(model: StepModel, chunks: ChunkTables, build: GraphBuilder, state: str, blocks: str) -> str:
    """Return w at the first sample, in the order of the chunks: z − Γ₁ u₀ where there was no sample before."""
    z = build.op("Gather", state, chunks.order.tolist(), axis=1)
    if model.hold == "zero":
        return z
    block = build.op("Gather", blocks, build.integers(0), axis=1)
    first = build.op("Slice", block, [0], [len(chunks.shift)], [1])
    shift = build.op("MatMul", first, chunks.shift)
    fresh = build.op("Sub", np.ones(1), _has_sample(model, build, state))
    return build.op("Sub", z, build.op("Mul", fresh, shift))


def _has_sample(model: StepModel, build: GraphBuilder, state: str) -> str:
    """Return 1 if there was a sample, else 0."""
    return build.op("Slice", state, [model.n_states], [model.n_states + 1], [1])


def _final_state(
    model: StepModel, chunks: ChunkTables, build: GraphBuilder, after: str, time: str, ports: NetworkPorts
) -> str:
    """Return the last state; with a linear hold it stores that there was a sample, unless there were none at all."""
    back = np.argsort(chunks.order, kind="stable").tolist()
    if model.hold == "zero":
        return build.op("Gather", after, back, axis=1, name=ports.next_state)
    z = build.op("Gather", after, back, axis=1)
    samples = build.cast(build.op("Min", time, [1]))
    flag = build.op("Max", _has_sample(model, build, ports.state), samples)
    return build.op("Concat", z, flag, axis=1, name=ports.next_state)


def _ceiling_division(build: GraphBuilder, count: str, size: int) -> str:
    """Return ⌈count / size⌉."""
    return build.op("Div", build.op("Add", count, [size - 1]), [size])


def _reshape_to_chunks(
    build: GraphBuilder, values: str, shape: tuple[str, str], n_chunks: str, *, size: int, columns: int
) -> str:
    """Return rows `(batch, count, columns)` as chunks `(batch, n_chunks, size · columns)`, padded with zeros.

    The batch size is passed instead of copied by a 0: onnxruntime would use −1 for the other dimension, which is
    undetermined in an empty batch.
    """
    batch, count = shape
    missing = build.op("Sub", build.op("Mul", n_chunks, [size]), count)
    pads = build.op("Concat", [0, 0, 0, 0], missing, [0], axis=0)
    padded = build.op("Pad", values, pads)
    chunked = build.op("Concat", batch, n_chunks, [size * columns], axis=0)
    return build.op("Reshape", padded, chunked)


def _last_chunk(build: GraphBuilder, u: str, time: str, n_chunks: str, *, width: int, columns: int) -> tuple[str, str]:
    """Return the number of samples of the last chunk, and these as a chunk with zeros before them."""
    begin = build.op("Mul", build.op("Sub", n_chunks, [1]), [width])
    rest = build.op("Sub", time, begin)
    last = build.op("Slice", u, begin, time, [1])
    missing = build.op("Sub", [width], rest)
    pads = build.op("Concat", [0], missing, [0, 0, 0, 0], axis=0)
    padded = build.op("Pad", last, pads)
    return rest, build.op("Reshape", padded, [0, width * columns])


def _carry_states(
    chunks: ChunkTables, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str
) -> tuple[str, list[str]]:
    """Return w at the beginning of every chunk `(batch, chunks, n)`, and of the last one by sizes of blocks."""
    parts, last_starts, first = [], [], 0
    for carry in chunks.carries:
        stop = first + carry.modes.states.size
        of_blocks = build.op("Slice", added, [first], [stop], [2])
        start = build.op("Slice", w, [first], [stop], [1])
        starts = _carry_nodes(carry, build, of_blocks, start, batch=batch, n_chunks=n_chunks)
        parts.append(starts)
        last = build.op("Slice", starts, build.op("Sub", n_chunks, [1]), n_chunks, [1])
        last_starts.append(build.op("Squeeze", last, [1]))
        first = stop
    return (parts[0] if len(parts) == 1 else build.op("Concat", *parts, axis=2)), last_starts


def _carry_nodes(carry: StateCarry, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str) -> str:
    """Carry the states of blocks of one size: within groups by products, from group to group by a loop."""
    k, blocks = carry.modes.states.shape
    L = carry.group
    n_groups = _ceiling_division(build, n_chunks, L)
    padded = _reshape_to_chunks(build, added, (batch, n_chunks), n_groups, size=L, columns=k * blocks)
    split = build.op("Reshape", padded, build.op("Concat", [0, 0, L, k, blocks], axis=0))
    rows = build.op("Transpose", split, perm=[4, 1, 0, 2, 3])  # (blocks, groups, batch, L, k)
    rows = build.op("Reshape", rows, [0, 0, 0, L * k])
    by_group = build.op("Transpose", build.op("MatMul", rows, carry.added[:, None]), perm=[1, 0, 2, 3])
    first = build.op("Transpose", build.op("Reshape", w, [0, k, blocks]), perm=[2, 0, 1])
    group_starts = _loop_over_groups(build, first, by_group, carry)  # (groups, blocks, batch, k)
    group_starts = build.op("Transpose", group_starts, perm=[1, 0, 2, 3])
    starts = build.op("MatMul", group_starts, carry.across[:, None])

    if L > 1:
        starts = build.op("Add", starts, build.op("MatMul", rows, carry.local[:, None]))
    split = build.op("Reshape", starts, [0, 0, 0, L, k])
    back = build.op("Transpose", split, perm=[2, 1, 3, 4, 0])  # (batch, groups, L, k, blocks)
    n_all = build.op("Mul", n_groups, [L])
    flat = build.op("Reshape", back, build.op("Concat", batch, n_all, [k * blocks], axis=0))
    return build.op("Slice", flat, [0], n_chunks, [1])


def _loop_over_groups(build: GraphBuilder, first: str, added: str, carry: StateCarry) -> str:
    """Return w at the beginning of each group, by a Scan whose state is w."""
    body, over = build.subgraph(), carry.over
    for name in ("w", "added"):
        body.declare(name, [len(over), None, over.shape[-1]])
    moved = body.op("MatMul", "w", over)
    if carry.by_increments:
        body.op("Add", "w", body.op("Add", moved, "added"), name="w_next")
    else:
        body.op("Add", moved, "added", name="w_next")
    body.op("Identity", "w", name="w_before")
    for name in ("w_next", "w_before"):
        body.result(name, [len(over), None, over.shape[-1]])
    return build.scan(body, first, added)


def _state_after_last(chunks: ChunkTables, build: GraphBuilder, starts: list[str], rest: str, added: str) -> str:
    """Return w one step after the last sample, from the beginning of the last chunk over the samples that it has."""
    parts = []
    for carry, start in zip(chunks.carries, starts, strict=True):
        k, blocks = carry.modes.states.shape
        power = build.op("Squeeze", build.op("Gather", carry.partly, rest, axis=0), [0])
        rows = build.op("Transpose", build.op("Reshape", start, [0, k, blocks]), perm=[2, 0, 1])
        moved = build.op("Transpose", build.op("MatMul", rows, power), perm=[1, 2, 0])
        parts.append(build.op("Reshape", moved, [0, k * blocks]))
    state = parts[0] if len(parts) == 1 else build.op("Concat", *parts, axis=1)
    return build.op("Add", state, added)


class _DelayedStateLayout(NamedTuple):
    """Column at which each part of the state of a delayed model begins."""

    flag: int
    samples: int
    line_ends: int
    partial: int
    waiting: int
    size: int

    @classmethod
    def of(cls, tapped: TappedModel) -> "_DelayedStateLayout":
        n_samples = tapped.longest_lag * tapped.n_inputs
        has_ends = any(tap.ends_line for tap in tapped.taps)
        counts = [tapped.step.n_states, 1, n_samples, n_samples * has_ends, int(tapped.is_partial.sum())]
        flag, samples, line_ends, partial, waiting = np.cumsum(counts).tolist()
        return cls(flag, samples, line_ends, partial, waiting, waiting + int(tapped.output_steps.sum()))


def delayed_state_size(tapped: TappedModel) -> int:
    """Return the size of a state of a model with delays."""
    return _DelayedStateLayout.of(tapped).size


def delayed_run_nodes(
    tapped: TappedModel, chunks: ChunkTables, build: GraphBuilder, ports: NetworkPorts
) -> tuple[str, str]:
    """Add the nodes of a run with delays; return the names of its outputs and of its last state."""
    layout, n = _DelayedStateLayout.of(tapped), tapped.step.n_states
    time = build.op("Slice", build.op("Shape", ports.u), [1], [2])
    flag = build.op("Slice", ports.state, [layout.flag], [layout.samples], [1])
    x, histories = _tap_nodes(tapped, build, ports, flag=flag, time=time)
    start = build.op("Slice", ports.state, [0], [n + 1], [1])
    rows, core = run_nodes(tapped.at_end, chunks, build, NetworkPorts(x, start, None, None))
    parts = [build.op("Slice", core, [0], [n], [1])] if n else []
    sampled = build.cast(build.op("Min", time, [1]))
    parts.append(build.op("Max", flag, sampled))
    y, after = _output_nodes(tapped, build, ports, rows=rows, x=x, flag=flag, time=time)
    parts += [*histories, *after]
    next_state = build.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return y, build.op("Identity", next_state, name=ports.next_state)


def _tap_nodes(
    tapped: TappedModel, build: GraphBuilder, ports: NetworkPorts, *, flag: str, time: str
) -> tuple[str, list[str]]:
    """Return x `(batch, time, taps)`, and the samples that the next state stores."""
    layout, m, longest = _DelayedStateLayout.of(tapped), tapped.n_inputs, tapped.longest_lag
    v = build.op("Sub", ports.u, tapped.u0) if np.any(tapped.u0) else ports.u
    sources, histories = {}, []
    kinds = [(False, v, layout.samples)]
    if any(tap.ends_line for tap in tapped.taps):  # no line leads to the first sample: its end reads 0
        first = build.op("Slice", v, [0], [1], [1])
        others = build.op("Slice", v, [1], time, [1])
        line_ends = build.op("Concat", build.op("Mul", first, _as_rows(build, flag, 1)), others, axis=1)
        kinds.append((True, line_ends, layout.line_ends))
    for kind, values, begin in kinds:
        sources[kind] = values
        if longest and m:
            flat = build.op("Slice", ports.state, [begin], [begin + longest * m], [1])
            old = build.op("Reshape", flat, [0, longest, m])
            sources[kind] = build.op("Concat", old, values, axis=1)
            stop = build.op("Add", time, [longest])
            newest = build.op("Slice", sources[kind], time, stop, [1])
            histories.append(build.op("Reshape", newest, [0, longest * m]))
    parts = []
    for (ends_line, lag), group in groupby(tapped.taps, key=lambda tap: (tap.ends_line, tap.lag)):
        stop = build.op("Add", time, [longest - lag])
        values = build.op("Slice", sources[ends_line], [longest - lag], stop, [1])
        parts.append(build.op("Gather", values, [tap.channel for tap in group], axis=2))
    if not parts:
        return v, histories
    return (build.op("Concat", *parts, axis=2) if len(parts) > 1 else parts[0]), histories


def _as_rows(build: GraphBuilder, values: str, size: int) -> str:
    """Return values `(batch, size)` as rows `(batch, 1, size)`."""
    return build.op("Reshape", values, [0, 1, size])


def _output_nodes(
    tapped: TappedModel, build: GraphBuilder, ports: NetworkPorts, *, rows: str, x: str, flag: str, time: str
) -> tuple[str, list[str]]:
    """Return y, and the outputs that the next state stores: rows of partial outputs, and delayed outputs."""
    layout, partial = _DelayedStateLayout.of(tapped), np.flatnonzero(tapped.is_partial).tolist()
    partial_values: dict[int, str] = {}
    after: list[str] = []
    if partial:
        current = build.op("Gather", rows, partial, axis=2)
        before = build.op("Slice", ports.state, [layout.partial], [layout.waiting], [1])
        shifted = build.op("Concat", _as_rows(build, before, len(partial)), current, axis=1)
        stop = build.op("Add", time, [1])
        last = build.op("Slice", shifted, time, stop, [1])
        after.append(build.op("Reshape", last, [0, len(partial)]))
        total = build.op("Slice", shifted, [0], time, [1])
        if tapped.taps:
            total = build.op("Add", total, build.op("MatMul", x, tapped.L[partial].T))
        # Before the first step nothing has arrived: the very first row is zero.
        first = build.op("Slice", total, [0], [1], [1])
        others = build.op("Slice", total, [1], time, [1])
        values = build.op("Concat", build.op("Mul", first, _as_rows(build, flag, 1)), others, axis=1)
        partial_values = {i: build.op("Gather", values, [j], axis=2) for j, i in enumerate(partial)}
    if not tapped.n_outputs:
        return build.op("Identity", rows, name=ports.y), after
    if not partial and not tapped.output_steps.any():
        return build.op("Add", rows, tapped.y0, name=ports.y), after
    begin, outputs = layout.waiting, []
    for i, steps in enumerate(tapped.output_steps.tolist()):
        value = partial_values[i] if i in partial_values else build.op("Gather", rows, [i], axis=2)
        if steps:
            old = build.op("Slice", ports.state, [begin], [begin + steps], [1])
            line = build.op("Concat", build.op("Reshape", old, [0, steps, 1]), value, axis=1)
            stop = build.op("Add", time, [steps])
            newest = build.op("Slice", line, time, stop, [1])
            after.append(build.op("Reshape", newest, [0, steps]))
            value = build.op("Slice", line, [0], time, [1])
            begin += steps
        outputs.append(value)
    y = build.op("Concat", *outputs, axis=2) if len(outputs) > 1 else outputs[0]
    return build.op("Add", y, tapped.y0, name=ports.y), after
