"""Model reduction: `reduce` and its result.

The result holds the reduced system G_r, a proven bound on ‖G(jω) − G_r(jω)‖ at all frequencies where there is one, an
estimate otherwise, and the pointwise bound |e(t)| ≤ ‖G − G_r‖_H2·‖u‖ in L2(0, t).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import html_properties
from ltinet._util.floating_point import Array
from ltinet._util.text import format_rows
from ltinet.construction import construct
from ltinet.conversion import eliminate_algebraic, eliminate_zero_rows
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.network.network import Network
from ltinet.plotting.reduction import ReductionPlotData, ReductionPlots
from ltinet.reduction.dispatch import ReductionMethod, dispatch_reduction
from ltinet.reduction.rational_krylov import ProgressCallback
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace

# MERGED ltinet.reduction.api
# From many states to few: `reduce`, and what it found.


@final
@dataclass(frozen=True, eq=False, repr=False)
class ReductionResult:
    """A system of few states, and how far it is from the one that it stands for; `print` shows it."""

    system: StateSpace
    """The reduced system G_r."""
    full_order_model: StateSpace | SecondOrder = field(repr=False)
    """The system G that was reduced; of a network its state equations."""
    order: int
    """States of the reduced system, those that were kept aside included."""
    error_bound: float | None
    """Proven: ‖G(jω) − G_r(jω)‖ ≤ `error_bound` at all ω, so that ‖e‖ ≤ `error_bound`·‖u‖ in L2. None where nothing is.

    Where states are kept that do not decay it says no more than that: their errors, of rounding only, may grow in time.
    """
    estimate: float
    """What the largest ‖G − G_r‖ is thought to be; no bound."""
    gain: float
    """The largest ‖G_r(jω)‖ of what decays, to which `tolerance` is relative."""
    hankel_values: Array | None
    """Hankel singular values, of large sparse systems those of the projection; None where they are not known."""
    error_parts: dict[str, float]
    """What the bound is the sum of, by name."""
    steps: tuple[tuple[str, str], ...]
    """What was done and what it cost."""
    h2_bound: Callable[[], float] = field(repr=False)
    """The H2 norm of what was left out, or more, computed when it is asked for."""
    second_order: SecondOrder | None = None
    """The reduced model as masses, dampers and springs, where a `SecondOrder` one was given: M = I, K diagonal."""
    network: Network | None = field(default=None, repr=False)
    """The neurons, where they were found with the system."""
    previous_h2_bound: float = 0.0
    """The H2 norm of what a network that was given had left out already; bounds of `net` count it too."""
    n_aside: int = 0
    """States that grow, integrate or may do so: they are kept whole, and counted in the order."""
    notes: tuple[str, ...] = ()

    @property
    def is_certified(self) -> bool:
        """Whether `error_bound` is proven, rounding included."""
        return self.error_bound is not None

    @cached_property
    def pointwise_bound(self) -> float | None:
        """Proven: |e(t)| ≤ `pointwise_bound`·‖u‖ in L2(0, t) from rest (the H2 norm); None where nothing is."""
        found = self.h2_bound()
        return found if math.isfinite(found) else None

    @cached_property
    def net(self) -> DynamicNetwork:
        """The network of the reduced system; its bounds count what the reduction left out."""
        net = (
            construct(self.system)
            if self.network is None
            else DynamicNetwork(self.network, signal_settings=self.system.signal_settings)
        )
        return replace(net, reduction_error=self.previous_h2_bound + self.h2_bound())

    @property
    def plot(self) -> ReductionPlots:
        """Drawings: `result.plot.error(omega)`, `.hankel()`; they need matplotlib."""
        drawn = ReductionPlotData(
            errors=self.errors,
            frequencies=self.system.plot_frequencies,
            bound=self.error_bound,
            estimate=self.estimate,
            hankel_values=self.hankel_values,
            n_kept=self.order - (0 if self.hankel_values is None else self.n_aside),
        )
        return ReductionPlots(drawn)

    def errors(self, omega: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """‖G(jω) − G_r(jω)‖ and ‖G(jω)‖ at some frequencies, by solving both systems there; infinite at poles."""
        whole, small = self.full_order_model.frequency_response(omega), self.system.frequency_response(omega)
        with np.errstate(invalid="ignore"):
            return _spectral_norms(whole - small), _spectral_norms(whole)

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
        rows += [("gain", f"{self.gain:.4g}"), *self.steps, *(("note", own) for own in self.notes)]
        return rows

    def __repr__(self) -> str:
        return f"Reduced(order={self.order}, n_states={self.full_order_model.n_states}, error_bound={self.error_bound})"

    def __str__(self) -> str:
        return format_rows("reduced system", self._rows())

    def _repr_html_(self) -> str:
        return html_properties("reduced system", self._rows())


def _spectral_norms(values: NDArray[np.complex128]) -> NDArray[np.float64]:
    """The norm at each frequency; infinite at a pole."""
    known = np.asarray(np.isfinite(values).all(axis=(1, 2)))
    return np.where(known, np.linalg.norm(np.where(known[:, None, None], values, 0.0), 2, axis=(1, 2)), np.inf)


def reduce(
    system: Any,
    *,
    order: int | None = None,
    tolerance: float | None = None,
    method: ReductionMethod | None = None,
    n_jobs: int = 1,
    callback: ProgressCallback | None = None,
) -> ReductionResult:
    """Reduce a system or a network to fewer states, with a bound on the error that counts rounding too.

    Dense systems are balanced. Sparse ones of more than 300 states, E symmetric positive definite and A with a negative
    definite symmetric part, are projected first, never filled in. `result.is_certified` says whether the bound is
    proven; for sparse systems that are not of this kind there is an estimate.

    A `SecondOrder` model keeps its structure: each mode that stays is one second-order neuron, two states.
    Bounds are proven where D = αM + βK, and for all models of up to 1,500 positions.

    Args:
        system: anything that `as_state_space` takes, a `SecondOrder` model, or a network. A singular E goes through
            `eliminate_algebraic`, and `result.full_order_model` is what that left.
        order: the number of states, or
        tolerance: the largest error, ‖G − G_r‖∞ relative to ‖G_r‖∞; as few states as found.
        method: "truncation", which None stands for, leaves balanced states out, "singular_perturbation" takes them as
            at rest, which keeps the gain at zero frequency exactly. Of a network "neurons" leaves out those with the
            smallest shares in the outputs. For a `SecondOrder` model "modes" or "krylov"; None takes all modes of a
            small model, and rational Krylov spaces for a large one.
        n_jobs: processes that share the shifts of a batch (joblib); the result does not depend on it.
        callback: called with the number of shifts and the relative bound as it falls.

    Raises:
        InvalidSystemError: the system cannot be reduced, or neither or both of order and tolerance were given.
    """
    given = system if isinstance(system, DynamicNetwork | SecondOrder) else eliminate_zero_rows(system)
    began = time.perf_counter()
    ignore: ProgressCallback = lambda n_shifts, error: None  # noqa: ARG005, E731
    options: dict[str, Any] = {"order": order, "tolerance": tolerance, "method": method, "n_jobs": n_jobs}
    try:
        small = dispatch_reduction(given, callback=callback or ignore, **options)
    except InvalidSystemError:
        regular = eliminate_algebraic(given) if isinstance(given, StateSpace) else given
        if regular is given:
            raise
        given = regular
        small = dispatch_reduction(given, callback=callback or ignore, **options)
    seconds, found = time.perf_counter() - began, small.outcome
    return ReductionResult(
        system=small.system,
        full_order_model=given.to_state_space() if isinstance(given, DynamicNetwork) else given,
        order=found.order,
        error_bound=found.error_bound,
        estimate=found.estimate,
        gain=found.gain,
        hankel_values=found.hankel_values,
        error_parts=found.parts,
        steps=(("done", found.way), ("cost", f"{seconds:.3g} s")),
        h2_bound=found.mean,
        second_order=None
        if found.second_order is None
        else SecondOrder.of(found.second_order, settings=small.system.signal_settings),
        network=small.network,
        previous_h2_bound=(given.reduction_error or 0.0) if isinstance(given, DynamicNetwork) else 0.0,
        n_aside=found.n_aside,
        notes=found.notes,
    )
