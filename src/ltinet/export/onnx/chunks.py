"""Tables of a run in blocks of time in ONNX: K samples at a time, states carried over groups of L of them.

Blocks of time are called chunks here, because the diagonal blocks of P are blocks, too.

With w = z − Γ₁ u, the recurrence is w_{k+1} = P w_k + Γ u_k and y_k = C w_k + D' u_k, where Γ = P Γ₁ + Γ₀ and
D' = D + C Γ₁. Within a chunk outputs are a product of w at its beginning and of its inputs; at its end
w ← P^K w + [P^{K−1}Γ … Γ] u. States are carried over L chunks by one product, then from group to group. The width K is
the one with the fewest multiplications among those whose powers are finite. Blocks of P are grouped by size.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array, Complex
from ltinet.export.step_model import StepModel
from ltinet.simulation.recurrence import OVERFLOW_LIMIT, matrix_powers
from ltinet.simulation.time_blocks import block_toeplitz

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """All blocks of one size k: reals have one state, pairs two."""

    size: int
    scalars: Indices
    """Indices of its pairs or reals in the model; they stand before the dense blocks of this size."""
    dense: tuple[int, ...]
    states: Indices
    """Indices of its states in the model, (k × blocks)."""


def blocks_by_size(model: StepModel) -> list[BlockGroup]:
    """Return all blocks of the model, grouped by size, small ones first."""
    pairs, n_scalars = model.n_pairs, len(model.rates)
    sizes = [len(block.F) for block in model.blocks]
    starts = n_scalars + pairs + np.cumsum([0, *sizes])[:-1]
    scalars_by_size = {1: np.arange(pairs, n_scalars), 2: np.arange(pairs)}
    groups = []
    for size in sorted({*sizes, *(size for size, scalars in scalars_by_size.items() if len(scalars))}):
        scalars = scalars_by_size.get(size, np.arange(0))
        dense = tuple(index for index, dense_size in enumerate(sizes) if dense_size == size)
        # Columns are blocks: real and imaginary part of a pair, a real, or the states of a dense block.
        scalar_states = {1: scalars[None] + pairs, 2: np.stack([scalars, scalars + pairs])}
        columns = np.array([starts[index] + np.arange(size) for index in dense]).reshape(-1, size).T
        states = np.concatenate([scalar_states.get(size, np.zeros((size, 0))), columns], axis=1)
        groups.append(BlockGroup(size, scalars, dense, states.astype(np.intp)))
    return groups


def block_powers(model: StepModel, modes: BlockGroup, count: int, *, stride: int = 1) -> Array:
    """Return P⁰, Pˢ, P²ˢ … of each block for the stride s, `(count, blocks, k, k)`."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = model.scalar_powers(stride * np.arange(count))[:, modes.scalars]
        parts = _scalar_blocks(values, modes.size)
        for index in modes.dense:
            P = np.linalg.matrix_power(model.blocks[index].P, stride)
            parts.append(matrix_powers(P, count)[:, None])
    return np.concatenate(parts, axis=1)


def _scalar_blocks(values: Complex, size: int) -> list[Array]:
    """Return scalars `(..., blocks)` as blocks `(..., blocks, k, k)`, [[Re, −Im], [Im, Re]] for pairs, or none if k > 2."""
    if size > 2:
        return []
    if size == 1:
        return [values.real[..., None, None]]
    rows = np.stack([values.real, -values.imag, values.imag, values.real], axis=-1)
    return [rows.reshape(*values.shape, 2, 2)]


_CHUNK_WIDTHS = (16, 32, 64, 128, 256)
# Speed only (make bench-export): tables grow as L², iterations of the loop fall as 1/L. With L = 1 runs of 10⁵ samples take
# two to six times as long.
_CHUNKS_PER_GROUP = 8
_MAX_GROUPED_BLOCK = 4  # states of a block that is carried over a group; larger ones are carried from chunk to chunk
_MULTIPLICATIONS_PER_CARRY = 200.0  # empirical cost of carrying one state over one chunk; speed only


@dataclass(frozen=True, eq=False)
class StateCarry:
    """Matrices that carry the states of blocks of one size k from chunk to chunk; rows act from the left."""

    modes: BlockGroup
    group: int
    """L, the number of chunks in a group."""
    local: Array
    """From contributions of chunks to w at the beginning of each chunk of a group, `(blocks, L k, L k)`."""
    added: Array
    """From contributions of chunks to w at the end of the group, `(blocks, L k, k)`."""
    across: Array
    """From w at the beginning of a group to w at the beginning of each of its chunks, `(blocks, k, L k)`."""
    over: Array
    """From the beginning of a group to its end, `(blocks, k, k)`; minus the identity for steps by increments."""
    by_increments: bool
    partly: Array
    """From the beginning of a chunk to r samples later, r = 0 … K, `(K + 1, blocks, k, k)`."""


@dataclass(frozen=True, eq=False)
class ChunkTables:
    """All tables of a graph, with states ordered by the size of their blocks."""

    width: int
    """K, the number of samples in a chunk."""
    order: NDArray[np.intp]
    """Index of each state in the model."""
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
    """Return the chunks with the fewest multiplications of those whose powers do not overflow.

    A model without inputs gets one that is zero.
    """
    if not model.n_inputs:
        zero_drive, zero_feedthrough = np.zeros((model.n_states, 1)), np.zeros((model.n_outputs, 1))
        model = replace(model, B=zero_drive, Gamma0=zero_drive, Gamma1=zero_drive, D=zero_feedthrough)

    def multiplications_per_sample(width: int) -> float:
        """Return the multiplications that depend on the width: products with inputs, and carries."""
        return width * model.n_inputs * model.n_outputs + _MULTIPLICATIONS_PER_CARRY * model.n_states / width

    for width in sorted(_CHUNK_WIDTHS, key=multiplications_per_sample):
        for group in (_CHUNKS_PER_GROUP, 1):
            tables = _build_tables(model, width, group)
            matrices = [matrix for carry in tables.carries for matrix in (carry.over, carry.partly)]
            if np.max([np.abs(matrix).max(initial=0.0) for matrix in matrices], initial=0.0) < OVERFLOW_LIMIT:
                return tables
    return _build_tables(model, 1, 1)


def _build_tables(model: StepModel, width: int, group: int) -> ChunkTables:
    """Return the tables for chunks of K = `width` samples and groups of L = `group` chunks."""
    groups = blocks_by_size(model)
    order = np.concatenate([np.arange(0), *(modes.states.ravel() for modes in groups)]).astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = [block_powers(model, modes, width + 1) for modes in groups]
        Gamma1 = model.Gamma1[order]
        Gamma = model.Gamma0[order] + _apply_powers(groups, [table[1:2] for table in powers], Gamma1)[0]
        into = _apply_powers(groups, [table[:width] for table in powers], Gamma)
        out = _apply_powers(groups, [table[:width].swapaxes(-1, -2) for table in powers], model.C[:, order].T)
        direct = model.D + model.C[:, order] @ Gamma1
        markov = np.concatenate([direct[None], out[:-1].swapaxes(1, 2) @ Gamma])
        pairs = zip(groups, powers, strict=True)
        carries = tuple(_build_carry(model, modes, table, width, group) for modes, table in pairs)
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


def _apply_powers(groups: list[BlockGroup], powers: list[Array], columns: Array) -> Array:
    """Return P^k times columns `(n, q)` for several k, `(count, n, q)`, states in the order of the chunks."""
    count = len(powers[0]) if powers else 1
    parts, first = [np.zeros((count, 0, columns.shape[1]))], 0
    for modes, table in zip(groups, powers, strict=True):
        size, blocks = modes.states.shape
        rows = columns[first : first + size * blocks].reshape(size, blocks, -1)
        parts.append(np.einsum("tbij,jbq->tibq", table, rows).reshape(len(table), size * blocks, -1))
        first += size * blocks
    return np.concatenate(parts, axis=1)


def _build_carry(model: StepModel, modes: BlockGroup, powers: Array, width: int, group: int) -> StateCarry:
    """Return the carry of one group of blocks from the powers P⁰ … P^K."""
    L, k, blocks = (group if modes.size <= _MAX_GROUPED_BLOCK else 1), modes.size, powers.shape[1]
    steps = block_powers(model, modes, L + 1, stride=width)  # P^{K l}
    by_increments = width == L == 1
    rows = steps.transpose(1, 0, 3, 2)  # (blocks, l, from, to)
    over = rows[:, L]
    if by_increments:  # P − 1 of each block without cancellation
        dense = [model.blocks[index].P_minus_1[None] for index in modes.dense]
        minus_identity = np.concatenate([*_scalar_blocks(model.P_minus_1[modes.scalars], modes.size), *dense])
        over = minus_identity.swapaxes(-1, -2)
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
        over=over,
        by_increments=by_increments,
        partly=powers.transpose(0, 1, 3, 2),
    )
