"""State-space systems: the class `StateSpace`.

    x' = A x + B u  or  x[k+1] = A x[k] + B u[k],    y = C x + D u,

with names, delays, operating point, hold and sample time. Methods simulate, analyse, convert and plot the system; each
delegates to the package that implements it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Complex
from ltinet._util.text import format_rows
from ltinet.analysis.characteristics import StepInfo, compute_bandwidth, step_info
from ltinet.analysis.dc_gain import dc_gain
from ltinet.analysis.frequency_response import apply_delays, evaluation_points, frequencies_for, transfer_evaluator
from ltinet.analysis.poles import Damping, compute_poles, damping_table, system_summary_rows
from ltinet.analysis.responses import (
    Channel,
    Times,
    delayed_response,
    impulse_response,
    initial_response,
    step_response,
)
from ltinet.analysis.sampling import SamplingMethod, to_continuous, to_discrete, validate_method
from ltinet.analysis.zeros import invariant_zeros
from ltinet.network_builder import prepare_system
from ltinet.plotting.plots import SystemPlots
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import simulate_system
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.options import validate_positive
from ltinet.simulation.solution import Solution
from ltinet.systems.matrices import Matrix, MatrixLike
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.system_matrices import Descriptor, SystemMatrices, require_continuous_time

# MERGED ltinet.state_space
# The system as its users meet it: the object that they give and get.


@final
@dataclass(frozen=True, init=False, repr=False)
class StateSpace:
    """A real, linear time-invariant system x' = A x + B u, y = C x + D u, or x[k+1] = A x[k] + B u[k] with a step dt.

    A is n×n, B n×m, C p×n and D p×m; each of n, m and p may be 0, and n = 0 is a static gain. The matrices are
    read-only float64 copies: changing the arrays they came from changes nothing here. Two systems are equal when all
    four matrices and dt are, whatever their names.

    A sparse A stays sparse, and so does the E beside it: both are in `sparse`. Up to 3,000 states they are filled in
    where something needs arrays; beyond, `frequency_response` and `simulate` work on the sparse matrices, and all else
    says which call to make. Whether such an E is singular is found out where E⁻¹ is needed.

    A system in discrete time knows its poles, zeros, damping, DC gain and frequency response; everything else is for
    continuous time, and `to_continuous` leads there.

    Delays, an operating point, the hold and the sample time of the data belong to the model as well: simulations,
    responses, files, and the network constructed from the system honour them; `poles`, `zeros` and `dcgain` do not
    depend on them. Systems that differ in one of them are not equal.

    Args:
        A: the state matrix; a number is 1×1, a matrix of scipy.sparse stays sparse.
        B: the input matrix; a 1-D array with one entry per state is a single input.
        C: the output matrix; a 1-D array with one entry per state is a single output.
        D: the feedthrough, zero when left out. The number 0 is a zero matrix, any other number is 1×1; a 1-D array
            needs a system with a single input or a single output.
        E: the matrix of a descriptor system E x' = A x + B u. It must not be singular; it is eliminated here, so A and
            B of the result are E⁻¹A and E⁻¹B. What was given stays in `descriptor`.
        dt: the time step of a system in discrete time; None or 0 for continuous time.
        inputs: a name for each input, units as part of it: ["Force (N)"]; u1, u2, … if left out. DataFrames bring
            names along: rows and columns of A are states, columns of B inputs, rows of C outputs.
        outputs: a name for each output; y1, y2, … if left out.
        states: a name for each state; x1, x2, … if left out.
        input_delay: a delay ≥ 0 for each input, in units of time; a single number for all. In discrete time whole
            multiples of dt.
        output_delay: a delay for each output, likewise.
        u0: the operating point of the inputs, one number for each: y − y0 responds to u − u0.
        y0: the operating point of the outputs.
        hold: what inputs do between samples: "linear" or "zero"; None if the model does not say.
        sample_time: the time between samples of the data that the model was found in; None if there were none.

    Raises:
        InvalidSystemError: a matrix is complex, not finite or of the wrong shape, E is singular, dt is no time step,
            names are not one text for each, all different, or a delay is negative.
    """

    matrices: SystemMatrices
    """All of them together, as the rooms below take them."""
    signal_settings: SignalSettings
    """Delays, operating point, hold and sample time."""

    def __init__(  # noqa: PLR0913
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        D: MatrixLike | None = None,
        E: MatrixLike | None = None,
        *,
        dt: float | None = None,
        inputs: NamesLike = None,
        outputs: NamesLike = None,
        states: NamesLike = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        names = SignalNames.of(inputs, outputs, states)
        matrices = SystemMatrices(A, B, C, D, E, dt=dt, names=names)
        settings = SignalSettings.of(
            n_inputs=matrices.n_inputs, n_outputs=matrices.n_outputs, input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "signal_settings", _validate_settings(settings, matrices))

    @classmethod
    def of(
        cls,
        matrices: SystemMatrices,
        *,
        prepared: SimulationContext | None = None,
        settings: SignalSettings = NO_SETTINGS,
    ) -> "StateSpace":
        """The system of matrices that were checked already, and its network where that is prepared already."""
        system = cls.__new__(cls)
        object.__setattr__(system, "matrices", matrices)
        object.__setattr__(system, "signal_settings", _validate_settings(settings, matrices))
        if prepared is not None:
            system.__dict__["_network"] = prepared
        return system

    @property
    def A(self) -> Matrix:
        """The state matrix, n×n, as an array; a sparse one is filled in, unless it is too large (see `sparse`)."""
        return self.matrices.A

    @property
    def B(self) -> Matrix:
        """The input matrix, n×m."""
        return self.matrices.B

    @property
    def C(self) -> Matrix:
        """The output matrix, p×n."""
        return self.matrices.C

    @property
    def D(self) -> Matrix:
        """The feedthrough, p×m."""
        return self.matrices.D

    @property
    def sparse(self) -> SparseDescriptor | None:
        """A, E and B of a model whose A was given as a sparse matrix, as they were given; None for any other."""
        return self.matrices.sparse

    @property
    def descriptor(self) -> Descriptor | None:
        """E, A and B as they were given, where there was an E: E⁻¹A is rounded, and error bounds count that."""
        return self.matrices.descriptor

    @property
    def dt(self) -> float | None:
        """The time step of a system in discrete time, x[k+1] = A x[k] + B u[k]; None in continuous time."""
        return self.matrices.dt

    @property
    def n_states(self) -> int:
        """The number of states, n."""
        return self.matrices.n_states

    @property
    def n_inputs(self) -> int:
        """The number of inputs, m."""
        return self.matrices.n_inputs

    @property
    def n_outputs(self) -> int:
        """The number of outputs, p."""
        return self.matrices.n_outputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """How the inputs are called; u1, u2, … where nobody gave names."""
        return self.matrices.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """How the outputs are called; y1, y2, … where nobody gave names."""
        return self.matrices.output_names

    @property
    def state_names(self) -> tuple[str, ...]:
        """How the states are called; x1, x2, … where nobody gave names."""
        return self.matrices.state_names

    def with_names(
        self, *, inputs: NamesLike = None, outputs: NamesLike = None, states: NamesLike = None
    ) -> "StateSpace":
        """The same system with other names, of a file for example; those that are left out stay as they are.

        Raises:
            InvalidSystemError: names are not one text for each, all different.
        """
        names = SignalNames.of(inputs, outputs, states).with_defaults(self.matrices.names)
        return StateSpace.of(self.matrices.with_names(names), settings=self.signal_settings)

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

    def with_signal_settings(self, **changes: Any) -> "StateSpace":
        """Return the same system with other delays, operating point, hold or sample time.

        Parameters
        ----------
        **changes
            `input_delay`, `output_delay`, `u0`, `y0` (one number for each channel, or a single one for all), `hold`
            and `sample_time`, as for `StateSpace`; those that are left out stay as they are. None or 0 removes one.

        Returns
        -------
        StateSpace

        Raises
        ------
        InvalidSystemError
            There is no such setting, or a value is not valid.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        own = {"prepared": self.__dict__["_network"]} if "_network" in self.__dict__ else {}
        return StateSpace.of(self.matrices, settings=settings, **own)

    def simulate(
        self,
        u: Any,
        t: ArrayLike,
        *,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        tolerance: float | None = None,
    ) -> Solution:
        """Outputs y at the times t, `(..., T, p)`, for an input u as `DynamicNetwork.simulate` takes it.

        Exact, with bounds, by the network of the system. A sparse model of more than 3,000 states, or one for which a
        `tolerance` is given, runs as it is: by an implicit method on its sparse matrices, whose error is estimated by
        halving all steps and kept below `tolerance`, 1e-6, of each largest |y|: `sol.error_estimate`, no bound.
        """
        network = partial(self._prepared, "simulate(u, t)")
        return simulate_system(
            self.matrices, network, u, t=t, x0=x0, hold=hold, tolerance=tolerance, settings=self.signal_settings
        )

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
        """Return how well the model explains a measured record, in % for each output: 100 (1 − ‖y − ŷ‖/‖y − mean‖).

        Parameters
        ----------
        u, y : array_like
            Inputs `(T, m)` and outputs `(T, p)`, `(T,)` for a single channel, tables or DataFrames; or lists of them,
            one for each experiment, which count as one. NaN marks missing samples, and ends an experiment.
        t, dt : array_like or float, optional
            The times of the samples, which may be uneven, or the time between them; `sample_time` of the model if both
            are left out.
        from_rest : bool
            Begin at rest, at the operating point. Otherwise the state at the first sample is fitted by least squares,
            and outputs that depend on inputs before the record are left out.
        hold : {"linear", "zero"}, optional
            What inputs do between samples; that of the model if left out.

        Returns
        -------
        ndarray
            One number for each output: 100 for a perfect model, 0 for one that is as good as the mean.

        Raises
        ------
        InvalidSignalError
            The record does not fit the model, or its times are not known.
        """
        from ltinet.identification.record_comparison import fit_percent  # here: few models are compared with records

        return fit_percent(self, u, y, t=t, dt=dt, from_rest=from_rest, hold=hold)

    def step_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Outputs after an input went from 0 to 1 at t = 0, from rest: exact, with bounds; delays included.

        Responses are deviations from the operating point.

        Without `input` every input in its turn, along the first axis: `y` is `(m, T, p)`, `y[j, :, i]` the response of
        output i to input j. With `input=j` it is `(T, p)`; `output=i` keeps one output, `(…, T, 1)`. Both by
        number, from 0 on, or by name.

        Without t up to 5,000 times are chosen from the poles that show: evenly spaced, or logarithmically where the
        slowest and the fastest are too many decades apart, until every response has settled within 2 %. Integrators
        and unstable systems never do; `sol.notes` says where such a response ends and why.

        Raises:
            InvalidSignalError: t does not begin at 0, or there is no such input or output.
            InvalidSystemError: the system is discrete in time.
        """
        own = self._prepared("step_response()"), self.matrices

        def run(times: Times) -> Solution:
            return step_response(*own, times, input=input, output=output)

        if not self.signal_settings.has_delays:
            return run(t)
        return delayed_response(run, *own, self.signal_settings, t=t, input=input, output=output, kind="step")

    def impulse_response(self, t: Times = None, *, input: Channel = None, output: Channel = None) -> Solution:
        """Outputs after a unit impulse of an input at t = 0, from rest: exact, with bounds; laid out as step responses.

        That is the response from the state B e_j (E⁻¹B e_j, for which bounds hold as it was rounded). Where D is not
        zero there is an impulse D δ(t) besides, which no number shows; `sol.notes` says so.
        """
        own = self._prepared("impulse_response()"), self.matrices

        def run(times: Times) -> Solution:
            return impulse_response(*own, times, input=input, output=output)

        if not self.signal_settings.has_delays:
            return run(t)
        return delayed_response(run, *own, self.signal_settings, t=t, input=input, output=output, kind="impulse")

    def initial_response(self, x0: ArrayLike, t: Times = None, *, output: Channel = None) -> Solution:
        """Outputs from the state x0 at t = 0 without input: exact, with bounds.

        They are `(T, p)`, with the axes of a batch of states in front. Times are chosen as for step responses.
        """
        own = self._prepared("initial_response(x0)"), self.matrices

        def run(times: Times) -> Solution:
            return initial_response(*own, x0, t=times, output=output)

        if self.signal_settings.output_delay is None:
            return run(t)
        return delayed_response(run, *own, self.signal_settings, t=t, output=output, kind="initial", x0=x0)

    def step_info(
        self,
        *,
        input: Channel = None,
        output: Channel = None,
        settling: float = 0.02,
        rise: tuple[float, float] = (0.1, 0.9),
    ) -> StepInfo:
        """Rise time, settling time, overshoot and peak of the step response of every output to every input.

        All of them from the exact curve: no grid of times takes part in the result. `settling` is the band around the
        final value, `rise` the two shares of it between which rise times are measured. `input` and `output` choose one,
        by number from 0 on or by name; the axis stays. Delays are in `dead_time`, and in the settling and peak times,
        which count from the step of the input; the rise time does not depend on them.
        """
        prepared = self._prepared("step_info()")
        found = step_info(prepared, self.matrices, input=input, output=output, settling=settling, rise=rise)
        if not self.signal_settings.has_delays:
            return found
        rows = [self.output_names.index(own) for own in found.output_names]
        columns = [self.input_names.index(own) for own in found.input_names]
        dead_time = self.signal_settings.total_delay(self.n_outputs, self.n_inputs)
        return found.delayed(dead_time[np.ix_(rows, columns)])

    def poles(self) -> NDArray[np.complex128]:
        """The eigenvalues of A by falling real part; of a pair, that with positive imaginary part first."""
        return compute_poles(self.matrices)

    def zeros(self) -> NDArray[np.complex128]:
        """The finite invariant zeros, by falling real part; any number of inputs and outputs."""
        return invariant_zeros(self.matrices)

    def damping(self) -> Damping:
        """Natural frequency, damping ratio and time constant of every pole; prints as a table."""
        return damping_table(self.poles(), self.dt)

    def dcgain(self) -> NDArray[np.float64]:
        """The gain at rest, p×m: inf with its sign where an integrator lies between; hidden ones do not count."""
        return dc_gain(self.matrices)

    def bandwidth(self, *, drop: float = 3.0) -> NDArray[np.float64]:
        """The first frequency at which each gain is `drop` decibels below that at rest, p×m; inf where there is none.

        NaN where the gain at rest is zero or infinite.
        """
        require_continuous_time(self, "system.bandwidth()")
        frequencies = frequencies_for(self.poles(), self.zeros())
        return compute_bandwidth(
            self.frequency_response, self.dcgain(), frequencies, drop=validate_positive(drop, "drop")
        )

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(jω), shape (len(omega), n_outputs, n_inputs), for angular frequencies in radians per unit of time.

        In discrete time H(e^{jω dt}). From one decomposition of A, which is kept; refined where the residual of
        (jω E − A) X = B asks for it. Of a sparse model by a sparse factorisation for each frequency. At a pole every
        entry is complex(inf, nan). Delays are exact factors e^{−jωτ}.
        """
        H = self._response(evaluation_points(omega, self.dt))
        if not self.signal_settings.has_delays:
            return H
        return apply_delays(H, omega, self.signal_settings.total_delay(self.n_outputs, self.n_inputs))

    @property
    def plot(self) -> SystemPlots:
        """Drawings: `system.plot()` for a slide, `system.plot.bode()`, `.step()`, …; they need matplotlib."""
        names = self.matrices.names
        return SystemPlots(self, self.plot_frequencies, names.outputs, names.inputs)

    def plot_frequencies(self) -> NDArray[np.float64]:
        """The angular frequencies at which drawings show the system: those that `frequencies_for` chooses."""
        return frequencies_for(self.poles(), self.zeros(), dt=self.dt)

    @cached_property
    def _response(self) -> Callable[[Complex], Complex]:
        return transfer_evaluator(self.matrices)

    @cached_property
    def _network(self) -> SimulationContext:
        return prepare_system(self.matrices)

    def _prepared(self, call: str) -> SimulationContext:
        require_continuous_time(self, f"system.{call}")
        return self._network

    def to_continuous(self, method: SamplingMethod = "zoh") -> "StateSpace":
        """The continuous-time system behind this one in discrete time, at its sampling times.

        "zoh" takes inputs as held between samples, "foh" as lines between them; "tustin" is the trapezoidal rule,
        s = (2/dt)(z − 1)/(z + 1). By the first two A = log(A_d)/dt, the logarithm whose frequencies are below π/dt: a
        faster one, and nobody can tell from samples, comes out as its alias. A negative real eigenvalue has no
        counterpart, nor has zero. By "foh" the states are x[k] − Q₁ u[k], as in `to_discrete`, and D changes.

        Raises:
            InvalidSystemError: there is no such system, or this one is continuous already.
        """
        found = to_continuous(self.matrices, method=validate_method(method))
        return StateSpace.of(found, settings=self.signal_settings)

    def to_discrete(self, dt: float, *, method: SamplingMethod = "zoh") -> "StateSpace":
        """The system in discrete time: its outputs at the times k dt.

        Exact for inputs that are held between samples ("zoh") or go along lines ("foh"); "tustin" is the trapezoidal
        rule, which keeps stability and bends frequencies. By "zoh" the states are x(k dt). By "foh" they are
        x(k dt) − Q₁ u[k], where Q₁ is what the end of a line adds to a step, and D becomes D + C Q₁. Delays must be
        whole multiples of dt; they and the operating point stay as they are.

        Raises:
            InvalidSystemError: the system is discrete already, dt is not positive, or a delay is no multiple of it.
        """
        found = to_discrete(self.matrices, dt, method=validate_method(method))
        return StateSpace.of(found, settings=self.signal_settings)  # refuses delays that are no whole steps

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way is made anew.
        return {"matrices": self.matrices, "signal_settings": self.signal_settings}

    def __dir__(self) -> list[str]:
        return dir_without(self, "matrices", "of", "plot_frequencies")

    def __repr__(self) -> str:
        more = ("" if self.dt is None else f", dt={self.dt:g}") + (
            "" if self.sparse is None else f", {self.sparse.description}"
        )
        more += self.signal_settings.repr_suffix
        return f"StateSpace(n_states={self.n_states}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs}{more})"

    def __str__(self) -> str:
        rows = [*self.matrices.names.rows, *self.signal_settings.rows]
        return format_rows(repr(self), rows) if rows else repr(self)

    def _repr_html_(self) -> str:
        title, rows = system_summary_rows(self.matrices)
        return html_properties(title, [*rows, *self.signal_settings.rows])


def _validate_settings(settings: SignalSettings, matrices: SystemMatrices) -> SignalSettings:
    """The settings, checked against the matrices."""
    return settings.validate_for(n_inputs=matrices.n_inputs, n_outputs=matrices.n_outputs, dt=matrices.dt)
