"""A network as a PyTorch module: parameters, and a thin forward over the algorithms of this room."""

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

import torch
from torch import Tensor, nn

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import InvalidSignalError
from ltinet.learn.checks import checked_input, checked_states, checked_times, computing_type
from ltinet.learn.double_precision import keeping_double
from ltinet.learn.one_step import OneStep, one_step
from ltinet.learn.parameters import Tensors, n_groups, system_of
from ltinet.learn.rebuilding import rebuilt
from ltinet.learn.recordings import Recordings, can_record, key_of
from ltinet.learn.single_steps import take_step
from ltinet.learn.starting import Start, first_sample, is_fast, run_from
from ltinet.learn.system import System
from ltinet.learn.trainable_parts import PARTS, Parts, checked_parts
from ltinet.learn.uneven import run_uneven
from ltinet.learn.ways import Kernels, Plan, Sizes, kernels_for, plan_for, run_with
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.signals.sampled import Hold, checked_hold
from ltinet.signals.times import time_step
from ltinet.state_space import StateSpace

NetworkType = TypeVar("NetworkType")


@final
class LinearNetwork(nn.Module, Generic[NetworkType]):
    """A network that learns: `model(u)` takes `(…, T, m)` to `(…, T, p)`, at first exactly as `net.simulate` does.

    Parameters are float64 on any device and stay so; kernels are built in float64 and rounded once to the type of the
    input, in which the record is run (half precision in float32). `net.to_torch(dt)` makes one.

    The parts of `trainable`: "poles" (decays and frequencies), "couplings" inside coupled blocks, "B", "C", "D", and
    "held": the rates of integrators, undamped and unstable poles, which nothing keeps stable. Decays are e^p, p kept
    within 16 of where it began.
    """

    def __init__(
        self,
        tensors: Tensors,
        *,
        dt: float,
        hold: Hold = "linear",
        trainable: Parts = True,
        names: SignalNames = UNNAMED,
        signal_settings: SignalSettings = NO_SETTINGS,
        rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
    ) -> None:
        super().__init__()
        self.dt, self.hold = time_step(dt, "dt"), checked_hold(hold)
        self.names, self._rebuild = names, rebuild
        self.signal_settings = signal_settings  # not used here: what `to_network` gives back
        learnt = {name for part in checked_parts(trainable) for name in PARTS[part]}
        for name, values in tensors.parameters.items():
            self.register_parameter(name, nn.Parameter(values, requires_grad=name in learnt))
        for name, values in tensors.constants.items():
            self.register_buffer(name, values)
        self.growth = float(tensors.parameters["held_rates"].detach().max()) if len(self.held_rates) else 0.0
        self._kept: tuple[Any, OneStep] | None = None
        self.recordings = Recordings()

    @property
    def n_inputs(self) -> int:
        """Number of inputs, m."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs, p."""
        return int(self.D.shape[0])

    @property
    def n_states(self) -> int:
        """Dimension of the system."""
        return int(self.B.shape[0])

    @property
    def trainable(self) -> tuple[str, ...]:
        """The parts that are trained."""
        return tuple(part for part, names in PARTS.items() if getattr(self, names[0]).requires_grad)

    def at(self, dt: float) -> "LinearNetwork[NetworkType]":
        """The same network with another time step; both share their parameters."""
        other = copy.copy(self)
        other.dt, other._kept, other.recordings = time_step(dt, "dt"), None, Recordings()
        return other

    def forward(
        self,
        u: Tensor,
        *,
        times: Tensor | None = None,
        state: Tensor | None = None,
        x0: Tensor | None = None,
        return_state: bool = False,
        plan: Plan | None = None,
    ) -> Any:
        """Outputs `(…, T, p)` for samples `(…, T, m)` that are `dt` apart.

        Args:
            u: samples; all numbers are looked at once, NaN and infinities refused.
            times: ascending times `(T,)` or `(…, T)` of the samples where these are not `dt` apart. Such runs are
                worked through in float64; their state `(…, n + m + 1)` has the last sample and its time with it.
            state: what a run before this one gave back, `(…, n)`, to go on from there; at rest if left out.
            x0: the state at the first sample in the user's coordinates, `(…, n)`, instead of `state`.
            return_state: give back a pair, the outputs and the state that awaits the next sample.
            plan: the way through the record; the one that the cost model says is fastest if left out.

        Raises:
            InvalidSignalError: u or a state has another shape, type or device, or numbers that are not finite.
        """
        if torch.compiler.is_compiling():  # hundreds of small operations: a graph break costs less than compiling them
            run: Any = torch.compiler.disable(self._evaluated)
            return run(u, times, state, x0, return_state, plan)
        return self._evaluated(u, times, state, x0, return_state, plan)

    def _evaluated(
        self,
        u: Tensor,
        times: Tensor | None,
        state: Tensor | None,
        x0: Tensor | None,
        return_state: bool,
        plan: Plan | None,
    ) -> Any:
        u = checked_input(u, n_inputs=self.n_inputs, device=self.B.device)
        if times is not None:
            return self._at_times(u, times, state=state, x0=x0, return_state=return_state)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(computing_type(u.dtype)).reshape(-1, steps, self.n_inputs)
            chosen = plan or plan_for(self._sizes(samples))
            start = self.start(batch, state, x0)
            kernels = self._recorded(samples, start, chosen, with_end=return_state)
            if kernels is not None:
                y, end = run_with(kernels, samples, start.awaiting)
            else:
                y, end = run_from(self.one_step(), samples, start, chosen, growth=self.growth, with_end=return_state)
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, self.n_states)) if return_state and end is not None else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output `(…, p)` at a sample `(…, m)`, and the state that awaits the next one.

        With parameters that are not trained, or under `torch.no_grad()`, what a step needs is prepared once.
        """
        u = checked_input(u, n_inputs=self.n_inputs, device=self.B.device, axes="(…, {})")
        batch = tuple(u.shape[:-1])
        with torch.autocast(u.device.type, enabled=False):
            sample = u.to(computing_type(u.dtype)).reshape(-1, self.n_inputs)
            step = self.one_step()
            start = self.start(batch, state, x0)
            if start.awaiting is None:
                y, after = first_sample(step, sample, start.z)
            else:
                y, after = take_step(step, sample, start.awaiting)
        return y.reshape(*batch, self.n_outputs).to(u.dtype), after.reshape(*batch, self.n_states)

    def to_network(self) -> NetworkType:
        """The network that the parameters stand for now, with all that a network can do, in the user's states."""
        made = rebuilt(self.system(), to_user=self.to_user, from_user=self.from_user, names=self.names)
        system = StateSpace.of(made.system, settings=self.signal_settings)
        return self._rebuild(made.network, made.form, system, made.blocks)

    def system(self) -> System:
        """The continuous-time system that the parameters stand for, as tensors that derivatives flow through."""
        return system_of({**self._parameters, **self._buffers})

    def _sizes(self, samples: Tensor) -> Sizes:
        batch, steps, m = samples.shape
        growth = max(self.growth, 0.0) * self.dt * steps
        return Sizes(
            batch=batch,
            steps=steps,
            n_states=self.n_states,
            n_inputs=m,
            n_outputs=self.n_outputs,
            growth=growth,
            on_gpu=samples.is_cuda,
            number_size=samples.element_size(),
        )

    def _recorded(self, samples: Tensor, start: Start, plan: Plan, *, with_end: bool) -> Kernels | None:
        """On a GPU, kernels that are made in one call; None where they are to be made one by one."""
        named = list(self._parameters.values())
        begins_plainly = start.z is None and not is_fast(self.growth * self.dt)
        needs_state = plan.way == "convolution" and (with_end or start.awaiting is not None)
        if needs_state or not begins_plainly or not can_record(named, plan) or n_groups(self._buffers):
            return None
        names, buffers, steps, dtype = tuple(self._parameters), dict(self._buffers), samples.shape[1], samples.dtype

        def make(*given: Tensor) -> Kernels:
            system = system_of({**dict(zip(names, given, strict=True)), **buffers})
            return kernels_for(one_step(system, self.dt, linear=self.hold == "linear"), plan, steps, dtype)

        key = (*key_of(plan, steps, dtype), *(id(own) for own in buffers.values()))
        return self.recordings.kernels(key, make, tuple(named))

    def _at_times(
        self, u: Tensor, times: Tensor, *, state: Tensor | None, x0: Tensor | None, return_state: bool
    ) -> Any:
        """A run over samples at any ascending times; one that goes on begins at the last sample of the run before."""
        batch, n, m = tuple(u.shape[:-2]), self.n_states, self.n_inputs
        samples = u.to(self.B.dtype).reshape(-1, u.shape[-2], m)
        t = checked_times(times, u).to(self.B.dtype)
        if state is not None:
            before = checked_states(state, self.B, n=n + m + 1, batch=batch, name="state of a run at given times")
            z, last, time = before.split([n, m, 1], -1)
            samples = torch.cat([last.unsqueeze(1), samples], 1)
            t = torch.cat([time, t.expand(len(time), -1)], 1)
        else:
            start = self.start(batch, None, x0)
            z = samples.new_zeros(len(samples), n) if start.z is None else start.z
        with torch.autocast(u.device.type, enabled=False):
            y, z = run_uneven(self.system(), samples, t, z, linear=self.hold == "linear")
        y = y[:, y.shape[1] - u.shape[-2] :].reshape(*batch, u.shape[-2], self.n_outputs).to(u.dtype)
        if not return_state:
            return y
        return y, torch.cat([z, samples[:, -1], t[:, -1:].expand(len(z), 1)], -1).reshape(*batch, n + m + 1)

    def start(self, batch: tuple[int, ...], state: Tensor | None, x0: Tensor | None) -> Start:
        """How a run of a batch begins, from what was given, checked."""
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give the one that the run is to begin in")
        if state is not None:
            return Start(awaiting=checked_states(state, self.B, n=self.n_states, batch=batch, name="state"))
        if x0 is None:
            return Start()
        x = checked_states(x0, self.B, n=self.n_states, batch=batch, name="x0")
        return Start(z=x @ self.from_user.mT)

    def one_step(self) -> OneStep:
        """What a step needs; kept as long as no parameter changes and no derivatives are asked for."""
        named = list(self._parameters.values())
        is_plain = all(type(own) is nn.Parameter for own in named)
        if not is_plain or (torch.is_grad_enabled() and any(own.requires_grad for own in named)):
            return one_step(self.system(), self.dt, linear=self.hold == "linear")
        version = [(id(own), own._version) for own in named]
        if self._kept is None or self._kept[0] != version:
            self._kept = version, one_step(self.system(), self.dt, linear=self.hold == "linear")
        return self._kept[1]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Move to devices, but keep float64."""
        self._kept, self.recordings = None, Recordings()
        return super()._apply(keeping_double(fn), recurse)
