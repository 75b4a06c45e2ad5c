"""Tables of a chunked run in ONNX: K samples at a time, states carried over groups of L chunks.

With w = z − Γ₁ u, the recurrence is w_{k+1} = P w_k + Γ u_k and y_k = C w_k + D' u_k, where Γ = P Γ₁ + Γ₀ and
D' = D + C Γ₁. Within a chunk outputs are a product of w at its beginning and of its inputs; at its end
w ← P^K w + [P^{K−1}Γ … Γ] u. States are carried over L chunks by one product, then from group to group. The width K is
the one with the fewest multiplications among those whose powers are finite. Blocks of P are grouped by size.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet.export.step_model import StepModel
from ltinet.simulation.propagators import exp_of_multiples
from ltinet.simulation.recurrence import OVERFLOW_LIMIT, flush_underflow, matrix_powers
from ltinet.simulation.time_blocks import block_toeplitz

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """All blocks of one size k: pairs have two states, reals one."""

    size: int
    scalars: Indices
    """Which pairs or reals of the model these are, before the dense blocks of this size."""
    dense: tuple[int, ...]
    states: Indices
    """Where their states stand in the model, (k × blocks)."""


def blocks_by_size(model: StepModel) -> list[BlockGroup]:
    """Every block of the model, small ones first."""
    pairs, n_scalars = model.n_pairs, len(model.rates)
    first = n_scalars + pairs
    starts, sizes = [], [len(block.F) for block in model.blocks]
    for size in sizes:
        starts.append(first)
        first += size
    of_scalars = {1: np.arange(pairs, n_scalars), 2: np.arange(pairs)}
    found = []
    for size in sorted({*sizes, *(size for size, own in of_scalars.items() if len(own))}):
        scalars = of_scalars.get(size, np.arange(0))
        dense = tuple(place for place, own in enumerate(sizes) if own == size)
        columns = [starts[place] + np.arange(size) for place in dense]
        own = np.stack([scalars, scalars + pairs])[:size] if size == 2 else scalars[None] + pairs
        states = np.concatenate(
            [own if size <= 2 else np.zeros((size, 0)), np.array(columns).reshape(-1, size).T], axis=1
        )
        found.append(BlockGroup(size, scalars, dense, states.astype(np.intp)))
    return found


def block_powers(model: StepModel, modes: BlockGroup, count: int, *, stride: int = 1) -> Array:
    """P⁰, Pˢ, P²ˢ … of each block, `(count, blocks, k, k)`."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = flush_underflow(exp_of_multiples(model.rates[modes.scalars], model.dt, stride * np.arange(count)))
        parts = [values.real[..., None, None]]
        if modes.size == 2:
            rows = np.stack([values.real, -values.imag, values.imag, values.real], axis=-1)
            parts = [rows.reshape(*values.shape, 2, 2)]
        elif modes.size > 2:
            parts = []
        for place in modes.dense:
            P = np.linalg.matrix_power(model.blocks[place].P, stride)
            parts.append(matrix_powers(P, count)[:, None])
    return np.concatenate(parts, axis=1)


def propagators_minus_identity(model: StepModel, modes: BlockGroup) -> Array:
    """P − 1 of each block, to all its digits, `(blocks, k, k)`."""
    values = model.less_one[modes.scalars]
    own = values.real[:, None, None]
    if modes.size == 2:
        own = np.stack([values.real, -values.imag, values.imag, values.real], axis=-1).reshape(-1, 2, 2)
    dense = [model.blocks[place].less_one[None] for place in modes.dense]
    return np.concatenate([*([own] if modes.size <= 2 else []), *dense])


_CHUNK_WIDTHS = (16, 32, 64, 128, 256)
_CHUNKS_PER_GROUP = 8  # chunks of a group: tables grow with its square, rounds of the loop fall with it
_MAX_GROUPED_BLOCK = 4  # states of a block that is carried over a group; larger ones go from chunk to chunk
_MULTIPLICATIONS_PER_CARRY = 200.0  # multiplications that take as long as it takes to carry one state over one chunk


@dataclass(frozen=True, eq=False)
class StateCarry:
    """How blocks of one size k go from chunk to chunk; rows act from the left."""

    modes: BlockGroup
    group: int
    """L, the number of chunks in a group."""
    local: Array
    """From what chunks add to w at the beginning of each chunk of a group, `(blocks, L k, L k)`."""
    added: Array
    """The same, at the end of the group, `(blocks, L k, k)`."""
    across: Array
    """From w at the beginning of a group to w at the beginning of each of its chunks, `(blocks, k, L k)`."""
    over: Array
    """From the beginning of a group to its end, `(blocks, k, k)`; less one where steps are taken by increments."""
    by_increments: bool
    partly: Array
    """From the beginning of a chunk to r samples later, r = 0 … K, `(K + 1, blocks, k, k)`."""


@dataclass(frozen=True, eq=False)
class ChunkTables:
    """Everything that a graph needs, in the order of states in which blocks of one size stand together."""

    width: int
    """K."""
    order: NDArray[np.intp]
    """Which state of the model each one is."""
    carries: tuple[StateCarry, ...]
    from_state: Array
    """From w at the beginning of a chunk to its outputs, (n × K p)."""
    from_inputs: Array
    """From the inputs of a chunk to its outputs, (K m × K p)."""
    into_state: Array
    """From the inputs of a chunk to w at its end, (K m × n)."""
    shift: Array
    """Γ₁, transposed, (m × n)."""


def select_chunks(model: StepModel) -> ChunkTables:
    """The chunks that are fastest by a count of multiplications, of those whose powers are finite and keep digits.

    A model without inputs gets one that is zero.
    """
    if not model.n_inputs:
        none, no_output = np.zeros((model.n_states, 1)), np.zeros((model.n_outputs, 1))
        model = replace(model, B=none, Gamma0=none, Gamma1=none, D=no_output)
    for width in sorted(_CHUNK_WIDTHS, key=lambda width: _multiplications_per_sample(model, width)):
        for group in (_CHUNKS_PER_GROUP, 1):
            tables = _build_tables(model, width, group)
            if _is_finite(tables):
                return tables
    return _build_tables(model, 1, 1)


def _multiplications_per_sample(model: StepModel, width: int) -> float:
    """Multiplications per sample that depend on the width: products with inputs, and carries."""
    return width * model.n_inputs * model.n_outputs + _MULTIPLICATIONS_PER_CARRY * model.n_states / width


def _build_tables(model: StepModel, width: int, group: int) -> ChunkTables:
    modes = blocks_by_size(model)
    order = np.concatenate([np.arange(0), *(own.states.ravel() for own in modes)]).astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = [block_powers(model, own, width + 1) for own in modes]
        Gamma1 = model.Gamma1[order]
        Gamma = model.Gamma0[order] + _apply_powers(modes, [own[1:2] for own in powers], Gamma1)[0]
        into = _apply_powers(modes, [own[:width] for own in powers], Gamma)
        out = _apply_powers(modes, [own[:width].swapaxes(-1, -2) for own in powers], model.C[:, order].T)
        direct = model.D + model.C[:, order] @ Gamma1
        markov = np.concatenate([direct[None], out[:-1].swapaxes(1, 2) @ Gamma])
        carries = tuple(_build_carry(model, own, table, width, group) for own, table in zip(modes, powers, strict=True))
    n, m, p = model.n_states, model.n_inputs, model.n_outputs
    return ChunkTables(
        width=width,
        order=order,
        carries=carries,
        from_state=out.transpose(1, 0, 2).reshape(n, width * p),
        from_inputs=block_toeplitz(markov),
        into_state=into[::-1].transpose(0, 2, 1).reshape(width * m, n),
        shift=Gamma1.T,
    )


def _apply_powers(modes: list[BlockGroup], powers: list[Array], columns: Array) -> Array:
    """P^k times some columns `(n, q)` for several k, `(count, n, q)`, states in the order of the chunks."""
    count = len(powers[0]) if powers else 1
    parts, first = [np.zeros((count, 0, columns.shape[1]))], 0
    for own, table in zip(modes, powers, strict=True):
        size, blocks = own.states.shape
        mine = columns[first : first + size * blocks].reshape(size, blocks, -1)
        parts.append(np.einsum("tbij,jbq->tibq", table, mine).reshape(len(table), size * blocks, -1))
        first += size * blocks
    return np.concatenate(parts, axis=1)


def _build_carry(model: StepModel, modes: BlockGroup, powers: Array, width: int, group: int) -> StateCarry:
    L, k, blocks = (group if modes.size <= _MAX_GROUPED_BLOCK else 1), modes.size, powers.shape[1]
    steps = block_powers(model, modes, L + 1, stride=width)  # P^{K l}
    by_increments = width == L == 1
    rows = steps.transpose(1, 0, 3, 2)  # (blocks, l, from, to)
    local = np.zeros((blocks, L, k, L, k))
    for at in range(1, L):
        for before in range(at):
            local[:, before, :, at] = rows[:, at - 1 - before]
    return StateCarry(
        modes=modes,
        group=L,
        local=local.reshape(blocks, L * k, L * k),
        added=rows[:, :L][:, ::-1].reshape(blocks, L * k, k),
        across=rows[:, :L].transpose(0, 2, 1, 3).reshape(blocks, k, L * k),
        over=propagators_minus_identity(model, modes).swapaxes(-1, -2) if by_increments else rows[:, L],
        by_increments=by_increments,
        partly=powers.transpose(0, 1, 3, 2),
    )


def _is_finite(tables: ChunkTables) -> bool:
    largest = [np.abs(own).max(initial=0.0) for carry in tables.carries for own in (carry.over, carry.partly)]
    return bool(np.max(largest, initial=0.0) < OVERFLOW_LIMIT)
