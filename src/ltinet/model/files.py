"""Systems in files: the door that picks the format, asks for what is missing and turns failures into one clear line."""

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.model.atomic import written_whole
from ltinet.model.convert import as_state_space
from ltinet.model.formats import mat5, mat73, matrix_market, npz
from ltinet.model.matrices import Matrix, MatrixLike, as_square_matrix, shape_of
from ltinet.model.state_space import StateSpace

_MATRIX_NAMES = ("A", "B", "C", "D", "E")
_KNOWN_PATHS = ".mat, .npz, or a folder of Matrix Market files (A.mtx, B.mtx, …)"


class _Format(Protocol):
    def list_variables(self, path: Path) -> list[str]: ...

    def read(self, path: Path, names: Collection[str]) -> dict[str, Any]: ...

    def write(self, path: Path, matrices: Mapping[str, Matrix]) -> None: ...


def load_system(
    path: str | PathLike[str],
    *,
    A: MatrixLike | None = None,
    B: MatrixLike | None = None,
    C: MatrixLike | None = None,
    D: MatrixLike | None = None,
    E: MatrixLike | None = None,
) -> StateSpace:
    """Read a system from a `.mat` file (any version), an `.npz` archive or a folder of Matrix Market files.

    The variables are called A, B, C and, where present, D and E; sparse ones are filled in, others in the file ignored.
    A matrix given by keyword is used instead of the file's, and supplies one that the file lacks:
    `load_system("helicopter.mat", C=np.eye(28))`. MATLAB 7.3 files need the extra `ltinet[hdf5]`. Nothing is unpickled.

    Raises:
        FileFormatError: the file is missing, damaged, of an unknown kind, or lacks A, B or C.
        InvalidSystemError: its matrices do not make a system.
        MissingDependencyError: h5py is needed and not installed.
    """
    path = Path(path)
    given = {name: value for name, value in zip(_MATRIX_NAMES, (A, B, C, D, E), strict=True) if value is not None}
    file_format = _format_of_existing(path)
    try:
        variables = file_format.list_variables(path)
        matrices = file_format.read(path, [name for name in _MATRIX_NAMES if name in variables and name not in given])
    except LtinetError:
        raise
    except Exception as error:  # the libraries' readers fail on damaged files in every way there is
        raise FileFormatError(
            f"{path} cannot be read: {_one_line(error)}; it may be damaged or of another kind"
        ) from error
    for name in ("D", "E"):  # MATLAB's [] stands for no feedthrough and for E = I
        if name in matrices and shape_of(matrices[name], name) == (0, 0):
            del matrices[name]
    matrices |= given
    for name in ("A", "B", "C"):
        if name not in matrices:
            raise FileFormatError(_missing_message(path, name, variables, matrices))
    try:
        return StateSpace(**matrices)
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{path}: {error}") from None


def save_system(system: Any, path: str | PathLike[str], *, mat_version: Literal["5", "7.3"] = "5") -> None:
    """Write A, B, C and D to a `.mat` or `.npz` file, or to a folder of Matrix Market files if `path` has no suffix.

    `system` may be anything that `as_state_space` accepts. Every bit comes back through `load_system`. The file appears
    whole or not at all. A file of that name is replaced; a folder only if it holds nothing but such matrix files.
    `mat_version="7.3"` writes HDF5 (extra `ltinet[hdf5]`), needed for matrices beyond 2 GB.

    Raises:
        FileFormatError: the suffix is unknown, or the file cannot be written there.
        MissingDependencyError: h5py is needed and not installed.
    """
    system = as_state_space(system)
    path = Path(path)
    file_format = _format_to_write(path, mat_version)
    if not path.parent.is_dir():
        raise FileFormatError(f"{path} cannot be written: there is no folder {path.parent}; create it first")
    matrices = {"A": system.A, "B": system.B, "C": system.C, "D": system.D}
    try:
        with written_whole(path) as staged:
            file_format.write(staged, matrices)
    except LtinetError:
        raise
    except Exception as error:  # no space, no permission, too large for the format: each library has its own type
        raise FileFormatError(
            f"{path} cannot be written: {_one_line(error)}; what was there before is unchanged"
        ) from error


def _format_of_existing(path: Path) -> _Format:
    if path.is_dir():
        return matrix_market
    if not path.exists():
        raise FileFormatError(f"there is no file {path}; check the name, or the folder you are in ({Path.cwd()})")
    match path.suffix.lower():
        case ".mat":
            return mat73 if _is_hdf5(path) else mat5
        case ".npz":
            return npz
        case ".mtx" | ".gz":
            raise FileFormatError(
                f"{path} is one matrix; pass the folder that holds A.mtx, B.mtx, C.mtx: {path.parent}"
            )
    raise FileFormatError(f"{path} is of an unknown kind; known are {_KNOWN_PATHS}")


def _is_hdf5(path: Path) -> bool:
    try:
        return mat73.is_hdf5(path)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {_one_line(error)}") from error


def _format_to_write(path: Path, mat_version: str) -> _Format:
    if mat_version not in ("5", "7.3"):
        raise FileFormatError(f'mat_version is {mat_version!r}; known are "5" and "7.3"')
    if path.is_dir():
        strangers = [entry.name for entry in path.iterdir() if matrix_market.variable_of(entry) not in _MATRIX_NAMES]
        if strangers:
            raise FileFormatError(
                f"the folder {path} holds other things ({', '.join(sorted(strangers)[:3])}, …) and is not replaced; "
                f"pass a new name, for example {path / 'system'}"
            )
        return matrix_market
    match path.suffix.lower():
        case ".mat":
            return mat73 if mat_version == "7.3" else mat5
        case ".npz":
            return npz
        case "" if not path.exists():
            return matrix_market
        case "":
            raise FileFormatError(f"{path} is a file, and without a suffix it would become a folder; pass another name")
    raise FileFormatError(f"{path} has the suffix {path.suffix!r}; known are {_KNOWN_PATHS}, which has no suffix")


def _missing_message(path: Path, name: str, variables: Collection[str], matrices: Mapping[str, Any]) -> str:
    held = ", ".join(sorted(variables)) or "nothing"
    example = f"{name}=…"
    if name == "C":
        example = f"C=np.eye({len(as_square_matrix(matrices['A'], 'A'))}) for all states as outputs"
    return (
        f"{path} has no {name} (it holds {held}); give it: load_system(path, {example}), or store plain matrices "
        "A, B, C (in MATLAB: [A, B, C, D] = ssdata(sys))"
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
