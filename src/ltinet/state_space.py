"""The system as its users meet it: the object that they give and get, and the doors through which it comes and goes."""

from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, final

from ltinet.listing import listed_without
from ltinet.model.convert import system_matrices_of
from ltinet.model.files import read_system, write_system
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES
from ltinet.model.library import build_system
from ltinet.model.matrices import Matrix, MatrixLike
from ltinet.model.system_matrices import Descriptor, SystemMatrices


@final
@dataclass(frozen=True, init=False, repr=False)
class StateSpace:
    """A real, continuous-time, linear time-invariant system x' = A x + B u, y = C x + D u.

    A is n×n, B n×m, C p×n and D p×m; each of n, m and p may be 0, and n = 0 is a static gain. The matrices are
    read-only float64 copies: changing the arrays they came from changes nothing here. Two systems are equal when all
    four matrices are.

    Args:
        A: the state matrix; a number is 1×1.
        B: the input matrix; a 1-D array with one entry per state is a single input.
        C: the output matrix; a 1-D array with one entry per state is a single output.
        D: the feedthrough, zero when left out. The number 0 is a zero matrix, any other number is 1×1; a 1-D array
            needs a system with a single input or a single output.
        E: the matrix of a descriptor system E x' = A x + B u. It must not be singular; it is eliminated here, so A and
            B of the result are E⁻¹A and E⁻¹B. What was given stays in `descriptor`.

    Raises:
        InvalidSystemError: a matrix is complex, not finite or of the wrong shape, or E is singular.
    """

    matrices: SystemMatrices
    """All of them together, as the rooms below take them."""

    def __init__(
        self, A: MatrixLike, B: MatrixLike, C: MatrixLike, D: MatrixLike | None = None, E: MatrixLike | None = None
    ) -> None:
        object.__setattr__(self, "matrices", SystemMatrices(A, B, C, D, E))

    @classmethod
    def of(cls, matrices: SystemMatrices) -> "StateSpace":
        """The system of matrices that were checked already."""
        system = cls.__new__(cls)
        object.__setattr__(system, "matrices", matrices)
        return system

    @property
    def A(self) -> Matrix:
        """The state matrix, n×n."""
        return self.matrices.A

    @property
    def B(self) -> Matrix:
        """The input matrix, n×m."""
        return self.matrices.B

    @property
    def C(self) -> Matrix:
        """The output matrix, p×n."""
        return self.matrices.C

    @property
    def D(self) -> Matrix:
        """The feedthrough, p×m."""
        return self.matrices.D

    @property
    def descriptor(self) -> Descriptor | None:
        """E, A and B as they were given, where there was an E: E⁻¹A is rounded, and error bounds count that."""
        return self.matrices.descriptor

    @property
    def n_states(self) -> int:
        """The number of states, n."""
        return self.matrices.n_states

    @property
    def n_inputs(self) -> int:
        """The number of inputs, m."""
        return self.matrices.n_inputs

    @property
    def n_outputs(self) -> int:
        """The number of outputs, p."""
        return self.matrices.n_outputs

    def __dir__(self) -> list[str]:
        return listed_without(self, "matrices", "of")

    def __repr__(self) -> str:
        return f"StateSpace(n_states={self.n_states}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs})"


def as_state_space(obj: Any) -> StateSpace:
    """Return `obj` as a `StateSpace`; one that is a `StateSpace` already is returned as it is.

    Accepted are tuples (A, B, C), (A, B, C, D), (A, B, C, D, E) and (num, den), and the continuous-time systems of
    scipy.signal, python-control and pyMOR. Systems given by state-space matrices keep their states. Transfer functions
    are realised in controller form, one with several inputs column by column, which is not minimal when entries share
    poles; zeros, poles and gain become a chain of second-order sections, without multiplying out the polynomials.

    Raises:
        InvalidSystemError: the object is not one of these, discrete in time, improper or parametric.
    """
    return obj if isinstance(obj, StateSpace) else StateSpace.of(system_matrices_of(obj))


def load_system(
    path: str | PathLike[str],
    *,
    A: MatrixLike | None = None,
    B: MatrixLike | None = None,
    C: MatrixLike | None = None,
    D: MatrixLike | None = None,
    E: MatrixLike | None = None,
    max_bytes: float = DEFAULT_MAX_BYTES,
) -> StateSpace:
    """Read a system from a `.mat` file (any version), an `.npz` archive or a folder of Matrix Market files.

    The variables are called A, B, C and, where present, D and E; sparse ones are filled in, others in the file ignored.
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
        max_bytes: the most that all matrices of the file may take as float64, 2 GiB unless another number is given;
            compressed files of some kilobytes can claim more than any memory has.

    Raises:
        FileFormatError: the file is missing, damaged, too large, of an unknown kind, or lacks A, B or C.
        InvalidSystemError: its matrices do not make a system, or it is a model in discrete time.
    """
    given = {name: value for name, value in zip("ABCDE", (A, B, C, D, E), strict=True) if value is not None}
    return StateSpace.of(read_system(path, given, max_bytes=max_bytes))


def save_system(system: Any, path: str | PathLike[str], *, mat_version: Literal["5", "7.3"] = "5") -> None:
    """Write A, B, C and D to a `.mat` or `.npz` file, or to a folder of Matrix Market files if `path` has no suffix.

    `system` may be anything that `as_state_space` accepts. Every bit comes back through `load_system`. The file appears
    whole or not at all. A file of that name is replaced; a folder only if it holds nothing but such matrix files.
    `mat_version="7.3"` writes HDF5 (extra `ltinet[hdf5]`), needed for matrices beyond 2 GB.

    Raises:
        FileFormatError: the suffix is unknown, or the file cannot be written there.
        MissingDependencyError: h5py is needed and not installed.
    """
    write_system(as_state_space(system).matrices, path, mat_version=mat_version)


def named_system(name: str, **parameters: Any) -> StateSpace:
    """Build the system called `name`; `NAMED_SYSTEMS` lists the names, and each function documents its parameters.

    Raises:
        InvalidSystemError: there is no system of that name, it has no such parameter, or a value does not fit.
    """
    return StateSpace.of(build_system(name, parameters))
