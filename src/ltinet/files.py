"""Systems and networks in files: `load_system`, `save_system` and `load`; built-in systems: `named_system`."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, overload

from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.io.file_access import DEFAULT_MAX_BYTES
from ltinet.io.system_files import read_system, write_system
from ltinet.network.network_file import read_network
from ltinet.nonlinear.files import assemble_model, is_product_network, read_product_network, write_model
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.named_models import NAMED_MODELS, build_model, describe_models
from ltinet.nonlinear.network import NonlinearNetwork
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import MatrixLike
from ltinet.systems.named_systems import build_system, describe_systems


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
) -> StateSpace | Any:  # or NonlinearModel: as a union, every use of a linear system would need isinstance
    """Read a system, or a model with products, from a `.mat` file, an `.npz` archive or a folder of Matrix Market files.

    Matrices are variables A, B, C and, where present, D and E, in capital or small letters, or fields of one struct
    (`sys.A`). A sparse A stays sparse, and so does E; other variables are ignored. Versions 4 to 7.3 of `.mat` are read.

    Further variables are read as written by MATLAB: names (InputName, OutputName, StateName, with units in InputUnit
    and so on; or input_names), delays (InputDelay and OutputDelay, in samples for systems in discrete time), operating
    point (InputOffset, OutputOffset), hold (InterSample: "zoh" or "foh"), sample time of the data (DataSampleTime)
    and the time step of a system in discrete time (Ts, dt, Td, sampling_time, sample_time or SampleTime).

    A file is a model with products if it has N (n×nm, the matrices N_k side by side, or m×n×n), H (n×n²) or A_p (n×nl,
    side by side, with B_p, C_p and D_p likewise) of these shapes for n ≥ 2 states; files that `save_system` wrote have
    the class of the model, too. With an E all matrices of the states are multiplied by its inverse.

    Nothing is unpickled, and all sizes in the file are validated before memory is allocated.

    Parameters
    ----------
    path : str or path-like
        File or folder.
    A, B, C, D, E : array_like or sparse matrix, optional
        Matrix that replaces that of the file, or supplies one that the file lacks.
    names : mapping of str to str, optional
        Variable that holds each matrix, where it has another name: `{"A": "Amat", "B": "sys.b2"}`.
    dt : float, optional
        Time step that replaces that of the file; 0 for continuous time.
    max_bytes : float, optional
        Limit on the memory of all matrices as float64, including indices of sparse ones. The default is 2 GiB. A
        compressed file of a few kilobytes can expand to more memory than the machine has.

    Returns
    -------
    StateSpace, Bilinear, LPV or QuadraticBilinear
        System with its names, delays, operating point, hold and sample time.

    Raises
    ------
    FileFormatError
        If the file is missing, damaged, too large, of an unknown format, or lacks A, B or C, or if its products do not fit.
    InvalidSystemError
        If the matrices do not form a system, or the time step is not valid.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.save_system(ltinet.named_system("heat_rod", n_states=20), "rod.npz")
    >>> ltinet.load_system("rod.npz").n_states
    20
    >>> ltinet.load_system("rod.npz", C=[[1.0] + [0.0] * 19]).n_outputs
    1
    """
    matrices = {name: value for name, value in zip("ABCDE", (A, B, C, D, E), strict=True) if value is not None}
    system, settings, products = read_system(path, matrices, names=names, dt=dt, max_bytes=max_bytes)
    linear = StateSpace.of(system, settings=settings)
    return assemble_model(path, linear, products) if products else linear


def save_system(system: Any, path: str | PathLike[str], *, mat_version: Literal["5", "7.3"] = "5") -> None:
    """Write a system to a `.mat` or `.npz` file or, if `path` has no suffix, to a folder of Matrix Market files.

    Besides A, B, C and D the file holds a sparse E, the time step, names, delays, operating point, hold and sample
    time, in the variables that `load_system` reads; the round trip is exact. A folder holds matrices only: names are
    omitted, and systems with delays, operating point, hold or sample time are refused. The file is replaced
    atomically. An existing folder is replaced only if it contains nothing but such matrix files.

    Parameters
    ----------
    system : StateSpace, Bilinear, LPV, QuadraticBilinear or object
        System to write; any object that `as_state_space` accepts, or a model with products.
    path : str or path-like
        File with the suffix `.mat` or `.npz`, or folder.
    mat_version : {"5", "7.3"}, optional
        Version of a `.mat` file. Version 7.3 is HDF5, needs the extra `ltinet[hdf5]`, and is required for matrices
        above 2 GB.

    Raises
    ------
    FileFormatError
        If the suffix is unknown or the file cannot be written.
    MissingDependencyError
        If h5py is needed and not installed.

    Examples
    --------
    >>> import ltinet
    >>> system = ltinet.StateSpace([[0, 1], [-4, -0.4]], [0, 1], [1, 0])
    >>> ltinet.save_system(system, "oscillator.mat")
    >>> ltinet.load_system("oscillator.mat") == system
    True
    """
    if isinstance(system, NonlinearModel):
        write_model(system, path, mat_version=mat_version)
        return
    state_space = as_state_space(system)
    write_system(state_space.matrices, path, mat_version=mat_version, settings=state_space.signal_settings)


@overload
def named_system() -> dict[str, str]:  # noqa: D418 - public definitions are documented
    """Return the parameters of the systems by their names."""


@overload
def named_system(  # noqa: D418 - see above
    name: Literal["boundary_heat", "burgers", "chafee_infante", "diode_ladder", "fitzhugh_nagumo"], **parameters: Any
) -> NonlinearModel:
    """Return a model with products."""


@overload
def named_system(name: str, **parameters: Any) -> StateSpace:  # noqa: D418 - see above
    """Return a system."""


def named_system(name: str | None = None, **parameters: Any) -> StateSpace | NonlinearModel | dict[str, str]:
    """Build a system that is defined by formula, or list these systems: benchmarks and examples of the paper.

    ============================  =============================================  =====================================
    name                          system                                         parameters and defaults
    ============================  =============================================  =====================================
    "boundary_heat"               bilinear: heat transfer through edges          points=10
    "burgers"                     quadratic: Burgers' equation                   n_states=100, viscosity=0.05
    "chafee_infante"              quadratic: Chafee–Infante equation, lifted     points=50
    "diode_ladder"                quadratic: ladder of diodes, lifted            nodes=50
    "fitzhugh_nagumo"             quadratic: nerve model, lifted                 points=50
    "blobs"                       Example 3.3: 134 states in six clusters        seed=0
    "convection_diffusion"        Example SM2.2: transport on a periodic grid    points=20, length=10, diffusivity=1.4,
                                                                                 velocity_x=0.6, velocity_y=0
    "convection_diffusion_plate"  sparse, not symmetric: vortex on a plate       n=400, V=10
    "diffusion"                   Example 3.1: diffusion on a periodic grid      points=20, length=10, diffusivity=0.8
    "heat_plate"                  sparse, symmetric: heat equation on a plate    n=400
    "heat_rod"                    heat equation on a rod (SLICOT heat-cont)      n_states=200, diffusivity=0.01
    "hippo_fout"                  Fourier coefficients in a sliding window       n_states=17, window=1
    "hippo_legs"                  Legendre coefficients of a decaying history    n_states=16
    "hippo_legt"                  Legendre coefficients in a sliding window      n_states=16, window=1
    "mass_spring_damper"          chain of masses between two walls              n_masses=10, mass=1, stiffness=4,
                                                                                 damping=0.1
    "penzl"                       three resonances over real poles (SLICOT FOM)  n_real=1000
    "triangular"                  Example 3.2: eigenvalues that cluster at −4    n_states=10, seed=0
    ============================  =============================================  =====================================

    Parameters
    ----------
    name : str, optional
        Name of the system, from the table. Without it the systems are listed.
    **parameters : float or int
        Parameters of that system; `ltinet.systems.named_systems` and, for models with products,
        `ltinet.nonlinear.named_models` document the equations, inputs and outputs.

    Returns
    -------
    StateSpace, NonlinearModel or dict
        Continuous-time system, or model with products; without a name the parameters of each system with their default
        values, by its name.

    Raises
    ------
    InvalidSystemError
        If the name or a parameter is unknown, or a value is out of range.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.named_system("penzl", n_real=500).n_states
    506
    >>> ltinet.named_system()["heat_rod"]
    'n_states=200, diffusivity=0.01'
    """
    if name is None:
        return describe_systems() | describe_models()
    if name in NAMED_MODELS:
        return build_model(name, parameters)
    return StateSpace.of(build_system(name, parameters))


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> DynamicNetwork | Any:  # as of load_system
    """Read a network from a file that its method `save` wrote.

    All parameters are restored bit for bit, with delays, operating point, hold and sample time. Files written by
    version 0.1.0 have none of these; `print(net)` then shows a note.

    Parameters
    ----------
    path : str or path-like
        File in safetensors format.
    max_bytes : float, optional
        Limit on the size of the tensors, 2 GiB by default.

    Returns
    -------
    DynamicNetwork or NonlinearNetwork
        Network equal to the one that was saved; a NonlinearNetwork if it has product neurons.

    Raises
    ------
    FileFormatError
        If the file is missing, damaged, too large, not a network, or of a newer format.

    Examples
    --------
    >>> import ltinet
    >>> net = ltinet.construct(ltinet.named_system("heat_rod", n_states=20))
    >>> net.save("rod.safetensors")
    >>> ltinet.load("rod.safetensors") == net
    True
    """
    if is_product_network(path):
        return NonlinearNetwork(*read_product_network(path, max_bytes=max_bytes))
    network, form, matrices, blocks, reduction_error, settings, dt = read_network(path, max_bytes=max_bytes)
    system = None if matrices is None else StateSpace.of(matrices, settings=settings)
    return DynamicNetwork(network, form, system, blocks, reduction_error, settings, dt)
