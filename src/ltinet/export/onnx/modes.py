"""The blocks of a model by their size: what carries a state over many steps is one small matrix for each of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.export.step_model import StepModel
from ltinet.solve.steps.propagators import exp_of_multiples
from ltinet.solve.steps.recurrence import matrix_powers, without_dust

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Modes:
    """All blocks of one size k: pairs have two states, reals one."""

    size: int
    scalars: Indices
    """Which pairs or reals of the model these are, before the dense blocks of this size."""
    dense: tuple[int, ...]
    states: Indices
    """Where their states stand in the model, (k × blocks)."""


def modes_by_size(model: StepModel) -> list[Modes]:
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
        found.append(Modes(size, scalars, dense, states.astype(np.intp)))
    return found


def powers_of(model: StepModel, modes: Modes, count: int, *, stride: int = 1) -> Array:
    """P⁰, Pˢ, P²ˢ … of each block, `(count, blocks, k, k)`."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = without_dust(exp_of_multiples(model.rates[modes.scalars], model.dt, stride * np.arange(count)))
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


def less_one_of(model: StepModel, modes: Modes) -> Array:
    """P − 1 of each block, to all its digits, `(blocks, k, k)`."""
    values = model.less_one[modes.scalars]
    own = values.real[:, None, None]
    if modes.size == 2:
        own = np.stack([values.real, -values.imag, values.imag, values.real], axis=-1).reshape(-1, 2, 2)
    dense = [model.blocks[place].less_one[None] for place in modes.dense]
    return np.concatenate([*([own] if modes.size <= 2 else []), *dense])
