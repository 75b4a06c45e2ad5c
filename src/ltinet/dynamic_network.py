"""Continuous-time networks: the class `DynamicNetwork` that `construct` returns.

Methods simulate, analyse, export and plot the network; each delegates to the package that implements it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet.analysis.characteristics import StepInfo
from ltinet.analysis.frequency_response import apply_delays
from ltinet.analysis.poles import Damping, damping_table
from ltinet.analysis.responses import Channel, Times
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.error_bounds.output_bounds import Certificate
from ltinet.errors import InvalidSystemError
from ltinet.export import api
from ltinet.export.api import to_control, to_scipy
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network, NetworkParameters
from ltinet.network.network_file import write_network
from ltinet.network.realisation import frequency_response, poles, to_state_space
from ltinet.network.summary import summary_html, summary_text
from ltinet.plotting.plots import NetworkPlots
from ltinet.signals.arrays import as_real_array
from ltinet.signals.sampled import Hold
from ltinet.signals.times import as_time_step
from ltinet.simulation.api import resolve_hold, simulate
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.simulation.coordinate_selection import CoordinateChoice
from ltinet.simulation.delayed_stepper import DelayedStepper
from ltinet.simulation.exact_error_bound import network_certificate
from ltinet.simulation.solution import Solution
from ltinet.simulation.stepper import Stepper
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix
from ltinet.systems.pade import approximate_delays
from ltinet.systems.signal_names import UNNAMED, SignalNames, names_or_defaults
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices
from ltinet.torch.api import to_torch
from ltinet.torch.api import wrap_delays as delayed_module
from ltinet.torch.packed_system import TrainableParts

if TYPE_CHECKING:
    import scipy.signal

    from ltinet.torch.delayed_network import DelayedNetwork
    from ltinet.torch.linear_network import LinearNetwork

# MERGED ltinet.dynamic_network
# The network as its users meet it: the object that `construct` returns, whose methods are doors to the rooms below.

_explorer: Callable[..., Any]  # `ltinet.explore`, which imports this module and so cannot be imported here


def register_explorer(explore: Callable[..., Any]) -> None:
    """Set the function behind `DynamicNetwork.explore`; `ltinet.explorer.api` does so when `ltinet` is imported."""
    global _explorer
    _explorer = explore


@final
@dataclass(frozen=True, eq=False, repr=False)
class DynamicNetwork:
    """A sparse continuous-time neural network: layers of first- and second-order neurons, and a linear output layer.

    `form` is the block-diagonal form that the network was constructed from, None for one built from parameters alone.
    Two networks are equal when all their parameters, delays, operating points, holds and sample times are, wherever
    they came from.
    """

    network: Network
    form: BlockDiagonalForm | None = None
    system: StateSpace | None = None
    """The system that the network was constructed from, to be compared with."""
    blocks: BlockSystem | None = None
    """The system in the coordinates of its blocks, in which the exact engine runs."""
    reduction_error: float | None = None
    """‖G − G_r‖ in the H2 norm, where `system` G_r was reduced from G; infinite if not known. All bounds count it."""
    signal_settings: SignalSettings = NO_SETTINGS
    """Delays, operating point, hold and sample time; those of `system` if left out, and `system` has the same."""

    def __post_init__(self) -> None:
        settings, system = self.signal_settings, self.system
        if system is None:
            settings.validate_for(n_inputs=self.network.n_inputs, n_outputs=self.network.n_outputs)
        elif settings.is_default and not settings.notes:
            object.__setattr__(self, "signal_settings", system.signal_settings)
        elif settings is not system.signal_settings:
            object.__setattr__(self, "system", StateSpace.of(system.matrices, settings=settings))

    @classmethod
    def from_parameters(
        cls, parameters: NetworkParameters, *, signal_settings: SignalSettings = NO_SETTINGS
    ) -> "DynamicNetwork":
        """Build a network from the paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ) alone, with no system behind it."""
        return cls(Network.from_parameters(parameters), signal_settings=signal_settings)

    @property
    def layers(self) -> tuple[HorizontalLayer, ...]:
        """The horizontal layers; `net.layers[0].K`, `net.layers[0].neurons[2]`."""
        return self.network.layers

    @property
    def Phi(self) -> tuple[Matrix, ...]:
        """For each layer the output weights of all ξ, then of the ξ̇ of second-order neurons."""
        return self.network.Phi

    @property
    def Psi(self) -> Matrix:
        """Weights from input to output, p×m."""
        return self.network.Psi

    @property
    def parameters(self) -> NetworkParameters:
        """The paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ)."""
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
        """How the inputs are called; u1, u2, … where nobody gave names."""
        return names_or_defaults(self._names.inputs, "inputs", self.n_inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """How the outputs are called; y1, y2, … where nobody gave names."""
        return names_or_defaults(self._names.outputs, "outputs", self.n_outputs)

    @property
    def input_delay(self) -> NDArray[np.float64]:
        """Delay of each input in units of time, `(m,)`."""
        return self.signal_settings.array("input_delay", self.n_inputs)

    @property
    def output_delay(self) -> NDArray[np.float64]:
        """Delay of each output in units of time, `(p,)`."""
        return self.signal_settings.array("output_delay", self.n_outputs)

    @property
    def u0(self) -> NDArray[np.float64]:
        """Operating point of the inputs, `(m,)`: y − y0 responds to u − u0."""
        return self.signal_settings.array("u0", self.n_inputs)

    @property
    def y0(self) -> NDArray[np.float64]:
        """Operating point of the outputs, `(p,)`."""
        return self.signal_settings.array("y0", self.n_outputs)

    @property
    def hold(self) -> Hold | None:
        """What inputs do between samples; None if the model does not say."""
        return self.signal_settings.hold

    @property
    def sample_time(self) -> float | None:
        """Time between samples of the data that the model was found in; None if there were none."""
        return self.signal_settings.sample_time

    def with_signal_settings(self, **changes: Any) -> "DynamicNetwork":
        """Return the same network with other delays, operating point, hold or sample time.

        The parameters are those of `StateSpace.with_signal_settings`.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        system = None if self.system is None else StateSpace.of(self.system.matrices, settings=settings)
        other = replace(self, system=system, signal_settings=settings)
        if "_context" in self.__dict__:
            other.__dict__["_context"] = self._context
        return other

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
        """Neuron-to-neuron connections inside layers, each pair of neurons once."""
        return self.network.n_connections

    @property
    def n_weights(self) -> int:
        """Numbers that are not zero among all parameters.

        The coefficient of the highest derivative of each neuron, m or for first-order neurons c, does not count: it is
        1 in a constructed network, and dividing the neuron's equation by it makes it 1 in any other.
        """
        return self.network.n_weights

    @property
    def n_weights_dense(self) -> int:
        """Weights of a dense network with the same states, inputs and outputs: n² + n m + p n + p m."""
        return self.network.n_weights_dense

    @property
    def sparsity(self) -> float:
        """Share of the weights of a dense network that this one does without."""
        return self.network.sparsity

    @property
    def weight_norm(self) -> float:
        """Euclidean norm of all weights: what blows up when a transformation is ill-conditioned (Ex 3.2)."""
        return self.network.weight_norm

    def to_state_space(self) -> StateSpace:
        """The network as (A, B, C, D); its states are the ξ of each layer, then ξ̇ − J u of its second-order neurons."""
        return StateSpace.of(self._realized, settings=self.signal_settings)

    def to_scipy(self, *, pade: int | None = None) -> "scipy.signal.StateSpace":
        """The network as a `scipy.signal.StateSpace`.

        Parameters
        ----------
        pade : int, optional
            Order of the Padé approximants that stand for delays, which SciPy does not have.

        Raises
        ------
        InvalidSystemError
            The network has an operating point, or delays and no `pade` is given.
        """
        return to_scipy(self._without_delays("to_scipy", pade))

    def to_control(self, *, pade: int | None = None) -> Any:
        """The network as a `control.StateSpace`; needs python-control. `pade` is as for `to_scipy`."""
        return to_control(self._without_delays("to_control", pade))

    def _without_delays(self, call: str, pade: int | None) -> SystemMatrices:
        settings = self.signal_settings
        if settings.has_operating_point:
            raise InvalidSystemError(
                f"the network has an operating point, which {call} has no place for; remove it with "
                f"net.with_signal_settings(u0=0, y0=0).{call}(), and subtract u0 from inputs and add y0 to outputs"
            )
        if settings.has_delays and pade is None:
            raise InvalidSystemError(
                f"the network has delays, which {call} has no place for; approximate them with {call}(pade=4), or "
                f"leave them out: net.with_signal_settings(input_delay=0, output_delay=0).{call}()"
            )
        return approximate_delays(self._realized, settings, pade) if settings.has_delays else self._realized

    def to_torch(
        self, dt: float, *, hold: Hold | None = None, trainable: TrainableParts = True
    ) -> "LinearNetwork[DynamicNetwork] | DelayedNetwork[DynamicNetwork]":
        """The network as a `torch.nn.Module` for samples dt apart, equal to it until trained; see `ltinet.nn`.

        Without `hold` it is that of the model, and "linear" where the model has none. A model with delays or an
        operating point becomes an `nn.DelayedNetwork`.

        Raises
        ------
        InvalidSystemError
            A delay is no multiple of dt.
        """
        settings = self.signal_settings
        hold = resolve_hold(hold, settings)
        network = to_torch(self._context, dt, hold=hold, trainable=trainable, settings=settings, rebuild=DynamicNetwork)
        return delayed_module(network) if settings.shifts_signals else network

    def poles(self) -> NDArray[np.complex128]:
        """Poles of all neurons, layer by layer, as `neuron.poles` holds them; a method, as on `StateSpace`."""
        return poles(self.network)

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(jω), shape (len(omega), n_outputs, n_inputs), for angular frequencies in radians per unit of time."""
        H = frequency_response(self.network, omega)
        if not self.signal_settings.has_delays:
            return H
        return apply_delays(H, omega, self.signal_settings.total_delay(self.n_outputs, self.n_inputs))

    def step_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Outputs after an input went from 0 to 1 at t = 0; see `StateSpace.step_response`."""
        return self._response_system.step_response(t, input=input, output=output)

    def impulse_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Outputs after a unit impulse at t = 0; see `StateSpace.impulse_response`."""
        return self._response_system.impulse_response(t, input=input, output=output)

    def initial_response(self, x0: ArrayLike, t: Times = None, *, output: Channel = None) -> Solution:
        """Outputs from the state x0 at t = 0; see `StateSpace.initial_response`."""
        return self._response_system.initial_response(x0, t, output=output)

    def step_info(
        self,
        *,
        input: Channel = None,
        output: Channel = None,
        settling: float = 0.02,
        rise: tuple[float, float] = (0.1, 0.9),
    ) -> StepInfo:
        """Rise time, settling time, overshoot and peak of step responses; see `StateSpace.step_info`."""
        return self._response_system.step_info(input=input, output=output, settling=settling, rise=rise)

    def zeros(self) -> NDArray[np.complex128]:
        """The finite invariant zeros of the system that the network stands for."""
        return self._response_system.zeros()

    def damping(self) -> Damping:
        """Natural frequency, damping ratio and time constant of the poles of all neurons; prints as a table."""
        return damping_table(self.poles(), None)

    def dcgain(self) -> NDArray[np.float64]:
        """The gain at rest, p×m; see `StateSpace.dcgain`."""
        return self._response_system.dcgain()

    def bandwidth(self, *, drop: float = 3.0) -> NDArray[np.float64]:
        """The first frequency at which each gain is `drop` decibels below that at rest; see `StateSpace.bandwidth`."""
        return self._response_system.bandwidth(drop=drop)

    def simulate(  # noqa: PLR0913
        self,
        u: Any,
        t: ArrayLike,
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
        """Run the network: outputs y at the times t, `(..., T, p)`.

        The exact engine gives the solution in closed form. With at most 128 states, at evenly spaced times, it is that
        of stepping the given matrices, up to rounding; with more states it is that of the block-diagonal network, which
        may lose up to log₁₀ cond(T) digits of the largest state. `sol.error_bound()` holds in both cases, and
        `sol.stats["coordinates"]` says which it was. The engines "per_neuron" (Algorithm 3) and "per_interval"
        (Algorithm A.1) solve one differential equation per neuron with SciPy's solvers. An option that the engine does
        not know is refused; None means that it was not given.

        Args:
            u: samples `(T, m)` or `(batch, T, m)` at the times t (`(T,)` for a single input), a function of time, any
                `Signal`, or None for no input (the operating point). By name: a dictionary with samples `(T,)`, a
                number or a function for each input, `{"Force (N)": u}`; a `Table` or DataFrame, whose columns are taken
                by name or in order.
            t: times, ascending, evenly spaced or not; a time given twice marks a jump of u. Numbers in the unit of
                time of the system, or durations (`timedelta64`, `datetime.timedelta`), which are seconds.
            x0: state at t[0] in the user's coordinates, zero if left out; for a batch one for all or one for each.
            hold: "linear" for straight lines between samples, "zero" for steps; that of the model if left out, and
                "linear" where the model has none. `sol.stats["hold"]` tells.
            engine: "exact", "per_neuron" or "per_interval".
            coordinates: exact engine: "original" steps the matrices as given, "blocks" the blocks of the network;
                "auto" (if left out) chooses as described above. At uneven times more than 16 states run in blocks.
                Blocks are not taken where `form.condition_raw`, cond(T) in the given units, is above 1e4.
            input_tolerance: exact engine: distance of a function u from the lines that replace it, for each input
                relative to its max |u|; 1e-8 if left out.
            method: solver engines: RK23, RK45, DOP853 (if left out), Radau, BDF or LSODA, for all neurons, by a mapping
                from layers or from (layer, neuron), or by a function of the neuron.
            rtol: solver engines: relative tolerance, given as `method` is; 1e-8 if left out.
            atol: solver engines: absolute tolerance, given as `method` is; 1e-10 if left out.
            first_step: solver engines: first step after each restart; with an equal `max_step` all steps are this long.
            max_step: solver engines: longest step; without limit if left out.
            n_jobs: threads that share a batch (exact engine) or processes that share layers (joblib); -1: one per core.
            across_knots: solver engines: integrate across knots of the input, as the paper does; for comparisons.
            options: whatever else the engine knows.
        """
        given = {"input_tolerance": input_tolerance, "method": method, "rtol": rtol, "atol": atol, **options}
        given |= {
            "coordinates": coordinates,
            "first_step": first_step,
            "max_step": max_step,
            "across_knots": across_knots,
        }
        return simulate(
            self._context, u, t=t, x0=x0, hold=hold, engine=engine, n_jobs=n_jobs, options=given,
            settings=self.signal_settings,
        )  # fmt: skip

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
        """Return how well the network explains a measured record, in % for each output; see `StateSpace.fit`."""
        return self._response_system.fit(u, y, t=t, dt=dt, from_rest=from_rest, hold=hold)

    def stepper(self, dt: float, *, hold: Hold | None = None, x0: ArrayLike | None = None) -> Stepper:
        """A streaming simulation with time step dt: `y_k = stepper.step(u_k)` is the output at the time of u_k.

        Without `hold` it is that of the model, and "linear" where the model has none. Delays wait in buffers; one that
        is no whole number of steps is exact too.
        """
        x0, settings = None if x0 is None else as_real_array(x0, "x0"), self.signal_settings
        core = Stepper(self._context, as_time_step(dt, "dt"), hold=resolve_hold(hold, settings), x0=x0)
        return DelayedStepper(core, settings) if settings.shifts_signals else core

    def simulate_stream(
        self, chunks: Iterable[ArrayLike], dt: float, *, hold: Hold | None = None, x0: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Outputs `(steps, p)` for chunks of evenly spaced samples `(steps, m)`, one after the other as they come."""
        return self.stepper(dt, hold=hold, x0=x0).run(chunks)

    @property
    def plot(self) -> NetworkPlots:
        """Drawings: `net.plot()` for a slide, `net.plot.architecture()`, `.bode()`, `.step()`, …; need matplotlib."""
        names = self._names
        return NetworkPlots(self, self._response_system.plot_frequencies, names.outputs, names.inputs)

    def certificate(self, *, horizon: float, n_steps: int = 1000) -> Certificate:
        """What the exact engine promises up to a horizon, per unit of max |u| and without running anything.

        Bounds on the error of each output from rounding in `n_steps` steps and from the decomposition, separately.
        """
        return network_certificate(self._context, horizon=horizon, n_steps=n_steps)

    @cached_property
    def _context(self) -> SimulationContext:
        parts = NetworkParts(self.network, self.form, self.blocks)
        return SimulationContext(parts, origin=self._origin, reduction_error=self.reduction_error)

    @cached_property
    def _response_system(self) -> StateSpace:
        """The system behind the network, or the network as one, which runs on what is prepared here."""
        return StateSpace.of(self._origin or self._realized, prepared=self._context, settings=self.signal_settings)

    @property
    def _origin(self) -> SystemMatrices | None:
        return None if self.system is None else self.system.matrices

    @property
    def _names(self) -> SignalNames:
        return UNNAMED if self.system is None else self.system.matrices.names

    @property
    def _realized(self) -> SystemMatrices:
        """The network as a system; its states are its own, its inputs and outputs those of the system behind it."""
        return to_state_space(self.network).with_names(self._names.without_states)

    export_c, export_fmu, export_onnx = api.export_c, api.export_fmu, api.export_onnx

    def explore(
        self,
        *,
        page: str | PathLike[str] | None = None,
        title: str | None = None,
        port: int = 0,
        browser: bool = True,
        told: Callable[[str], None] = print,
    ) -> Any:
        """Show the network on an interactive page; the options are those of `ltinet.explore`."""
        return _explorer(self, page=page, title=title, port=port, browser=browser, told=told)

    def save(self, path: str | Path) -> None:
        """Write the network to a safetensors file, whole or not at all; `ltinet.load` restores every bit."""
        write_network(path, self._context.stored._replace(settings=self.signal_settings))

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}  # what was prepared is made anew

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicNetwork):
            return NotImplemented
        return self.network == other.network and self.signal_settings == other.signal_settings

    def __hash__(self) -> int:
        return hash(self.network)

    def __dir__(self) -> list[str]:
        return dir_without(self, "network", "blocks")

    def __repr__(self) -> str:
        shown = repr(self.network).replace("Network(", "DynamicNetwork(", 1)
        return f"{shown[:-1]}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        return summary_text(self.network, self.form, names=self._names, settings=self.signal_settings)

    def _repr_html_(self) -> str:
        return summary_html(self.network, self.form, names=self._names, settings=self.signal_settings)
