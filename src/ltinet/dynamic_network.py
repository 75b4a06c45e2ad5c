"""Continuous-time networks: the class `DynamicNetwork` that `construct` returns.

Methods simulate, analyse, export and plot the network; each delegates to the package that implements it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.other_names import missing_attribute
from ltinet.analysis.characteristics import StepInfo
from ltinet.analysis.frequency_response import apply_delays
from ltinet.analysis.linear_model import LinearModel
from ltinet.analysis.responses import Channel, Times
from ltinet.analysis.stability import Sensitivities
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.error_bounds.output_bounds import Certificate
from ltinet.export import api
from ltinet.export.api import replace_delays, to_control, to_scipy
from ltinet.interconnection.operators import SystemOperators
from ltinet.large_systems import PreparedSystem
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network, NetworkParameters
from ltinet.network.network_file import write_network
from ltinet.network.realization import frequency_response, poles, to_state_space
from ltinet.network.summary import summary_html, summary_text
from ltinet.plotting.plots import NetworkPlots
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import create_stepper, resolve_hold, simulate
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.simulation.coordinate_selection import CoordinateChoice
from ltinet.simulation.exact_error_bound import network_certificate
from ltinet.simulation.solution import Solution, with_time_unit
from ltinet.simulation.stepper import Stepper
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_names import UNNAMED, SignalNames, names_or_defaults
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time, validate_time_step
from ltinet.torch.api import to_torch, wrap_delays
from ltinet.torch.packed_system import TrainableParts

if TYPE_CHECKING:
    import scipy.signal

    from ltinet.torch.delayed_network import DelayedNetwork
    from ltinet.torch.linear_network import LinearNetwork

_explorer: Callable[..., Any]  # `ltinet.explore`; it imports this module and cannot be imported here


def register_explorer(explore: Callable[..., Any]) -> None:
    """Set the function that `DynamicNetwork.explore` calls; `ltinet.explorer.api` does so on import."""
    global _explorer
    _explorer = explore


@final
@dataclass(frozen=True, eq=False, repr=False)
class DynamicNetwork(SystemOperators, LinearModel):
    """Sparse neural network in continuous or discrete time: layers of neurons and a linear output layer.

    Networks are created by `construct`, `load`, `reduce(…).net` or `from_parameters`. Two networks are equal if
    their parameters, delays, operating points, holds and sample times are; their origin is not compared.

    Parameters
    ----------
    network : Network
        Layers and output layer.
    form : BlockDiagonalForm, optional
        Block-diagonal form that the network was constructed from; None for a network built from parameters.
    system : StateSpace, optional
        System that the network was constructed from.
    blocks : BlockSystem, optional
        System in the coordinates of its blocks, in which the exact engine runs.
    reduction_error : float, optional
        H2 norm of G − G_r if `system` G_r was reduced from G, infinite if unknown; included in all error bounds.
    signal_settings : SignalSettings, optional
        Delays, operating point, hold and sample time; by default those of `system`.
    dt : float, optional
        Time step of a network in discrete time, by default that of `system`; None for continuous time. The neurons of
        such a network are difference equations, with ξ[k+1] and ξ[k+2] in place of ξ̇ and ξ̈.
    prepared : SimulationContext, optional
        Simulation context of a network that differs in `signal_settings` only.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=3))
    >>> net.n_neurons, net.n_connections
    (3, 0)
    >>> t = np.linspace(0.0, 10.0, 101)
    >>> net.simulate(np.sin(t), t).y.shape
    (101, 1)
    """

    network: Network
    form: BlockDiagonalForm | None = None
    system: StateSpace | None = None
    blocks: BlockSystem | None = None
    reduction_error: float | None = None
    signal_settings: SignalSettings = NO_SETTINGS
    dt: float | None = None
    prepared: InitVar[SimulationContext | None] = None
    _context: SimulationContext = field(init=False)

    def __post_init__(self, prepared: SimulationContext | None) -> None:
        settings, system = self.signal_settings, self.system
        object.__setattr__(self, "dt", validate_time_step(self.dt) if system is None else system.dt)
        if system is None:
            settings.validate_for(n_inputs=self.network.n_inputs, n_outputs=self.network.n_outputs, dt=self.dt)
        elif settings.is_default and not settings.notes:
            object.__setattr__(self, "signal_settings", system.signal_settings)
        elif settings is not system.signal_settings:
            object.__setattr__(self, "system", StateSpace.of(system.matrices, settings=settings))
        if prepared is None:
            parts = NetworkParts(self.network, self.form, self.blocks)
            prepared = SimulationContext(parts, origin=self._origin, reduction_error=self.reduction_error, dt=self.dt)
        object.__setattr__(self, "_context", prepared)

    @classmethod
    def from_parameters(
        cls,
        parameters: NetworkParameters,
        *,
        signal_settings: SignalSettings = NO_SETTINGS,
        dt: float | None = None,
    ) -> "DynamicNetwork":
        """Build a network from the parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ) of the paper, without a system.

        Parameters
        ----------
        parameters : NetworkParameters
            Parameters of all layers and of the output layer.
        signal_settings : SignalSettings, optional
            Delays, operating point, hold and sample time.
        dt : float, optional
            Time step of a network in discrete time.

        Returns
        -------
        DynamicNetwork
            Network with these parameters.

        Raises
        ------
        InvalidNetworkError
            If the parameters do not form a network.
        """
        return cls(Network.from_parameters(parameters), signal_settings=signal_settings, dt=dt)

    @property
    def layers(self) -> tuple[HorizontalLayer, ...]:
        """Horizontal layers, as in `net.layers[0].K` and `net.layers[0].neurons[2]`."""
        return self.network.layers

    @property
    def Phi(self) -> tuple[Matrix, ...]:
        """Output weights of each layer: of all ξ, then of the ξ̇ of second-order neurons."""
        return self.network.Phi

    @property
    def Psi(self) -> Matrix:
        """Weights from input to output, p×m."""
        return self.network.Psi

    @property
    def parameters(self) -> NetworkParameters:
        """Parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ) of the paper."""
        return self.network.parameters

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.network.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.network.n_outputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; u1, u2, … by default."""
        return names_or_defaults(self._names.inputs, "inputs", self.n_inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; y1, y2, … by default."""
        return names_or_defaults(self._names.outputs, "outputs", self.n_outputs)

    def with_signal_settings(self, **changes: Any) -> "DynamicNetwork":
        """Return the same network with other delays, operating point, hold or sample time.

        Parameters
        ----------
        **changes
            Settings to replace, as for `StateSpace.with_signal_settings`.

        Returns
        -------
        DynamicNetwork
            Network with the new settings.

        Raises
        ------
        InvalidSystemError
            If a setting is unknown or a value is not valid.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        system = None if self.system is None else StateSpace.of(self.system.matrices, settings=settings)
        return replace(self, system=system, signal_settings=settings, prepared=self._context)

    @property
    def n_states(self) -> int:
        """Dimension of the system that the network represents."""
        return self.network.n_states

    @property
    def n_layers(self) -> int:
        """Number of horizontal layers."""
        return self.network.n_layers

    @property
    def n_neurons(self) -> int:
        """Number of neurons in all layers."""
        return self.network.n_neurons

    @property
    def n_first_order(self) -> int:
        """Number of first-order neurons in all layers."""
        return self.network.n_first_order

    @property
    def n_second_order(self) -> int:
        """Number of second-order neurons in all layers."""
        return self.network.n_second_order

    @property
    def n_connections(self) -> int:
        """Number of connections between neurons of the same layer; each pair counts once."""
        return self.network.n_connections

    @property
    def n_weights(self) -> int:
        """Number of non-zero parameters.

        The coefficient of the highest derivative of each neuron (m, or c for first-order neurons) is not counted: it is
        1 in a constructed network, and dividing the equation of the neuron by it makes it 1 in any other.
        """
        return self.network.n_weights

    @property
    def n_weights_dense(self) -> int:
        """Number of weights of a dense network of the same size: n² + n m + p n + p m."""
        return self.network.n_weights_dense

    @property
    def sparsity(self) -> float:
        """Fraction of the weights of a dense network that are saved: 1 − n_weights/n_weights_dense."""
        return self.network.sparsity

    @property
    def weight_norm(self) -> float:
        """Euclidean norm of all weights; it grows with the condition number of the transformation (Example 3.2)."""
        return self.network.weight_norm

    def to_state_space(self) -> StateSpace:
        """Convert the network to state space.

        Returns
        -------
        StateSpace
            System whose states are, layer by layer, ξ and then ξ̇ − J u of the second-order neurons.
        """
        return StateSpace.of(self._realized, settings=self.signal_settings)

    def to_scipy(self, *, pade: int | None = None) -> "scipy.signal.StateSpace":
        """Convert the network to `scipy.signal.StateSpace`.

        Parameters
        ----------
        pade : int, optional
            Order of the Padé approximants of delays, which SciPy does not support.

        Returns
        -------
        scipy.signal.StateSpace
            System in continuous time.

        Raises
        ------
        InvalidSystemError
            If the network has an operating point, or delays and `pade` is omitted.
        """
        settings = self.signal_settings
        return to_scipy(replace_delays(self._realized, settings, pade=pade, owner="net", call="to_scipy"))

    def to_control(self, *, pade: int | None = None) -> Any:
        """Convert the network to `control.StateSpace`; needs python-control.

        Parameters
        ----------
        pade : int, optional
            Order of the Padé approximants of delays, as for `to_scipy`.

        Returns
        -------
        control.StateSpace
            System in continuous time, with the names of inputs and outputs.

        Raises
        ------
        InvalidSystemError
            If the network has an operating point, or delays and `pade` is omitted.
        MissingDependencyError
            If python-control is not installed.
        """
        settings = self.signal_settings
        return to_control(replace_delays(self._realized, settings, pade=pade, owner="net", call="to_control"))

    def to_torch(
        self, dt: float, *, hold: Hold | None = None, trainable: TrainableParts = True
    ) -> "LinearNetwork[DynamicNetwork] | DelayedNetwork[DynamicNetwork]":
        """Convert the network to a `torch.nn.Module` with fixed time step; its outputs are equal until it is trained.

        Parameters
        ----------
        dt : float
            Time step.
        hold : {"linear", "zero"}, optional
            Interpolation between samples; by default that of the model, "linear" if it has none.
        trainable : bool or set of str, optional
            Parameters that are trained; see `ltinet.nn`.

        Returns
        -------
        ltinet.nn.LinearNetwork or ltinet.nn.DelayedNetwork
            Module; a `DelayedNetwork` for a model with delays or an operating point.

        Raises
        ------
        InvalidSystemError
            If a delay is not a multiple of dt.
        MissingDependencyError
            If PyTorch is not installed.
        """
        require_continuous_time(self, "net.to_torch(dt)")
        settings = self.signal_settings
        hold = resolve_hold(hold, settings)
        network = to_torch(self._context, dt, hold=hold, trainable=trainable, settings=settings, rebuild=DynamicNetwork)
        return wrap_delays(network) if settings.shifts_signals else network

    def poles(self) -> NDArray[np.complex128]:
        """Compute the poles of all neurons, layer by layer.

        Returns
        -------
        ndarray of complex, shape (n_states,)
            Poles of each neuron, as in `neuron.poles`.
        """
        return poles(self.network)

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Compute the frequency response H(jω), or H(e^{jω dt}) in discrete time, with delays.

        Parameters
        ----------
        omega : array_like
            Angular frequencies in radians per unit of time.

        Returns
        -------
        ndarray of complex, shape (len(omega), n_outputs, n_inputs)
            Frequency response.
        """
        H = frequency_response(self.network, omega, self.dt)
        if not self.signal_settings.has_delays:
            return H
        return apply_delays(H, omega, self.signal_settings.total_delay(self.n_outputs, self.n_inputs))

    def step_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Compute the step response; see `StateSpace.step_response`.

        Parameters
        ----------
        t, input, output
            Times and channels, as for `StateSpace.step_response`.

        Returns
        -------
        Solution
            Outputs for a unit step of each input at t = 0.
        """
        return self._response_system.step_response(t, input=input, output=output)

    def impulse_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Compute the impulse response; see `StateSpace.impulse_response`.

        Parameters
        ----------
        t, input, output
            Times and channels, as for `StateSpace.step_response`.

        Returns
        -------
        Solution
            Outputs for a unit impulse of each input at t = 0.
        """
        return self._response_system.impulse_response(t, input=input, output=output)

    def initial_response(self, x0: ArrayLike, t: Times = None, *, output: Channel = None) -> Solution:
        """Compute the response to an initial state; see `StateSpace.initial_response`.

        Parameters
        ----------
        x0, t, output
            Initial state, times and output, as for `StateSpace.initial_response`.

        Returns
        -------
        Solution
            Outputs without input.
        """
        return self._response_system.initial_response(x0, t, output=output)

    def step_info(
        self,
        *,
        input: Channel = None,
        output: Channel = None,
        settling: float = 0.02,
        rise: tuple[float, float] = (0.1, 0.9),
    ) -> StepInfo:
        """Compute rise time, settling time, overshoot and peak of the step responses; see `StateSpace.step_info`.

        Parameters
        ----------
        input, output, settling, rise
            Channels, settling band and rise levels, as for `StateSpace.step_info`.

        Returns
        -------
        StepInfo
            Characteristics of every output for every input; prints as a table.
        """
        return self._response_system.step_info(input=input, output=output, settling=settling, rise=rise)

    def sensitivity(self, controller: StateSpace | None = None) -> Sensitivities[StateSpace]:
        """Compute the four closed-loop functions of the network as a plant; see `StateSpace.sensitivity`.

        Parameters
        ----------
        controller : StateSpace, optional
            Controller; by default the identity, so that the network is the whole open loop.

        Returns
        -------
        Sensitivities
            Named tuple of systems S, T, CS and PS.
        """
        return self._response_system.sensitivity(controller)

    @property
    def _analyzed(self) -> tuple[SystemMatrices, SignalSettings]:
        return self._origin or self._realized, self.signal_settings

    def simulate(  # noqa: PLR0913
        self,
        u: Any,
        t: ArrayLike | None = None,
        *,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        engine: str = "exact",
        coordinates: CoordinateChoice | None = None,
        input_tolerance: float | None = None,
        method: Any = None,
        rtol: Any = None,
        atol: Any = None,
        first_step: float | None = None,
        max_step: float | None = None,
        n_jobs: int = 1,
        across_knots: bool | None = None,
        **options: Any,
    ) -> Solution:
        """Simulate the network: compute its outputs at given times for an input.

        The exact engine evaluates the closed-form solution. With at most 128 states and evenly spaced times it equals
        stepping the original matrices, up to rounding. With more states it is that of the block-diagonal network,
        which may lose up to log₁₀ cond(T) digits of the largest state, unless cond(T) exceeds 1e4.
        `solution.error_bound()` is valid in both cases, and `solution.stats["coordinates"]` shows which was used. The
        engines "per_neuron" (Algorithm 3) and "per_interval" (Algorithm A.1) solve one differential equation per neuron
        with the solvers of SciPy.

        Parameters
        ----------
        u : array_like, callable, Signal, mapping, Table, DataFrame or None
            Input: samples (T, m) or (batch, T, m) at the times t, or (T,) for a single input; a function of time; any
            `Signal`; None for zero input, or the operating point. By name: a dictionary with samples (T,), a number or
            a function for each input, `{"Force (N)": u}`; a `Table` or DataFrame, whose columns are matched by name or
            in order.
        t : array_like, shape (T,)
            Ascending times, evenly spaced or not; a time that occurs twice marks a jump of u. Numbers in the unit of
            time of the system, or durations (`timedelta64`, `datetime.timedelta`), which are converted to seconds; by
            default those of a `Table`. In discrete time multiples of dt, or a number of samples, by default that of u;
            there is no hold.
        x0 : array_like, optional
            State at t[0] in the coordinates of the user; zero by default. For a batch one state for all or one each.
        hold : {"linear", "zero"}, optional
            Interpolation between samples; by default that of the model, "linear" if it has none.
        engine : {"exact", "per_neuron", "per_interval"}, optional
            Method of solution.
        coordinates : {"auto", "original", "blocks"}, optional
            Exact engine: "original" steps the original matrices, "blocks" those of the network, "auto" selects as
            described above; at uneven times the limit is 16 states. Above the limit "auto" selects blocks if
            `form.condition_raw`, cond(T) in the units of the user, is at most 1e4; for steps of more than 1e21 time
            constants it always does.
        input_tolerance : float, optional
            Exact engine: error of the piecewise linear approximation of a function u, for each input relative to its
            max |u|; 1e-8 by default.
        method : str, mapping or callable, optional
            Solver engines: RK23, RK45, DOP853 (default), Radau, BDF or LSODA; one for all neurons, a mapping from
            layers or from (layer, neuron), or a function of the neuron.
        rtol : float, mapping or callable, optional
            Solver engines: relative tolerance, specified like `method`; 1e-8 by default.
        atol : float, mapping or callable, optional
            Solver engines: absolute tolerance, specified like `method`; 1e-10 by default.
        first_step : float, optional
            Solver engines: first step after each restart; with an equal `max_step` the step size is fixed.
        max_step : float, optional
            Solver engines: largest step; unlimited by default.
        n_jobs : int, optional
            Number of threads that share a batch (exact engine) or of processes that share layers (solver engines); −1
            is one per core.
        across_knots : bool, optional
            Solver engines: integrate across knots of the input, as the paper does; for comparisons.
        **options
            Further options of the engine. Options that the engine does not know are refused; None is the default.

        Returns
        -------
        Solution
            Outputs `y`, shape (..., T, p), which can also be evaluated at other times, and error bounds.

        Raises
        ------
        InvalidSignalError
            If the input, the times or the initial state are not valid.
        SimulationError
            If an option is not valid, or the engine cannot reach its tolerance.
        """
        options |= {
            "input_tolerance": input_tolerance, "method": method, "rtol": rtol, "atol": atol,
            "coordinates": coordinates, "first_step": first_step, "max_step": max_step, "across_knots": across_knots,
        }  # fmt: skip
        solution = simulate(
            self._context, u, t=t, x0=x0, hold=hold, engine=engine, n_jobs=n_jobs, options=options,
            settings=self.signal_settings,
        )  # fmt: skip
        return with_time_unit(solution, u, t)

    def fit(
        self,
        u: Any,
        y: Any,
        *,
        t: ArrayLike | None = None,
        dt: float | None = None,
        from_rest: bool = False,
        hold: Hold | None = None,
    ) -> NDArray[np.float64]:
        """Compute the fit of the network to a measured record in percent; see `StateSpace.fit`.

        Parameters
        ----------
        u, y, t, dt, from_rest, hold
            Record and its times, as for `StateSpace.fit`.

        Returns
        -------
        ndarray, shape (p,)
            Fit of each output: 100 for a perfect model, 0 for one that is as good as the mean of the record.
        """
        return self._response_system.fit(u, y, t=t, dt=dt, from_rest=from_rest, hold=hold)

    def stepper(self, dt: float | None = None, *, hold: Hold | None = None, x0: ArrayLike | None = None) -> Stepper:
        """Create a streaming simulation: `y_k = stepper.step(u_k)` returns the output at the time of u_k.

        Delays are buffered; those that are not multiples of dt are exact, too.

        Parameters
        ----------
        dt : float, optional
            Time step; may be omitted in discrete time, where it is that of the model.
        hold : {"linear", "zero"}, optional
            Interpolation between samples; by default that of the model, "linear" if it has none. Not in discrete time.
        x0 : array_like, optional
            Initial state in the coordinates of the user; zero by default.

        Returns
        -------
        Stepper or DelayedStepper
            Simulation that starts at the initial state.
        """
        return create_stepper(self._context, dt, hold=hold, x0=x0, settings=self.signal_settings)

    def simulate_stream(
        self,
        chunks: Iterable[ArrayLike],
        dt: float | None = None,
        *,
        hold: Hold | None = None,
        x0: ArrayLike | None = None,
    ) -> Iterator[NDArray[np.float64]]:
        """Simulate an input that arrives in chunks of evenly spaced samples.

        Parameters
        ----------
        chunks : iterable of array_like, shape (steps, m)
            Chunks of samples; their lengths may differ.
        dt, hold, x0
            Time step, hold and initial state, as for `stepper`.

        Returns
        -------
        iterator of ndarray, shape (steps, p)
            Outputs for each chunk.
        """
        return self.stepper(dt, hold=hold, x0=x0).run(chunks)

    @property
    def plot(self) -> NetworkPlots:
        """Plots of the network: `net.plot()` for an overview, `net.plot.architecture()`, …; needs matplotlib."""
        names = self._names
        return NetworkPlots(self, self._response_system.plot_frequencies, names.outputs, names.inputs)

    def certificate(self, *, horizon: float, n_steps: int = 1000) -> Certificate:
        """Compute bounds on the error of the exact engine per unit of max |u|, without a simulation.

        Parameters
        ----------
        horizon : float
            Final time of the simulations that the bounds are for.
        n_steps : int, optional
            Number of time steps up to the horizon.

        Returns
        -------
        Certificate
            Bounds for each output on the errors from rounding and from the block-diagonalization.
        """
        require_continuous_time(self, "net.certificate(horizon)")
        return network_certificate(self._context, horizon=horizon, n_steps=n_steps)

    @cached_property
    def _response_system(self) -> StateSpace:
        """Origin of the network, or its realization, on the simulation context of the network."""
        matrices = self._origin or self._realized
        prepared = PreparedSystem(matrices, context=self._context)
        return StateSpace.of(matrices, prepared=prepared, settings=self.signal_settings)

    @property
    def _origin(self) -> SystemMatrices | None:
        return None if self.system is None else self.system.matrices

    @property
    def _names(self) -> SignalNames:
        return UNNAMED if self.system is None else self.system.matrices.names

    @property
    def _realized(self) -> SystemMatrices:
        """Realization of the network with the names of inputs and outputs of its origin."""
        return to_state_space(self.network, self.dt).with_names(self._names.without_states)

    export_c, export_fmu, export_onnx = api.export_c, api.export_fmu, api.export_onnx

    def explore(
        self,
        *,
        page: str | PathLike[str] | None = None,
        title: str | None = None,
        port: int = 0,
        browser: bool = True,
        callback: Callable[[str], None] = print,
    ) -> Any:
        """Show the network on an interactive page; see `ltinet.explore`.

        Parameters
        ----------
        page, title, port, browser, callback
            Options, as for `ltinet.explore`.

        Returns
        -------
        object
            Widget in a notebook; otherwise see `ltinet.explore`.
        """
        return _explorer(self, page=page, title=title, port=port, browser=browser, callback=callback)

    def save(self, path: str | Path) -> None:
        """Write the network to a safetensors file atomically; `ltinet.load` restores every bit.

        Parameters
        ----------
        path : str or path-like
            File to write, with the suffix .safetensors or none; an existing file is replaced.

        Raises
        ------
        FileFormatError
            If the suffix is another one, or the file cannot be written.
        """
        write_network(path, self._context.stored._replace(settings=self.signal_settings))

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the simulation context, which is computed again after unpickling.
        arguments = (self.network, self.form, self.system, self.blocks)
        return DynamicNetwork, (*arguments, self.reduction_error, self.signal_settings, self.dt)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicNetwork):
            return NotImplemented
        if self.dt != other.dt:
            return False
        return self.network == other.network and self.signal_settings == other.signal_settings

    def __hash__(self) -> int:
        return hash(self.network)

    def __dir__(self) -> list[str]:
        return dir_without(self, "network", "blocks")

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name, system="net.to_state_space()")

    def __repr__(self) -> str:
        text = repr(self.network).replace("Network(", "DynamicNetwork(", 1)
        dt = "" if self.dt is None else f", dt={self.dt:g}"
        return f"{text[:-1]}{dt}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        return summary_text(self.network, self.form, names=self._names, settings=self.signal_settings, dt=self.dt)

    def _repr_html_(self) -> str:
        return summary_html(self.network, self.form, names=self._names, settings=self.signal_settings, dt=self.dt)
