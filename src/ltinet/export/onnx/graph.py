"""ONNX graph of a network: chunked run, delays and operating point.

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

from ltinet._util.floating_point import Array
from ltinet.errors import MissingDependencyError
from ltinet.export.onnx.chunks import ChunkTables, StateCarry
from ltinet.export.step_model import StepModel
from ltinet.export.tapped_delay_line import Tap, TappedModel

OPSET = 17
IR_VERSION = 8


def import_onnx() -> Any:
    """The library.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingDependencyError('onnx is not installed; install it with pip install "ltinet[onnx]"') from error
    return onnx


class GraphBuilder:
    """Collects what a graph is made of; every value has a name."""

    def __init__(self, precision: type[np.floating[Any]], *, called: str = "") -> None:
        self._onnx = import_onnx()
        self._precision = precision
        self._type = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
        self._nodes: list[Any] = []
        self._tables: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._known: dict[tuple[Any, ...], str] = {}
        self._whole: dict[tuple[Any, ...], str] = {}
        self._count, self._called = 0, called

    def inner(self) -> "GraphBuilder":
        """A graph for the body of a loop, whose names are none of the graph around it."""
        return GraphBuilder(self._precision, called=f"{self._new('loop')}_")

    def declare(self, name: str, shape: Sequence[Any]) -> None:
        """An input; its shape has numbers, names and None for what is free."""
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def result(self, name: str, shape: Sequence[Any]) -> None:
        """An output."""
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """A node with one output; its name. Equal nodes are kept once."""
        key = (kind, inputs, repr(attributes))
        if name is None and key in self._known:
            return self._known[key]
        output = name or self._new(kind.lower())
        # Named: onnxruntime 1.20 calls what it fuses after its nodes, and refuses two that are called alike.
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        self._known[key] = output
        return output

    def scan(self, body: "GraphBuilder", first: str, rows: str) -> str:
        """A loop over rows with one state; the rows that it gives."""
        last, given = self._new("last"), self._new("rows")
        graph = body.graph("round")
        self._nodes.append(
            self._onnx.helper.make_node("Scan", [first, rows], [last, given], name=last, body=graph, num_scan_inputs=1)
        )
        return given

    def cast(self, whole: str) -> str:
        """Whole numbers as numbers of the graph."""
        return self.op("Cast", whole, to=self._type)

    def table(self, values: NDArray[Any]) -> str:
        """Numbers in the precision of the graph."""
        return self._constant(np.ascontiguousarray(values, dtype=self._precision))

    def whole(self, values: Any) -> str:
        """Whole numbers, for shapes and places; equal ones are kept once."""
        array = np.asarray(values, dtype=np.int64)
        key = (array.shape, *array.ravel().tolist())
        if key not in self._whole:
            self._whole[key] = self._constant(array)
        return self._whole[key]

    def graph(self, name: str) -> Any:
        """What was collected."""
        return self._onnx.helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._tables)

    def _constant(self, array: NDArray[Any]) -> str:
        name = self._new("table")
        self._tables.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{self._called}{kind}_{self._count}"


class NetworkPorts(NamedTuple):
    """The names of what goes into a network and comes out of it; None for any name."""

    u: str = "u"
    state: str = "state"
    y: str | None = "y"
    next_state: str | None = "next_state"


def run_graph(model: StepModel, chunks: ChunkTables, build: GraphBuilder) -> None:
    """Fill the builder with the graph."""
    build.declare("u", ["batch", "time", model.n_inputs])
    build.declare("state", ["batch", state_size(model)])
    run_nodes(model, chunks, build, NetworkPorts())
    build.result("y", ["batch", "time", model.n_outputs])
    build.result("next_state", ["batch", state_size(model)])


def run_nodes(model: StepModel, chunks: ChunkTables, build: GraphBuilder, ends: NetworkPorts) -> tuple[str, str]:
    """The nodes of a run; the names of its outputs and of its last state."""
    if not model.n_states:
        y = build.op("MatMul", ends.u, build.table(model.D.T), name=ends.y)
        return y, build.op("Identity", ends.state, name=ends.next_state)
    m, p, K = chunks.shift.shape[0], model.n_outputs, chunks.width
    shape = build.op("Shape", ends.u)
    batch = build.op("Slice", shape, build.whole([0]), build.whole([1]))
    time = build.op("Slice", shape, build.whole([1]), build.whole([2]))
    u = ends.u if model.n_inputs else _zero_input(build, batch, time)
    n_chunks = build.op("Max", _ceiling_division(build, time, K), build.whole([1]))  # a piece may have no samples
    blocks = _reshape_to_chunks(build, u, (batch, time), n_chunks, size=K, columns=m)
    w = _initial_chunk_state(model, chunks, build, ends.state, blocks)
    added = build.op("MatMul", blocks, build.table(chunks.into_state))  # (batch, chunks, n)
    starts, last = _carry_states(chunks, build, added, w, batch=batch, n_chunks=n_chunks)
    rest, tail = _last_chunk(build, u, time, n_chunks, width=K, columns=m)
    after = _state_after_last(chunks, build, last, rest, build.op("MatMul", tail, build.table(chunks.into_state)))
    outputs = build.op("MatMul", blocks, build.table(chunks.from_inputs))
    outputs = build.op("Add", build.op("MatMul", starts, build.table(chunks.from_state)), outputs)
    n_padded = build.op("Mul", n_chunks, build.whole([K]))
    rows = build.op("Reshape", outputs, build.op("Concat", batch, n_padded, build.whole([p]), axis=0))
    y = build.op("Slice", rows, build.whole([0]), time, build.whole([1]), name=ends.y)
    return y, _final_state(model, chunks, build, after, time, ends)


def _zero_input(build: GraphBuilder, batch: str, time: str) -> str:
    """One input that is zero, for a system that has none."""
    shape = build.op("Concat", batch, time, build.whole([1]), axis=0)
    return build.op("Expand", build.table(np.zeros((1, 1, 1))), shape)


def state_size(model: StepModel) -> int:
    """Numbers in a state: with a linear hold it also says whether there was a sample."""
    return model.n_states + (1 if model.hold == "linear" else 0)


def _initial_chunk_state(model: StepModel, chunks: ChunkTables, build: GraphBuilder, state: str, blocks: str) -> str:
    """W at the first sample, in the order of the chunks: z − Γ₁ u₀ where there was no sample before."""
    z = build.op("Gather", state, build.whole(chunks.order.tolist()), axis=1)
    if model.hold == "zero":
        return z
    first = build.op("Slice", build.op("Gather", blocks, build.whole(0), axis=1), *columns(build, 0, len(chunks.shift)))
    shift = build.op("MatMul", first, build.table(chunks.shift))
    fresh = build.op("Sub", build.table(np.ones(1)), _has_sample(model, build, state))
    return build.op("Sub", z, build.op("Mul", fresh, shift))


def _has_sample(model: StepModel, build: GraphBuilder, state: str) -> str:
    """Whether there was a sample: 1, else 0."""
    return build.op("Slice", state, *columns(build, model.n_states, model.n_states + 1))


def columns(build: GraphBuilder, first: int, last: int) -> tuple[str, str, str]:
    """What a Slice of columns is told."""
    return build.whole([first]), build.whole([last]), build.whole([1])


def _final_state(
    model: StepModel, chunks: ChunkTables, build: GraphBuilder, after: str, time: str, ends: NetworkPorts
) -> str:
    """The last state; with a linear hold there was a sample before it, unless there were none at all."""
    back = build.whole(np.argsort(chunks.order, kind="stable").tolist())
    if model.hold == "zero":
        return build.op("Gather", after, back, axis=1, name=ends.next_state)
    z = build.op("Gather", after, back, axis=1)
    samples = build.cast(build.op("Min", time, build.whole([1])))
    flag = build.op("Max", _has_sample(model, build, ends.state), samples)
    return build.op("Concat", z, flag, axis=1, name=ends.next_state)


def _ceiling_division(build: GraphBuilder, count: str, size: int) -> str:
    """How many pieces of so many make up a count."""
    return build.op("Div", build.op("Add", count, build.whole([size - 1])), build.whole([size]))


def _reshape_to_chunks(
    build: GraphBuilder, values: str, shape: tuple[str, str], n_chunks: str, *, size: int, columns: int
) -> str:
    """Rows `(batch, count, columns)` as chunks `(batch, n_chunks, size · columns)`, zeros behind the last.

    The batch is named and not copied by a 0: onnxruntime would put −1 for the other number, which a batch of none
    does not decide.
    """
    batch, count = shape
    missing = build.op("Sub", build.op("Mul", n_chunks, build.whole([size])), count)
    pads = build.op("Concat", build.whole([0, 0, 0, 0]), missing, build.whole([0]), axis=0)
    padded = build.op("Pad", values, pads)
    chunked = build.op("Concat", batch, n_chunks, build.whole([size * columns]), axis=0)
    return build.op("Reshape", padded, chunked)


def _last_chunk(build: GraphBuilder, u: str, time: str, n_chunks: str, *, width: int, columns: int) -> tuple[str, str]:
    """How many samples the last chunk has, and these as a chunk with zeros before them."""
    begin = build.op("Mul", build.op("Sub", n_chunks, build.whole([1])), build.whole([width]))
    rest = build.op("Sub", time, begin)
    last = build.op("Slice", u, begin, time, build.whole([1]))
    missing = build.op("Sub", build.whole([width]), rest)
    padded = build.op("Pad", last, build.op("Concat", build.whole([0]), missing, build.whole([0, 0, 0, 0]), axis=0))
    return rest, build.op("Reshape", padded, build.whole([0, width * columns]))


def _carry_states(
    chunks: ChunkTables, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str
) -> tuple[str, list[str]]:
    """W at the beginning of every chunk `(batch, chunks, n)`, and of the last one by sizes of blocks."""
    parts, ends, first = [], [], 0
    for carry in chunks.carries:
        n_own = carry.modes.states.size
        own = build.op("Slice", added, build.whole([first]), build.whole([first + n_own]), build.whole([2]))
        start = build.op("Slice", w, build.whole([first]), build.whole([first + n_own]), build.whole([1]))
        starts = _carry_nodes(carry, build, own, start, batch=batch, n_chunks=n_chunks)
        parts.append(starts)
        last = build.op("Sub", n_chunks, build.whole([1]))
        ends.append(build.op("Squeeze", build.op("Slice", starts, last, n_chunks, build.whole([1])), build.whole([1])))
        first += n_own
    return (parts[0] if len(parts) == 1 else build.op("Concat", *parts, axis=2)), ends


def _carry_nodes(carry: StateCarry, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str) -> str:
    """Blocks of one size: within groups by products, from group to group by a loop."""
    k, blocks = carry.modes.states.shape
    L = carry.group
    n_groups = _ceiling_division(build, n_chunks, L)
    padded = _reshape_to_chunks(build, added, (batch, n_chunks), n_groups, size=L, columns=k * blocks)
    split = build.op("Reshape", padded, build.op("Concat", build.whole([0, 0, L, k, blocks]), axis=0))
    rows = build.op("Transpose", split, perm=[4, 1, 0, 2, 3])  # (blocks, groups, batch, L, k)
    rows = build.op("Reshape", rows, build.whole([0, 0, 0, L * k]))
    by_group = build.op("Transpose", build.op("MatMul", rows, _block_table(build, carry.added)), perm=[1, 0, 2, 3])
    first = build.op("Transpose", build.op("Reshape", w, build.whole([0, k, blocks])), perm=[2, 0, 1])
    begun = _loop_over_groups(build, first, by_group, carry)  # (groups, blocks, batch, k)
    begun = build.op("Transpose", begun, perm=[1, 0, 2, 3])
    starts = build.op("MatMul", begun, _block_table(build, carry.across))
    if L > 1:
        starts = build.op("Add", starts, build.op("MatMul", rows, _block_table(build, carry.local)))
    split = build.op("Reshape", starts, build.whole([0, 0, 0, L, k]))
    back = build.op("Transpose", split, perm=[2, 1, 3, 4, 0])  # (batch, groups, L, k, blocks)
    n_all = build.op("Mul", n_groups, build.whole([L]))
    flat = build.op("Reshape", back, build.op("Concat", batch, n_all, build.whole([k * blocks]), axis=0))
    return build.op("Slice", flat, build.whole([0]), n_chunks, build.whole([1]))


def _block_table(build: GraphBuilder, tables: Array) -> str:
    """A table of each block `(blocks, …)`, the same for all groups."""
    return build.table(tables[:, None])


def _loop_over_groups(build: GraphBuilder, first: str, added: str, carry: StateCarry) -> str:
    """W at the beginning of each group: a Scan whose state is w and whose output is w before its round."""
    body, over = build.inner(), carry.over
    body.declare("w", [len(over), None, over.shape[-1]])
    body.declare("added", [len(over), None, over.shape[-1]])
    moved = body.op("MatMul", "w", body.table(over))
    if carry.by_increments:
        body.op("Add", "w", body.op("Add", moved, "added"), name="w_next")
    else:
        body.op("Add", moved, "added", name="w_next")
    body.op("Identity", "w", name="w_before")
    body.result("w_next", [len(over), None, over.shape[-1]])
    body.result("w_before", [len(over), None, over.shape[-1]])
    return build.scan(body, first, added)


def _state_after_last(chunks: ChunkTables, build: GraphBuilder, ends: list[str], rest: str, added: str) -> str:
    """W one step after the last sample: from the beginning of the last chunk over the samples that it has."""
    parts = []
    for carry, end in zip(chunks.carries, ends, strict=True):
        k, blocks = carry.modes.states.shape
        power = build.op("Squeeze", build.op("Gather", build.table(carry.partly), rest, axis=0), build.whole([0]))
        rows = build.op("Transpose", build.op("Reshape", end, build.whole([0, k, blocks])), perm=[2, 0, 1])
        moved = build.op("Transpose", build.op("MatMul", rows, power), perm=[1, 2, 0])
        parts.append(build.op("Reshape", moved, build.whole([0, k * blocks])))
    whole = parts[0] if len(parts) == 1 else build.op("Concat", *parts, axis=1)
    return build.op("Add", whole, added)


class _DelayedStateLayout(NamedTuple):
    """Where the parts of a state begin."""

    flag: int
    samples: int
    line_ends: int
    partial: int
    waiting: int
    size: int

    @classmethod
    def of(cls, tapped: TappedModel) -> "_DelayedStateLayout":
        kept = tapped.longest_lag * tapped.n_inputs
        has_ends = any(tap.ends_line for tap in tapped.taps)
        counts = [tapped.step.n_states, 1, kept, kept * has_ends, int(tapped.is_partial.sum())]
        flag, samples, line_ends, partial, waiting = np.cumsum(counts).tolist()
        return cls(flag, samples, line_ends, partial, waiting, waiting + int(tapped.output_steps.sum()))


def delayed_initial_state(tapped: TappedModel) -> list[float]:
    """Return the state that a run begins in, before any sample."""
    start = tapped.step.start
    return [*map(float, start), *([0.0] * (_DelayedStateLayout.of(tapped).size - len(start)))]


def write_delayed_graph(tapped: TappedModel, chunks: ChunkTables, build: GraphBuilder) -> None:
    """Fill the builder with the graph."""
    size = _DelayedStateLayout.of(tapped).size
    build.declare("u", ["batch", "time", tapped.n_inputs])
    build.declare("state", ["batch", size])
    write_delayed_nodes(tapped, chunks, build, NetworkPorts())
    build.result("y", ["batch", "time", tapped.n_outputs])
    build.result("next_state", ["batch", size])


def write_delayed_nodes(
    tapped: TappedModel, chunks: ChunkTables, build: GraphBuilder, ends: NetworkPorts
) -> tuple[str, str]:
    """Write the nodes of a run; return the names of its outputs and of its last state."""
    layout, n = _DelayedStateLayout.of(tapped), tapped.step.n_states
    time = build.op("Slice", build.op("Shape", ends.u), build.whole([1]), build.whole([2]))
    flag = build.op("Slice", ends.state, *columns(build, layout.flag, layout.samples))
    x, histories = _tap_nodes(tapped, build, ends, layout, flag=flag, time=time)
    begun = build.op("Slice", ends.state, *columns(build, 0, n + 1))
    rows, core = run_nodes(tapped.at_end, chunks, build, NetworkPorts(x, begun, None, None))
    parts = [build.op("Slice", core, *columns(build, 0, n))] if n else []
    sampled = build.cast(build.op("Min", time, build.whole([1])))
    parts.append(build.op("Max", flag, sampled))
    y, after = _output_nodes(tapped, build, ends, layout, rows=rows, x=x, flag=flag, time=time)
    parts += [*histories, *after]
    next_state = build.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return y, build.op("Identity", next_state, name=ends.next_state)


def _tap_nodes(
    tapped: TappedModel, build: GraphBuilder, ends: NetworkPorts, layout: _DelayedStateLayout, *, flag: str, time: str
) -> tuple[str, list[str]]:
    """Return x `(batch, time, taps)`, and what the next state keeps of samples."""
    m, kept = tapped.n_inputs, tapped.longest_lag
    v = build.op("Sub", ends.u, build.table(tapped.u0))
    sources, histories = {}, []
    kinds = [(False, v, layout.samples)]
    if any(tap.ends_line for tap in tapped.taps):  # no line leads to the first sample
        first = build.op("Slice", v, build.whole([0]), build.whole([1]), build.whole([1]))
        others = build.op("Slice", v, build.whole([1]), time, build.whole([1]))
        line_ends = build.op("Concat", build.op("Mul", first, _as_rows(build, flag, 1)), others, axis=1)
        kinds.append((True, line_ends, layout.line_ends))
    for kind, values, begin in kinds:
        sources[kind] = values
        if kept and m:
            flat = build.op("Slice", ends.state, *columns(build, begin, begin + kept * m))
            old = build.op("Reshape", flat, build.whole([0, kept, m]))
            sources[kind] = build.op("Concat", old, values, axis=1)
            stop = build.op("Add", time, build.whole([kept]))
            newest = build.op("Slice", sources[kind], time, stop, build.whole([1]))
            histories.append(build.op("Reshape", newest, build.whole([0, kept * m])))
    parts = []
    for (ends_line, lag), group in groupby(tapped.taps, key=_tap_source):
        stop = build.op("Add", time, build.whole([kept - lag]))
        values = build.op("Slice", sources[ends_line], build.whole([kept - lag]), stop, build.whole([1]))
        parts.append(build.op("Gather", values, build.whole([tap.channel for tap in group]), axis=2))
    if not parts:
        return v, histories
    return (build.op("Concat", *parts, axis=2) if len(parts) > 1 else parts[0]), histories


def _tap_source(tap: Tap) -> tuple[bool, int]:
    return tap.ends_line, tap.lag


def _as_rows(build: GraphBuilder, values: str, size: int) -> str:
    """Return numbers `(batch, size)` as rows `(batch, 1, size)`."""
    return build.op("Reshape", values, build.whole([0, 1, size]))


def _output_nodes(
    tapped: TappedModel,
    build: GraphBuilder,
    ends: NetworkPorts,
    layout: _DelayedStateLayout,
    *,
    rows: str,
    x: str,
    flag: str,
    time: str,
) -> tuple[str, list[str]]:
    """Return y, and what the next state keeps of outputs: rows of partial ones, and those that wait."""
    p, partial = tapped.n_outputs, np.flatnonzero(tapped.is_partial).tolist()
    one = build.whole([1])
    late: dict[int, str] = {}
    after: list[str] = []
    if partial:
        own = build.op("Gather", rows, build.whole(partial), axis=2)
        before = build.op("Slice", ends.state, *columns(build, layout.partial, layout.waiting))
        shifted = build.op("Concat", _as_rows(build, before, len(partial)), own, axis=1)
        stop = build.op("Add", time, one)
        last = build.op("Slice", shifted, time, stop, one)
        after.append(build.op("Reshape", last, build.whole([0, len(partial)])))
        kept = build.op("Slice", shifted, build.whole([0]), time, one)
        if tapped.taps:
            kept = build.op("Add", kept, build.op("MatMul", x, build.table(tapped.L[partial].T)))
        # Before the first step nothing has arrived: the very first row is zero.
        first = build.op("Slice", kept, build.whole([0]), one, one)
        others = build.op("Slice", kept, one, time, one)
        values = build.op("Concat", build.op("Mul", first, _as_rows(build, flag, 1)), others, axis=1)
        late = {i: build.op("Gather", values, build.whole([place]), axis=2) for place, i in enumerate(partial)}
    if not p:
        return build.op("Identity", rows, name=ends.y), after
    if not partial and not tapped.output_steps.any():
        return build.op("Add", rows, build.table(tapped.y0), name=ends.y), after
    begin, found = layout.waiting, []
    for i, steps in enumerate(tapped.output_steps.tolist()):
        value = late[i] if i in late else build.op("Gather", rows, build.whole([i]), axis=2)
        if steps:
            old = build.op("Slice", ends.state, *columns(build, begin, begin + steps))
            line = build.op("Concat", build.op("Reshape", old, build.whole([0, steps, 1])), value, axis=1)
            stop = build.op("Add", time, build.whole([steps]))
            newest = build.op("Slice", line, time, stop, one)
            after.append(build.op("Reshape", newest, build.whole([0, steps])))
            value = build.op("Slice", line, build.whole([0]), time, one)
            begin += steps
        found.append(value)
    whole = build.op("Concat", *found, axis=2) if len(found) > 1 else found[0]
    return build.op("Add", whole, build.table(tapped.y0), name=ends.y), after
