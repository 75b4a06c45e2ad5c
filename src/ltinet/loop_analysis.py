"""Functions that judge stability and feedback loops, under the names that users of other libraries type.

Each converts its argument with `as_state_space` and calls the method of the same name.
"""

from typing import TYPE_CHECKING, Any

from ltinet.analysis.margins import DiskMargin, Margins
from ltinet.analysis.norms import SystemNorm
from ltinet.analysis.stability import NyquistResult, Sensitivities
from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _model(system: Any) -> StateSpace | DynamicNetwork:
    return system if isinstance(system, DynamicNetwork) else as_state_space(system)


def isstable(system: Any) -> bool:
    """Return True if all poles of a system are inside the stability region.

    Parameters
    ----------
    system : StateSpace, DynamicNetwork or object
        System, or any object that `as_state_space` accepts.

    Returns
    -------
    bool
        True for an asymptotically stable system.

    Examples
    --------
    >>> ltinet.isstable(([1.0], [1.0, 0.5, 4.0]))
    True
    """
    return _model(system).isstable()


def margin(loop: Any) -> Margins:
    """Compute gain, phase, delay and modulus margins of an open loop; see `StateSpace.margin`.

    Parameters
    ----------
    loop : StateSpace, DynamicNetwork or object
        Open loop with one input and one output, or any object that `as_state_space` accepts; its feedback is negative.

    Returns
    -------
    Margins
        Margins with their frequencies; prints as a table, and unpacks as `gm, pm, wcg, wcp = margin(L)`.

    Examples
    --------
    >>> print(ltinet.margin(([4.0], [1.0, 3.0, 3.0, 1.0])))
    closed loop: stable
     margin               value  frequency (rad/time)
       gain        2 (6.021 dB)                1.7321
      phase             27.142°                1.2328
      delay  0.38425 time units                1.2328
    modulus             0.33333                1.4142
    """
    return _model(loop).margin()


def disk_margin(loop: Any) -> DiskMargin:
    """Compute the symmetric disk margin of an open loop; see `StateSpace.disk_margin`.

    Parameters
    ----------
    loop : StateSpace, DynamicNetwork or object
        Open loop with as many outputs as inputs.

    Returns
    -------
    DiskMargin
        Margin, its frequency, and the ranges of gain and phase.

    Examples
    --------
    >>> print(ltinet.disk_margin(([4.0], [1.0, 3.0, 3.0, 1.0])))
    disk margin: 0.37766, gain from 0.6823 to 1.466 and phase ± 21.39° together
    """
    return _model(loop).disk_margin()


def nyquist(loop: Any) -> NyquistResult:
    """Compute the Nyquist curve of an open loop and count closed-loop poles; see `StateSpace.nyquist`.

    Parameters
    ----------
    loop : StateSpace, DynamicNetwork or object
        Open loop with as many outputs as inputs.

    Returns
    -------
    NyquistResult
        Curve, encirclements and numbers of unstable poles; `plot()` draws it.

    Examples
    --------
    >>> print(ltinet.nyquist(([4.0], [1.0, 3.0, 3.0, 1.0])))
    closed loop stable
      clockwise encirclements of −1, N              0
      unstable poles of the open loop, P            0
      unstable poles of the closed loop, Z = N + P  0
    """
    return _model(loop).nyquist()


def norm(system: Any, kind: str | float = "h2") -> SystemNorm:
    """Compute the H₂ or H∞ norm of a system with an interval that contains it; see `StateSpace.norm`.

    Parameters
    ----------
    system : StateSpace, DynamicNetwork or object
        System, or any object that `as_state_space` accepts.
    kind : {"h2", "hinf", 2, inf}, optional
        Norm to compute.

    Returns
    -------
    SystemNorm
        Value, interval and frequency of the peak.

    Examples
    --------
    >>> round(ltinet.norm(([1.0], [1.0, 0.2, 1.0]), "hinf").value, 4)
    5.0252
    """
    return _model(system).norm(kind)


def sensitivity(plant: Any, controller: Any = None) -> "Sensitivities[StateSpace]":
    """Compute the four closed-loop functions S, T, CS and PS; see `StateSpace.sensitivity`.

    Parameters
    ----------
    plant : StateSpace, DynamicNetwork or object
        Plant P, or the whole open loop L if `controller` is omitted.
    controller : StateSpace, DynamicNetwork or object, optional
        Controller C with the plant's outputs as inputs and its inputs as outputs; identity by default.

    Returns
    -------
    Sensitivities
        Named tuple of `StateSpace` systems S = (I + PC)⁻¹, T = PC S, CS and PS.

    Examples
    --------
    >>> S, T, CS, PS = ltinet.sensitivity(([1.0], [1.0, 1.0]), ([9.0], [1.0]))
    >>> T.dcgain()
    array([[0.9]])
    """
    return _model(plant).sensitivity(controller if controller is None else as_state_space(controller))


def pzmap(system: Any, *, ax: "Axes | None" = None) -> "Figure":
    """Draw poles (×) and zeros (○) of a system; needs matplotlib.

    Parameters
    ----------
    system : StateSpace, DynamicNetwork or object
        System, or any object that `as_state_space` accepts.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return _model(system).pzmap(ax=ax)
