"""The graph of a model with delays and an operating point: taps of the input before the core's chunks, waiting after.

The state of the graph holds, side by side, all that streaming needs:

    z, whether there was a sample, the last samples of v = u − u0, the same as ends of lines (linear hold alone),
    the rows of partial outputs, the outputs that wait.

`export.tapped` derives the taps; the core runs as with a linear hold whose Γ₀ is zero, z_k = P z_{k−1} + Γ x_k.
"""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from ltinet.export.onnx.builder import GraphBuilder
from ltinet.export.onnx.chunks import Chunks
from ltinet.export.onnx.graph import Ends, columns, run_nodes
from ltinet.export.tapped import Tap, TappedModel


class _Layout(NamedTuple):
    """Where the parts of a state begin."""

    flag: int
    samples: int
    line_ends: int
    partial: int
    waiting: int
    size: int

    @classmethod
    def of(cls, tapped: TappedModel) -> "_Layout":
        kept = tapped.longest_lag * tapped.n_inputs
        has_ends = any(tap.ends_line for tap in tapped.taps)
        counts = [tapped.step.n_states, 1, kept, kept * has_ends, int(tapped.is_partial.sum())]
        flag, samples, line_ends, partial, waiting = np.cumsum(counts).tolist()
        return cls(flag, samples, line_ends, partial, waiting, waiting + int(tapped.output_steps.sum()))


def delayed_initial_state(tapped: TappedModel) -> list[float]:
    """Return the state that a run begins in, before any sample."""
    start = tapped.step.start
    return [*map(float, start), *([0.0] * (_Layout.of(tapped).size - len(start)))]


def delayed_graph(tapped: TappedModel, chunks: Chunks, build: GraphBuilder) -> None:
    """Fill the builder with the graph."""
    size = _Layout.of(tapped).size
    build.declare("u", ["batch", "time", tapped.n_inputs])
    build.declare("state", ["batch", size])
    delayed_nodes(tapped, chunks, build, Ends())
    build.result("y", ["batch", "time", tapped.n_outputs])
    build.result("next_state", ["batch", size])


def delayed_nodes(tapped: TappedModel, chunks: Chunks, build: GraphBuilder, ends: Ends) -> tuple[str, str]:
    """Write the nodes of a run; return the names of its outputs and of its last state."""
    layout, n = _Layout.of(tapped), tapped.step.n_states
    time = build.op("Slice", build.op("Shape", ends.u), build.whole([1]), build.whole([2]))
    flag = build.op("Slice", ends.state, *columns(build, layout.flag, layout.samples))
    x, histories = _taps(tapped, build, ends, layout, flag=flag, time=time)
    begun = build.op("Slice", ends.state, *columns(build, 0, n + 1))
    rows, core = run_nodes(tapped.at_end, chunks, build, Ends(x, begun, None, None))
    parts = [build.op("Slice", core, *columns(build, 0, n))] if n else []
    sampled = build.cast(build.op("Min", time, build.whole([1])))
    parts.append(build.op("Max", flag, sampled))
    y, after = _outputs(tapped, build, ends, layout, rows=rows, x=x, flag=flag, time=time)
    parts += [*histories, *after]
    next_state = build.op("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    return y, build.op("Identity", next_state, name=ends.next_state)


def _taps(
    tapped: TappedModel, build: GraphBuilder, ends: Ends, layout: _Layout, *, flag: str, time: str
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
    for (ends_line, lag), group in groupby(tapped.taps, key=_source_of):
        stop = build.op("Add", time, build.whole([kept - lag]))
        values = build.op("Slice", sources[ends_line], build.whole([kept - lag]), stop, build.whole([1]))
        parts.append(build.op("Gather", values, build.whole([tap.channel for tap in group]), axis=2))
    if not parts:
        return v, histories
    return (build.op("Concat", *parts, axis=2) if len(parts) > 1 else parts[0]), histories


def _source_of(tap: Tap) -> tuple[bool, int]:
    return tap.ends_line, tap.lag


def _as_rows(build: GraphBuilder, values: str, size: int) -> str:
    """Return numbers `(batch, size)` as rows `(batch, 1, size)`."""
    return build.op("Reshape", values, build.whole([0, 1, size]))


def _outputs(
    tapped: TappedModel, build: GraphBuilder, ends: Ends, layout: _Layout, *, rows: str, x: str, flag: str, time: str
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
