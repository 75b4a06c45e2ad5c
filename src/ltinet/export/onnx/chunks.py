"""The tables of a chunked run: K samples at a time, states carried over L chunks by one product, then by groups of L.

With w = z − Γ₁ u as in the engine's grids, w_{k+1} = P w_k + Γ u_k and y_k = C w_k + D' u_k, where Γ = P Γ₁ + Γ₀ and
D' = D + C Γ₁. Within a chunk outputs are a product of w at its beginning and of its inputs; at its end
w ← P^K w + [P^{K−1}Γ … Γ] u.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.export.onnx.modes import Modes, less_one_of, modes_by_size, powers_of
from ltinet.export.step_model import StepModel
from ltinet.solve.steps.recurrence import LARGE
from ltinet.solve.steps.time_blocks import toeplitz

_WIDTHS = (16, 32, 64, 128, 256)
_CARRIED = 8  # chunks of a group: tables grow with its square, rounds of the loop fall with it
_LARGEST_CARRIED = 4  # states of a block that is carried over a group; larger ones go from chunk to chunk
_PER_CARRY = 200.0  # multiplications that take as long as it takes to carry one state over one chunk


@dataclass(frozen=True, eq=False)
class Carry:
    """How blocks of one size k go from chunk to chunk; rows act from the left."""

    modes: Modes
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
class Chunks:
    """Everything that a graph needs, in the order of states in which blocks of one size stand together."""

    width: int
    """K."""
    order: NDArray[np.intp]
    """Which state of the model each one is."""
    carries: tuple[Carry, ...]
    from_state: Array
    """From w at the beginning of a chunk to its outputs, (n × K p)."""
    from_inputs: Array
    """From the inputs of a chunk to its outputs, (K m × K p)."""
    into_state: Array
    """From the inputs of a chunk to w at its end, (K m × n)."""
    shift: Array
    """Γ₁, transposed, (m × n)."""


def chunks_of(model: StepModel) -> Chunks:
    """The chunks that are fastest by a count of multiplications, of those whose powers are finite and keep digits.

    A model without inputs gets one that is zero.
    """
    if not model.n_inputs:
        none, no_output = np.zeros((model.n_states, 1)), np.zeros((model.n_outputs, 1))
        model = replace(model, B=none, Gamma0=none, Gamma1=none, D=no_output)
    for width in sorted(_WIDTHS, key=lambda width: _cost(model, width)):
        for group in (_CARRIED, 1):
            tables = _tables(model, width, group)
            if _is_finite(tables):
                return tables
    return _tables(model, 1, 1)


def _cost(model: StepModel, width: int) -> float:
    """Multiplications per sample that depend on the width: products with inputs, and carries."""
    return width * model.n_inputs * model.n_outputs + _PER_CARRY * model.n_states / width


def _tables(model: StepModel, width: int, group: int) -> Chunks:
    modes = modes_by_size(model)
    order = np.concatenate([np.arange(0), *(own.states.ravel() for own in modes)]).astype(np.intp)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = [powers_of(model, own, width + 1) for own in modes]
        Gamma1 = model.Gamma1[order]
        Gamma = model.Gamma0[order] + _applied(modes, [own[1:2] for own in powers], Gamma1)[0]
        into = _applied(modes, [own[:width] for own in powers], Gamma)
        out = _applied(modes, [own[:width].swapaxes(-1, -2) for own in powers], model.C[:, order].T)
        direct = model.D + model.C[:, order] @ Gamma1
        markov = np.concatenate([direct[None], out[:-1].swapaxes(1, 2) @ Gamma])
        carries = tuple(_carry(model, own, table, width, group) for own, table in zip(modes, powers, strict=True))
    n, m, p = model.n_states, model.n_inputs, model.n_outputs
    return Chunks(
        width=width,
        order=order,
        carries=carries,
        from_state=out.transpose(1, 0, 2).reshape(n, width * p),
        from_inputs=toeplitz(markov),
        into_state=into[::-1].transpose(0, 2, 1).reshape(width * m, n),
        shift=Gamma1.T,
    )


def _applied(modes: list[Modes], powers: list[Array], columns: Array) -> Array:
    """P^k times some columns `(n, q)` for several k, `(count, n, q)`, states in the order of the chunks."""
    count = len(powers[0]) if powers else 1
    parts, first = [np.zeros((count, 0, columns.shape[1]))], 0
    for own, table in zip(modes, powers, strict=True):
        size, blocks = own.states.shape
        mine = columns[first : first + size * blocks].reshape(size, blocks, -1)
        parts.append(np.einsum("tbij,jbq->tibq", table, mine).reshape(len(table), size * blocks, -1))
        first += size * blocks
    return np.concatenate(parts, axis=1)


def _carry(model: StepModel, modes: Modes, powers: Array, width: int, group: int) -> Carry:
    L, k, blocks = (group if modes.size <= _LARGEST_CARRIED else 1), modes.size, powers.shape[1]
    steps = powers_of(model, modes, L + 1, stride=width)  # P^{K l}
    by_increments = width == L == 1
    rows = steps.transpose(1, 0, 3, 2)  # (blocks, l, from, to)
    local = np.zeros((blocks, L, k, L, k))
    for at in range(1, L):
        for before in range(at):
            local[:, before, :, at] = rows[:, at - 1 - before]
    return Carry(
        modes=modes,
        group=L,
        local=local.reshape(blocks, L * k, L * k),
        added=rows[:, :L][:, ::-1].reshape(blocks, L * k, k),
        across=rows[:, :L].transpose(0, 2, 1, 3).reshape(blocks, k, L * k),
        over=less_one_of(model, modes).swapaxes(-1, -2) if by_increments else rows[:, L],
        by_increments=by_increments,
        partly=powers.transpose(0, 1, 3, 2),
    )


def _is_finite(tables: Chunks) -> bool:
    largest = [np.abs(own).max(initial=0.0) for carry in tables.carries for own in (carry.over, carry.partly)]
    return bool(np.max(largest, initial=0.0) < LARGE)
