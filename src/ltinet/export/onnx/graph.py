"""The graph of a chunked run, written node by node: real arithmetic, free batch and time.

u (batch, time, m), state (batch, n or n + 1) ──▶ y (batch, time, p), next_state
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.export.onnx.builder import GraphBuilder
from ltinet.export.onnx.chunks import Carry, Chunks
from ltinet.export.step_model import StepModel


class Ends(NamedTuple):
    """The names of what goes into a network and comes out of it; None for any name."""

    u: str = "u"
    state: str = "state"
    y: str | None = "y"
    next_state: str | None = "next_state"


def run_graph(model: StepModel, chunks: Chunks, build: GraphBuilder) -> None:
    """Fill the builder with the graph."""
    build.declare("u", ["batch", "time", model.n_inputs])
    build.declare("state", ["batch", state_size(model)])
    run_nodes(model, chunks, build, Ends())
    build.result("y", ["batch", "time", model.n_outputs])
    build.result("next_state", ["batch", state_size(model)])


def run_nodes(model: StepModel, chunks: Chunks, build: GraphBuilder, ends: Ends) -> tuple[str, str]:
    """The nodes of a run; the names of its outputs and of its last state."""
    if not model.n_states:
        y = build.op("MatMul", ends.u, build.table(model.D.T), name=ends.y)
        return y, build.op("Identity", ends.state, name=ends.next_state)
    m, p, K = chunks.shift.shape[0], model.n_outputs, chunks.width
    shape = build.op("Shape", ends.u)
    batch = build.op("Slice", shape, build.whole([0]), build.whole([1]))
    time = build.op("Slice", shape, build.whole([1]), build.whole([2]))
    u = ends.u if model.n_inputs else _no_input(build, batch, time)
    n_chunks = build.op("Max", _quotient_up(build, time, K), build.whole([1]))  # a piece may have no samples
    blocks = _in_chunks(build, u, (batch, time), n_chunks, size=K, columns=m)
    w = _start(model, chunks, build, ends.state, blocks)
    added = build.op("MatMul", blocks, build.table(chunks.into_state))  # (batch, chunks, n)
    starts, last = _carried(chunks, build, added, w, batch=batch, n_chunks=n_chunks)
    rest, tail = _last_chunk(build, u, time, n_chunks, width=K, columns=m)
    after = _after(chunks, build, last, rest, build.op("MatMul", tail, build.table(chunks.into_state)))
    outputs = build.op("MatMul", blocks, build.table(chunks.from_inputs))
    outputs = build.op("Add", build.op("MatMul", starts, build.table(chunks.from_state)), outputs)
    n_padded = build.op("Mul", n_chunks, build.whole([K]))
    rows = build.op("Reshape", outputs, build.op("Concat", batch, n_padded, build.whole([p]), axis=0))
    y = build.op("Slice", rows, build.whole([0]), time, build.whole([1]), name=ends.y)
    return y, _finish(model, chunks, build, after, time, ends)


def _no_input(build: GraphBuilder, batch: str, time: str) -> str:
    """One input that is zero, for a system that has none."""
    shape = build.op("Concat", batch, time, build.whole([1]), axis=0)
    return build.op("Expand", build.table(np.zeros((1, 1, 1))), shape)


def state_size(model: StepModel) -> int:
    """Numbers in a state: with a linear hold it also says whether there was a sample."""
    return model.n_states + (1 if model.hold == "linear" else 0)


def _start(model: StepModel, chunks: Chunks, build: GraphBuilder, state: str, blocks: str) -> str:
    """W at the first sample, in the order of the chunks: z − Γ₁ u₀ where there was no sample before."""
    z = build.op("Gather", state, build.whole(chunks.order.tolist()), axis=1)
    if model.hold == "zero":
        return z
    first = build.op("Slice", build.op("Gather", blocks, build.whole(0), axis=1), *columns(build, 0, len(chunks.shift)))
    shift = build.op("MatMul", first, build.table(chunks.shift))
    fresh = build.op("Sub", build.table(np.ones(1)), _started(model, build, state))
    return build.op("Sub", z, build.op("Mul", fresh, shift))


def _started(model: StepModel, build: GraphBuilder, state: str) -> str:
    """Whether there was a sample: 1, else 0."""
    return build.op("Slice", state, *columns(build, model.n_states, model.n_states + 1))


def columns(build: GraphBuilder, first: int, last: int) -> tuple[str, str, str]:
    """What a Slice of columns is told."""
    return build.whole([first]), build.whole([last]), build.whole([1])


def _finish(model: StepModel, chunks: Chunks, build: GraphBuilder, after: str, time: str, ends: Ends) -> str:
    """The last state; with a linear hold there was a sample before it, unless there were none at all."""
    back = build.whole(np.argsort(chunks.order, kind="stable").tolist())
    if model.hold == "zero":
        return build.op("Gather", after, back, axis=1, name=ends.next_state)
    z = build.op("Gather", after, back, axis=1)
    samples = build.cast(build.op("Min", time, build.whole([1])))
    flag = build.op("Max", _started(model, build, ends.state), samples)
    return build.op("Concat", z, flag, axis=1, name=ends.next_state)


def _quotient_up(build: GraphBuilder, count: str, size: int) -> str:
    """How many pieces of so many make up a count."""
    return build.op("Div", build.op("Add", count, build.whole([size - 1])), build.whole([size]))


def _in_chunks(
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


def _carried(
    chunks: Chunks, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str
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


def _carry_nodes(carry: Carry, build: GraphBuilder, added: str, w: str, *, batch: str, n_chunks: str) -> str:
    """Blocks of one size: within groups by products, from group to group by a loop."""
    k, blocks = carry.modes.states.shape
    L = carry.group
    n_groups = _quotient_up(build, n_chunks, L)
    padded = _in_chunks(build, added, (batch, n_chunks), n_groups, size=L, columns=k * blocks)
    split = build.op("Reshape", padded, build.op("Concat", build.whole([0, 0, L, k, blocks]), axis=0))
    rows = build.op("Transpose", split, perm=[4, 1, 0, 2, 3])  # (blocks, groups, batch, L, k)
    rows = build.op("Reshape", rows, build.whole([0, 0, 0, L * k]))
    by_group = build.op("Transpose", build.op("MatMul", rows, _for_each(build, carry.added)), perm=[1, 0, 2, 3])
    first = build.op("Transpose", build.op("Reshape", w, build.whole([0, k, blocks])), perm=[2, 0, 1])
    begun = _loop_over_groups(build, first, by_group, carry)  # (groups, blocks, batch, k)
    begun = build.op("Transpose", begun, perm=[1, 0, 2, 3])
    starts = build.op("MatMul", begun, _for_each(build, carry.across))
    if L > 1:
        starts = build.op("Add", starts, build.op("MatMul", rows, _for_each(build, carry.local)))
    split = build.op("Reshape", starts, build.whole([0, 0, 0, L, k]))
    back = build.op("Transpose", split, perm=[2, 1, 3, 4, 0])  # (batch, groups, L, k, blocks)
    n_all = build.op("Mul", n_groups, build.whole([L]))
    flat = build.op("Reshape", back, build.op("Concat", batch, n_all, build.whole([k * blocks]), axis=0))
    return build.op("Slice", flat, build.whole([0]), n_chunks, build.whole([1]))


def _for_each(build: GraphBuilder, tables: Array) -> str:
    """A table of each block `(blocks, …)`, the same for all groups."""
    return build.table(tables[:, None])


def _loop_over_groups(build: GraphBuilder, first: str, added: str, carry: Carry) -> str:
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


def _after(chunks: Chunks, build: GraphBuilder, ends: list[str], rest: str, added: str) -> str:
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
