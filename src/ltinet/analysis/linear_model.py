"""Base class of systems and networks: their signal settings, poles, zeros, gains, stability and feedback loops."""

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.analysis.characteristics import compute_bandwidth
from ltinet.analysis.dc_gain import dc_gain
from ltinet.analysis.frequency_response import frequencies_for
from ltinet.analysis.margins import DiskMargin, Margins, disk_margin, loop_margins
from ltinet.analysis.norms import SystemNorm, system_norm
from ltinet.analysis.poles import Damping, damping_table
from ltinet.analysis.stability import NyquistResult, is_stable, nyquist
from ltinet.analysis.zeros import invariant_zeros
from ltinet.plotting.system_response import ResponsePlots
from ltinet.simulation.options import validate_positive
from ltinet.systems.signal_settings import ModelSignals, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LinearModel(ModelSignals):
    """Signal settings and analysis of a model with validated matrices."""

    @property
    @abstractmethod
    def _analyzed(self) -> tuple[SystemMatrices, SignalSettings]:
        """Matrices and settings that the methods use."""

    @property
    @abstractmethod
    def plot(self) -> ResponsePlots:
        """Plots of the model."""

    @property
    @abstractmethod
    def dt(self) -> float | None:
        """Time step of a model in discrete time; None in continuous time."""

    @abstractmethod
    def poles(self) -> NDArray[np.complex128]:
        """Compute the poles."""

    @abstractmethod
    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Compute the frequency response."""

    def zeros(self) -> NDArray[np.complex128]:
        """Compute the finite invariant zeros; the system may have several inputs and outputs.

        Returns
        -------
        ndarray of complex
            Zeros by falling real part.
        """
        return invariant_zeros(self._analyzed[0])

    def damping(self) -> Damping:
        """Compute natural frequency, damping ratio and time constant of every pole.

        Returns
        -------
        Damping
            Values for each pole; prints as a table.
        """
        return damping_table(self.poles(), self.dt)

    def dcgain(self) -> NDArray[np.float64]:
        """Compute the gain at zero frequency.

        Returns
        -------
        ndarray, shape (p, m)
            DC gains; ±inf for integrators, unless they are unobservable or uncontrollable.
        """
        return dc_gain(self._analyzed[0])

    def bandwidth(self, *, drop: float = 3.0) -> NDArray[np.float64]:
        """Compute the first frequency at which each gain falls below the DC gain by a given number of decibels.

        Parameters
        ----------
        drop : float, optional
            Decrease of the gain in decibels.

        Returns
        -------
        ndarray, shape (p, m)
            Angular frequencies; inf if the gain never falls so far, NaN if the DC gain is zero, or infinite, with a
            UserWarning.
        """
        frequencies = frequencies_for(self.poles(), self.zeros(), dt=self.dt)
        return compute_bandwidth(
            self.frequency_response, self.dcgain(), frequencies, drop=validate_positive(drop, "drop")
        )

    def isstable(self) -> bool:
        """Return True if all poles are inside the stability region: left half plane, in discrete time unit circle.

        Poles on its boundary, such as integrators, are not inside; distances within rounding errors of the pole count
        as zero.

        Returns
        -------
        bool
            True for an asymptotically stable system.
        """
        return is_stable(self._analyzed[0])

    def margin(self) -> Margins:
        """Compute the margins of the system as an open loop L that is closed by negative feedback.

        Delays of inputs and outputs are part of the loop, and exact. All crossings are listed.

        Returns
        -------
        Margins
            Gain, phase, delay and modulus margins with their frequencies; prints as a table, and unpacks as
            `gm, pm, wcg, wcp = system.margin()`.

        Raises
        ------
        InvalidSystemError
            If there is more than one input or output; use `disk_margin` for a square loop.
        """
        return loop_margins(*self._analyzed)

    def disk_margin(self) -> DiskMargin:
        """Compute the symmetric disk margin 2/‖S − T‖∞ of the system as an open loop with one or several channels.

        Gains and phases of all channels may vary at the same time, independently and also with frequency.

        Returns
        -------
        DiskMargin
            Margin, its frequency, and the ranges of gain and phase.

        Raises
        ------
        InvalidSystemError
            If the system has not as many outputs as inputs.
        """
        return disk_margin(*self._analyzed)

    def nyquist(self) -> NyquistResult:
        """Compute the Nyquist curve of the system as an open loop, and count encirclements and closed-loop poles.

        Returns
        -------
        NyquistResult
            Curve, encirclements N, unstable poles P of the open and Z = N + P of the closed loop; `plot()` draws it.

        Raises
        ------
        InvalidSystemError
            If the system has not as many outputs as inputs, the loop is not well-posed, or it has delays and ‖D‖ ≥ 1.
        """
        return nyquist(*self._analyzed)

    def norm(self, kind: str | float = "h2") -> SystemNorm:
        """Compute the H₂ or H∞ norm with an interval that contains it, proven for up to 200 states.

        Delays of inputs and outputs do not change norms.

        Parameters
        ----------
        kind : {"h2", "hinf", 2, inf}, optional
            H₂ norm: root of the sum of variances of the outputs for white noise. H∞ norm: largest singular value of
            the frequency response over all frequencies.

        Returns
        -------
        SystemNorm
            Value, interval and frequency of the peak; infinite for systems that are not stable. `float(…)` is the value.
        """
        return system_norm(self._analyzed[0], kind)

    def hinf_norm(self) -> SystemNorm:
        """Compute the H∞ norm, as `norm("hinf")` does.

        Returns
        -------
        SystemNorm
            Value, interval and frequency of the peak.
        """
        return self.norm("hinf")

    def h2_norm(self) -> SystemNorm:
        """Compute the H₂ norm, as `norm("h2")` does.

        Returns
        -------
        SystemNorm
            Value and interval.
        """
        return self.norm("h2")

    def pzmap(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw poles and zeros, as `plot.pzmap()` does.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return self.plot.pzmap(ax=ax)
