"""State-space layer: many small systems side by side, or one with many inputs and outputs, from a published start.

x' = A x + B u, y = C x + D u with one time step for each channel, trained in continuous time and exact between samples
(Gu et al. 2022, S4D; Smith et al. 2023, S5; Orvieto et al. 2023, LRU). `ltinet.systems.hippo` has the starts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError
from ltinet.files import named_system
from ltinet.nn.maps import require_positive_integers
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.signals.times import as_time_step
from ltinet.state_space import StateSpace
from ltinet.systems.hippo import s4d_inv_poles, s4d_legs_poles, s4d_lin_poles
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import require_continuous_time
from ltinet.torch.channels import (
    ChannelKernels,
    advance_channels,
    build_channel_kernels,
    channel_of,
    channel_step,
    run_channels,
    scale_time,
    split_channels,
)
from ltinet.torch.cuda_graphs import CudaGraphCache, graph_key
from ltinet.torch.linear_network import rebuild_network
from ltinet.torch.packed_system import PARAMETERS_BY_PART, PackedSystem, pack_system
from ltinet.torch.parameters import (
    ParameterCache,
    build_system,
    describe_parameters,
    describe_poles,
    initial_tensors,
    parameters_of,
    poles_of,
    relative_exp,
)
from ltinet.torch.planner import (
    MAX_CONVOLUTION_GROWTH,
    InitialState,
    Kernels,
    Plan,
    ProblemSizes,
    build_kernels,
    needs_kernels_only,
    run_from_initial_state,
    run_kernels,
    select_block_width,
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
)

InitName = Literal["s4d_lin", "s4d_inv", "s4d_legs", "hippo_legs", "hippo_legt", "hippo_fout"]
_POLES: dict[str, Callable[[int], NDArray[np.complex128]]] = {
    "s4d_lin": s4d_lin_poles,
    "s4d_inv": s4d_inv_poles,
    "s4d_legs": s4d_legs_poles,
}
_HIPPO_SYSTEMS = ("hippo_legs", "hippo_legt", "hippo_fout")
AnyKernels = TypeVar("AnyKernels", Kernels, ChannelKernels)
TimeStep: TypeAlias = float | tuple[float, float]
DEFAULT_STATES = 64
DEFAULT_DT = (1e-3, 1e-1)


@final
class StateSpaceLayer(SampledModule):
    """Layer of state-space systems x' = A x + B u, y = C x + D u for sequences `(…, T, d_model)`.

    By default each channel has a system of its own with one input and one output, as in S4D; with `mixing` one system
    takes all channels to all channels, as in S5 and LRU. The layer is linear: dropout, gating, normalization and
    activations are modules of PyTorch beside it. Parameters are float64; sequences are run in their own type.

    Starts: "s4d_lin", poles −1/2 ± iπk; "s4d_inv", −1/2 ± i (N/π) (N/(2k+1) − 1); "s4d_legs", the eigenvalues of the
    normal part of HiPPO-LegS; all three diagonal with B = 1. "hippo_legs", "hippo_legt" and "hippo_fout" are the HiPPO
    matrices of `ltinet.named_system`, block-diagonalized; the prefix may be left out. C and D are drawn at random, with
    `mixing` B too, by `torch.manual_seed`. A system or network is taken as it is, in each channel. Stable poles stay
    stable in training; those of a given system that do not decay are in `held_rates`, which is not trained.

    With a zero hold the response to a unit sample is D, C Γ, C P Γ, C P² Γ, …, as of a sampled system in continuous time:
    an input acts on the state at the next sample. In S4D, S5 and LRU the state is updated first: D + C Γ, C P Γ, C P² Γ, ….
    Their outputs are those of a layer with C P for C and D + C Γ for D.

    `state_dict` holds all numbers and the hold: `torch.save(layer.state_dict(), path)`, and `load_state_dict` into a layer
    of the same sizes, start and hold. `to_network` converts a channel, or a layer with `mixing`, to a `DynamicNetwork`.

    Parameters of A are `log_decay` and `frequency`, in starts with coupled blocks also `log_above`, `log_below` and
    `couplings`; `log_dt` has the time steps. The states of all channels are side by side: B is `(d_model n_states, 1)`, C
    is `(1, d_model n_states)` and D is `(d_model, 1)`; with `mixing` they are `(n_states, d_model)`, `(d_model, n_states)`
    and `(d_model, d_model)`. The real parts of all pairs come first, then their imaginary parts, reals, and coupled blocks
    sorted by size, each kind channel by channel. For S4D starts `b_re, b_im = layer.B.view(2, d_model, n_states // 2)` and
    `c_re, c_im = layer.C.view(2, d_model, n_states // 2)`: a complex state is z' = λ z + (b_re + i b_im) u, and the output
    is the sum of Re((c_re − i c_im) z).

    Parameters
    ----------
    d_model : int
        Number of channels.
    n_states : int, optional
        Number of states of each channel, with `mixing` of the system: 64 by default, even for S4D starts.
    dt : float or (float, float), optional
        Time between samples. A pair is the range of initial time steps, drawn log-uniformly and trained: one for each
        channel; with `mixing` one for each pole of S4D starts, and a single one for others. (0.001, 0.1) by default. A
        number is not trained. Required with a system.
    init : str, StateSpace or DynamicNetwork
        Start.
    mixing : bool
        Use one system from all channels to all channels.
    hold : {"zero", "linear"}
        Steps or straight lines between samples.

    Raises
    ------
    InvalidNetworkError
        A size, the start or the time step is not valid.
    InvalidSystemError
        A given system is not valid, or `n_states` is even for "hippo_fout".

    Examples
    --------
    >>> import torch
    >>> from ltinet import nn
    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 8), nn.StateSpaceLayer(8, 16), torch.nn.GELU())
    >>> model(torch.ones(2, 100, 1)).shape
    torch.Size([2, 100, 8])
    """

    def __init__(
        self,
        d_model: int,
        n_states: int | None = None,
        *,
        dt: TimeStep | None = None,
        init: InitName | Any = "s4d_lin",
        mixing: bool = False,
        hold: Hold = "zero",
    ) -> None:
        super().__init__()
        require_positive_integers(d_model=d_model, n_states=n_states)
        start = _named_start(init, n_states) if isinstance(init, str) else _start_of_system(init, n_states)
        if dt is None and start.variance is None:
            raise InvalidNetworkError("dt is missing; a given system needs the time between samples: dt=0.1")
        low, high = _validate_time_steps(DEFAULT_DT if dt is None else dt)
        self.d_model = self.n_inputs = self.n_outputs = d_model
        self.n_states, self.mixing, self.hold = start.packed.B.shape[0], mixing, validate_hold(hold)
        self.init = init if isinstance(init, str) else "system"
        packed = _mixing_system(start, d_model) if mixing else _channel_systems(start, d_model)
        tensors = initial_tensors(packed)
        for name, values in tensors.parameters.items():
            self.register_parameter(name, nn.Parameter(values, requires_grad=name not in PARAMETERS_BY_PART["held"]))
        for name, values in tensors.constants.items():
            if name not in ("from_user", "to_user"):
                self.register_buffer(name, values)
        # Blocks of a system that is not normal cancel each other, and would not with different time steps.
        if not mixing:
            index = _channel_of_each_state(packed, d_model)
        elif self.init in _POLES:
            index = _pole_of_each_state(packed)
        else:
            index = np.zeros(self.n_states, np.int64)
        self.register_buffer("time_step_of_state", torch.from_numpy(index))
        draws = torch.rand(int(index.max()) + 1, dtype=torch.float64)
        time_steps = low * (high / low) ** draws
        self.log_dt = nn.Parameter(torch.log(time_steps), requires_grad=high > low)
        self.register_buffer("dt_at_start", time_steps)
        self.register_buffer("log_dt_at_start", torch.log(time_steps))
        self.growth = float((tensors.parameters["held_rates"].max() if len(self.held_rates) else 0.0) * high)
        self._step_cache = ParameterCache[OneStep]()
        self.cuda_graphs = CudaGraphCache()
        self._checks_precision = True

    @property
    def dt(self) -> Tensor:
        """Time steps: one for each channel; with `mixing` one for each pole of S4D starts, otherwise a single one."""
        return _time_steps(self._tensors())

    @property
    def poles(self) -> NDArray[np.complex128]:
        """Poles in continuous time: `(d_model, n_states)`, with `mixing` `(n_states,)`."""
        system = build_system(self._tensors())
        values = poles_of(system if self.mixing else split_channels(system, self.d_model))
        return np.asarray(values.cpu().numpy(), dtype=np.complex128)

    def extra_repr(self) -> str:
        """Return sizes, poles and the number of parameters for `print`.

        Returns
        -------
        str
            Text within the parentheses of the printed module.
        """
        system = build_system(self._tensors())
        n_systems, kind = (1, "mixed by") if self.mixing else (self.d_model, "each with")
        with torch.no_grad():
            low, high = float(self.dt.min()), float(self.dt.max())
        steps = f"{low:.3g}" if low == high else f"{low:.3g} … {high:.3g}"
        return (
            f"{format_count(self.d_model, 'channel')}, {kind} {describe_poles(system, n_systems)},\n"
            f"{describe_parameters(self)}, init={self.init!r}, dt={steps}, hold={self.hold!r}"
        )

    def system(self) -> TensorSystem:
        """Return the system of the current parameters in units of samples, differentiable in them.

        Returns
        -------
        TensorSystem
            A and B times the time step, C and D; with an axis of channels in front unless `mixing`.
        """
        return self._system_of(self._tensors())

    @outside_compiled_graphs
    def forward(self, u: Tensor, *, state: Tensor | None = None, return_state: bool = False) -> Any:
        """Run the layer on sequences.

        Parameters
        ----------
        u : Tensor
            Samples `(…, T, d_model)`.
        state : Tensor, optional
            Initial state: that of a previous run, which is continued, `(…, d_model, n_states)` or with `mixing`
            `(…, n_states)`, for each sequence or for all of them. At rest by default.
        return_state : bool
            Return the outputs and the final state.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, d_model)`, with `return_state` a pair of the outputs and the state
            `(…, d_model, n_states)`, with `mixing` `(…, n_states)`.

        Raises
        ------
        InvalidSignalError
            u or the state has a wrong shape, type or device, or numbers that are not finite.
        """
        u = validate_input(u, n_inputs=self.d_model, device=self.B.device)
        batch = tuple(u.shape[:-2])
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(compute_dtype(u.dtype)).reshape(-1, *u.shape[-2:])
            run = self._run_mixing if self.mixing else self._run_channels
            y, end = run(samples, self._state_rows(state, batch), with_end=return_state)
        y = y.view(u.shape).to(u.dtype)
        return (y, self._user_state(end, batch)) if return_state and end is not None else y

    def _run_mixing(self, u: Tensor, w: Tensor | None, *, with_end: bool) -> tuple[Tensor, Tensor | None]:
        """Run one system from all channels to all channels."""
        sizes = ProblemSizes.of(u, n_states=self.n_states, n_outputs=self.d_model, growth=self.growth)
        plan, initial, steps, dtype = select_plan(sizes), InitialState(w=w), u.shape[1], u.dtype
        if plan.algorithm == "scan" and dtype == torch.float32 and self._checks_precision:
            self._checks_precision = False
            warn_of_single_precision(self.one_step(), u)

        def build(step: OneStep) -> Kernels:
            return build_kernels(step, plan, steps, dtype)

        if needs_kernels_only(plan, initial, growth=self.growth, with_end=with_end):
            kernels = self._captured_kernels(graph_key(plan, steps, dtype), build)
            if kernels is not None:
                return run_kernels(kernels, u, w)
        return run_from_initial_state(self.one_step(), u, initial, plan, growth=self.growth, with_end=with_end)

    def _run_channels(self, u: Tensor, w: Tensor | None, *, with_end: bool) -> tuple[Tensor, Tensor | None]:
        """Run independent channels: a convolution where no state is given or required and none grows."""
        sizes = ProblemSizes.of(u[..., :1], n_states=self.n_states, n_outputs=1, growth=self.growth)
        from_rest = w is None and not with_end and sizes.growth <= MAX_CONVOLUTION_GROWTH
        plan = Plan("convolution", 1) if from_rest else Plan("time blocks", select_block_width(sizes))
        steps, dtype = u.shape[1], u.dtype

        def build(step: OneStep) -> ChannelKernels:
            return build_channel_kernels(step, plan, steps, dtype, linear=self.hold == "linear")

        kernels = self._captured_kernels(graph_key(plan, steps, dtype), build)
        return run_channels(build(self.one_step()) if kernels is None else kernels, u, w)

    def _captured_kernels(self, key: tuple[Any, ...], build: Callable[[OneStep], AnyKernels]) -> AnyKernels | None:
        """Return kernels computed by a CUDA graph, or None where they are computed without one."""
        return self.cuda_graphs.kernels(
            key, lambda tensors: build(self._step_of(tensors)), self._parameters_by_name(), dict(self._buffers)
        )

    def step(self, u: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the layer on one sample.

        The matrices of a step are cached under `torch.no_grad()` while the parameters do not change.

        Parameters
        ----------
        u : Tensor
            Sample `(…, d_model)`.
        state : Tensor, optional
            State from the previous step; at rest by default.

        Returns
        -------
        y : Tensor
            Output `(…, d_model)`.
        state : Tensor
            State for the next step.
        """
        u = validate_input(u, n_inputs=self.d_model, device=self.B.device, axes="(…, {})")
        batch = tuple(u.shape[:-1])
        with torch.autocast(u.device.type, enabled=False):
            sample = u.to(compute_dtype(u.dtype)).reshape(-1, self.d_model)
            w, step = self._state_rows(state, batch), self.one_step()
            if not self.mixing:
                y, end = advance_channels(step, sample, w)
            else:
                y, end = advance_one_step(step, sample, -(sample.to(step.G1.dtype) @ step.G1.mT) if w is None else w)
        return y.view(u.shape).to(u.dtype), self._user_state(end, batch)

    def to_network(self, channel: int | None = None, *, dt: float | None = None) -> DynamicNetwork:
        """Convert the current parameters of a channel, or with `mixing` of the whole layer, to a network.

        `net.simulate(u, dt * np.arange(T))` gives the outputs of the layer, whose hold is that of the network. Its states are
        those of its blocks.

        Parameters
        ----------
        channel : int, optional
            Channel, counted from 0; required without `mixing`, not taken with it.
        dt : float, optional
            Time between samples of the network, which scales its poles; by default the time step of the channel. With
            `mixing` it is required if the time steps of the poles differ.

        Returns
        -------
        DynamicNetwork
            Network with `dt` as `sample_time`.

        Raises
        ------
        InvalidNetworkError
            The channel is not valid, or dt is missing.
        InvalidSignalError
            dt is not valid.
        """
        system = self.system()
        with torch.no_grad():
            if self.mixing:
                if channel is not None:
                    raise InvalidNetworkError(
                        "a layer with mixing is one system; leave channel out: layer.to_network()"
                    )
                time_steps = self.dt
            else:
                if not isinstance(channel, int | np.integer) or not 0 <= channel < self.d_model:
                    raise InvalidNetworkError(
                        f"channel must be an integer from 0 to {self.d_model - 1}, got {channel!r}; each channel is a "
                        "network of its own."
                    )
                system, time_steps = channel_of(system, int(channel)), self.dt[channel : channel + 1]
            if dt is None and bool((time_steps != time_steps[0]).any()):
                raise InvalidNetworkError(
                    "the time steps of the poles differ; give the time between samples of the network: dt=1.0"
                )
            step = float(time_steps[0]) if dt is None else as_time_step(dt, "dt")
            n, device = self.n_states, self.B.device
            system = scale_time(system, torch.full((n,), 1.0 / step, dtype=torch.float64, device=device))
        identity = torch.eye(n, dtype=torch.float64)
        result = rebuild_network(system, to_user=identity, from_user=identity, names=UNNAMED)
        settings = SignalSettings(hold=self.hold, sample_time=step)
        return DynamicNetwork(
            result.network, result.form, StateSpace.of(result.system, settings=settings), result.blocks
        )

    def one_step(self) -> OneStep:
        """Return the matrices of a step, cached while parameters do not change and no derivatives are required.

        Returns
        -------
        OneStep
            Matrices of the exact step; with an axis of channels in front unless `mixing`.
        """
        return self._step_cache.get(list(self._parameters_by_name().values()), lambda: self._step_of(self._tensors()))

    def _parameters_by_name(self) -> dict[str, Tensor]:
        return {**parameters_of(self), "log_dt": self.log_dt}

    def _tensors(self) -> dict[str, Tensor]:
        return {**self._parameters_by_name(), **self._buffers}

    def _system_of(self, tensors: dict[str, Tensor]) -> TensorSystem:
        scale = _time_steps(tensors).index_select(0, tensors["time_step_of_state"])
        scaled = scale_time(build_system(tensors), scale)
        return scaled if self.mixing else split_channels(scaled, self.d_model)

    def _step_of(self, tensors: dict[str, Tensor]) -> OneStep:
        system, linear = self._system_of(tensors), self.hold == "linear"
        return one_step(system, 1.0, linear=linear) if self.mixing else channel_step(system, linear=linear)

    def _state_rows(self, state: Tensor | None, batch: tuple[int, ...]) -> Tensor | None:
        """Return a validated state as `(B, n)`, or `(d_model, B, n)` for channels."""
        if state is None:
            return None
        if self.mixing:
            return validate_states(state, self.B, n=self.n_states, batch=batch, name="state")
        if isinstance(state, Tensor) and (state.dim() < 2 or state.shape[-2] != self.d_model):
            raise InvalidSignalError(
                f"state has shape {tuple(state.shape)}; it must be (…, {self.d_model}, {self.n_states}), as step returns it"
            )
        rows = validate_states(state, self.B, n=self.n_states, batch=(*batch, self.d_model), name="state")
        return rows.view(-1, self.d_model, self.n_states).movedim(1, 0)

    def _user_state(self, state: Tensor, batch: tuple[int, ...]) -> Tensor:
        if self.mixing:
            return state.reshape(*batch, self.n_states)
        return state.movedim(0, 1).reshape(*batch, self.d_model, self.n_states)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Discard the caches when the tensors are moved."""
        self._step_cache, self.cuda_graphs = ParameterCache(), CudaGraphCache()
        return super()._apply(fn, recurse)


def _time_steps(tensors: dict[str, Tensor]) -> Tensor:
    return tensors["dt_at_start"] * relative_exp(tensors["log_dt"], tensors["log_dt_at_start"])


class _Start(NamedTuple):
    """One system, and the variance of the random weights C in its own states; None for a system that is given with C.

    S4D draws C = N(0, ½) + i N(0, ½) for each pair and takes y = 2 Re(C x): real weights of variance 2.
    """

    packed: PackedSystem
    variance: float | None


def _named_start(init: str, n_states: int | None) -> _Start:
    n = DEFAULT_STATES if n_states is None else n_states
    hippo = f"hippo_{init.removeprefix('hippo_')}"
    if hippo in _HIPPO_SYSTEMS:
        return _Start(pack_system(construct(named_system(hippo, n_states=n))._context), 1.0)
    if init not in _POLES:
        raise InvalidNetworkError(
            f"init is {init!r}; give one of {', '.join([*_POLES, *_HIPPO_SYSTEMS])}, a system or a network."
        )
    if n % 2:
        raise InvalidNetworkError(f"n_states must be even for {init}, which has conjugate pairs of poles, got {n}.")
    identity, B = np.eye(n), np.zeros((n, 1))
    B[: n // 2] = 1.0
    maps = {"to_user": identity, "from_user": identity, "to_blocks": identity, "from_blocks": identity}
    packed = PackedSystem(
        pair_rates=_POLES[init](n),
        real_rates=np.zeros(0),
        groups=(),
        B=B,
        C=np.eye(n),
        D=np.zeros((n, 1)),
        **maps,
    )
    return _Start(packed, 2.0)


def _start_of_system(init: Any, n_states: int | None) -> _Start:
    net = init if isinstance(init, DynamicNetwork) else construct(init)
    require_continuous_time(net, "nn.StateSpaceLayer(d_model, init=net)")
    net.signal_settings.refuse_unsupported("nn.StateSpaceLayer")
    if n_states not in (None, net.n_states):
        raise InvalidNetworkError(f"n_states is {n_states} but init has {net.n_states} states; leave n_states out.")
    return _Start(pack_system(net._context), None)


def _channel_systems(start: _Start, d_model: int) -> PackedSystem:
    """Return the system of each channel, side by side: B `(d n, 1)`, C `(1, d n)` and D `(d, 1)`."""
    packed = start.packed
    if start.variance is not None:
        C = _normal(d_model, packed.B.shape[0], variance=start.variance) @ packed.to_user
        D = _normal(d_model, 1)
    elif packed.D.shape == (1, 1):
        C, D = np.repeat(packed.C, d_model, 0), np.repeat(packed.D, d_model, 0)
    else:
        raise InvalidNetworkError(
            f"init has {packed.D.shape[1]} inputs and {packed.D.shape[0]} outputs; give a system with one of each for "
            "independent channels, or mixing=True"
        )
    side_by_side = _side_by_side(packed)
    return replace(
        packed,
        pair_rates=np.tile(packed.pair_rates, d_model),
        real_rates=np.tile(packed.real_rates, d_model),
        groups=tuple(group * d_model for group in packed.groups),
        B=side_by_side(np.repeat(packed.B.T, d_model, 0))[:, None],
        C=side_by_side(C)[None],
        D=D,
    )


def _side_by_side(packed: PackedSystem) -> Callable[[Array], Array]:
    """Return the map from rows `(d, n)` to the `(d n,)` states of d systems, all states of a kind together."""
    stops = np.cumsum(_numbers_of_states(packed))[:-1]
    return lambda rows: np.concatenate([part.ravel() for part in np.split(rows, stops, axis=1)])


def _mixing_system(start: _Start, d_model: int) -> PackedSystem:
    """Return one system from all channels to all channels; B and C have variances 1/d and 1/n, D is diagonal."""
    packed = start.packed
    if start.variance is None:
        if packed.D.shape != (d_model, d_model):
            raise InvalidNetworkError(
                f"init has {packed.D.shape[1]} inputs and {packed.D.shape[0]} outputs; with mixing it must have {d_model} of "
                "each, one for each channel"
            )
        return packed
    n = packed.B.shape[0]
    return replace(
        packed,
        B=packed.from_user @ _normal(n, d_model, variance=1.0 / d_model),
        C=_normal(d_model, n, variance=start.variance / n) @ packed.to_user,
        D=np.diag(_normal(1, d_model)[0]),
    )


def _normal(rows: int, columns: int, *, variance: float = 1.0) -> Array:
    """Draw from PyTorch's generator, as its layers do."""
    values: Array = torch.randn(rows, columns, dtype=torch.float64).numpy()
    return math.sqrt(variance) * values


def _channel_of_each_state(packed: PackedSystem, d_model: int) -> NDArray[np.int64]:
    return np.concatenate(
        [np.repeat(np.arange(d_model), count // d_model) for count in _numbers_of_states(packed)]
    ).astype(np.int64)


def _pole_of_each_state(packed: PackedSystem) -> NDArray[np.int64]:
    """Return the number of the pair or real pole that a state of a diagonal system belongs to."""
    pairs, reals = np.arange(len(packed.pair_rates)), np.arange(len(packed.real_rates))
    return np.concatenate([pairs, pairs, len(pairs) + reals]).astype(np.int64)


def _numbers_of_states(packed: PackedSystem) -> list[int]:
    """Return the numbers of states by kind: real parts and imaginary parts of pairs, reals, blocks of each size."""
    pairs, reals = len(packed.pair_rates), len(packed.real_rates)
    return [pairs, pairs, reals, *(len(group) * len(group[0].F) for group in packed.groups)]


def _validate_time_steps(dt: Any) -> tuple[float, float]:
    values = dt if isinstance(dt, Sequence) and not isinstance(dt, str) else (dt, dt)
    try:
        low, high = (float(value) for value in values)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not 0.0 < low <= high < math.inf:
        raise InvalidNetworkError(
            f"dt must be a positive number or a range (low, high) with 0 < low ≤ high, got {dt!r}."
        )
    return low, high
