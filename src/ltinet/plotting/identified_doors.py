"""What stands behind `found.plot` of an identified system: one line for every drawing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.listing import listed_without
from ltinet.plotting.correlations import draw_correlations
from ltinet.plotting.measured import draw_measured
from ltinet.plotting.measured_response import draw_measured_response
from ltinet.plotting.orders import draw_orders
from ltinet.plotting.pairs import Pair
from ltinet.plotting.uncertain_bode import draw_uncertain_bode
from ltinet.plotting.uncertain_poles import draw_uncertain_poles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class DrawnTrial(Protocol):
    """A model on the way, as far as it is drawn."""

    @property
    def order(self) -> int:
        """Number of states."""
        ...

    @property
    def refined(self) -> bool:
        """Whether by output error."""
        ...

    @property
    def method(self) -> str:
        """Its subspace method."""
        ...

    @property
    def error(self) -> float:
        """On unseen samples, relative to the outputs."""
        ...


class DrawnTests(Protocol):
    """Correlations of residuals, as far as they are drawn."""

    @property
    def lags(self) -> NDArray[np.intp]:
        """From −L to L."""
        ...

    @property
    def autocorrelation(self) -> Array:
        """Of every output `(p, 2L + 1)`."""
        ...

    @property
    def cross_correlation(self) -> Array:
        """Of outputs with inputs `(p, m, 2L + 1)`."""
        ...

    @property
    def band(self) -> float:
        """Half the width of the 99 % band."""
        ...


class DrawnRegion(Protocol):
    """A pole and how certain it is, as far as it is drawn."""

    @property
    def pole(self) -> complex:
        """Of a pair the one with positive imaginary part."""
        ...

    @property
    def covariance(self) -> Array:
        """Of the real part, for pairs of both parts."""
        ...


class DrawnBand(Protocol):
    """A frequency response and how certain it is, as far as it is drawn."""

    @property
    def response(self) -> NDArray[np.complex128]:
        """H(jω), `(K, p, m)`."""
        ...

    @property
    def magnitude_deviation(self) -> Array:
        """In decibels."""
        ...

    @property
    def phase_deviation(self) -> Array:
        """In radians."""
        ...


@dataclass(frozen=True)
class DrawnIdentification:
    """What was found, as far as it is drawn; computed where a drawing asks for it."""

    poles: Callable[[], NDArray[np.complex128]]
    regions: Callable[[], Sequence[DrawnRegion]]
    compared: Callable[[Any, Any], Sequence[tuple[Array, NDArray[Any], NDArray[Any]]]]
    fit: Callable[[Any, Any], Array]
    residuals: Callable[[Any, Any], DrawnTests]
    band: Callable[[ArrayLike], DrawnBand]
    frequencies: Callable[[], Array]
    tried: Sequence[DrawnTrial]
    singular_values: Array
    order: int
    dt: float | None
    """None of what was found in a frequency response."""
    names: Sequence[str]
    input_names: Sequence[str]


@final
@dataclass(frozen=True)
class IdentifiedPlots:
    """Drawings of an identified system; they need matplotlib.

    They take the Axes, or those of several panels the empty Figure, to draw on, or make a new one, and return the Axes.
    """

    found: DrawnIdentification

    def compare(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw measured outputs and those of the model, with its fit: of other records, or of those it was found in.

        Only the states at the first sample are fitted. Experiments follow each other, with a dotted line between. Of
        what was found in a frequency response, omega and H take the places of u and y, and a Bode plot is drawn.
        """
        parts = self.found.compared(u, y)
        fits = self.found.fit(u, y).tolist()
        if self.found.dt is None:
            return self._compare_response(*parts[0], fits, outputs, figure)
        times, measured, modelled, seams = _in_a_row(parts, self.found.dt)
        return draw_measured(
            times, measured, modelled, fits=fits, names=self.found.names, outputs=outputs, seams=seams, figure=figure
        )

    def _compare_response(
        self,
        omega: Array,
        measured: NDArray[Any],
        modelled: NDArray[Any],
        fits: Sequence[float],
        outputs: Sequence[int | str] | None,
        figure: "Figure | SubFigure | None",
    ) -> NDArray[Any]:
        inputs = range(len(self.found.input_names))
        pairs = None if outputs is None else [(output, j) for output in outputs for j in inputs]
        drawn = omega > 0.0
        return draw_measured_response(
            omega[drawn], measured[drawn], modelled[drawn], fits=fits, pairs=pairs, names=self.found.names,
            input_names=self.found.input_names, figure=figure,
        )  # fmt: skip

    def residuals(
        self,
        u: Any = None,
        y: Any = None,
        *,
        outputs: Sequence[int | str] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw how residuals depend on themselves and on inputs, with 99 % bands.

        Residuals with themselves outside of the band: noise that is not white. After an input, at positive lags: the
        model misses something. At negative lags: the input follows the outputs, a closed loop.
        """
        tests = self.found.residuals(u, y)
        return draw_correlations(
            tests.lags, tests.autocorrelation, tests.cross_correlation, band=tests.band, names=self.found.names,
            input_names=self.found.input_names, outputs=outputs, figure=figure,
        )  # fmt: skip

    def orders(self, *, figure: "Figure | SubFigure | None" = None) -> NDArray[Any]:
        """Draw singular values, and the errors of models on unseen samples by their order; two Axes come back."""
        errors: dict[str, dict[int, float]] = {}
        for own in self.found.tried:
            best = errors.setdefault(f"{own.method}, refined" if own.refined else own.method, {})
            best[own.order] = min(own.error, best.get(own.order, np.inf))
        return draw_orders(self.found.singular_values, errors, chosen=self.found.order, figure=figure)

    def poles(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the poles of continuous time with the regions that hold the true ones at 99 %, where they are known."""
        regions = [(own.pole, own.covariance) for own in self.found.regions()]
        return draw_uncertain_poles(self.found.poles(), regions, ax=ax)

    def bode(
        self,
        omega: ArrayLike | None = None,
        *,
        pairs: Sequence[Pair] | None = None,
        figure: "Figure | SubFigure | None" = None,
    ) -> NDArray[Any]:
        """Draw magnitude and phase of H(jω), without the delay, with 99 % bands; two Axes come back.

        Without omega frequencies are chosen from poles and zeros, up to half of the sampling frequency.
        """
        if omega is None:
            shown = self.found.frequencies()
            omega = shown if self.found.dt is None else shown[shown <= np.pi / self.found.dt]
        own = self.found.band(omega)
        return draw_uncertain_bode(
            omega, own.response, decibels=own.magnitude_deviation, degrees=np.rad2deg(own.phase_deviation),
            pairs=pairs, names=self.found.names, input_names=self.found.input_names, figure=figure,
        )  # fmt: skip

    def __dir__(self) -> list[str]:
        return listed_without(self, "found")


def _in_a_row(
    parts: Sequence[tuple[Array, NDArray[Any], NDArray[Any]]], dt: float
) -> tuple[Array, Array, Array, list[float]]:
    """Experiments one after the other, parted by NaN; times from 0 on, and those at which another one begins."""
    gap = np.full((1, parts[0][1].shape[1]), np.nan)
    measured = np.concatenate([part for _, own, _ in parts for part in (own, gap)][:-1])
    modelled = np.concatenate([part for _, _, own in parts for part in (own, gap)][:-1])
    ends = np.cumsum([len(own) + 1 for _, own, _ in parts])
    times = np.asarray(dt * np.arange(len(measured)), dtype=np.float64)
    return times, measured, modelled, [dt * float(end - 1) for end in ends[:-1]]
