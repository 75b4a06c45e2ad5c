"""Networks with activations on what enters their neurons, solved in the triangular order of the paper's Algorithm 3."""

import copy
from typing import Any, final

import torch
from torch import Tensor, nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, SimulationError
from ltinet.learn.checks import checked_input, computing_type, is_finite
from ltinet.learn.costs import Sizes
from ltinet.learn.door import to_torch
from ltinet.learn.double_precision import keeping_double
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.neurons import Entering, NeuronGroup, entering, levels, neuron_groups
from ltinet.learn.one_step import one_step
from ltinet.learn.packed import packed_system
from ltinet.learn.starting import Start, run_from
from ltinet.learn.system import System
from ltinet.learn.trainable_parts import Parts
from ltinet.learn.ways import plan_for
from ltinet.nn.maps import Polynomial, Spline
from ltinet.signals.sampled import Hold
from ltinet.solve.simulation import hold_of

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
        self, net: DynamicNetwork, map: nn.Module, *, dt: float, hold: Hold | None = None, trainable: Parts = True
    ) -> None:
        super().__init__()
        if not isinstance(net, DynamicNetwork):
            raise InvalidNetworkError(
                f"net is a {type(net).__name__}; give a network: ltinet.construct(system), or model.to_network()"
            )
        net.signal_settings.refuse_unsupported("nn.Triangular")
        prepared = net._prepared
        groups = neuron_groups(packed_system(prepared), prepared.blocks)
        settings = net.signal_settings
        network = to_torch(
            prepared,
            dt,
            hold=hold_of(hold, settings),
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
        u = checked_input(u, n_inputs=self.n_inputs, device=self.network.B.device, axes="(…, {})")
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """The linear part: the network that is left where every φ is the identity."""
        return self.network.to_network()

    def _evaluated(self, u: Tensor, state: Tensor | None, x0: Tensor | None, return_state: bool) -> Any:
        network = self.network
        u = checked_input(u, n_inputs=self.n_inputs, device=network.B.device)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(computing_type(u.dtype)).reshape(-1, steps, self.n_inputs)
            start = network.start(batch, state, x0)
            driven, signals = self._driven(samples, start)
            y, end = self._run(driven, signals, start, with_end=return_state)
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, network.n_states)) if return_state and end is not None else y

    def _driven(self, u: Tensor, start: Start) -> tuple[System, Tensor]:
        """The network with the ψ of all neurons as further inputs, and these: level by level, from the last neurons."""
        groups = self.groups
        plain = self.network.system()
        found = entering(plain, groups)
        driven, signals = plain, u
        for number, neurons in enumerate(levels(groups)):
            direct = found.direct.index_select(0, neurons)
            if number:
                seen = driven._replace(C=found.rows.index_select(0, neurons), D=_beside(direct, driven.B))
                s = self._run(seen, signals, start, with_end=False)[0]
            else:  # nothing but the input enters the last neurons
                s = u @ direct.to(u.dtype).mT
            signals = torch.cat([signals, self._extra(s, neurons)], -1)
            driven = _with_forces(driven, found, neurons)
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
        if not is_finite(v):
            number = int(neurons[int((~torch.isfinite(v)).flatten(0, -2).any(0).nonzero()[0])])
            raise SimulationError(
                f"the activation of neuron {number} ({type(self.map).__name__}) is not finite: it exceeds the largest "
                f"number of {v.dtype}; take smaller inputs, or a map that grows less"
            )
        return v - s

    def _run(self, system: System, u: Tensor, start: Start, *, with_end: bool) -> tuple[Tensor, Tensor | None]:
        network, growth = self.network, self.network.growth
        step = one_step(system, network.dt, linear=network.hold == "linear")
        sizes = Sizes(
            batch=u.shape[0],
            steps=u.shape[1],
            n_states=network.n_states,
            n_inputs=u.shape[2],
            n_outputs=system.C.shape[-2],
            growth=max(growth, 0.0) * network.dt * u.shape[1],
            on_gpu=u.is_cuda,
            number_size=u.element_size(),
        )
        return run_from(step, u, start, plan_for(sizes), growth=growth, with_end=with_end)

    @property
    def groups(self) -> list[NeuronGroup]:
        """The layers by size, as constants."""
        names = NeuronGroup._fields
        return [NeuronGroup(*(getattr(self, f"{name}_{number}") for name in names)) for number in range(self.n_groups)]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move to devices, but keep float64."""
        return super()._apply(keeping_double(fn), recurse)


def _beside(direct: Tensor, B: Tensor) -> Tensor:
    """The feedthrough of s from u, and none from what else drives: the weights of the forces in s are zero."""
    return torch.cat([direct, direct.new_zeros(len(direct), B.shape[1] - direct.shape[1])], 1)


def _with_forces(driven: System, found: Entering, neurons: Tensor) -> System:
    """A system with forces on some neurons as further inputs."""
    B = torch.cat([driven.B, found.forces.index_select(1, neurons)], 1)
    return driven._replace(B=B, D=_beside(driven.D, B))
