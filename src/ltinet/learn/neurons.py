"""The neurons of a model's layers: what enters each of them, and where a force on it acts, by the model's parameters.

A layer in its own states (`BlockSystem`): reals ξ_r, then pairs (ξ, η). Neuron i has m ξ̈ + c ξ̇ + k ξ = s + v u̇ with
s = e u − Σ_{j>i} (k_ij ξ_j + c_ij ξ̇_j), as the network's own equations (`network.maps`), here in tensors:

    first order    s = Σ_{j>i} A_ij z_j + B_i u,                       a force f adds f to ξ̇_i,
    second order   s = (A² + c A + k)_i z + (A B + c B)_i u,           a force f adds A_ξη⁻¹ f to η̇.

The row of A² has no reals, which stand before all pairs, and its own entries vanish (Cayley and Hamilton).
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltinet.learn.packed import PackedSystem
from ltinet.learn.system import System
from ltinet.network.block_system import BlockSystem


class NeuronGroup(NamedTuple):
    """Layers of k states and N neurons each: constants, the first axis counts the layers."""

    basis: Tensor
    """The states of a layer are basis · z of the model, `(layers, k, k)`."""
    inverse: Tensor
    places: Tensor
    """Where its states stand among all, `(layers, k)`."""
    members: Tensor
    """Which of the model's pairs, reals or blocks of this size each one is, `(layers,)`."""
    neurons: Tensor
    """The numbers of its neurons, layer after layer of the network, `(layers, N)`."""


class Entering(NamedTuple):
    """For all N neurons: s = rows · z + direct · u, and ż = … + forces · f."""

    rows: Tensor
    direct: Tensor
    forces: Tensor


def neuron_groups(packed: PackedSystem, blocks: BlockSystem) -> list[NeuronGroup]:
    """The layers of a network by size, in the states of a model."""
    n_pairs = len(packed.pair_rates)
    firsts = {
        len(group[0].F): start for group, start in zip(packed.groups, _starts_of_groups(packed, n_pairs), strict=True)
    }
    found: dict[tuple[int, int], list[tuple[NDArray[np.intp], int, slice, int]]] = defaultdict(list)
    first_neuron = 0
    for rows, n_reals in zip(blocks.slices, blocks.reals_per_block, strict=True):
        own = np.flatnonzero(packed.to_blocks[rows].any(axis=0))
        k = len(own)
        n_neurons = (k + n_reals) // 2
        member = int(own[0])
        if k == 1:
            member -= 2 * n_pairs
        elif n_neurons > 1:
            member = (member - firsts[k]) // k
        found[k, n_neurons].append((own, member, rows, first_neuron))
        first_neuron += n_neurons
    return [_group(packed, layers, n_neurons) for (_, n_neurons), layers in found.items()]


def entering(system: System, groups: list[NeuronGroup]) -> Entering:
    """What enters all neurons, and where forces act; differentiable in the system."""
    n_neurons = sum(group.neurons.numel() for group in groups)
    n, m = system.B.shape
    rows, direct = system.B.new_zeros(n_neurons, n), system.B.new_zeros(n_neurons, m)
    forces = system.B.new_zeros(n, n_neurons)
    for group in groups:
        own = _entering_layers(_layer_matrices(system, group), group.basis @ system.B[group.places], group)
        at, states = group.neurons, group.places
        rows = rows.index_put((at.unsqueeze(2), states.unsqueeze(1)), own.rows)
        direct = direct.index_put((at,), own.direct)
        forces = forces.index_put((states.unsqueeze(2), at.unsqueeze(1)), own.forces)
    return Entering(rows, direct, forces)


def require_layers(groups: list[NeuronGroup], system: System) -> None:
    """Refuse layers, as a file may hold them, that are not all states, parts and neurons of a system, each once.

    Raises:
        ValueError: they are not.
    """
    members: dict[object, list[Tensor]] = defaultdict(list)
    for group in groups:
        layers, k = group.places.shape
        n_neurons = group.neurons.shape[1]
        shapes = (group.basis.shape, group.inverse.shape, group.members.shape, group.neurons.shape)
        if (
            shapes != ((layers, k, k), (layers, k, k), (layers,), (layers, n_neurons))
            or not n_neurons <= k <= 2 * n_neurons
        ):
            raise ValueError("layers whose sizes do not fit each other")
        if not bool(torch.isfinite(group.basis).all() & torch.isfinite(group.inverse).all()):
            raise ValueError("layers with states that are not finite")
        members["real" if k == 1 else "pair" if n_neurons == 1 else k].append(group.members)
    counts: dict[object, int] = {"real": len(system.real_rates), "pair": len(system.pair_rates)}
    counts |= {own.shape[-1]: len(own) for own in system.blocks}
    parts = [(members.get(kind, []), count) for kind, count in counts.items()]
    parts += [([group.places for group in groups], len(system.B))]
    neurons = [group.neurons for group in groups]
    parts += [(neurons, sum(own.numel() for own in neurons))]
    if not members.keys() <= counts.keys() or not all(_each_once(*own) for own in parts):
        raise ValueError("layers that are not all states and neurons, each once")


def _each_once(numbers: list[Tensor], count: int) -> bool:
    found = sorted(int(number) for own in numbers for number in own.flatten().tolist())
    return found == list(range(count))


def levels(groups: list[NeuronGroup]) -> list[Tensor]:
    """The numbers of the neurons that can be solved together: the last of each layer, then those before them, …."""
    deepest = max((group.neurons.shape[1] for group in groups), default=0)
    return [
        torch.cat([group.neurons[:, -1 - level] for group in groups if group.neurons.shape[1] > level])
        for level in range(deepest)
    ]


def _entering_layers(A: Tensor, B: Tensor, group: NeuronGroup) -> Entering:
    """The same for layers of one size, in the model's states of each."""
    k, n_neurons = A.shape[-1], group.neurons.shape[1]
    n_reals = 2 * n_neurons - k
    xi = [*range(n_reals), *range(n_reals, k, 2)]
    eta = list(range(n_reals + 1, k, 2))
    pairs = xi[n_reals:]
    own = A[..., pairs, :]
    c = -(A[..., pairs, pairs] + A[..., eta, eta]).unsqueeze(-1)
    # k ξ_i, and what else stands in its own columns, vanishes: only states of later neurons enter.
    is_later = torch.as_tensor([[column > state + (state in pairs) for column in range(k)] for state in xi])
    rows = torch.cat([A[..., :n_reals, :], own @ A + c * own], -2) * is_later.to(A)
    direct = torch.cat([B[..., :n_reals, :], own @ B + c * B[..., pairs, :]], -2)
    unit = torch.eye(k, dtype=A.dtype, device=A.device)
    solved = torch.linalg.solve_triangular(
        A[..., pairs, :][..., eta], torch.eye(len(eta)).to(A).expand(len(A), -1, -1), upper=True
    )
    forces = torch.cat([unit[:, :n_reals].expand(len(A), -1, -1), unit[:, eta] @ solved], -1)
    return Entering(rows @ group.basis, direct, group.inverse @ forces)


def _layer_matrices(system: System, group: NeuronGroup) -> Tensor:
    """A of layers of one size, in their own states."""
    k, n_neurons = group.places.shape[1], group.neurons.shape[1]
    if k == 1:
        F = system.real_rates[group.members].reshape(-1, 1, 1)
    elif n_neurons == 1:
        a, omega = system.pair_rates[group.members], system.frequencies[group.members]
        F = torch.stack([torch.stack([a, -omega], -1), torch.stack([omega, a], -1)], -2)
    else:
        F = next(own for own in system.blocks if own.shape[-1] == k)[group.members]
    return group.basis @ F @ group.inverse


def _starts_of_groups(packed: PackedSystem, n_pairs: int) -> list[int]:
    """Where the states of the coupled blocks of each size begin."""
    sizes = [len(group) * len(group[0].F) for group in packed.groups]
    first = 2 * n_pairs + len(packed.real_rates)
    return [first + sum(sizes[:number]) for number in range(len(sizes))]


def _group(packed: PackedSystem, layers: list[tuple[NDArray[np.intp], int, slice, int]], n_neurons: int) -> NeuronGroup:
    return NeuronGroup(
        basis=torch.from_numpy(np.stack([packed.to_blocks[rows][:, own] for own, _, rows, _ in layers])),
        inverse=torch.from_numpy(np.stack([packed.from_blocks[own][:, rows] for own, _, rows, _ in layers])),
        places=torch.from_numpy(np.stack([own for own, _, _, _ in layers]).astype(np.int64)),
        members=torch.tensor([member for _, member, _, _ in layers], dtype=torch.int64),
        neurons=torch.tensor([list(range(first, first + n_neurons)) for _, _, _, first in layers], dtype=torch.int64),
    )
