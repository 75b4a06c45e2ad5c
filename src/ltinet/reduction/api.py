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

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Array
from ltinet._util.text import format_rows
from ltinet.construction import construct
from ltinet.conversion import eliminate_algebraic, eliminate_zero_rows
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.network.network import Network
from ltinet.plotting.channels import Pair
from ltinet.plotting.figures import figure_of
from ltinet.plotting.reduction import draw_hankel_values, draw_reduction_error
from ltinet.reduction.balanced_truncation import MEASURED_ROUNDING
from ltinet.reduction.dispatch import ReductionMethod, dispatch_reduction
from ltinet.reduction.rational_krylov import ProgressCallback, ignore_progress
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


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

    @property
    def plot(self) -> "ReductionPlots":
        """Plots `result.plot.bode()`, `result.plot.error(omega)` and `result.plot.hankel()`; they require matplotlib."""
        return ReductionPlots(self)

    def errors(self, omega: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ‖G(jω) − G_r(jω)‖ and ‖G(jω)‖ by solving both systems; infinite at poles.

        Parameters
        ----------
        omega : array_like
            Angular frequencies, `(K,)`.

        Returns
        -------
        error, gain : ndarray
            Largest singular values of the difference and of the full-order model, `(K,)` each.
        """
        full, small = self.full_order_model.frequency_response(omega), self.system.frequency_response(omega)
        with np.errstate(invalid="ignore"):
            return _spectral_norms(full - small), _spectral_norms(full)

    def _rows(self) -> list[tuple[str, str]]:
        relative = self.gain if self.gain > 0.0 else math.nan
        if self.error_bound is None:
            error = f"estimate {self.estimate:.2e} ({self.estimate / relative:.1e} of the gain); nothing is proven"
        else:
            error = f"≤ {self.error_bound:.2e} at all frequencies ({self.error_bound / relative:.1e} of the gain)"
        parts = " + ".join(f"{value:.1e} {name}" for name, value in self.error_parts.items())
        rows = [("states", f"{self.order} of {self.full_order_model.n_states}"), ("error", error)]
        rows += [("  of this", parts)] if parts else []
        if self.pointwise_bound is not None:
            rows.append(("at any time", f"|e(t)| ≤ {self.pointwise_bound:.2e} · ‖u‖ in L2(0, t)"))
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

    def error(self, omega: ArrayLike | None = None, *, ax: "Axes | None" = None) -> "Figure":
        """Draw ‖G − G_r‖ and ‖G‖ over frequency, with the bound.

        Both systems are solved at every frequency: a large one takes a factorization for each.

        Parameters
        ----------
        omega : array_like, optional
            Angular frequencies; by default chosen from the poles of the reduced system.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result
        omega = result.system.plot_frequencies() if omega is None else omega
        errors, gains = result.errors(omega)
        axes = draw_reduction_error(omega, errors, gains, bound=result.error_bound, estimate=result.estimate, ax=ax)
        return figure_of(axes)

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> "Figure":
        """Draw magnitude and phase of the reduced system; magnitudes below the proven error bound are shaded.

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
        bound = self.result.error_bound if self.result.is_certified else None
        return replace(self.result.system.plot, error_bound=bound).bode(omega, pairs=pairs, figure=figure)

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


def _spectral_norms(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return the spectral norm at each frequency, infinity at a pole."""
    finite = np.asarray(np.isfinite(values).all(axis=(1, 2)))
    return np.where(finite, np.linalg.norm(np.where(finite[:, None, None], values, 0.0), 2, axis=(1, 2)), np.inf)


def reduce(
    system: Any,
    *,
    order: int | None = None,
    tolerance: float | None = None,
    method: ReductionMethod | None = None,
    n_jobs: int = 1,
    callback: ProgressCallback | None = None,
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
        Number of states of the reduced system. Exactly one of `order` and `tolerance` is required; neither has a
        default.
    tolerance : float, optional
        Largest error ‖G − G_r‖∞ relative to the largest gain ‖G_r‖∞ of the reduced system, `result.gain`, between 0
        and 1. It is met by the bound or, without one, by the estimate, at the smallest order found. States that do
        not decay are kept and count neither in the error nor in the gain.
    method : str, optional
        "truncation" (default) truncates balanced states; "singular_perturbation" sets their derivatives to zero, which
        keeps the gain at zero frequency exactly. For a network "neurons" leaves out those with the smallest
        contributions to the outputs. For a `SecondOrder` model "modes" or "krylov"; by default all modes of a small
        model are computed, and rational Krylov spaces of a large one.
    n_jobs : int, optional
        Number of processes that share the shifts of a batch (joblib). The result does not depend on it.
    callback : callable, optional
        Function that is called with the number of shifts and the current relative bound.

    Returns
    -------
    ReductionResult
        Reduced system, error bounds and the network.

    Raises
    ------
    InvalidSystemError
        The system cannot be reduced, or not exactly one of `order` and `tolerance` was given.
    """
    model = system if isinstance(system, DynamicNetwork | SecondOrder) else eliminate_zero_rows(system)
    start = time.perf_counter()
    options: dict[str, Any] = {"order": order, "tolerance": tolerance, "method": method, "n_jobs": n_jobs}
    options["callback"] = callback or ignore_progress
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
    )
