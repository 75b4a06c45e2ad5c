"""PyTorch module of a linear network.

`LinearNetwork` holds parameters and a thin `forward` over the algorithms of this package; at first its outputs equal
those of `net.simulate`. Its current linear part can be converted back to a network in the user's states: Algorithms 1
and 2 are applied in the model's own, already sparse coordinates, and T then leads on to those of the user.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import Array
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.partition import BlockChoice
from ltinet.blockdiag.transformation import DenseTransformation
from ltinet.errors import InvalidSignalError
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.network_builder import ConstructionResult, construct_network
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.signals.times import as_time_step
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices
from ltinet.torch.cuda_graphs import CudaGraphCache, can_capture, graph_key
from ltinet.torch.nonuniform import run_nonuniform
from ltinet.torch.packed_system import PARAMETERS_BY_PART, TrainableParts, validate_parts
from ltinet.torch.parameters import NetworkTensors, build_system, n_block_sizes
from ltinet.torch.planner import (
    InitialState,
    Kernels,
    Plan,
    ProblemSizes,
    build_kernels,
    grows_fast,
    run_first_sample,
    run_from_initial_state,
    run_kernels,
    select_plan,
)
from ltinet.torch.propagators import OneStep, TensorSystem, one_step
from ltinet.torch.uniform import advance_one_step
from ltinet.torch.validation import compute_dtype, preserve_dtype, validate_input, validate_states, validate_times

# MERGED ltinet.torch.linear_network
# The way back: the network of a model's linear part, in the states of the user that it began with.

_DEFAULT_MAX_CONDITION = 1e4  # as `ltinet.construct` has it


def rebuild_network(
    system: TensorSystem,
    *,
    to_user: Tensor,
    from_user: Tensor,
    names: SignalNames,
    max_condition: float = _DEFAULT_MAX_CONDITION,
) -> ConstructionResult:
    """Algorithms 1 and 2 in the model's own coordinates, which are sparse already; T then leads on to the user's.

    A, B and C of the user's states are products with the maps between the two, and stand beside the network only to be
    looked at: it runs in its blocks, whose digits they do not touch.
    """
    A, B, C, D = dense_matrices(system)
    own = SystemMatrices(A, B, C, D)
    with limit_blas_threads(len(A)):
        found = construct_network(own, BlockChoice(max_condition, None, None, count_name="n_layers"), balance=None)
    T, T_inv = to_user.detach().cpu().numpy(), from_user.detach().cpu().numpy()
    given = SystemMatrices(T @ A @ T_inv, T @ B, C @ T_inv, D, names=names)
    transformation = DenseTransformation(T @ found.form.T, found.form.T_inv @ T_inv)
    form = replace(found.form, transformation=transformation, original=given.A, scaling=np.ones(len(A)))
    return ConstructionResult(found.network, form, given, found.blocks)


def dense_matrices(system: TensorSystem) -> tuple[Array, Array, Array, Array]:
    """A, B, C and D in the model's own coordinates, as arrays."""
    with torch.no_grad():
        layout = system.layout
        n, pairs = layout.n_states, layout.n_pairs
        A = np.zeros((n, n))
        re, im = np.arange(pairs), pairs + np.arange(pairs)
        A[re, re] = A[im, im] = _to_array(system.pair_rates)
        A[im, re] = _to_array(system.frequencies)
        A[re, im] = -A[im, re]
        reals = 2 * pairs + np.arange(layout.n_reals)
        A[reals, reals] = _to_array(system.real_rates)
        start = 2 * pairs + layout.n_reals
        for group in system.blocks:
            for block in _to_array(group):
                stop = start + len(block)
                A[start:stop, start:stop] = block
                start = stop
        return A, _to_array(system.B), _to_array(system.C), _to_array(system.D)


def _to_array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


# MERGED ltinet.torch.linear_network
# A network as a PyTorch module: parameters, and a thin forward over the algorithms of this room.

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
        tensors: NetworkTensors,
        *,
        dt: float,
        hold: Hold = "linear",
        trainable: TrainableParts = True,
        names: SignalNames = UNNAMED,
        signal_settings: SignalSettings = NO_SETTINGS,
        rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
    ) -> None:
        super().__init__()
        self.dt, self.hold = as_time_step(dt, "dt"), validate_hold(hold)
        self.names, self._rebuild = names, rebuild
        self.signal_settings = signal_settings  # not used here: what `to_network` gives back
        learnt = {name for part in validate_parts(trainable) for name in PARAMETERS_BY_PART[part]}
        for name, values in tensors.parameters.items():
            self.register_parameter(name, nn.Parameter(values, requires_grad=name in learnt))
        for name, values in tensors.constants.items():
            self.register_buffer(name, values)
        self.growth = float(tensors.parameters["held_rates"].detach().max()) if len(self.held_rates) else 0.0
        self._kept: tuple[Any, OneStep] | None = None
        self.recordings = CudaGraphCache()

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
        return tuple(part for part, names in PARAMETERS_BY_PART.items() if getattr(self, names[0]).requires_grad)

    def at(self, dt: float) -> "LinearNetwork[NetworkType]":
        """The same network with another time step; both share their parameters."""
        other = copy.copy(self)
        other.dt, other._kept, other.recordings = as_time_step(dt, "dt"), None, CudaGraphCache()
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
        u = validate_input(u, n_inputs=self.n_inputs, device=self.B.device)
        if times is not None:
            return self._at_times(u, times, state=state, x0=x0, return_state=return_state)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(compute_dtype(u.dtype)).reshape(-1, steps, self.n_inputs)
            chosen = plan or select_plan(self._sizes(samples))
            start = self.start(batch, state, x0)
            kernels = self._recorded(samples, start, chosen, with_end=return_state)
            if kernels is not None:
                y, end = run_kernels(kernels, samples, start.awaiting)
            else:
                y, end = run_from_initial_state(
                    self.one_step(), samples, start, chosen, growth=self.growth, with_end=return_state
                )
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, self.n_states)) if return_state and end is not None else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output `(…, p)` at a sample `(…, m)`, and the state that awaits the next one.

        With parameters that are not trained, or under `torch.no_grad()`, what a step needs is prepared once.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.B.device, axes="(…, {})")
        batch = tuple(u.shape[:-1])
        with torch.autocast(u.device.type, enabled=False):
            sample = u.to(compute_dtype(u.dtype)).reshape(-1, self.n_inputs)
            step = self.one_step()
            start = self.start(batch, state, x0)
            if start.awaiting is None:
                y, after = run_first_sample(step, sample, start.z)
            else:
                y, after = advance_one_step(step, sample, start.awaiting)
        return y.reshape(*batch, self.n_outputs).to(u.dtype), after.reshape(*batch, self.n_states)

    def to_network(self) -> NetworkType:
        """The network that the parameters stand for now, with all that a network can do, in the user's states."""
        made = rebuild_network(self.system(), to_user=self.to_user, from_user=self.from_user, names=self.names)
        system = StateSpace.of(made.system, settings=self.signal_settings)
        return self._rebuild(made.network, made.form, system, made.blocks)

    def system(self) -> TensorSystem:
        """The continuous-time system that the parameters stand for, as tensors that derivatives flow through."""
        return build_system({**self._parameters, **self._buffers})

    def _sizes(self, samples: Tensor) -> ProblemSizes:
        batch, steps, m = samples.shape
        growth = max(self.growth, 0.0) * self.dt * steps
        return ProblemSizes(
            batch=batch,
            steps=steps,
            n_states=self.n_states,
            n_inputs=m,
            n_outputs=self.n_outputs,
            growth=growth,
            on_gpu=samples.is_cuda,
            number_size=samples.element_size(),
        )

    def _recorded(self, samples: Tensor, start: InitialState, plan: Plan, *, with_end: bool) -> Kernels | None:
        """On a GPU, kernels that are made in one call; None where they are to be made one by one."""
        named = list(self._parameters.values())
        begins_plainly = start.z is None and not grows_fast(self.growth * self.dt)
        needs_state = plan.way == "convolution" and (with_end or start.awaiting is not None)
        if needs_state or not begins_plainly or not can_capture(named, plan) or n_block_sizes(self._buffers):
            return None
        names, buffers, steps, dtype = tuple(self._parameters), dict(self._buffers), samples.shape[1], samples.dtype

        def make(*given: Tensor) -> Kernels:
            system = build_system({**dict(zip(names, given, strict=True)), **buffers})
            return build_kernels(one_step(system, self.dt, linear=self.hold == "linear"), plan, steps, dtype)

        key = (*graph_key(plan, steps, dtype), *(id(own) for own in buffers.values()))
        return self.recordings.kernels(key, make, tuple(named))

    def _at_times(
        self, u: Tensor, times: Tensor, *, state: Tensor | None, x0: Tensor | None, return_state: bool
    ) -> Any:
        """A run over samples at any ascending times; one that goes on begins at the last sample of the run before."""
        batch, n, m = tuple(u.shape[:-2]), self.n_states, self.n_inputs
        samples = u.to(self.B.dtype).reshape(-1, u.shape[-2], m)
        t = validate_times(times, u).to(self.B.dtype)
        if state is not None:
            before = validate_states(state, self.B, n=n + m + 1, batch=batch, name="state of a run at given times")
            z, last, time = before.split([n, m, 1], -1)
            samples = torch.cat([last.unsqueeze(1), samples], 1)
            t = torch.cat([time, t.expand(len(time), -1)], 1)
        else:
            start = self.start(batch, None, x0)
            z = samples.new_zeros(len(samples), n) if start.z is None else start.z
        with torch.autocast(u.device.type, enabled=False):
            y, z = run_nonuniform(self.system(), samples, t, z, linear=self.hold == "linear")
        y = y[:, y.shape[1] - u.shape[-2] :].reshape(*batch, u.shape[-2], self.n_outputs).to(u.dtype)
        if not return_state:
            return y
        return y, torch.cat([z, samples[:, -1], t[:, -1:].expand(len(z), 1)], -1).reshape(*batch, n + m + 1)

    def start(self, batch: tuple[int, ...], state: Tensor | None, x0: Tensor | None) -> InitialState:
        """How a run of a batch begins, from what was given, checked."""
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give the one that the run is to begin in")
        if state is not None:
            return InitialState(awaiting=validate_states(state, self.B, n=self.n_states, batch=batch, name="state"))
        if x0 is None:
            return InitialState()
        x = validate_states(x0, self.B, n=self.n_states, batch=batch, name="x0")
        return InitialState(z=x @ self.from_user.mT)

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
        self._kept, self.recordings = None, CudaGraphCache()
        return super()._apply(preserve_dtype(fn), recurse)
