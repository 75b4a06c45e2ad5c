"""Systems and networks in files: `load_system`, `save_system` and `load`; built-in systems: `named_system`."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.io.file_access import DEFAULT_MAX_BYTES
from ltinet.io.system_files import read_system, write_system
from ltinet.network.network_file import read_network
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import MatrixLike
from ltinet.systems.named_systems import build_system

# MERGED ltinet.files
# The doors through which systems come and go: files, and the systems that are built in.


def load_system(  # noqa: PLR0913 - every matrix may be given by keyword
    path: str | PathLike[str],
    *,
    A: MatrixLike | None = None,
    B: MatrixLike | None = None,
    C: MatrixLike | None = None,
    D: MatrixLike | None = None,
    E: MatrixLike | None = None,
    names: Mapping[str, str] | None = None,
    dt: float | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> StateSpace:
    """Read a system from a `.mat` file (any version), an `.npz` archive or a folder of Matrix Market files.

    The variables are called A, B, C and, where present, D and E, or a, b, c, d, e, or are fields of one struct (sys.A);
    `names={"A": "Amat"}` tells of others. A sparse A stays so, and E beside it; other variables are ignored.
    Names stand beside them as InputName, OutputName and StateName, with units in InputUnit and so on, or input_names.
    Delays stand beside them as InputDelay and OutputDelay (in discrete time in samples, as in MATLAB), the operating
    point as InputOffset and OutputOffset, the hold as InterSample ("zoh", "foh"), the sample time as DataSampleTime.
    A model in discrete time has its time step beside them as Ts or dt (or Td, sampling_time, sample_time, SampleTime).
    A matrix given by keyword is used instead of the file's, and supplies one that the file lacks:
    `load_system("helicopter.mat", C=np.eye(28))`. Nothing is unpickled, and nothing that the file says of itself is
    believed before it is checked.

    Args:
        path: the file or folder.
        A: the state matrix, instead of the file's; the other matrices likewise.
        B: the input matrix.
        C: the output matrix.
        D: the feedthrough.
        E: the descriptor matrix.
        names: variables of the file by the matrix that they are; fields of structs as "sys.A".
        dt: the time step, instead of the file's; 0 for continuous time, whatever the file says.
        max_bytes: the most that all matrices of the file may take as float64, 2 GiB unless another number is given,
            sparse ones with the places of their entries; compressed files of some kilobytes can claim more than any
            memory has.

    Raises:
        FileFormatError: the file is missing, damaged, too large, of an unknown kind, or lacks A, B or C.
        InvalidSystemError: its matrices do not make a system, or what it has for a time step is none.
    """
    given = {name: value for name, value in zip("ABCDE", (A, B, C, D, E), strict=True) if value is not None}
    matrices, settings = read_system(path, given, names=names, dt=dt, max_bytes=max_bytes)
    return StateSpace.of(matrices, settings=settings)


def save_system(system: Any, path: str | PathLike[str], *, mat_version: Literal["5", "7.3"] = "5") -> None:
    """Write A, B, C, D to a `.mat` or `.npz` file, or to a folder of Matrix Market files if `path` has no suffix.

    A time step is written as Ts, a sparse A as such, with its E, names as InputName, OutputName and StateName (a folder
    has no place for them). Delays, operating point, hold and sample time are written as `load_system` reads them; with
    any of these a folder is refused. `system` may be anything that `as_state_space` accepts. Every bit comes back
    through `load_system`. The file appears whole or not at all. A file of that name is replaced; a folder only if it
    holds nothing but such matrix files. `mat_version="7.3"` writes HDF5 (extra `ltinet[hdf5]`), needed for matrices
    beyond 2 GB.

    Raises:
        FileFormatError: the suffix is unknown, or the file cannot be written there.
        MissingDependencyError: h5py is needed and not installed.
    """
    held = as_state_space(system)
    write_system(held.matrices, path, mat_version=mat_version, settings=held.signal_settings)


def named_system(name: str, **parameters: Any) -> StateSpace:
    """Build the system called `name`; `NAMED_SYSTEMS` lists the names, and each function documents its parameters.

    Raises:
        InvalidSystemError: there is no system of that name, it has no such parameter, or a value does not fit.
    """
    return StateSpace.of(build_system(name, parameters))


# MERGED ltinet.files
# Networks from files.


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> DynamicNetwork:
    """Read a network that `net.save` wrote, bit for bit, with its delays, operating point, hold and sample time.

    Files of 0.1.0 know of none of these, and `print` says so of their networks.

    A file whose tensors take more than `max_bytes`, 2 GiB unless another number is given, is refused.

    Raises:
        FileFormatError: there is no such file, it is damaged, not a network, too large, or of a newer format.
    """
    network, form, system, blocks, reduction_error, settings = read_network(path, max_bytes=max_bytes)
    held = None if system is None else StateSpace.of(system, settings=settings)
    return DynamicNetwork(network, form, held, blocks, reduction_error, settings)
