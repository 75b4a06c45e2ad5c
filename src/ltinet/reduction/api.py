"""Model reduction: `reduce` and its result.

The result holds the reduced system G_r, a proven bound on ‖G(jω) − G_r(jω)‖ at all frequencies where there is one, an
estimate otherwise, and the pointwise bound |e(t)| ≤ ‖G − G_r‖_H2·‖u‖ in L2(0, t).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Array
from ltinet._util.progress import Progress, show_progress
from ltinet._util.text import format_rows
from ltinet.construction import construct
from ltinet.conversion import eliminate_algebraic, eliminate_zero_rows
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError, InvalidSystemError, SimulationError
from ltinet.network.network import Network
from ltinet.plotting.channels import Pair
from ltinet.plotting.figures import figure_of
from ltinet.plotting.frequency_response import ResponseError
from ltinet.plotting.reduction import draw_hankel_values, draw_reduction_error
from ltinet.reduction.balanced_truncation import MEASURED_ROUNDING
from ltinet.reduction.dispatch import ReductionMethod, dispatch_reduction
from ltinet.reduction.lifting import ProjectedField
from ltinet.reduction.rational_krylov import ProgressCallback, combine_callbacks
from ltinet.second_order import SecondOrder
from ltinet.simulation.solution import HasInput, Solution
from ltinet.state_space import StateSpace
from ltinet.systems.dof_selection import Dofs, validate_dofs
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


_MAX_FIELD_NUMBERS = 1 << 28  # 2 GiB
_EQUAL_OUTPUTS = 1e-8  # of the largest: difference of two exact runs that can be rounding
_N_LARGE_FREQUENCIES = 40  # of pictures for which a large system is solved


@final
@dataclass(frozen=True, eq=False, repr=False)
class LiftedField:
    """Field of the full-order model at some degrees of freedom and times, with its error."""

    t: NDArray[np.float64]
    """Times, `(K,)`."""
    x: NDArray[np.float64]
    """States, for a `SecondOrder` model positions, at the degrees of freedom, `(..., K, len(dofs))`."""
    dofs: NDArray[np.intp]
    """Degrees of freedom, counted from 0."""
    energy_error: NDArray[np.float64]
    """Error of the whole field in the energy norm at each time, `(..., K)`; a bound if `is_certified`.

    The energy norm is √(xᵀE x), for a `SecondOrder` model √(q'ᵀM q' + qᵀK q).
    """
    is_certified: bool
    """True if `energy_error` is proven, rounding included; otherwise it is an estimate."""
    _largest_component: Callable[[], Array] = field(repr=False)

    @cached_property
    def error_estimate(self) -> NDArray[np.float64]:
        """Error at each degree of freedom, `(..., K, len(dofs))`: the energy norm times the largest √(E⁻¹)_ii or √(K⁻¹)_ii."""
        return np.asarray(self.energy_error[..., None] * self._largest_component())

    @property
    def error_bound(self) -> NDArray[np.float64] | None:
        """Proven bound on the error at each degree of freedom, `(..., K, len(dofs))`; None where nothing is proven."""
        return self.error_estimate if self.is_certified else None

    def __repr__(self) -> str:
        kind = "error" if self.is_certified else "estimated error"
        largest = float(np.max(self.energy_error, initial=0.0))
        return (
            f"LiftedField({len(self.dofs)} degrees of freedom at {len(self.t)} times, {kind} ≤ {largest:.1e} in energy)"
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReductionResult:
    """Reduced system with the evidence for its distance from the full-order model; `print` shows a summary."""

    system: StateSpace
    """Reduced system G_r."""
    full_order_model: StateSpace | SecondOrder = field(repr=False)
    """System G that was reduced; the state equations of a network."""
    order: int
    """States of the reduced system, including those that are kept whatever the order."""
    error_bound: float | None
    """Proven bound: ‖G(jω) − G_r(jω)‖ ≤ `error_bound` at all ω, so that ‖e‖ ≤ `error_bound`·‖u‖ in L2.

    In discrete time the frequency response is that at e^{jω dt}, norms are those of ℓ2, and the share of rounding in the
    bound is measured.

    None where nothing is proven. Errors of states that do not decay are rounding only, but may grow in time.
    """
    estimate: float
    """Estimate of the largest ‖G − G_r‖; not a bound."""
    gain: float
    """Largest ‖G_r(jω)‖ of the decaying part, to which `tolerance` is relative."""
    hankel_values: Array | None
    """Hankel singular values, for large sparse systems those of the projected model; None where they are unknown."""
    error_parts: dict[str, float]
    """Terms whose sum is the error bound, by name."""
    steps: tuple[tuple[str, str], ...]
    """Method and computing time, as pairs of a label and a text."""
    h2_bound: Callable[[], float] = field(repr=False)
    """Function that computes a bound on the H2 norm of G − G_r; infinite where nothing is proven.

    In discrete time it returns `error_bound`, which bounds the error at any sample as well.
    """
    second_order: SecondOrder | None = None
    """Reduced model with M = I and diagonal K, if the full-order model is a `SecondOrder` model."""
    network: Network | None = field(default=None, repr=False)
    """Network of the reduced system, if the reduction produced its neurons."""
    previous_h2_bound: float = 0.0
    """Bound on the H2 norm of the error of an earlier reduction of the given network; bounds of `net` include it."""
    n_retained: int = 0
    """Number of states that are kept because they are unstable, integrate, or are within rounding of that."""
    notes: tuple[str, ...] = ()
    projected_field: ProjectedField | None = field(default=None, repr=False)
    """Field of the projected model, for `lift`; None for models that were not projected."""

    @property
    def is_certified(self) -> bool:
        """True if `error_bound` is proven, rounding included.

        In discrete time the rounding of the bilinear map is measured at 200 frequencies and doubled, which proves nothing.
        """
        return self.error_bound is not None and MEASURED_ROUNDING not in self.error_parts

    @cached_property
    def pointwise_bound(self) -> float | None:
        """Proven bound from rest: |e(t)| ≤ `pointwise_bound`·‖u‖ in L2(0, t). None if nothing is proven."""
        bound = self.h2_bound()
        return bound if math.isfinite(bound) else None

    @cached_property
    def net(self) -> DynamicNetwork:
        """Network of the reduced system; its error bounds include the error of the reduction."""
        network, settings = self.network, self.system.signal_settings
        net = construct(self.system) if network is None else DynamicNetwork(network, signal_settings=settings)
        return replace(net, reduction_error=self.previous_h2_bound + self.h2_bound())

    def _require_own_solution(self, sol: Solution, t: Array, before: Array, after: Array) -> None:
        """Refuse a solution of another model: its outputs differ from those of the reduced one for the same input."""
        hold, names = sol.stats["hold"], self.system.output_names
        is_own = not sol.stats.get("is_reduced") and set(sol.output_names) <= set(names)
        if is_own:
            if hold == "linear" and not np.array_equal(before, after):  # jumps: each time twice
                u = np.stack([before, after], axis=2).reshape(len(after), -1, after.shape[-1])
                own = self.net.simulate(u, np.repeat(t, 2), hold=hold)
            else:
                own = self.net.simulate(after, t, hold=hold)
            columns, common = [names.index(name) for name in sol.output_names], t[np.isin(t, sol.t)]
            theirs, ours = (run.y[..., np.searchsorted(run.t, common, side="right") - 1, :] for run in (sol, own))
            difference = np.abs(theirs.reshape(-1, *theirs.shape[-2:]) - ours[..., columns]).max(initial=0.0)
            is_own = bool(difference <= _EQUAL_OUTPUTS * np.abs(ours).max(initial=0.0))
        if not is_own:
            raise InvalidSignalError(
                "the solution is not one of this reduced model, so that its field is unknown; pass "
                "result.net.simulate(u, t) of the same result"
            )

    @property
    def plot(self) -> "ReductionPlots":
        """Plots `result.plot.bode()`, `result.plot.error(omega)` and `result.plot.hankel()`; they require matplotlib."""
        return ReductionPlots(self)

    def errors(self, omega: ArrayLike, *, progress: Progress = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ‖G(jω) − G_r(jω)‖ and ‖G(jω)‖ by solving both systems; infinite at poles.

        Parameters
        ----------
        omega : array_like
            Angular frequencies, `(K,)`.
        progress : bool or callable, optional
            Progress of large models, as for `reduce`.

        Returns
        -------
        error, gain : ndarray
            Largest singular values of the difference and of the full-order model, `(K,)` each.
        """
        full = self.full_order_model.frequency_response(omega, progress=progress)
        small = self.system.frequency_response(omega)
        with np.errstate(invalid="ignore"):
            return _spectral_norms(full - small), _spectral_norms(full)

    def lift(
        self,
        sol: Solution,
        dofs: Dofs = None,
        *,
        t: ArrayLike | None = None,
        progress: Progress = None,
    ) -> LiftedField:
        """Reconstruct the field of the full-order model from a solution of the reduced one.

        The projected model, which has more states than the reduced one, is run with the input of the solution. The
        error is bounded by the energy that its residual has fed in, where −(A + Aᵀ) and E, or M, K and the symmetric
        part of D, are proven to be positive definite; elsewhere it is estimated. It is the error of all states
        together, so that it falls with the square root of the error of outputs: reduce to a smaller tolerance for a
        more accurate field.

        Parameters
        ----------
        sol : Solution
            Solution of `net.simulate(u, t)` or `net.step_response(t)` from rest, with samples as input.
        dofs : sequence of int, optional
            Degrees of freedom, counted from 0: states, or positions of a `SecondOrder` model. All by default.
        t : array_like, optional
            Times of the field, some of those of the solution; all by default.
        progress : bool or callable, optional
            Progress, as for `reduce`.

        Returns
        -------
        LiftedField
            Field `x`, with `energy_error` and `error_bound`.

        Raises
        ------
        InvalidSignalError
            If the solution is not one of the reduced model, does not start at rest, its input is not sampled, or the
            field is too large.
        InvalidSystemError
            If the model was not projected, or has delays or an operating point.
        """
        projected = self.projected_field
        if projected is None:
            raise InvalidSystemError(
                "this model was not projected, so that there is no field to lift; its own simulation has all states: "
                "full_order_model.simulate(u, t).states"
            )
        if self.system.signal_settings.shifts_signals:
            raise InvalidSystemError("lift takes models without delays and operating point; remove them before reduce")
        indices = None if dofs is None else validate_dofs(dofs, len(projected.basis), "dofs")
        times, before, after = _input_from_rest(sol, self.system.n_inputs)
        self._require_own_solution(sol, times, before, after)
        chosen = np.unique(sol.t if t is None else np.asarray(t, dtype=np.float64))
        at = np.searchsorted(times, chosen)
        if not len(chosen) or at[-1] >= len(times) or not np.array_equal(times[at], chosen):
            raise InvalidSignalError("t must be some of the times of the solution; pass sol.t[::100]")
        basis = projected.basis if indices is None else projected.basis[indices]
        batch = sol.y.shape[:-2]
        numbers = math.prod(batch) * len(chosen) * len(basis)
        if numbers > _MAX_FIELD_NUMBERS:
            raise InvalidSignalError(
                f"the field at {len(basis)} degrees of freedom and {len(chosen)} times has {numbers:.0e} numbers; pass "
                "dofs=[…], or fewer times, t=sol.t[::100]"
            )
        x = np.empty((len(after), len(chosen), len(basis)))
        error = np.empty(x.shape[:2])
        with show_progress("field", progress) as report, single_blas_thread():
            for chunk in projected.run(times, before, after, report):
                inside = slice(*np.searchsorted(at, (chunk.times.start, chunk.times.stop)).tolist())
                local = at[inside] - chunk.times.start
                x[:, inside] = chunk.states[:, local, : basis.shape[1]] @ basis.T
                error[:, inside] = chunk.error[:, local]
        return LiftedField(
            chosen,
            x.reshape(*batch, *x.shape[1:]),
            np.arange(len(basis)) if indices is None else indices,
            error.reshape(*batch, -1),
            projected.energy.is_proven,
            lambda: projected.largest_component(indices),
        )

    def _rows(self) -> list[tuple[str, str]]:
        relative = self.gain if self.gain > 0.0 else math.nan
        if self.error_bound is None:
            error = f"estimate {self.estimate:.2e} ({self.estimate / relative:.1e} of the gain); nothing is proven"
        else:
            share = f"{self.error_bound / relative:.1e} of the gain"
            error = f"≤ {self.error_bound:.2e} at all frequencies ({share}; a bound on energy, not on outputs)"
        parts = " + ".join(f"{value:.1e} {name}" for name, value in self.error_parts.items())
        rows = [("states", f"{self.order} of {self.full_order_model.n_states}"), ("error", error)]
        rows += [("  of this", parts)] if parts else []
        if self.pointwise_bound is not None:
            rows.append(("at any time", f"|e(t)| ≤ {self.pointwise_bound:.2e} · ‖u‖ in L2(0, t), from rest"))
        rows += [("gain", f"{self.gain:.4g}"), *self.steps, *(("note", note) for note in self.notes)]
        return rows

    def __repr__(self) -> str:
        n_states = self.full_order_model.n_states
        return f"ReductionResult(order={self.order}, n_states={n_states}, error_bound={self.error_bound})"

    def __str__(self) -> str:
        return format_rows("reduced system", self._rows())

    def _repr_html_(self) -> str:
        return html_properties("reduced system", self._rows())


@final
@dataclass(frozen=True)
class ReductionPlots:
    """Plots of a reduction; they require matplotlib.

    Parameters
    ----------
    result : ReductionResult
        Result of the reduction.
    """

    result: ReductionResult

    def error(self, omega: ArrayLike | None = None, *, ax: "Axes | None" = None, progress: Progress = None) -> "Figure":
        """Draw ‖G − G_r‖ and ‖G‖ over frequency, with the bound.

        Both systems are solved at every frequency: a large one takes a factorization for each, so that 40 frequencies
        are drawn by default instead of hundreds.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from the poles of the reduced system.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.
        progress : bool or callable, optional
            Progress of large models, as for `reduce`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result
        if omega is None:
            omega = result.system.plot_frequencies()
            if result.full_order_model.n_states > MAX_DENSE_STATES:
                omega = np.geomspace(omega[0], omega[-1], _N_LARGE_FREQUENCIES)
        errors, gains = result.errors(omega, progress=progress)
        axes = draw_reduction_error(omega, errors, gains, bound=result.error_bound, estimate=result.estimate, ax=ax)
        return figure_of(axes)

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw magnitude and phase of the reduced system, with its error as a band.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from the poles and zeros of the reduced system.
        pairs : sequence of tuple, optional
            Pairs (output, input) by index, counted from 0, or by name; by default the eight with the largest gains.
        figure : matplotlib.figure.Figure, optional
            Empty figure to draw on; by default a new one.

        Returns
        -------
        matplotlib.figure.Figure
            Figure; its `axes` are those of magnitude and phase.
        """
        result = self.result
        bound = result.error_bound if result.is_certified else None
        error = ResponseError(result.estimate, False) if bound is None else ResponseError(bound, True)
        return replace(result.system.plot, error=error).bode(omega, pairs=pairs, figure=figure)

    def hankel(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the Hankel singular values, up to the order and beyond.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result
        return figure_of(draw_hankel_values(result.hankel_values, order=result.order - result.n_retained, ax=ax))

    def __dir__(self) -> list[str]:
        return dir_without(self, "result")


def _input_from_rest(sol: Solution, n_inputs: int) -> tuple[Array, Array, Array]:
    """Return times `(K,)` and the inputs before and after each, `(batch, K, m)`, of a solution that starts at rest."""
    if not isinstance(sol, Solution) or not isinstance(sol.trajectory, HasInput):
        raise InvalidSignalError(f"lift takes a solution, net.simulate(u, t), got {type(sol).__name__}")
    if sol.stats.get("hold") is None:
        raise InvalidSignalError("lift takes inputs of samples; pass an array: net.simulate(u(t), t)")
    try:
        start = sol.trajectory.user_states(sol.t[:1])
    except SimulationError:
        raise InvalidSignalError("lift takes a solution of the reduced model: net.simulate(u, t)") from None
    if np.any(start):
        raise InvalidSignalError("lift takes solutions from rest; the full state that x0 stands for is unknown")
    times, values = sol.trajectory.input_corners(sol.t)
    if values.shape[-1] != n_inputs:
        raise InvalidSignalError(f"the solution has {values.shape[-1]} inputs, the reduced model {n_inputs}")
    flat = values.reshape(-1, *values.shape[-2:])
    return times[::2], flat[:, ::2], flat[:, 1::2]


def _spectral_norms(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return the spectral norm at each frequency, infinity at a pole."""
    finite = np.asarray(np.isfinite(values).all(axis=(1, 2)))
    return np.where(finite, np.linalg.norm(np.where(finite[:, None, None], values, 0.0), 2, axis=(1, 2)), np.inf)


def reduce(  # noqa: PLR0913 - one option for each property of a reduction
    system: Any,
    *,
    order: int | None = None,
    tolerance: float | None = None,
    output_tolerance: float | None = None,
    input_l2: float | None = None,
    method: ReductionMethod | None = None,
    n_jobs: int = 1,
    callback: ProgressCallback | None = None,
    progress: Progress = None,
) -> ReductionResult:
    """Reduce a system or a network to fewer states, with an error bound that includes rounding.

    Dense systems are balanced. Sparse ones of more than 300 states, with E symmetric positive definite and a negative
    definite symmetric part of A, are projected first and never converted to dense matrices. For sparse systems without
    these properties there is an estimate instead of a bound; `result.is_certified` says which.

    Dense models in discrete time are reduced by the bilinear map to continuous time, which keeps Hankel singular values and
    the bound. Poles on the unit circle (also −1, which the map takes to infinity) and outside are kept.

    A `SecondOrder` model keeps its structure: each remaining mode is one second-order neuron with two states. Bounds
    are proven for D = αM + βK, and for all models of up to 1,500 positions.

    Parameters
    ----------
    system : object
        A `SecondOrder` model, a network, or anything that `as_state_space` accepts. A singular E is eliminated with
        `eliminate_algebraic`; `result.full_order_model` is then the system without it.
    order : int, optional
        Number of states of the reduced system. Exactly one of `order`, `tolerance` and `output_tolerance` is required;
        none has a default.
    tolerance : float, optional
        Largest error ‖G − G_r‖∞ relative to the largest gain ‖G_r‖∞ of the reduced system, `result.gain`, between 0
        and 1. It is met by the bound or, without one, by the estimate, at the smallest order found. States that do
        not decay are kept and count neither in the error nor in the gain.

        It bounds the energy of the error, ‖y − y_r‖ ≤ tolerance·gain·‖u‖ in L2, and says nothing about a single time: a
        tolerance of 1e-4 does not make outputs right to four digits. `result.pointwise_bound` bounds them at every
        time, and `output_tolerance` prescribes that bound.
    output_tolerance : float, optional
        Largest error of any output at any time, |y(t) − y_r(t)| ≤ output_tolerance from rest, in units of the outputs,
        for every input with an L2 norm of at most `input_l2`. It is met by the proven bound ‖G − G_r‖_H2·‖u‖; systems
        without one are refused.
    input_l2 : float, optional
        Largest L2 norm of inputs, (∫ |u(t)|² dt)^½ over the simulated time, in discrete time (Σ |u[k]|²)^½; required
        with `output_tolerance`. For m inputs with |u| ≤ a each over a time T it is a √(m T).
    method : str, optional
        "truncation" (default) truncates balanced states; "singular_perturbation" sets their derivatives to zero, which
        keeps the gain at zero frequency exactly. For a network "neurons" leaves out those with the smallest
        contributions to the outputs. For a `SecondOrder` model "modes" or "krylov"; by default all modes of a small
        model are computed, and rational Krylov spaces of a large one.
    n_jobs : int, optional
        Number of processes that share the shifts of a batch (joblib). The result does not depend on it.
    callback : callable, optional
        Function that is called with the number of shifts and the current relative bound.
    progress : bool or callable, optional
        True writes a line to the error stream after one second and then every few seconds, with an estimate of the
        time left; False does not; by default only where that stream is a terminal. A callable gets an object with
        `task`, `fraction`, `elapsed`, `remaining` and `detail`, which `str` makes a line of.

    Returns
    -------
    ReductionResult
        Reduced system, error bounds and the network.

    Raises
    ------
    InvalidSystemError
        The system cannot be reduced, not exactly one of `order`, `tolerance` and `output_tolerance` was given, or the
        `output_tolerance` cannot be guaranteed.
    """
    h2_limit = _validate_output_tolerance(order, tolerance, output_tolerance, input_l2)
    if h2_limit is not None:
        result = _reduce_to_h2_bound(
            system, h2_limit, method=method, n_jobs=n_jobs, callback=callback, progress=progress
        )
        text = f"|e(t)| ≤ {output_tolerance:g} for ‖u‖ ≤ {input_l2:g} in L2"
        return replace(result, steps=(("guarantee", text), *result.steps))
    model = system if isinstance(system, DynamicNetwork | SecondOrder) else eliminate_zero_rows(system)
    start = time.perf_counter()
    options: dict[str, Any] = {"order": order, "tolerance": tolerance, "method": method, "n_jobs": n_jobs}
    with show_progress(f"reducing {model.n_states} states", progress) as report:
        options["callback"] = combine_callbacks(callback, report, tolerance)
        try:
            small = dispatch_reduction(model, **options)
        except InvalidSystemError:
            regular = eliminate_algebraic(model) if isinstance(model, StateSpace) else model
            if regular is model:
                raise
            model = regular
            small = dispatch_reduction(model, **options)
    seconds, outcome = time.perf_counter() - start, small.outcome
    return ReductionResult(
        system=small.system,
        full_order_model=model.to_state_space() if isinstance(model, DynamicNetwork) else model,
        order=outcome.order,
        error_bound=outcome.error_bound,
        estimate=outcome.estimate,
        gain=outcome.gain,
        hankel_values=outcome.hankel_values,
        error_parts={} if outcome.error_bound is None else outcome.parts,
        steps=(("done", outcome.algorithm), ("cost", f"{seconds:.3g} s")),
        h2_bound=outcome.h2_bound,
        second_order=None
        if outcome.second_order is None
        else SecondOrder.of(outcome.second_order, settings=small.system.signal_settings),
        network=small.network,
        previous_h2_bound=(model.reduction_error or 0.0) if isinstance(model, DynamicNetwork) else 0.0,
        n_retained=outcome.n_retained,
        notes=outcome.notes,
        projected_field=outcome.field,
    )


# Guaranteed outputs.

# Relative tolerances in the H∞ norm from which on, and down to which, one is searched whose H2 bound suffices: below,
# only rounding is left of errors.
_FIRST_TOLERANCE, _LEAST_TOLERANCE = 1e-2, 1e-13
_H2_SHARE = 0.5  # of the limit, aimed at; a tolerance tenfold smaller gives an H2 bound three to ten times smaller


def _validate_output_tolerance(order: Any, tolerance: Any, output_tolerance: Any, input_l2: Any) -> float | None:
    """Return the limit on the H2 norm of the error, output_tolerance/input_l2; None without an output tolerance."""
    if output_tolerance is None and input_l2 is None:
        return None
    if output_tolerance is None or input_l2 is None:
        missing = "output_tolerance" if output_tolerance is None else "input_l2"
        raise InvalidSystemError(
            f"{missing} is missing; pass reduce(system, output_tolerance=0.1, input_l2=3.0), which guarantees outputs to "
            "0.1 for all inputs with an L2 norm of at most 3"
        )
    if order is not None or tolerance is not None:
        raise InvalidSystemError("exactly one of order, tolerance and output_tolerance is required, got two")
    for name, value in (("output_tolerance", output_tolerance), ("input_l2", input_l2)):
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not is_number or not 0.0 < value < math.inf:
            raise InvalidSystemError(f"{name} must be a positive, finite number, got {value!r}")
    return float(output_tolerance / input_l2)


def _reduce_to_h2_bound(system: Any, limit: float, **options: Any) -> ReductionResult:
    """Reduce to the largest H∞ tolerance found whose bound on the H2 norm of the error is within the limit."""
    tolerance = _FIRST_TOLERANCE
    while tolerance >= _LEAST_TOLERANCE:
        result = reduce(system, tolerance=tolerance, **options)
        bound = result.pointwise_bound
        if bound is None:
            raise InvalidSystemError(
                "no bound on outputs at single times is known for this system, so that output_tolerance cannot be "
                "guaranteed; pass tolerance, or see the table of proven bounds in the documentation of reduce"
            )
        if bound <= limit:
            return result
        tolerance *= min(_H2_SHARE * limit / bound, 0.1)
    raise InvalidSystemError(
        f"output_tolerance is too small: rounding leaves errors of {bound:.1e} times the L2 norm of the input, and "
        f"{limit:.1e} is required"
    )
