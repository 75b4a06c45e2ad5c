"""Export methods of `DynamicNetwork`: C, ONNX, FMU, SciPy and python-control.

The exporters themselves are imported when they are called.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.text import install_hint
from ltinet.errors import InvalidSystemError, MissingDependencyError
from ltinet.export.fmu.description import Version
from ltinet.export.manifest import Export, with_warnings
from ltinet.export.step_model import ExportSettings, Precision, validate_settings
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import resolve_hold
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.discrete import resolve_time_step
from ltinet.systems.pade import approximate_delays
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time

if TYPE_CHECKING:
    import scipy.signal


def replace_delays(
    system: SystemMatrices, settings: SignalSettings, *, pade: int | None, owner: str, call: str
) -> SystemMatrices:
    """Return the system for libraries without delays and operating points: delays become Padé approximants.

    Raises
    ------
    InvalidSystemError
        If there is an operating point, or there are delays and `pade` is None; `owner` and `call` name the object and
        the method in the message.
    """
    if settings.has_operating_point:
        raise InvalidSystemError(
            f"{call} does not support the operating point of the model; remove it with "
            f"{owner}.with_signal_settings(u0=0, y0=0).{call}(), subtract u0 from inputs and add y0 to outputs"
        )
    if settings.has_delays and pade is None:
        raise InvalidSystemError(
            f"{call} does not support the delays of the model; approximate them with {call}(pade=4), or "
            f"remove them: {owner}.with_signal_settings(input_delay=0, output_delay=0).{call}()"
        )
    return approximate_delays(system, settings, pade) if settings.has_delays else system


def to_scipy(system: SystemMatrices) -> "scipy.signal.StateSpace":
    """Return the system as a `scipy.signal.StateSpace`, with writeable copies of the matrices."""
    import scipy.signal  # here, since it takes half of the time of `import ltinet`

    matrices = (np.array(matrix) for matrix in (system.A, system.B, system.C, system.D))
    return scipy.signal.StateSpace(*matrices) if system.dt is None else scipy.signal.StateSpace(*matrices, dt=system.dt)


def to_control(system: SystemMatrices) -> Any:
    """Return the system as a `control.StateSpace` of python-control, with all its states.

    Raises
    ------
    MissingDependencyError
        python-control is not installed.
    """
    try:
        import control
    except ImportError as error:
        raise MissingDependencyError(f"python-control is not installed; {install_hint('control')}") from error
    matrices = (system.A, system.B, system.C, system.D, 0 if system.dt is None else system.dt)
    return control.StateSpace(*matrices, remove_useless_states=False, **system.names.by_kind)


# Methods of `DynamicNetwork`. Each imports its exporter when it is called.


class Exportable(Protocol):
    """Network with what its export needs."""

    @property
    def signal_settings(self) -> SignalSettings:
        """Delays, operating point, hold and sample time."""

    @property
    def _context(self) -> SimulationContext: ...


def export_c(
    net: Exportable,
    folder: str | PathLike[str],
    dt: float | None = None,
    *,
    hold: Hold | None = None,
    dtype: Precision = "double",
    x0: ArrayLike | None = None,
    prefix: str = "model",
    user_states: bool = False,
) -> Export:
    """Write the network as a folder of C99: source, header, self-test, Makefile and README.

    The code computes the same steps as `net.stepper(dt, hold=hold)`, allocates no memory and needs no library. A model
    with delays or an operating point has two sources and two headers; its inputs and outputs are the measured signals.

    Parameters
    ----------
    net
        The network.
    folder
        A new or empty folder, or an earlier export, which is replaced.
    dt
        Time step; may be omitted for a model in discrete time, which has its own and no hold.
    hold
        "zero" for inputs that are constant until the next sample, "linear" for straight lines between samples; by
        default that of the model, else "zero".
    dtype
        "double", or "float" for processors without double precision; the README states the error bound.
    x0
        Initial state in the user's coordinates, by default zero.
    prefix
        Prefix of files and identifiers.
    user_states
        Add the matrix T, of n² entries, and a function that returns states in the user's coordinates.

    Returns
    -------
    Export
        Path, files, manifest and notes.

    Raises
    ------
    FileFormatError
        The folder holds other files, the prefix is invalid, or an entry overflows in the precision.
    InvalidSignalError
        dt or x0 is invalid.
    """
    from ltinet.export.c.export import write_c

    settings = _settings(net, dt, hold=hold, dtype=dtype, x0=x0, call="export_c(folder, dt)")
    return with_warnings(write_c(net._context, folder, settings=settings, prefix=prefix, user_states=user_states))


def export_onnx(
    net: Exportable,
    path: str | PathLike[str],
    dt: float | None = None,
    *,
    hold: Hold | None = None,
    dtype: Precision = "double",
    x0: ArrayLike | None = None,
) -> Export:
    """Write the network as an ONNX file: u (batch, time, m) and state in, y (batch, time, p) and next_state out.

    Sizes of batch and time are free. A state of zeros starts at rest; `next_state` is that after the last sample, so a
    signal may come in pieces of any length. `manifest["initial state"]` is the state for x0. Delayed samples and
    outputs are part of the state.

    Parameters
    ----------
    net
        The network.
    path
        File that ends in .onnx; an existing one is replaced.
    dt
        Time step; may be omitted for a model in discrete time, which has its own and no hold.
    hold
        "zero" for inputs that are constant until the next sample, "linear" for straight lines between samples; by
        default that of the model, else "zero".
    dtype
        "double" or "float", of inputs, outputs and all arithmetic.
    x0
        Initial state in the user's coordinates, by default zero.

    Returns
    -------
    Export
        Path, files, manifest and notes.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    FileFormatError
        The file cannot be written, or an entry overflows in the precision.
    InvalidSignalError
        dt or x0 is invalid.
    """
    from ltinet.export.onnx.export import write_onnx

    settings = _settings(net, dt, hold=hold, dtype=dtype, x0=x0, call="export_onnx(path, dt)")
    return with_warnings(write_onnx(net._context, path, settings=settings))


def export_fmu(
    net: Exportable,
    path: str | PathLike[str],
    dt: float,
    *,
    version: Version = "3.0",
    x0: ArrayLike | None = None,
    compiler: str | Sequence[str] | None = None,
    platforms: Sequence[str] | None = None,
) -> Export:
    """Write the network as an FMU for co-simulation, with its sources and a library for this platform.

    Inputs are constant over a communication step; in FMI 2.0 an importer may set their derivatives, which makes them
    linear. Communication steps may have any length: multiples of dt take the steps of `export_c`, others end with an
    exact step of the remaining length. Each output lists the inputs that it depends on without delay. Delays are exact
    for any communication step; between communication points delayed inputs follow the hold of the model.

    Parameters
    ----------
    net
        The network.
    path
        File that ends in .fmu; an existing one is replaced.
    dt
        Time step whose matrices are stored.
    version
        Version of FMI, "3.0" or "2.0".
    x0
        Initial state in the user's coordinates, by default zero.
    compiler
        C compiler, or the beginning of its command; "zig" for the package ziglang; by default the first one found.
    platforms
        Platforms to compile for, such as "x86_64-windows", which needs a cross compiler (zig); by default this one.

    Returns
    -------
    Export
        Path, files, manifest and notes.

    Raises
    ------
    MissingDependencyError
        No C compiler is found.
    FileFormatError
        The file cannot be written, or the compiler fails.
    InvalidSignalError
        dt or x0 is invalid.
    """
    from ltinet.export.fmu.export import write_fmu

    require_continuous_time(net._context, "net.export_fmu(path, dt)")
    settings = _settings(net, dt, hold="linear", dtype="double", x0=x0, call="export_fmu(path, dt)")
    export = write_fmu(net._context, path, settings=settings, version=version, compiler=compiler, platforms=platforms)
    return with_warnings(export)


def _settings(
    net: Exportable, dt: float | None, *, hold: Hold | None, dtype: Precision, x0: ArrayLike | None, call: str
) -> ExportSettings:
    """Return the validated settings of an export; the hold is by default that of the model, else "zero"."""
    signals, model_dt = net.signal_settings, net._context.dt
    dt = resolve_time_step(dt, model_dt, call)
    hold = hold or signals.hold or "zero" if model_dt is None else resolve_hold(hold, signals, model_dt)
    return validate_settings(dt, hold=hold, dtype=dtype, x0=x0, signals=signals)
