"""State-space systems: the class `StateSpace`.

    x' = A x + B u  or  x[k+1] = A x[k] + B u[k],    y = C x + D u,

with names, delays, operating point, hold and sample time. Methods simulate, analyse, convert and plot the system; each
delegates to the package that implements it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Complex
from ltinet._util.other_names import missing_attribute, suggest_keywords
from ltinet._util.progress import Progress
from ltinet._util.text import format_rows
from ltinet.analysis.characteristics import StepInfo, step_info
from ltinet.analysis.discrete_responses import discrete_response, discrete_step_info
from ltinet.analysis.frequency_response import apply_delays, evaluation_points, frequencies_for, transfer_evaluator
from ltinet.analysis.linear_model import LinearModel
from ltinet.analysis.poles import compute_poles, system_summary_rows
from ltinet.analysis.responses import (
    Channel,
    Times,
    delayed_response,
    impulse_response,
    initial_response,
    step_response,
)
from ltinet.analysis.sampling import to_continuous, to_discrete, validate_method
from ltinet.analysis.stability import Sensitivities, sensitivity_matrices, validate_loop
from ltinet.errors import InvalidSystemError
from ltinet.export.api import replace_delays, to_control, to_scipy
from ltinet.interconnection.operators import SystemOperators
from ltinet.large_systems import PreparedSystem, ReducedResponses, implicit_step_response
from ltinet.plotting.plots import SystemPlots
from ltinet.plotting.system_response import DrawnSystem
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import create_stepper, simulate_system
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import Solution, of_reduced_model, with_time_unit
from ltinet.simulation.stepper import Stepper
from ltinet.systems.dof_selection import ChannelsLike, count_rows, edge_matrix, split_dofs
from ltinet.systems.matrices import Matrix, MatrixLike
from ltinet.systems.shift_registers import delays_as_states
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.system_matrices import Descriptor, SystemMatrices

if TYPE_CHECKING:
    import scipy.signal


@final
@dataclass(frozen=True, init=False, repr=False)
class StateSpace(SystemOperators, LinearModel):
    """Real linear time-invariant system x' = A x + B u (or x[k+1] = A x[k] + B u[k]), y = C x + D u.

    A is n×n, B n×m, C p×n and D p×m; each of n, m and p may be 0, and n = 0 is a static gain. The matrices are stored
    as read-only float64 copies. Systems are equal if their matrices, dt, delays, operating point, hold and sample time
    are; names are not compared.

    A sparse A stays sparse, with its E, in `sparse`. Models of up to 3,000 states are converted to dense arrays where a
    method needs them. Larger models support `frequency_response`; `simulate`, `step_response`, `impulse_response` and
    `plot` by a reduction, whose error is part of their bounds; other methods raise an error that
    names the call to use instead.

    A system in discrete time has a time step `dt`. It is analysed, simulated, reduced and exported like one in continuous
    time; its values exist at multiples of dt only. What needs continuous time says so: convert it with `to_continuous`.

    Delays, operating point, hold and sample time affect simulations and responses, are saved in files, and are copied
    to networks constructed from the system; `poles`, `zeros` and `dcgain` do not depend on them.

    Parameters
    ----------
    A : array_like or sparse matrix, shape (n, n)
        State matrix; a number is 1×1. Sparse matrices stay sparse.
    B : array_like, shape (n, m) or (n,), optional
        Input matrix; a 1-D array is a single input. Omitted if `inputs` are degrees of freedom.
    C : array_like, shape (p, n) or (n,), optional
        Output matrix; a 1-D array is a single output. Omitted if `outputs` or `states` are degrees of freedom.
    D : array_like, shape (p, m), optional
        Feedthrough, zero by default. The number 0 is a zero matrix, any other number is 1×1; a 1-D array requires a
        single input or a single output.
    E : array_like or sparse matrix, shape (n, n), optional
        Matrix of a descriptor system E x' = A x + B u, not singular. A dense E is eliminated: `A` and `B` become E⁻¹A
        and E⁻¹B, and `descriptor` keeps the original matrices. A sparse E is kept, and tested for singularity when E⁻¹
        is needed.
    dt : float, optional
        Time step of a system in discrete time; None or 0 for continuous time.
    inputs : sequence of str or of int, optional
        Name of each input, with its unit: `["Force (N)"]`; u1, u2, … by default. DataFrames supply names by
        themselves: rows and columns of A are states, columns of B inputs, rows of C outputs. A list of integers
        instead of B: unit loads on these rows of the state equation, counted from 0.
    outputs : sequence of str or of int, optional
        Name of each output; y1, y2, … by default. A list of integers instead of C: these states, counted from 0.
    states : sequence of str or of int, optional
        Name of each state; x1, x2, … by default. A list of integers instead of C: the states that are outputs, whose
        names `outputs` may then give.
    input_delay : float or sequence of float, optional
        Delay ≥ 0 of each input in units of time; a single number applies to all. Multiples of dt in discrete time.
    output_delay : float or sequence of float, optional
        Delay of each output, likewise.
    u0 : float or sequence of float, optional
        Operating point of the inputs: y − y0 responds to u − u0.
    y0 : float or sequence of float, optional
        Operating point of the outputs.
    hold : {"linear", "zero"}, optional
        Interpolation of inputs between samples; None if the model does not specify it.
    sample_time : float, optional
        Time between samples of the data that the model was identified from.

    Raises
    ------
    InvalidSystemError
        If a matrix is complex, not finite or of the wrong shape, E is singular, dt is not valid, names are not unique
        texts, or a delay is negative.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> system = ltinet.StateSpace([[0, 1], [-4, -0.4]], [0, 1], [1, 0], inputs=["Force (N)"])
    >>> system.dcgain()
    array([[0.25]])
    >>> t = np.linspace(0.0, 10.0, 501)
    >>> solution = system.simulate(np.sin(t), t)
    >>> solution.y.shape
    (501, 1)
    """

    matrices: SystemMatrices
    """Validated matrices, as the functions behind the public API take them."""
    signal_settings: SignalSettings
    """Delays, operating point, hold and sample time."""
    _prepared: PreparedSystem = field(compare=False)

    @suggest_keywords
    def __init__(  # noqa: PLR0913
        self,
        A: MatrixLike,
        B: MatrixLike | None = None,
        C: MatrixLike | None = None,
        D: MatrixLike | None = None,
        E: MatrixLike | None = None,
        *,
        dt: float | None = None,
        inputs: ChannelsLike = None,
        outputs: ChannelsLike = None,
        states: ChannelsLike = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        input_dofs, inputs = split_dofs(inputs)
        output_dofs, outputs = split_dofs(outputs)
        state_dofs, states = split_dofs(states)
        if output_dofs is not None and state_dofs is not None:
            raise InvalidSystemError(
                "outputs and states are both degrees of freedom; give them once, and names in the other argument"
            )
        output_dofs = state_dofs if output_dofs is None else output_dofs
        n = count_rows(A)
        B = edge_matrix(B, input_dofs, n, kind="inputs", names=inputs)
        C = edge_matrix(C, output_dofs, n, kind="outputs", names=outputs)
        names = SignalNames.of(inputs, outputs, states)
        if output_dofs is not None and names.outputs is None and names.states is not None and len(names.states) == n:
            names = replace(names, outputs=tuple(names.states[dof] for dof in output_dofs.tolist()))
        matrices = SystemMatrices(A, B, C, D, E, dt=dt, names=names)
        settings = SignalSettings.of(
            n_inputs=matrices.n_inputs, n_outputs=matrices.n_outputs, input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        self._set(matrices, settings, PreparedSystem(matrices))

    def _set(self, matrices: SystemMatrices, settings: SignalSettings, prepared: PreparedSystem) -> None:
        """Set the fields; settings are checked against the sizes and the time step of the matrices."""
        settings = settings.validate_for(n_inputs=matrices.n_inputs, n_outputs=matrices.n_outputs, dt=matrices.dt)
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "signal_settings", settings)
        object.__setattr__(self, "_prepared", prepared)

    @classmethod
    def of(
        cls,
        matrices: SystemMatrices,
        *,
        prepared: PreparedSystem | None = None,
        settings: SignalSettings = NO_SETTINGS,
    ) -> "StateSpace":
        """Create a system from validated matrices.

        Parameters
        ----------
        matrices : SystemMatrices
            Matrices that were validated already.
        prepared : PreparedSystem, optional
            Cache of a system with the same matrices.
        settings : SignalSettings, optional
            Delays, operating point, hold and sample time.

        Returns
        -------
        StateSpace
            System that shares the matrices.
        """
        system = cls.__new__(cls)
        system._set(matrices, settings, PreparedSystem(matrices) if prepared is None else prepared)
        return system

    @property
    def A(self) -> Matrix:
        """State matrix as an array, n×n; sparse ones of more than 3,000 states are available in `sparse` only."""
        return self.matrices.A

    @property
    def B(self) -> Matrix:
        """Input matrix, n×m."""
        return self.matrices.B

    @property
    def C(self) -> Matrix:
        """Output matrix, p×n."""
        return self.matrices.C

    @property
    def D(self) -> Matrix:
        """Feedthrough, p×m."""
        return self.matrices.D

    @property
    def sparse(self) -> SparseDescriptor | None:
        """A, E and B of a model with a sparse A, as passed by the user; None for any other."""
        return self.matrices.sparse

    @property
    def descriptor(self) -> Descriptor | None:
        """E, A and B as passed by the user, if there was an E; error bounds include the rounding of E⁻¹A and E⁻¹B."""
        return self.matrices.descriptor

    @property
    def dt(self) -> float | None:
        """Time step of a system in discrete time; None in continuous time."""
        return self.matrices.dt

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return self.matrices.n_states

    @property
    def n_inputs(self) -> int:
        """Number of inputs m."""
        return self.matrices.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return self.matrices.n_outputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; u1, u2, … by default."""
        return self.matrices.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; y1, y2, … by default."""
        return self.matrices.output_names

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states; x1, x2, … by default."""
        return self.matrices.state_names

    def with_names(self, inputs: NamesLike = None, outputs: NamesLike = None, states: NamesLike = None) -> "StateSpace":
        """Return the same system with other names.

        Parameters
        ----------
        inputs, outputs, states : sequence of str, optional
            Name of each input, output or state; names that are omitted stay as they are.

        Returns
        -------
        StateSpace
            System with the new names.

        Raises
        ------
        InvalidSystemError
            If there is not one name for each signal, or names are not unique texts.
        """
        names = SignalNames.of(inputs, outputs, states).with_defaults(self.matrices.names)
        return StateSpace.of(self.matrices.with_names(names), settings=self.signal_settings)

    def with_signal_settings(self, **changes: Any) -> "StateSpace":
        """Return the same system with other delays, operating point, hold or sample time.

        Parameters
        ----------
        **changes
            `input_delay`, `output_delay`, `u0`, `y0`, `hold` and `sample_time`, as for `StateSpace`; settings that are
            omitted stay as they are. None or 0 removes a setting.

        Returns
        -------
        StateSpace
            System with the new settings.

        Raises
        ------
        InvalidSystemError
            If a setting is unknown or a value is not valid.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        return StateSpace.of(self.matrices, settings=settings, prepared=self._prepared)

    def simulate(
        self,
        u: Any,
        t: ArrayLike | None = None,
        *,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        tolerance: float | None = None,
        progress: Progress = None,
    ) -> Solution:
        """Simulate the system: compute its outputs at given times for an input.

        The solution is exact up to rounding, with error bounds, and computed by the network of the system.

        A sparse model of more than 3,000 states is reduced once, to a relative error of 1e-6, if that error can be
        proven; it is part of `error_bound`. Otherwise, from a state x0, and for any sparse model with a `tolerance`, an
        implicit method runs on the sparse matrices. Its error is estimated by halving all steps,
        `solution.error_estimate`, and is not a bound. In discrete time a large sparse model is stepped with its sparse
        matrices; its `error_bound` is infinite.

        Parameters
        ----------
        u : array_like, callable, Signal, mapping, Table, DataFrame or None
            Input, as for `DynamicNetwork.simulate`.
        t : array_like, shape (T,)
            Ascending times, evenly spaced or not; by default those of a `Table`. In discrete time multiples of dt, or a
            number of samples, by default that of u.
        x0 : array_like, optional
            State at t[0]; zero by default.
        hold : {"linear", "zero"}, optional
            Interpolation between samples; by default that of the model, "linear" if it has none. Not for models in
            discrete time.
        tolerance : float, optional
            Limit on the estimated error of the implicit method relative to each largest |y|, for sparse models; 1e-6 by
            default.
        progress : bool or callable, optional
            Progress of large models, as for `reduce`.

        Returns
        -------
        Solution
            Outputs `y`, shape (..., T, p), and error bounds.

        Raises
        ------
        InvalidSignalError
            If the input or the times are not valid.
        SimulationError
            If the tolerance cannot be reached.
        """
        if tolerance is None and t is not None and (x0 is None or not np.any(x0)):
            reduced = self._prepared.reduce(progress)
            if reduced is not None and reduced.error.is_proven:
                solution = of_reduced_model(self._small(reduced).simulate(u, t, hold=hold), reduced.note)
                return with_time_unit(solution, u, t)
        solution = simulate_system(
            self.matrices,
            lambda: self._context,
            u,
            t=t,
            x0=x0,
            hold=hold,
            tolerance=tolerance,
            settings=self.signal_settings,
            progress=progress,
        )
        return with_time_unit(solution, u, t)

    def stepper(self, dt: float | None = None, *, hold: Hold | None = None, x0: ArrayLike | None = None) -> Stepper:
        """Create a streaming simulation: `y_k = stepper.step(u_k)` returns the output at the time of u_k.

        All samples together give the outputs of `simulate`. Delays are buffered; those that are not multiples of dt are exact,
        too.

        Parameters
        ----------
        dt : float, optional
            Time step; may be omitted in discrete time, where it is that of the model.
        hold : {"linear", "zero"}, optional
            Interpolation between samples; by default that of the model, "linear" if it has none. Not in discrete time.
        x0 : array_like, optional
            Initial state; zero by default.

        Returns
        -------
        Stepper or DelayedStepper
            Simulation that starts at the initial state.

        Raises
        ------
        InvalidSignalError
            If dt, hold or x0 is not valid.
        """
        return create_stepper(self._context, dt, hold=hold, x0=x0, settings=self.signal_settings)

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
        """Compute the fit of the model to a measured record in percent: 100 (1 − ‖y − ŷ‖/‖y − mean(y)‖).

        Parameters
        ----------
        u, y : array_like
            Inputs (T, m) and outputs (T, p), or (T,) for a single channel; tables or DataFrames; or a list of them with
            one entry for each experiment. NaN marks missing samples, and ends an experiment.
        t : array_like, optional
            Times of the samples, evenly spaced or not.
        dt : float, optional
            Time between samples. If t and dt are both omitted, `sample_time` of the model is used.
        from_rest : bool, optional
            True starts at rest at the operating point. By default the state at the first sample is fitted by least
            squares, and outputs that depend on inputs before the record are excluded.
        hold : {"linear", "zero"}, optional
            Interpolation of inputs between samples; by default that of the model.

        Returns
        -------
        ndarray, shape (p,)
            Fit of each output: 100 for a perfect model, 0 for one that is as good as the mean of the record.

        Raises
        ------
        InvalidSignalError
            If the record does not fit the model, or its times are unknown.
        """
        # Imported here because few programs compare models with records.
        from ltinet.identification.record_comparison import compare_record

        return compare_record(self, u, y, t=t, dt=dt, from_rest=from_rest, hold=hold).fits

    def step_response(
        self, t: Times = None, *, input: Channel = None, output: Channel = None, progress: Progress = None
    ) -> Solution:
        """Compute the step response: outputs for a unit step of an input at t = 0, from rest.

        The response is exact up to rounding, with error bounds; it includes delays and is a deviation from the
        operating point. That of a large sparse system is computed by its reduction to a relative error of 1e-6, which
        `error_bound` includes where it is proven. A large model that cannot be reduced, such as one that integrates, is
        simulated at the times t as by `simulate`, with an error estimate.

        Parameters
        ----------
        t : array_like, optional
            Times from 0 on, in discrete time multiples of dt or a number of samples. By default up to 5,000 times are
            chosen from the dominant poles, evenly or logarithmically spaced, until every response has settled within
            2 %. Responses of integrators and unstable systems never settle; `solution.notes` gives the end that was
            chosen and the reason.
        input : int or str, optional
            Index or name of an input; all inputs by default.
        output : int or str, optional
            Index or name of an output; all outputs by default.
        progress : bool or callable, optional
            Progress of the reduction, as for `reduce`.

        Returns
        -------
        Solution
            Response with `y` of shape (m, T, p): `y[j, :, i]` is the response of output i to input j. With `input` the
            shape is (T, p); with `output` the last axis has length 1.

        Raises
        ------
        InvalidSignalError
            If t does not start at 0, or there is no such input or output.
        """
        if self.dt is not None:
            return self._discrete_response(t, kind="step", input=input, output=output)
        reduced = self._prepared.reduce(progress)
        if reduced is not None:
            return of_reduced_model(self._small(reduced).step_response(t, input=input, output=output), reduced.note)
        if self._prepared.refusal is not None:
            return implicit_step_response(
                self._prepared, self.matrices, self.signal_settings, t, input=input, output=output, progress=progress
            )
        system = self._context, self.matrices
        run = partial(step_response, *system, input=input, output=output)
        return delayed_response(run, *system, self.signal_settings, t=t, input=input, output=output, kind="step")

    def impulse_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Compute the impulse response: outputs for a unit impulse of an input at t = 0, from rest.

        It equals the response from the initial state B e_j, or E⁻¹B e_j as rounded. If D is not zero, the output also
        has an impulse D δ(t), which is omitted; `solution.notes` then says so.

        In discrete time an impulse is one sample of height 1/dt, as in MATLAB and python-control, and the response
        includes D/dt at t = 0; multiplied by dt it is the response to a sample of height one.

        Parameters
        ----------
        t, input, output
            Times and channels, as for `step_response`.

        Returns
        -------
        Solution
            Response with the same shape as that of `step_response`.
        """
        if self.dt is not None:
            return self._discrete_response(t, kind="impulse", input=input, output=output)
        reduced = self._prepared.reduce(None)
        if reduced is not None:
            return of_reduced_model(self._small(reduced).impulse_response(t, input=input, output=output), reduced.note)
        system = self._context, self.matrices
        run = partial(impulse_response, *system, input=input, output=output)
        return delayed_response(run, *system, self.signal_settings, t=t, input=input, output=output, kind="impulse")

    def initial_response(self, x0: ArrayLike, t: Times = None, *, output: Channel = None) -> Solution:
        """Compute the response to an initial state without input.

        Parameters
        ----------
        x0 : array_like, shape (n,) or (..., n)
            State at t = 0, or a batch of states.
        t, output
            Times and output, as for `step_response`.

        Returns
        -------
        Solution
            Response with `y` of shape (..., T, p).
        """
        if self.dt is not None:
            return self._discrete_response(t, kind="initial", output=output, x0=x0)
        system = self._context, self.matrices
        run = partial(initial_response, *system, x0, output=output)
        return delayed_response(run, *system, self.signal_settings, t=t, output=output, kind="initial", x0=x0)

    def step_info(
        self,
        *,
        input: Channel = None,
        output: Channel = None,
        settling: float = 0.02,
        rise: tuple[float, float] = (0.1, 0.9),
    ) -> StepInfo:
        """Compute rise time, settling time, overshoot and peak of the step responses.

        All values come from the exact response and do not depend on a time grid; in discrete time they are those of the
        samples. Delays are reported as `dead_time` and
        included in settling and peak times, which count from the step of the input; rise times do not depend on them.

        Parameters
        ----------
        input, output : int or str, optional
            Index or name of an input and an output; all by default. The axis of a selected channel has length 1.
        settling : float, optional
            Half-width of the settling band relative to the final value.
        rise : tuple of float, optional
            Fractions of the final value between which the rise time is measured.

        Returns
        -------
        StepInfo
            Characteristics of every output for every input; prints as a table.
        """
        compute = step_info if self.dt is None else discrete_step_info
        info = compute(self._context, self.matrices, input=input, output=output, settling=settling, rise=rise)
        if not self.signal_settings.has_delays:
            return info
        rows = [self.output_names.index(name) for name in info.output_names]
        columns = [self.input_names.index(name) for name in info.input_names]
        dead_time = self.signal_settings.total_delay(self.n_outputs, self.n_inputs)
        return info.delayed(dead_time[np.ix_(rows, columns)])

    def poles(self) -> NDArray[np.complex128]:
        """Compute the poles, the eigenvalues of A.

        Returns
        -------
        ndarray of complex, shape (n,)
            Poles by falling real part; the pole with positive imaginary part of each pair comes first.
        """
        return compute_poles(self.matrices)

    def frequency_response(self, omega: ArrayLike, *, progress: Progress = None) -> NDArray[np.complex128]:
        """Compute the frequency response H(jω), or H(e^{jω dt}) in discrete time.

        Dense models use one decomposition of A, which is cached, and refine the solution if the residual of
        (jω E − A) X = B is too large. Sparse models take one sparse factorization for each frequency; those of
        `ltinet.reduce(system, tolerance=1e-6).system` take microseconds. Delays are included as exact factors e^{−jωτ}.

        Parameters
        ----------
        omega : array_like
            Angular frequencies in radians per unit of time.
        progress : bool or callable, optional
            Progress of large sparse models, as for `reduce`.

        Returns
        -------
        ndarray of complex, shape (len(omega), n_outputs, n_inputs)
            Frequency response; complex(inf, nan) at a pole.
        """
        H = self._response(evaluation_points(omega, self.dt), progress)
        if not self.signal_settings.has_delays:
            return H
        return apply_delays(H, omega, self.signal_settings.total_delay(self.n_outputs, self.n_inputs))

    def sensitivity(self, controller: "StateSpace | None" = None) -> "Sensitivities[StateSpace]":
        """Compute the four closed-loop functions of this system as a plant P with a controller in negative feedback.

        Parameters
        ----------
        controller : StateSpace, optional
            Controller C; by default the identity, so that the system is the whole open loop.

        Returns
        -------
        Sensitivities
            Named tuple of systems S = (I + PC)⁻¹, T = PC S, CS and PS. All have the states of plant and controller; in
            discrete time delays are further states.

        Raises
        ------
        InvalidSystemError
            If sizes or time steps differ, the loop is not well-posed, or a system has an operating point or, in continuous
            time, delays.
        """
        if controller is None:
            controller = StateSpace([], [], [], np.eye(self.n_inputs, self.n_outputs), dt=self.dt)
            validate_loop(self.matrices, "sensitivity()")
        matrices = []
        for system in (self, controller):
            settings = system.signal_settings
            if settings.has_delays and system.dt is None:
                raise InvalidSystemError(
                    "sensitivity functions of a loop with delays are not rational in continuous time; margin() and nyquist() "
                    "support delays, and ltinet.pade(system, order) replaces them by a rational approximation"
                )
            replace(settings, input_delay=None, output_delay=None).refuse_unsupported("sensitivity()")
            matrices.append(delays_as_states(system.matrices, settings) if settings.has_delays else system.matrices)
        # S and T are functions of the plant's outputs, CS gives and PS takes its inputs.
        outputs, inputs = self.matrices.names.outputs, self.matrices.names.inputs
        channels = [(outputs, outputs), (outputs, outputs), (outputs, inputs), (inputs, outputs)]
        functions = [
            system.with_names(SignalNames(*names))
            for system, names in zip(sensitivity_matrices(*matrices), channels, strict=True)
        ]
        return Sensitivities(*map(StateSpace.of, functions))

    @property
    def _analyzed(self) -> tuple[SystemMatrices, SignalSettings]:
        return self.matrices, self.signal_settings

    @property
    def plot(self) -> SystemPlots:
        """Plots of the system: `system.plot()` for an overview, `system.plot.bode()`, `.step()`, …; needs matplotlib."""
        names = self.matrices.names
        return SystemPlots(self, self.plot_frequencies, names.outputs, names.inputs, reduce=self._reduce_for_plots)

    def _reduce_for_plots(self) -> DrawnSystem | None:
        reduced = self._prepared.reduce(None)
        if reduced is None:
            return None
        small = self._small(reduced)
        return DrawnSystem(small, small.plot_frequencies, reduced.error)

    def plot_frequencies(self) -> NDArray[np.float64]:
        """Return the angular frequencies of frequency plots, as `frequencies_for` chooses them.

        Those of a model that was identified from samples end at their Nyquist frequency, π/`sample_time`.

        Returns
        -------
        ndarray
            Angular frequencies in radians per unit of time.

        Raises
        ------
        InvalidSystemError
            If the model is too large for poles, and cannot be reduced.
        """
        if self._prepared.refusal is not None:
            raise InvalidSystemError(
                f"omega is missing: no frequencies can be chosen, because the model cannot be reduced "
                f"({self._prepared.refusal}); pass them, as in system.plot.bode(np.logspace(-2, 2, 41))"
            )
        return frequencies_for(self.poles(), self.zeros(), dt=self.dt, sample_time=self.signal_settings.sample_time)

    @cached_property
    def _response(self) -> Callable[..., Complex]:
        return transfer_evaluator(self.matrices)

    @property
    def _context(self) -> SimulationContext:
        return self._prepared.context

    def _small(self, reduced: ReducedResponses) -> "StateSpace":
        """Return a reduced model as a system whose error bounds include the reduction."""
        prepared = PreparedSystem(reduced.matrices, context=reduced.context)
        return StateSpace.of(reduced.matrices, prepared=prepared, settings=self.signal_settings)

    def _discrete_response(self, t: Times, **request: Any) -> Solution:
        return discrete_response(self._context, self.matrices, self.signal_settings, t, **request)

    def to_continuous(self, method: str = "zoh", *, prewarp_frequency: float | None = None) -> "StateSpace":
        """Convert a system in discrete time to continuous time.

        By "zoh" and "foh" A = log(A_d)/dt, the logarithm with frequencies below π/dt; faster modes cannot be
        distinguished from their aliases. A single negative real eigenvalue has no counterpart, and neither has zero; two
        equal negative ones become a pair at half the sampling frequency. By "foh" the states are x[k] − Q₁ u[k], as in
        `to_discrete`, and D changes. "tustin" has no counterpart of the eigenvalue −1 only.

        Parameters
        ----------
        method : str, optional
            Method, as for `to_discrete`.
        prewarp_frequency : float, optional
            Angular frequency at which "tustin" is exact.

        Returns
        -------
        StateSpace
            System in continuous time with the same values at the sampling times.

        Raises
        ------
        InvalidSystemError
            If there is no such system, or this one is in continuous time.
        """
        matrices = to_continuous(self.matrices, method=validate_method(method), prewarp_frequency=prewarp_frequency)
        return StateSpace.of(matrices, settings=self.signal_settings)

    def to_discrete(self, dt: float, method: str = "zoh", *, prewarp_frequency: float | None = None) -> "StateSpace":
        """Convert the system to discrete time.

        The conversion is exact for inputs that are constant ("zoh") or linear ("foh") between samples. The trapezoidal
        rule ("tustin") preserves stability and warps frequencies. By "zoh" the states are x(k dt). By "foh" they are
        x(k dt) − Q₁ u[k], where Q₁ is the effect of the end value of a ramp within one step, and D becomes D + C Q₁.

        Parameters
        ----------
        dt : float
            Time step. Delays must be multiples of it.
        method : {"zoh", "foh", "tustin", "euler", "backward", "matched"}, optional
            Inputs held constant between samples ("zoh", "zero"), linear between samples ("foh", "linear"), the
            trapezoidal rule s = (2/dt)(z − 1)/(z + 1) ("tustin", "bilinear"), forward differences ("euler",
            "forward_diff"), backward differences ("backward", "backward_diff"), or poles and zeros mapped by
            z = e^{s dt} ("matched"; one input and one output).
        prewarp_frequency : float, optional
            Angular frequency below π/dt at which "tustin" is exact.

        Returns
        -------
        StateSpace
            System in discrete time with outputs at the times k·dt.

        Raises
        ------
        InvalidSystemError
            If the system is in discrete time, dt is not positive, or a delay is not a multiple of dt.
        """
        matrices = to_discrete(self.matrices, dt, method=validate_method(method), prewarp_frequency=prewarp_frequency)
        return StateSpace.of(matrices, settings=self.signal_settings)

    def to_scipy(self, *, pade: int | None = None) -> "scipy.signal.StateSpace":
        """Convert the system to `scipy.signal.StateSpace`.

        Parameters
        ----------
        pade : int, optional
            Order of the Padé approximants of delays, which SciPy does not support.

        Returns
        -------
        scipy.signal.StateSpace
            System with the same matrices and time step.

        Raises
        ------
        InvalidSystemError
            If the system has an operating point, or delays and `pade` is omitted.
        """
        return to_scipy(replace_delays(self.matrices, self.signal_settings, pade=pade, owner="system", call="to_scipy"))

    def to_control(self, *, pade: int | None = None) -> Any:
        """Convert the system to `control.StateSpace`; needs python-control.

        Parameters
        ----------
        pade : int, optional
            Order of the Padé approximants of delays, as for `to_scipy`.

        Returns
        -------
        control.StateSpace
            System with the same matrices, time step and names.

        Raises
        ------
        InvalidSystemError
            If the system has an operating point, or delays and `pade` is omitted.
        MissingDependencyError
            If python-control is not installed.
        """
        return to_control(
            replace_delays(self.matrices, self.signal_settings, pade=pade, owner="system", call="to_control")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Cached results are computed again after unpickling.
        return _create, (self.matrices, self.signal_settings)

    def __dir__(self) -> list[str]:
        return dir_without(self, "matrices", "of", "plot_frequencies")

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name)

    def __repr__(self) -> str:
        dt = "" if self.dt is None else f", dt={self.dt:g}"
        kind = "" if self.sparse is None else f", {self.sparse.description}"
        sizes = f"n_states={self.n_states}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs}"
        return f"StateSpace({sizes}{dt}{kind}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        rows = [*self.matrices.names.rows, *self.signal_settings.rows]
        return format_rows(repr(self), rows) if rows else repr(self)

    def _repr_html_(self) -> str:
        title, rows = system_summary_rows(self.matrices)
        return html_properties(title, [*rows, *self.signal_settings.rows])


def _create(matrices: SystemMatrices, settings: SignalSettings) -> StateSpace:
    return StateSpace.of(matrices, settings=settings)
