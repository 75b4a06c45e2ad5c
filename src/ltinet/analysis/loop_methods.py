"""Methods of systems and networks that judge stability and feedback loops: the base class `LoopMethods`."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from ltinet.analysis.margins import DiskMargin, Margins, disk_margin, loop_margins
from ltinet.analysis.norms import SystemNorm, system_norm
from ltinet.analysis.stability import NyquistResult, is_stable, nyquist
from ltinet.plotting.system_response import ResponsePlots
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LoopMethods:
    """Stability, margins and norms of a model with validated matrices and signal settings."""

    @property
    @abstractmethod
    def _analyzed(self) -> tuple[SystemMatrices, SignalSettings]:
        """Matrices and settings that the methods use."""

    @property
    @abstractmethod
    def plot(self) -> ResponsePlots:
        """Plots of the model."""

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
