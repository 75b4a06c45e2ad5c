"""Networks with activations on the inputs of their neurons, solved in the triangular order of Algorithm 3.

A layer in its own states has reals ξ_r first, then pairs (ξ, η). Neuron i satisfies m ξ̈ + c ξ̇ + k ξ = s + v u̇ with
s = e u − Σ_{j>i} (k_ij ξ_j + c_ij ξ̇_j), which the activation φ(s) replaces. In the parameters of a model:

    first order    s = Σ_{j>i} A_ij z_j + B_i u,                       a force f adds f to ξ̇_i,
    second order   s = (A² + c A + k)_i z + (A B + c B)_i u,           a force f adds A_ξη⁻¹ f to η̇.

The row of A² has no reals, which stand before all pairs, and its own entries vanish (Cayley–Hamilton). Neurons at the
same position from the end of their layers are solved together.
"""

import copy
from collections import defaultdict
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, SimulationError
from ltinet.network.block_system import BlockSystem
from ltinet.nn.maps import Polynomial, Spline
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import resolve_hold
from ltinet.torch.api import to_torch
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import PackedSystem, TrainableParts, pack_system
from ltinet.torch.planner import InitialState, ProblemSizes, run_from_initial_state, select_plan
from ltinet.torch.propagators import TensorSystem, one_step
from ltinet.torch.validation import all_finite, compute_dtype, preserve_dtype, validate_input

# MERGED ltinet.nn.triangular
# The neurons of a model's layers: what enters each of them, and where a force on it acts, by the model's parameters.
#
# A layer in its own states (`BlockSystem`): reals ξ_r, then pairs (ξ, η). Neuron i has m ξ̈ + c ξ̇ + k ξ = s + v u̇ with
# s = e u − Σ_{j>i} (k_ij ξ_j + c_ij ξ̇_j), as the network's own equations (`network.maps`), here in tensors:
#
#     first order    s = Σ_{j>i} A_ij z_j + B_i u,                       a force f adds f to ξ̇_i,
#     second order   s = (A² + c A + k)_i z + (A B + c B)_i u,           a force f adds A_ξη⁻¹ f to η̇.
#
# The row of A² has no reals, which stand before all pairs, and its own entries vanish (Cayley and Hamilton).


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


class NeuronInputs(NamedTuple):
    """For all N neurons: s = rows · z + direct · u, and ż = … + forces · f."""

    rows: Tensor
    direct: Tensor
    forces: Tensor


def neuron_groups(packed: PackedSystem, blocks: BlockSystem) -> list[NeuronGroup]:
    """The layers of a network by size, in the states of a model."""
    n_pairs = len(packed.pair_rates)
    firsts = {
        len(group[0].F): start for group, start in zip(packed.groups, _block_group_starts(packed, n_pairs), strict=True)
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
    return [_make_group(packed, layers, n_neurons) for (_, n_neurons), layers in found.items()]


def neuron_inputs(system: TensorSystem, groups: list[NeuronGroup]) -> NeuronInputs:
    """What enters all neurons, and where forces act; differentiable in the system."""
    n_neurons = sum(group.neurons.numel() for group in groups)
    n, m = system.B.shape
    rows, direct = system.B.new_zeros(n_neurons, n), system.B.new_zeros(n_neurons, m)
    forces = system.B.new_zeros(n, n_neurons)
    for group in groups:
        own = _layer_inputs(_layer_matrices(system, group), group.basis @ system.B[group.places], group)
        at, states = group.neurons, group.places
        rows = rows.index_put((at.unsqueeze(2), states.unsqueeze(1)), own.rows)
        direct = direct.index_put((at,), own.direct)
        forces = forces.index_put((states.unsqueeze(2), at.unsqueeze(1)), own.forces)
    return NeuronInputs(rows, direct, forces)


def validate_neuron_groups(groups: list[NeuronGroup], system: TensorSystem) -> None:
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
    if not members.keys() <= counts.keys() or not all(_is_permutation(*own) for own in parts):
        raise ValueError("layers that are not all states and neurons, each once")


def _is_permutation(numbers: list[Tensor], count: int) -> bool:
    found = sorted(int(number) for own in numbers for number in own.flatten().tolist())
    return found == list(range(count))


def dependency_levels(groups: list[NeuronGroup]) -> list[Tensor]:
    """The numbers of the neurons that can be solved together: the last of each layer, then those before them, …."""
    deepest = max((group.neurons.shape[1] for group in groups), default=0)
    return [
        torch.cat([group.neurons[:, -1 - level] for group in groups if group.neurons.shape[1] > level])
        for level in range(deepest)
    ]


def _layer_inputs(A: Tensor, B: Tensor, group: NeuronGroup) -> NeuronInputs:
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
    return NeuronInputs(rows @ group.basis, direct, group.inverse @ forces)


def _layer_matrices(system: TensorSystem, group: NeuronGroup) -> Tensor:
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


def _block_group_starts(packed: PackedSystem, n_pairs: int) -> list[int]:
    """Where the states of the coupled blocks of each size begin."""
    sizes = [len(group) * len(group[0].F) for group in packed.groups]
    first = 2 * n_pairs + len(packed.real_rates)
    return [first + sum(sizes[:number]) for number in range(len(sizes))]


def _make_group(
    packed: PackedSystem, layers: list[tuple[NDArray[np.intp], int, slice, int]], n_neurons: int
) -> NeuronGroup:
    return NeuronGroup(
        basis=torch.from_numpy(np.stack([packed.to_blocks[rows][:, own] for own, _, rows, _ in layers])),
        inverse=torch.from_numpy(np.stack([packed.from_blocks[own][:, rows] for own, _, rows, _ in layers])),
        places=torch.from_numpy(np.stack([own for own, _, _, _ in layers]).astype(np.int64)),
        members=torch.tensor([member for _, member, _, _ in layers], dtype=torch.int64),
        neurons=torch.tensor([list(range(first, first + n_neurons)) for _, _, _, first in layers], dtype=torch.int64),
    )


# MERGED ltinet.nn.triangular
# Networks with activations on what enters their neurons, solved in the triangular order of the paper's Algorithm 3.

_CHANNELWISE = (Polynomial, Spline)


@final
class Triangular(nn.Module):
    """A network whose neurons get an activation of what enters them: m ξ̈ + c ξ̇ + k ξ = φ(s).

    What enters is s = e u − Σ (k_ij ξ_j + c_ij ξ̇_j) with the sum over the neurons after it in its layer: a layer is
    solved from its last neuron to its first, all layers side by side, each time parallel in time, in as many runs as
    the largest layer has neurons. With φ(s) = s + ψ(s) the network itself is exact between samples, and ψ, zero at
    first, is held as the network holds its inputs. What u̇ gives to a neuron is added beside φ, since a held input has
    no derivative at its samples.

    Args:
        net: the network; neurons count layer after layer, as in `net.layers`.
        map: φ: a map of one channel for all neurons, or a `Polynomial` or `Spline` with a channel for each.
        dt: time between samples.
        hold: "linear" for straight lines between samples, "zero" for steps; that of the network if left out, and
            "linear" where it has none.
        trainable: the parts of the network that are trained, as in `net.to_torch`.
    """

    def __init__(
        self,
        net: DynamicNetwork,
        map: nn.Module,
        *,
        dt: float,
        hold: Hold | None = None,
        trainable: TrainableParts = True,
    ) -> None:
        super().__init__()
        if not isinstance(net, DynamicNetwork):
            raise InvalidNetworkError(
                f"net is a {type(net).__name__}; give a network: ltinet.construct(system), or model.to_network()"
            )
        net.signal_settings.refuse_unsupported("nn.Triangular")
        prepared = net._context
        groups = neuron_groups(pack_system(prepared), prepared.blocks)
        settings = net.signal_settings
        network = to_torch(
            prepared,
            dt,
            hold=resolve_hold(hold, settings),
            trainable=trainable,
            settings=settings,
            rebuild=DynamicNetwork,
        )
        self._take(network, map, groups)

    @classmethod
    def of_parts(cls, network: LinearNetwork[Any], map: nn.Module, groups: list[NeuronGroup]) -> "Triangular":
        """The same from its parts, as files hold them."""
        model = cls.__new__(cls)
        nn.Module.__init__(model)
        model._take(network, map, groups)
        return model

    def _take(self, network: LinearNetwork[Any], map: nn.Module, groups: list[NeuronGroup]) -> None:
        self.network, self.map, self.n_groups = network, map, len(groups)
        self.n_neurons = sum(group.neurons.numel() for group in groups)
        sizes = (getattr(map, "n_inputs", None), getattr(map, "n_outputs", None))
        fits = sizes == (1, 1) or (isinstance(map, _CHANNELWISE) and sizes[0] == self.n_neurons)
        if not fits:
            raise InvalidNetworkError(
                f"the map is a {type(map).__name__} from {sizes[0]} to {sizes[1]} channels; give one from 1 to 1 for "
                f"all neurons, or a Polynomial or Spline with {self.n_neurons}, one for each: what enters a neuron may "
                "not depend on those before it"
            )
        for number, group in enumerate(groups):
            for name, values in group._asdict().items():
                self.register_buffer(f"{name}_{number}", values)

    @property
    def n_inputs(self) -> int:
        """Number of inputs, m."""
        return self.network.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs, p."""
        return self.network.n_outputs

    def at(self, dt: float) -> "Triangular":
        """The same model with another time step; both share their parameters."""
        other = copy.copy(self)
        other._modules = {**self._modules, "network": self.network.at(dt)}
        return other

    def forward(
        self, u: Tensor, *, state: Tensor | None = None, x0: Tensor | None = None, return_state: bool = False
    ) -> Any:
        """Outputs `(…, T, p)` for samples `(…, T, m)`; `state`, `x0` and `return_state` as those of a network.

        Raises:
            InvalidSignalError: u or a state has another shape, type or device, or numbers that are not finite.
            SimulationError: an activation exceeds the largest floating-point number.
        """
        if torch.compiler.is_compiling():  # as networks do
            run: Any = torch.compiler.disable(self._evaluated)
            return run(u, state, x0, return_state)
        return self._evaluated(u, state, x0, return_state)

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output at one sample `(…, m)` and the state that awaits the next."""
        u = validate_input(u, n_inputs=self.n_inputs, device=self.network.B.device, axes="(…, {})")
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """The linear part: the network that is left where every φ is the identity."""
        return self.network.to_network()

    def _evaluated(self, u: Tensor, state: Tensor | None, x0: Tensor | None, return_state: bool) -> Any:
        network = self.network
        u = validate_input(u, n_inputs=self.n_inputs, device=network.B.device)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(compute_dtype(u.dtype)).reshape(-1, steps, self.n_inputs)
            start = network.start(batch, state, x0)
            driven, signals = self._driven(samples, start)
            y, end = self._run(driven, signals, start, with_end=return_state)
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, network.n_states)) if return_state and end is not None else y

    def _driven(self, u: Tensor, start: InitialState) -> tuple[TensorSystem, Tensor]:
        """The network with the ψ of all neurons as further inputs, and these: level by level, from the last neurons."""
        groups = self.groups
        plain = self.network.system()
        found = neuron_inputs(plain, groups)
        driven, signals = plain, u
        for number, neurons in enumerate(dependency_levels(groups)):
            direct = found.direct.index_select(0, neurons)
            if number:
                seen = driven._replace(C=found.rows.index_select(0, neurons), D=_extend_feedthrough(direct, driven.B))
                s = self._run(seen, signals, start, with_end=False)[0]
            else:  # nothing but the input enters the last neurons
                s = u @ direct.to(u.dtype).mT
            signals = torch.cat([signals, self._extra(s, neurons)], -1)
            driven = _add_force_inputs(driven, found, neurons)
        return driven, signals

    def _extra(self, s: Tensor, neurons: Tensor) -> Tensor:
        """ψ(s) = φ(s) − s of some neurons."""
        one_for_all = self.map.n_inputs == 1
        v = self.map(s.unsqueeze(-1)) if one_for_all else self.map(s, neurons)
        if v.shape != (s.unsqueeze(-1) if one_for_all else s).shape:
            raise InvalidNetworkError(
                f"the map takes {tuple(s.shape)}, a number for each neuron, to {tuple(v.shape)}; it must keep the shape"
            )
        v = v.squeeze(-1) if one_for_all else v
        if not all_finite(v):
            number = int(neurons[int((~torch.isfinite(v)).flatten(0, -2).any(0).nonzero()[0])])
            raise SimulationError(
                f"the activation of neuron {number} ({type(self.map).__name__}) is not finite: it exceeds the largest "
                f"number of {v.dtype}; take smaller inputs, or a map that grows less"
            )
        return v - s

    def _run(
        self, system: TensorSystem, u: Tensor, start: InitialState, *, with_end: bool
    ) -> tuple[Tensor, Tensor | None]:
        network, growth = self.network, self.network.growth
        step = one_step(system, network.dt, linear=network.hold == "linear")
        sizes = ProblemSizes(
            batch=u.shape[0],
            steps=u.shape[1],
            n_states=network.n_states,
            n_inputs=u.shape[2],
            n_outputs=system.C.shape[-2],
            growth=max(growth, 0.0) * network.dt * u.shape[1],
            on_gpu=u.is_cuda,
            number_size=u.element_size(),
        )
        return run_from_initial_state(step, u, start, select_plan(sizes), growth=growth, with_end=with_end)

    @property
    def groups(self) -> list[NeuronGroup]:
        """The layers by size, as constants."""
        names = NeuronGroup._fields
        return [NeuronGroup(*(getattr(self, f"{name}_{number}") for name in names)) for number in range(self.n_groups)]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move to devices, but keep float64."""
        return super()._apply(preserve_dtype(fn), recurse)


def _extend_feedthrough(direct: Tensor, B: Tensor) -> Tensor:
    """The feedthrough of s from u, and none from what else drives: the weights of the forces in s are zero."""
    return torch.cat([direct, direct.new_zeros(len(direct), B.shape[1] - direct.shape[1])], 1)


def _add_force_inputs(driven: TensorSystem, found: NeuronInputs, neurons: Tensor) -> TensorSystem:
    """A system with forces on some neurons as further inputs."""
    B = torch.cat([driven.B, found.forces.index_select(1, neurons)], 1)
    return driven._replace(B=B, D=_extend_feedthrough(driven.D, B))
