"""Trainable parameters of a network and the constants that place them in its system.

Decay rates are e^p with p clamped around its initial value, so that stable modes stay stable under any optimizer.
Modes that do not decay (integrators, undamped and unstable poles) are separate parameters named `held_rates`. All
values are stored relative to the start: e^{p − p₀} times a constant gives exactly the original values as long as
p = p₀.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltinet._util.floating_point import EPS, Array
from ltinet.torch.packed_system import PackedSystem
from ltinet.torch.propagators import TensorSystem

# MERGED ltinet.torch.parameters
# What is learnt and what stays: parameters of a network, and the constants that put them in their places.
#
# Decays are e^p with p clamped around where it began, so that what is stable stays stable whatever an optimiser does, and
# what did not decay (integrators, undamped and unstable poles) stands apart under the name `held_rates`. All numbers are
# kept relative to the start: e^{p − p₀} times a constant gives the network's own bits as long as p = p₀.

LOG_RANGE = 16.0
"""Decays and couplings of pairs may change by e^±16, a factor of nine million either way; beyond, they stay there."""

_BLOCK_INDEX_PREFIX = "block_entries_"


class NetworkTensors(NamedTuple):
    """Parameters and constants by name, all float64 but for the indices."""

    parameters: dict[str, Tensor]
    constants: dict[str, Tensor]


def initial_tensors(packed: PackedSystem) -> NetworkTensors:
    """The parameters with which a network begins."""
    rates, sizes = _diagonal_entries(packed)
    is_stable = -rates > EPS * np.maximum(sizes, np.abs(rates))
    place = np.empty(len(rates), dtype=np.int64)
    place[is_stable] = np.arange(is_stable.sum())
    place[~is_stable] = is_stable.sum() + np.arange((~is_stable).sum())
    above, below, couplings, entries = _block_entries(packed)
    numbers = {
        "log_decay": np.log(-rates[is_stable]),
        "held_rates": rates[~is_stable],
        "frequency": packed.pair_rates.imag,
        "log_above": np.log(np.abs(above)),
        "log_below": np.log(np.abs(below)),
        "couplings": couplings,
        "B": packed.B,
        "C": packed.C,
        "D": packed.D,
    }
    constants: dict[str, NDArray[Any]] = {
        "decay_at_start": -rates[is_stable],
        "log_decay_at_start": numbers["log_decay"],
        "above_at_start": above,
        "log_above_at_start": numbers["log_above"],
        "below_at_start": below,
        "log_below_at_start": numbers["log_below"],
        "from_user": packed.from_user,
        "to_user": packed.to_user,
        "place_of_rates": place,
    }
    constants |= {f"{_BLOCK_INDEX_PREFIX}{number}": index for number, index in enumerate(entries)}
    return NetworkTensors(_as_tensors(numbers), _as_tensors(constants))


def build_system(tensors: Mapping[str, Tensor]) -> TensorSystem:
    """The system that parameters stand for; differentiable in all of them."""
    decays = tensors["decay_at_start"] * _relative_exp(tensors["log_decay"], tensors["log_decay_at_start"])
    above = tensors["above_at_start"] * _relative_exp(tensors["log_above"], tensors["log_above_at_start"])
    below = tensors["below_at_start"] * _relative_exp(tensors["log_below"], tensors["log_below_at_start"])
    rates = torch.cat([-decays, tensors["held_rates"]]).index_select(0, tensors["place_of_rates"])
    n_pairs = tensors["frequency"].shape[-1]
    indices = [tensors[f"{_BLOCK_INDEX_PREFIX}{number}"] for number in range(n_block_sizes(tensors))]
    n_reals = tensors["B"].shape[-2] - 2 * n_pairs - sum(own.shape[0] * own.shape[1] for own in indices)
    pool = torch.cat([rates[n_pairs + n_reals :], above, below, tensors["couplings"], torch.zeros_like(rates[:1])])
    return TensorSystem(
        pair_rates=rates[:n_pairs],
        frequencies=tensors["frequency"],
        real_rates=rates[n_pairs : n_pairs + n_reals],
        blocks=tuple(pool[own] for own in indices),
        B=tensors["B"],
        C=tensors["C"],
        D=tensors["D"],
    )


def n_block_sizes(tensors: Mapping[str, Tensor]) -> int:
    """In how many sizes coupled blocks come."""
    return sum(name.startswith(_BLOCK_INDEX_PREFIX) for name in tensors)


def _relative_exp(log: Tensor, log_at_start: Tensor) -> Tensor:
    return torch.exp((log - log_at_start).clamp(-LOG_RANGE, LOG_RANGE))


def _diagonal_entries(packed: PackedSystem) -> tuple[Array, Array]:
    """Real parts of all poles, pairs once, and their sizes: scalar pairs, reals, then those of blocks."""
    blocks = [block for group in packed.groups for block in group]
    rates = [block.F.diagonal()[np.array(block.starts, dtype=np.intp)] for block in blocks]
    sizes = [np.repeat(np.abs(np.linalg.eigvals(block.F)).max(), len(block.starts)) for block in blocks]
    pairs = packed.pair_rates
    return (
        np.concatenate([pairs.real, packed.real_rates, *rates]),
        np.concatenate([np.abs(pairs), np.abs(packed.real_rates), *sizes]),
    )


def _block_entries(packed: PackedSystem) -> tuple[Array, Array, Array, list[NDArray[np.int64]]]:
    """Entries beside the diagonal of pairs, couplings, and for each size the place of every entry in the pool of all.

    The pool has the diagonals of all blocks (pairs once), what stands above and below in pairs, couplings, and a zero.
    """
    blocks = [block for group in packed.groups for block in group]
    n_items = sum(len(block.starts) for block in blocks)
    n_pairs = sum(block.sizes.count(2) for block in blocks)
    is_coupling = [_couplings(block.F, block.starts) for block in blocks]
    couplings = np.concatenate([np.zeros(0), *(block.F[own] for block, own in zip(blocks, is_coupling, strict=True))])
    zero = n_items + 2 * n_pairs + len(couplings)
    item, pair, coupling = 0, 0, n_items + 2 * n_pairs
    above, below, entries = [], [], []
    for block, own in zip(blocks, is_coupling, strict=True):
        index = np.full(block.F.shape, zero, dtype=np.int64)
        index[own] = coupling + np.arange(own.sum())
        coupling += int(own.sum())
        for start, size in zip(block.starts, block.sizes, strict=True):
            for row in range(start, start + size):
                index[row, row] = item
            item += 1
            if size == 2:
                index[start, start + 1], index[start + 1, start] = n_items + pair, n_items + n_pairs + pair
                above.append(block.F[start, start + 1])
                below.append(block.F[start + 1, start])
                pair += 1
        entries.append(index)
    counts = np.cumsum([0, *(len(group) for group in packed.groups)])
    grouped = [np.stack(entries[start:stop]) for start, stop in pairwise(counts)]
    return np.array(above), np.array(below), couplings, grouped


def _couplings(F: Array, starts: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which entries stand above all reals and pairs of the diagonal; without these, all."""
    if not starts:
        return np.ones(F.shape, dtype=np.bool_)
    piece = np.searchsorted(starts, np.arange(len(F)), side="right")
    return np.asarray(piece[:, None] < piece[None, :])


def _as_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()}
