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
from ltinet.network_builder import DEFAULT_MAX_CONDITION, ConstructionResult, construct_network
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.signals.times import as_time_step
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices
from ltinet.torch.cuda_graphs import CudaGraphCache, graph_key
from ltinet.torch.nonuniform import run_nonuniform
from ltinet.torch.packed_system import PARAMETERS_BY_PART, TrainableParts, validate_parts
from ltinet.torch.parameters import (
    NetworkTensors,
    ParameterCache,
    build_system,
    describe_parameters,
    describe_poles,
    parameters_of,
)
from ltinet.torch.planner import (
    InitialState,
    Kernels,
    Plan,
    ProblemSizes,
    build_kernels,
    needs_kernels_only,
    run_first_sample,
    run_from_initial_state,
    run_kernels,
    select_plan,
    warn_of_single_precision,
)
from ltinet.torch.propagators import OneStep, TensorSystem, one_step
from ltinet.torch.uniform import advance_one_step
from ltinet.torch.validation import (
    SampledModule,
    compute_dtype,
    outside_compiled_graphs,
    validate_input,
    validate_states,
    validate_times,
)


def rebuild_network(
    system: TensorSystem,
    *,
    to_user: Tensor,
    from_user: Tensor,
    names: SignalNames,
    max_condition: float = DEFAULT_MAX_CONDITION,
) -> ConstructionResult:
    """Apply Algorithms 1 and 2 in the model's coordinates, which are already sparse, and map T to the user's.

    A, B and C in the user's states are products with these maps. They are for information only: the network is
    simulated in its blocks, whose digits they do not affect.
    """
    A, B, C, D = dense_matrices(system)
    with limit_blas_threads(len(A)):
        choice = BlockChoice(max_condition, None, None, count_name="n_layers")
        result = construct_network(SystemMatrices(A, B, C, D), choice, balance=None)
    T, T_inv = to_user.detach().cpu().numpy(), from_user.detach().cpu().numpy()
    matrices = SystemMatrices(T @ A @ T_inv, T @ B, C @ T_inv, D, names=names)
    transformation = DenseTransformation(T @ result.form.T, result.form.T_inv @ T_inv)
    form = replace(result.form, transformation=transformation, original=matrices.A, scaling=np.ones(len(A)))
    return ConstructionResult(result.network, form, matrices, result.blocks)


def dense_matrices(system: TensorSystem) -> tuple[Array, Array, Array, Array]:
    """Return A, B, C and D in the model's coordinates as dense arrays."""
    with torch.no_grad():
        layout = system.layout
        n, pairs = layout.n_states, layout.n_pairs
        A = np.zeros((n, n))
        re, im = np.arange(pairs), pairs + np.arange(pairs)
        A[re, re] = A[im, im] = to_array(system.pair_rates)
        A[im, re] = to_array(system.frequencies)
        A[re, im] = -A[im, re]
        reals = 2 * pairs + np.arange(layout.n_reals)
        A[reals, reals] = to_array(system.real_rates)
        start = 2 * pairs + layout.n_reals
        for group in system.blocks:
            for block in to_array(group):
                stop = start + len(block)
                A[start:stop, start:stop] = block
                start = stop
        return A, to_array(system.B), to_array(system.C), to_array(system.D)


def to_array(tensor: Tensor) -> Array:
    """Return the values of a tensor in float64."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


NetworkType = TypeVar("NetworkType")


@final
class LinearNetwork(SampledModule, Generic[NetworkType]):
    """Trainable network: `model(u)` maps `(…, T, m)` to `(…, T, p)`, before training exactly as `net.simulate` does.

    `net.to_torch(dt)` constructs one. Parameters are float64 on any device; kernels are built in float64 and rounded
    once to the type of the input, in which the record is computed (half precision in float32).

    Trainable parts are "poles" (decay rates and frequencies), "couplings" inside coupled blocks, "B", "C", "D" and
    "held", the rates of integrators, undamped and unstable poles, which training may make unstable. Decay rates are
    e^p with p limited to ±16 around its initial value.

    `state_dict` also has dt and hold, and `load_state_dict` refuses others.

    Parameters
    ----------
    tensors : NetworkTensors
        Initial parameters and constants.
    dt : float
        Time between samples.
    hold : {"linear", "zero"}
        Straight lines or steps between samples.
    trainable : bool, str or iterable of str
        Parts that are trained; True for all but "held".
    names : SignalNames
        Names of inputs, outputs and states.
    signal_settings : SignalSettings
        Delays and operating point for `to_network`; the model itself does not apply them.
    rebuild : callable
        Constructor of the result of `to_network`.

    Raises
    ------
    InvalidSignalError
        The time step or hold is not valid.
    InvalidNetworkError
        `trainable` names an unknown part.

    Examples
    --------
    >>> import ltinet, torch
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> model = net.to_torch(0.1)
    >>> model(torch.ones(20, 1)).shape
    torch.Size([20, 1])
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
        self.signal_settings = signal_settings
        trained = {name for part in validate_parts(trainable) for name in PARAMETERS_BY_PART[part]}
        for name, values in tensors.parameters.items():
            self.register_parameter(name, nn.Parameter(values, requires_grad=name in trained))
        for name, values in tensors.constants.items():
            self.register_buffer(name, values)
        self.growth = float(tensors.parameters["held_rates"].detach().max()) if len(self.held_rates) else 0.0
        self._step_cache = ParameterCache[OneStep]()
        self.cuda_graphs = CudaGraphCache()
        self._checks_precision = True

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
        """Names of the trained parts."""
        return tuple(part for part, names in PARAMETERS_BY_PART.items() if getattr(self, names[0]).requires_grad)

    def at(self, dt: float) -> "LinearNetwork[NetworkType]":
        """Return a model with another time step that shares the parameters.

        Parameters
        ----------
        dt : float
            Time between samples.

        Returns
        -------
        LinearNetwork
            The model.
        """
        other = copy.copy(self)
        other.dt, other._step_cache, other.cuda_graphs = as_time_step(dt, "dt"), ParameterCache(), CudaGraphCache()
        return other

    @outside_compiled_graphs
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
        """Run the network on samples.

        Parameters
        ----------
        u : Tensor
            Samples `(…, T, m)`.
        times : Tensor, optional
            Ascending times `(T,)` or `(…, T)` of samples that are not `dt` apart. Such runs are computed in float64;
            their state `(…, n + m + 1)` includes the last sample and its time.
        state : Tensor, optional
            Final state `(…, n)` of a previous run, to continue it.
        x0 : Tensor, optional
            State `(…, n)` at the first sample in the user's coordinates, instead of `state`; at rest by default.
        return_state : bool
            Return the outputs and the final state.
        plan : Plan, optional
            Algorithm; by default the fastest according to the cost model.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, p)`, with `return_state` a pair of the outputs and the state.

        Raises
        ------
        InvalidSignalError
            u or a state has a wrong shape, type or device, or numbers that are not finite.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.B.device)
        if times is not None:
            return self._run_at_times(u, times, state=state, x0=x0, return_state=return_state)
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(compute_dtype(u.dtype)).reshape(-1, steps, self.n_inputs)
            growth = self.growth * self.dt
            sizes = ProblemSizes.of(samples, n_states=self.n_states, n_outputs=self.n_outputs, growth=growth)
            plan = plan or select_plan(sizes)
            initial = self.initial_state(batch, state, x0)
            if plan.algorithm == "scan" and samples.dtype == torch.float32 and self._checks_precision:
                self._checks_precision = False
                warn_of_single_precision(self.one_step(), samples)
            kernels = self._captured_kernels(samples, initial, plan, with_end=return_state)
            if kernels is not None:
                y, end = run_kernels(kernels, samples, initial.w)
            else:
                y, end = run_from_initial_state(
                    self.one_step(), samples, initial, plan, growth=self.growth, with_end=return_state
                )
        y = y.reshape(*batch, steps, self.n_outputs).to(u.dtype)
        return (y, end.reshape(*batch, self.n_states)) if return_state and end is not None else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the network on one sample.

        The matrices of a step are cached for parameters that are not trained, and under `torch.no_grad()`.

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
        u = validate_input(u, n_inputs=self.n_inputs, device=self.B.device, axes="(…, {})")
        batch = tuple(u.shape[:-1])
        with torch.autocast(u.device.type, enabled=False):
            sample = u.to(compute_dtype(u.dtype)).reshape(-1, self.n_inputs)
            step = self.one_step()
            initial = self.initial_state(batch, state, x0)
            if initial.w is None:
                y, after = run_first_sample(step, sample, initial.z)
            else:
                y, after = advance_one_step(step, sample, initial.w)
        return y.reshape(*batch, self.n_outputs).to(u.dtype), after.reshape(*batch, self.n_states)

    def to_network(self) -> NetworkType:
        """Convert the current parameters back to a network in the user's states.

        Returns
        -------
        DynamicNetwork
            The network.
        """
        result = rebuild_network(self.system(), to_user=self.to_user, from_user=self.from_user, names=self.names)
        system = StateSpace.of(result.system, settings=self.signal_settings)
        return self._rebuild(result.network, result.form, system, result.blocks)

    def extra_repr(self) -> str:
        """Return sizes, poles and the number of parameters for `print`.

        Returns
        -------
        str
            Text within the parentheses of the printed module.
        """
        sizes = f"{self.n_inputs} → {self.n_outputs} channels, {describe_poles(self.system())}"
        return f"{sizes},\n{describe_parameters(self)}, dt={self.dt:g}, hold={self.hold!r}"

    def system(self) -> TensorSystem:
        """Return the continuous-time system of the current parameters.

        Returns
        -------
        TensorSystem
            Matrices as tensors, differentiable in the parameters.
        """
        return build_system({**parameters_of(self), **self._buffers})

    def _captured_kernels(
        self, samples: Tensor, initial: InitialState, plan: Plan, *, with_end: bool
    ) -> Kernels | None:
        """Return kernels computed by a CUDA graph, or None where they are computed without one."""
        if not needs_kernels_only(plan, initial, growth=self.growth * self.dt, with_end=with_end):
            return None
        steps, dtype = samples.shape[1], samples.dtype

        def build(tensors: dict[str, Tensor]) -> Kernels:
            step = one_step(build_system(tensors), self.dt, linear=self.hold == "linear")
            return build_kernels(step, plan, steps, dtype)

        return self.cuda_graphs.kernels(graph_key(plan, steps, dtype), build, parameters_of(self), dict(self._buffers))

    def _run_at_times(
        self, u: Tensor, times: Tensor, *, state: Tensor | None, x0: Tensor | None, return_state: bool
    ) -> Any:
        """Run samples at ascending times; a continued run begins at the last sample of the previous one."""
        batch, n, m = tuple(u.shape[:-2]), self.n_states, self.n_inputs
        samples = u.to(self.B.dtype).reshape(-1, u.shape[-2], m)
        t = validate_times(times, u).to(self.B.dtype)
        if state is not None:
            previous = validate_states(state, self.B, n=n + m + 1, batch=batch, name="state of a run at given times")
            z, last_sample, last_time = previous.split([n, m, 1], -1)
            samples = torch.cat([last_sample.unsqueeze(1), samples], 1)
            t = torch.cat([last_time, t.expand(len(last_time), -1)], 1)
        else:
            initial = self.initial_state(batch, None, x0)
            z = samples.new_zeros(len(samples), n) if initial.z is None else initial.z
        with torch.autocast(u.device.type, enabled=False):
            y, z = run_nonuniform(self.system(), samples, t, z, linear=self.hold == "linear")
        y = y[:, y.shape[1] - u.shape[-2] :].reshape(*batch, u.shape[-2], self.n_outputs).to(u.dtype)
        if not return_state:
            return y
        return y, torch.cat([z, samples[:, -1], t[:, -1:].expand(len(z), 1)], -1).reshape(*batch, n + m + 1)

    def initial_state(self, batch: tuple[int, ...], state: Tensor | None, x0: Tensor | None) -> InitialState:
        """Validate the initial state of a run.

        Parameters
        ----------
        batch : tuple of int
            Shape of the batch.
        state : Tensor, optional
            State w from a previous run.
        x0 : Tensor, optional
            State at the first sample in the user's coordinates.

        Returns
        -------
        InitialState
            State in the coordinates of the model, one row for each member of the batch.

        Raises
        ------
        InvalidSignalError
            Both are given, or one does not match the model.
        """
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give one of them")
        if state is not None:
            return InitialState(w=validate_states(state, self.B, n=self.n_states, batch=batch, name="state"))
        if x0 is None:
            return InitialState()
        x = validate_states(x0, self.B, n=self.n_states, batch=batch, name="x0")
        return InitialState(z=x @ self.from_user.mT)

    def one_step(self) -> OneStep:
        """Return the matrices of a step, cached while parameters do not change and no derivatives are required.

        Returns
        -------
        OneStep
            Matrices of the exact step.
        """
        return self._step_cache.get(
            list(parameters_of(self).values()), lambda: one_step(self.system(), self.dt, linear=self.hold == "linear")
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Discard the caches when the tensors are moved."""
        self._step_cache, self.cuda_graphs = ParameterCache(), CudaGraphCache()
        return super()._apply(fn, recurse)
