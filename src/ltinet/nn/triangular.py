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
from ltinet.systems.system_matrices import require_continuous_time
from ltinet.torch.api import to_torch
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import PackedSystem, TrainableParts, pack_system
from ltinet.torch.planner import InitialState, ProblemSizes, run_from_initial_state, select_plan
from ltinet.torch.propagators import TensorSystem, one_step
from ltinet.torch.validation import (
    DoublePrecisionModule,
    all_finite,
    compute_dtype,
    outside_compiled_graphs,
    validate_input,
)


class NeuronGroup(NamedTuple):
    """Layers of k states and N neurons each, as constants; the first axis counts the layers."""

    basis: Tensor
    """States of a layer = basis · z, with z its states in the model, `(layers, k, k)`."""
    inverse: Tensor
    states: Tensor
    """Indices of the states of each layer, `(layers, k)`."""
    block_indices: Tensor
    """Index of each layer among the pairs, reals or blocks of this size, `(layers,)`."""
    neurons: Tensor
    """Indices of the neurons of each layer, counted layer after layer of the network, `(layers, N)`."""


GROUP_BUFFERS = ("basis", "inverse", "places", "members", "neurons")
"""Names of the tensors of a group in model files, in the order of its fields; the number of the group follows."""


class NeuronInputs(NamedTuple):
    """Weights of all N neurons: s = rows · z + direct · u, and forces f on neurons add forces · f to ż."""

    rows: Tensor
    direct: Tensor
    forces: Tensor


def neuron_groups(packed: PackedSystem, blocks: BlockSystem) -> list[NeuronGroup]:
    """Group the layers of a network by numbers of states and neurons, in the states of a model."""
    n_pairs = len(packed.pair_rates)
    # First state of the coupled blocks of each size.
    start = 2 * n_pairs + len(packed.real_rates)
    starts: dict[int, int] = {}
    for group in packed.groups:
        starts[len(group[0].F)] = start
        start += len(group) * len(group[0].F)
    layers_by_size: dict[tuple[int, int], list[tuple[NDArray[np.intp], int, slice, range]]] = defaultdict(list)
    first_neuron = 0
    for rows, n_reals in zip(blocks.slices, blocks.reals_per_block, strict=True):
        states = np.flatnonzero(packed.to_blocks[rows].any(axis=0))
        k = len(states)
        n_neurons = (k + n_reals) // 2
        index = int(states[0])
        if k == 1:
            index -= 2 * n_pairs
        elif n_neurons > 1:
            index = (index - starts[k]) // k
        layers_by_size[k, n_neurons].append((states, index, rows, range(first_neuron, first_neuron + n_neurons)))
        first_neuron += n_neurons
    return [
        NeuronGroup(
            basis=torch.from_numpy(np.stack([packed.to_blocks[rows][:, states] for states, _, rows, _ in layers])),
            inverse=torch.from_numpy(np.stack([packed.from_blocks[states][:, rows] for states, _, rows, _ in layers])),
            states=torch.from_numpy(np.stack([states for states, _, _, _ in layers]).astype(np.int64)),
            block_indices=torch.tensor([index for _, index, _, _ in layers], dtype=torch.int64),
            neurons=torch.tensor([list(neurons) for _, _, _, neurons in layers], dtype=torch.int64),
        )
        for layers in layers_by_size.values()
    ]


def neuron_inputs(system: TensorSystem, groups: list[NeuronGroup]) -> NeuronInputs:
    """Compute the weights of the inputs of all neurons and of forces on them; differentiable in the system."""
    n_neurons = sum(group.neurons.numel() for group in groups)
    n, m = system.B.shape
    rows, direct = system.B.new_zeros(n_neurons, n), system.B.new_zeros(n_neurons, m)
    forces = system.B.new_zeros(n, n_neurons)
    for group in groups:
        layer = _layer_inputs(_layer_matrices(system, group), group.basis @ system.B[group.states], group)
        neurons, states = group.neurons, group.states
        rows = rows.index_put((neurons.unsqueeze(2), states.unsqueeze(1)), layer.rows)
        direct = direct.index_put((neurons,), layer.direct)
        forces = forces.index_put((states.unsqueeze(2), neurons.unsqueeze(1)), layer.forces)
    return NeuronInputs(rows, direct, forces)


def validate_neuron_groups(groups: list[NeuronGroup], system: TensorSystem) -> None:
    """Raise ValueError unless the layers, read from a file, have all states and neurons of a system, each once."""
    indices_by_kind: dict[object, list[Tensor]] = defaultdict(list)
    for group in groups:
        layers, k = group.states.shape
        n_neurons = group.neurons.shape[1]
        shapes = (group.basis.shape, group.inverse.shape, group.block_indices.shape, group.neurons.shape)
        expected = ((layers, k, k), (layers, k, k), (layers,), (layers, n_neurons))
        if shapes != expected or not n_neurons <= k <= 2 * n_neurons:
            raise ValueError("sizes of layers do not match")
        if not bool(torch.isfinite(group.basis).all() & torch.isfinite(group.inverse).all()):
            raise ValueError("layers have states that are not finite")
        indices_by_kind["real" if k == 1 else "pair" if n_neurons == 1 else k].append(group.block_indices)
    counts: dict[object, int] = {"real": len(system.real_rates), "pair": len(system.pair_rates)}
    counts |= {blocks.shape[-1]: len(blocks) for blocks in system.blocks}
    neurons = [group.neurons for group in groups]
    index_sets = [(indices_by_kind.get(kind, []), count) for kind, count in counts.items()]
    index_sets += [([group.states for group in groups], len(system.B))]
    index_sets += [(neurons, sum(indices.numel() for indices in neurons))]
    if not indices_by_kind.keys() <= counts.keys() or any(
        sorted(index for tensor in tensors for index in tensor.flatten().tolist()) != list(range(count))
        for tensors, count in index_sets
    ):
        raise ValueError("layers do not have all states and neurons, each once")


def dependency_levels(groups: list[NeuronGroup]) -> list[Tensor]:
    """Return the indices of neurons that are solved together: the last of each layer, then those before them, …."""
    n_levels = max((group.neurons.shape[1] for group in groups), default=0)
    return [
        torch.cat([group.neurons[:, -1 - level] for group in groups if group.neurons.shape[1] > level])
        for level in range(n_levels)
    ]


def _layer_inputs(A: Tensor, B: Tensor, group: NeuronGroup) -> NeuronInputs:
    """Compute the weights for layers of one size; rows and forces refer to the states of the model."""
    k, n_neurons = A.shape[-1], group.neurons.shape[1]
    n_reals = 2 * n_neurons - k
    xi = [*range(n_reals), *range(n_reals, k, 2)]
    eta = list(range(n_reals + 1, k, 2))
    pairs = xi[n_reals:]
    A_xi = A[..., pairs, :]
    c = -(A[..., pairs, pairs] + A[..., eta, eta]).unsqueeze(-1)
    # Row i of A² + c A + k vanishes in the columns of neuron i and of those before it: only later neurons enter.
    is_later = torch.as_tensor([[column > state + (state in pairs) for column in range(k)] for state in xi])
    rows = torch.cat([A[..., :n_reals, :], A_xi @ A + c * A_xi], -2) * is_later.to(A)
    direct = torch.cat([B[..., :n_reals, :], A_xi @ B + c * B[..., pairs, :]], -2)
    unit = torch.eye(k, dtype=A.dtype, device=A.device)
    identity = torch.eye(len(eta)).to(A).expand(len(A), -1, -1)
    force_weights = torch.linalg.solve_triangular(A[..., pairs, :][..., eta], identity, upper=True)
    forces = torch.cat([unit[:, :n_reals].expand(len(A), -1, -1), unit[:, eta] @ force_weights], -1)
    return NeuronInputs(rows @ group.basis, direct, group.inverse @ forces)


def _layer_matrices(system: TensorSystem, group: NeuronGroup) -> Tensor:
    """Return A of layers of one size, in the states of the layers."""
    k, n_neurons = group.states.shape[1], group.neurons.shape[1]
    if k == 1:
        F = system.real_rates[group.block_indices].reshape(-1, 1, 1)
    elif n_neurons == 1:
        a, omega = system.pair_rates[group.block_indices], system.frequencies[group.block_indices]
        F = torch.stack([torch.stack([a, -omega], -1), torch.stack([omega, a], -1)], -2)
    else:
        F = next(blocks for blocks in system.blocks if blocks.shape[-1] == k)[group.block_indices]
    return group.basis @ F @ group.inverse


@final
class Triangular(DoublePrecisionModule):
    """A network with an activation on the input of each neuron: m ξ̈ + c ξ̇ + k ξ = φ(s).

    The input is s = e u − Σ (k_ij ξ_j + c_ij ξ̇_j) with the sum over the neurons after it in its layer: a layer is
    solved from its last neuron to its first, all layers side by side, each time parallel in time, in as many runs as
    the largest layer has neurons. With φ(s) = s + ψ(s) the linear part is exact between samples, and ψ, zero at first,
    is held as the network holds its inputs. The contribution of u̇ to a neuron does not pass through φ, since a held
    input has no derivative at its samples.

    Parameters
    ----------
    net : DynamicNetwork
        Network; neurons count layer after layer, as in `net.layers`.
    map : nn.Module
        Activation φ: a map of one channel for all neurons, or a `Polynomial` or `Spline` with a channel for each.
    dt : float
        Time between samples.
    hold : {"linear", "zero"}, optional
        Straight lines or steps between samples; by default the hold of the network, or "linear" if it has none.
    trainable : bool, str or iterable of str
        Parts of the network that are trained, as in `net.to_torch`.

    Raises
    ------
    InvalidNetworkError
        `net` is not a network, or the channels of the map do not match its neurons.
    InvalidSignalError
        The time step or hold is not valid.

    Examples
    --------
    >>> import ltinet, torch
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[0.0, 1.0], [-1.0, -0.1]], [[0.0], [1.0]], [[1.0, 0.0]]))
    >>> nn.Triangular(net, nn.Polynomial(1, 3), dt=0.1)(torch.ones(20, 1)).shape
    torch.Size([20, 1])
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
        require_continuous_time(net, "net.to_torch(dt)")
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
        self._set_parts(network, map, groups)

    @classmethod
    def of_parts(cls, network: LinearNetwork[Any], map: nn.Module, groups: list[NeuronGroup]) -> "Triangular":
        """Build a model from its parts, as files store them.

        Parameters
        ----------
        network : LinearNetwork
            Linear part.
        map : nn.Module
            Activation.
        groups : list of NeuronGroup
            Layers by size.

        Returns
        -------
        Triangular
            The model.

        Raises
        ------
        InvalidNetworkError
            The channels of the map do not match the neurons.
        """
        model = cls.__new__(cls)
        nn.Module.__init__(model)
        model._set_parts(network, map, groups)
        return model

    def _set_parts(self, network: LinearNetwork[Any], map: nn.Module, groups: list[NeuronGroup]) -> None:
        self.network, self.map, self.n_groups = network, map, len(groups)
        self.n_neurons = sum(group.neurons.numel() for group in groups)
        sizes = (getattr(map, "n_inputs", None), getattr(map, "n_outputs", None))
        if sizes != (1, 1) and not (isinstance(map, Polynomial | Spline) and sizes[0] == self.n_neurons):
            raise InvalidNetworkError(
                f"the map is a {type(map).__name__} from {sizes[0]} to {sizes[1]} channels; give one from 1 to 1 for "
                f"all neurons, or a Polynomial or Spline with {self.n_neurons}, one for each: the input of a neuron "
                "must not depend on the neurons before it"
            )
        for number, group in enumerate(groups):
            for name, values in zip(GROUP_BUFFERS, group, strict=True):
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
        """Return a model with another time step that shares the parameters.

        Parameters
        ----------
        dt : float
            Time between samples.

        Returns
        -------
        Triangular
            The model.
        """
        other = copy.copy(self)
        other._modules = {**self._modules, "network": self.network.at(dt)}
        return other

    @outside_compiled_graphs
    def forward(
        self, u: Tensor, *, state: Tensor | None = None, x0: Tensor | None = None, return_state: bool = False
    ) -> Any:
        """Run the model on samples.

        Parameters
        ----------
        u : Tensor
            Samples `(…, T, m)`.
        state : Tensor, optional
            Final state of a previous run, to continue it.
        x0 : Tensor, optional
            State at the first sample in the user's coordinates, instead of `state`; at rest by default.
        return_state : bool
            Return the outputs and the final state.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, p)`, with `return_state` a pair of the outputs and the state.

        Raises
        ------
        InvalidSignalError
            u or a state has a wrong shape, type or device, or numbers that are not finite.
        SimulationError
            An activation overflows.
        """
        network = self.network
        u = validate_input(u, n_inputs=self.n_inputs, device=network.B.device)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(compute_dtype(u.dtype)).reshape(-1, steps, self.n_inputs)
            initial = network.initial_state(batch, state, x0)
            driven, signals = self._solve_neurons(samples, initial)
            y, end = self._run(driven, signals, initial, with_end=return_state)
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, network.n_states)) if return_state and end is not None else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the model on one sample.

        Parameters
        ----------
        u : Tensor
            Sample `(…, m)`.
        state : Tensor, optional
            State from the previous step.
        x0 : Tensor, optional
            State at the sample in the user's coordinates, instead of `state`; at rest by default.

        Returns
        -------
        y : Tensor
            Output `(…, p)`.
        state : Tensor
            State for the next step.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.network.B.device, axes="(…, {})")
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """Convert the linear part, with the identity for every φ, back to a network.

        Returns
        -------
        DynamicNetwork
            The network.
        """
        return self.network.to_network()

    def _solve_neurons(self, u: Tensor, initial: InitialState) -> tuple[TensorSystem, Tensor]:
        """Solve the neurons level by level, from the last of each layer.

        Returns the network with the ψ of all neurons as additional inputs, and the samples of all inputs.
        """
        groups = self.groups
        driven, signals = self.network.system(), u
        weights = neuron_inputs(driven, groups)
        for level, neurons in enumerate(dependency_levels(groups)):
            direct = weights.direct.index_select(0, neurons)
            if level:
                C = weights.rows.index_select(0, neurons)
                neuron_system = driven._replace(C=C, D=_pad_columns(direct, driven.B))
                s = self._run(neuron_system, signals, initial, with_end=False)[0]
            else:  # only the input enters the last neurons
                s = u @ direct.to(u.dtype).mT
            signals = torch.cat([signals, self._nonlinear_part(s, neurons)], -1)
            B = torch.cat([driven.B, weights.forces.index_select(1, neurons)], 1)
            driven = driven._replace(B=B, D=_pad_columns(driven.D, B))
        return driven, signals

    def _nonlinear_part(self, s: Tensor, neurons: Tensor) -> Tensor:
        """Return ψ(s) = φ(s) − s of some neurons."""
        is_shared = self.map.n_inputs == 1
        v = self.map(s.unsqueeze(-1)) if is_shared else self.map(s, neurons)
        if v.shape != (s.unsqueeze(-1) if is_shared else s).shape:
            raise InvalidNetworkError(
                f"the map takes {tuple(s.shape)}, one value for each neuron, to {tuple(v.shape)}; it must keep the shape"
            )
        v = v.squeeze(-1) if is_shared else v
        if not all_finite(v):
            neuron = int(neurons[int((~torch.isfinite(v)).flatten(0, -2).any(0).nonzero()[0])])
            raise SimulationError(
                f"the activation of neuron {neuron} ({type(self.map).__name__}) is not finite: it exceeds the largest "
                f"number of {v.dtype}; take smaller inputs, or a map that grows less"
            )
        return v - s

    def _run(
        self, system: TensorSystem, u: Tensor, initial: InitialState, *, with_end: bool
    ) -> tuple[Tensor, Tensor | None]:
        network, growth = self.network, self.network.growth
        step = one_step(system, network.dt, linear=network.hold == "linear")
        sizes = ProblemSizes.of(u, n_states=network.n_states, n_outputs=system.C.shape[-2], growth=growth * network.dt)
        return run_from_initial_state(step, u, initial, select_plan(sizes), growth=growth, with_end=with_end)

    @property
    def groups(self) -> list[NeuronGroup]:
        """Layers by size, as constants."""
        return [
            NeuronGroup(*(getattr(self, f"{name}_{number}") for name in GROUP_BUFFERS))
            for number in range(self.n_groups)
        ]


def _pad_columns(D: Tensor, B: Tensor) -> Tensor:
    """Append zero columns to D for the additional inputs of B: forces have no feedthrough."""
    return torch.cat([D, D.new_zeros(len(D), B.shape[1] - D.shape[1])], 1)
