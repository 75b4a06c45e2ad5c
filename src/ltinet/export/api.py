"""Export methods of `DynamicNetwork`: C, ONNX, FMU, SciPy and python-control.

The exporters themselves are imported when they are called.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import MissingDependencyError
from ltinet.export.fmu.description import Version
from ltinet.export.manifest import Export
from ltinet.export.step_model import Precision, issue_warnings, validate_settings
from ltinet.signals.sampled import Hold
from ltinet.simulation.context import SimulationContext
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

if TYPE_CHECKING:
    import scipy.signal


def to_scipy(system: SystemMatrices) -> "scipy.signal.StateSpace":
    """The system as a `scipy.signal.StateSpace`, with writeable copies of the matrices."""
    import scipy.signal  # here, because it would be half of the time that importing ltinet takes

    return scipy.signal.StateSpace(*(np.array(matrix) for matrix in (system.A, system.B, system.C, system.D)))


def to_control(system: SystemMatrices) -> Any:
    """The system as a `control.StateSpace` of python-control, no state removed.

    Raises:
        MissingDependencyError: python-control is not installed.
    """
    try:
        import control
    except ImportError as error:
        raise MissingDependencyError(
            'python-control is not installed; install it with pip install "ltinet[control]"'
        ) from error
    matrices = (system.A, system.B, system.C, system.D)
    return control.StateSpace(*matrices, remove_useless_states=False, **system.names.by_kind)


class Exportable(Protocol):
    """A network that knows what its runs need."""

    @property
    def signal_settings(self) -> SignalSettings:
        """Delays, operating point, hold and sample time."""
        ...

    @property
    def _context(self) -> SimulationContext: ...


def export_c(
    net: Exportable,
    folder: str | PathLike[str],
    dt: float,
    *,
    hold: Hold | None = None,
    dtype: Precision = "double",
    x0: ArrayLike | None = None,
    prefix: str = "model",
    user_states: bool = False,
) -> Export:
    """Write the network as a folder of C99: one source, one header, a self-test, a Makefile, a README.

    The code computes what `net.stepper(dt, hold=hold)` does, allocates nothing and needs no library. A model with
    delays or an operating point is two sources and two headers, and takes and gives signals as they are measured.

    Args:
        net: the network itself.
        folder: a folder that is not there yet, an empty one, or an earlier export, which is replaced.
        dt: the time step.
        hold: "zero" for inputs that are kept until the next sample, "linear" for straight lines between samples; that
            of the model if left out, and "zero" where the model has none.
        dtype: "double", or "float" for processors without double precision; its error bound is in the README.
        x0: the initial state in the user's coordinates, zero if left out.
        prefix: what files and all names in them begin with.
        user_states: add the matrix T, n × n numbers, and a function that gives states in the user's coordinates.

    Raises:
        FileFormatError: something else stands there, a name cannot be used, a number does not fit the precision.
        InvalidSignalError: dt or x0 cannot be used.
    """
    from ltinet.export.c.export import write_c  # here: most networks never leave

    settings = validate_settings(
        dt,
        hold=hold if hold is not None else net.signal_settings.hold or "zero",
        dtype=dtype,
        x0=x0,
        signals=net.signal_settings,
    )
    written = write_c(net._context, folder, settings=settings, prefix=prefix, user_states=user_states)
    issue_warnings(written.notes)
    return written


def export_onnx(
    net: Exportable,
    path: str | PathLike[str],
    dt: float,
    *,
    hold: Hold | None = None,
    dtype: Precision = "double",
    x0: ArrayLike | None = None,
) -> Export:
    """Write the network as an ONNX file: u (batch, time, m) and state in, y (batch, time, p) and next_state out.

    Batch and time are free. A state of zeros begins at rest; `next_state` is that after the last sample, so that a
    signal may come in pieces of any length. `manifest["initial state"]` is the state for x0. Needs onnx to write, and
    anything that runs ONNX to run. Samples and outputs that delays keep on their way are in the state, too.

    Args:
        net: the network itself.
        path: the file, which ends in .onnx; one of that name is replaced.
        dt: the time step.
        hold: "zero" for inputs that are kept until the next sample, "linear" for straight lines between samples; that
            of the model if left out, and "zero" where the model has none.
        dtype: "double" or "float", of inputs, outputs and all arithmetic.
        x0: the initial state in the user's coordinates, zero if left out.

    Raises:
        MissingDependencyError: onnx is not installed.
        FileFormatError: the file cannot be written, or a number does not fit the precision.
        InvalidSignalError: dt or x0 cannot be used.
    """
    from ltinet.export.onnx.export import write_onnx  # here: most networks never leave

    settings = validate_settings(
        dt,
        hold=hold if hold is not None else net.signal_settings.hold or "zero",
        dtype=dtype,
        x0=x0,
        signals=net.signal_settings,
    )
    written = write_onnx(net._context, path, settings=settings)
    issue_warnings(written.notes)
    return written


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
    """Write the network as an FMU for co-simulation, with its sources and a library for the platform at hand.

    Inputs are kept over a communication step; in FMI 2.0 an importer may give their derivatives, and they go in
    straight lines. Communication steps may have any length: whole multiples of dt take the steps of `export_c`, others
    an exact step of the length that is left. Each output names the inputs that it depends on at once. Delays are exact
    at any communication step; between communication points delayed inputs follow the hold of the model.

    Args:
        net: the network itself.
        path: the file, which ends in .fmu; one of that name is replaced.
        dt: the time step that is prepared.
        version: of FMI, "3.0" or "2.0".
        x0: the initial state in the user's coordinates, zero if left out.
        compiler: a C compiler, or the beginning of its command; "zig" for the package ziglang; any if left out.
        platforms: what to compile for, such as "x86_64-windows", with a compiler that can (zig); the one at hand if
            left out.

    Raises:
        MissingDependencyError: there is no C compiler.
        FileFormatError: the file cannot be written, or the compiler fails.
        InvalidSignalError: dt or x0 cannot be used.
    """
    from ltinet.export.fmu.export import write_fmu  # here: most networks never leave

    settings = validate_settings(dt, hold="linear", dtype="double", x0=x0, signals=net.signal_settings)
    written = write_fmu(net._context, path, settings=settings, version=version, compiler=compiler, platforms=platforms)
    issue_warnings(written.notes)
    return written
