"""Systems in files: choice of the format, reading with overrides, and atomic writing.

A new format is a module of this package with `list_variables`, `read`, `read_texts` and `write`, one line in the table
`_WRITERS` and one in `format_of_file`; commands and the page read the suffixes from `SYSTEM_SUFFIXES`.
"""

import io
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from scipy.sparse import issparse

from ltinet._util.atomic_files import write_file_atomically, write_folder_atomically
from ltinet._util.text import format_names, format_path, sanitize
from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.io import mat4, mat5, mat73, matrix_market, npz
from ltinet.io.file_access import (
    UnsupportedVariableError,
    as_path,
    error_reason,
    file_mode,
    open_regular,
    parse_size_limit,
    require_regular,
    translate_read_errors,
)
from ltinet.io.system_variables import (
    MATRIX_NAMES,
    NAME_VARIABLES,
    ReadableFormat,
    SystemFile,
    guess_matrices,
    match_matrices,
    read_settings,
    read_signal_names,
    read_time_step,
    settings_variables,
    struct_prefix,
)
from ltinet.systems.matrices import Matrix, MatrixLike, SparseMatrix, shape_of
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_TIME_STEP = "Ts"  # as in MATLAB
MODEL_CLASS, SCHEDULING_NAMES = "ModelClass", "SchedulingName"
"""Variables with the class of a model with products and the names of its scheduling signals."""
PRODUCT_LISTS, PRODUCT_FACTORS = ("N", "A_p", "B_p", "C_p", "D_p"), ("H_S", "H_J", "H_K")
"""Variables with the matrices of products."""


class _WritableFormat(Protocol):
    """Format module that can write files."""

    def write(
        self,
        target: BinaryIO,
        matrices: Mapping[str, Matrix | SparseMatrix],
        texts: Mapping[str, Sequence[str]] | None = None,
    ) -> None: ...


_WRITERS: Mapping[str, _WritableFormat] = {".mat": mat5, ".npz": npz}
SYSTEM_SUFFIXES = tuple(_WRITERS)
_KNOWN_PATHS = f"{', '.join(SYSTEM_SUFFIXES)}, or a folder of Matrix Market files (A.mtx, B.mtx, …)"


def read_system(
    path: str | PathLike[str],
    given: Mapping[str, MatrixLike],
    *,
    names: Mapping[str, str] | None,
    dt: float | None,
    max_bytes: float,
) -> tuple[SystemMatrices, SignalSettings, dict[str, Any]]:
    """Read the system in a file or folder with its settings; `given` matrices and `dt` replace those of the file.

    The third result has the variables of products by their names, and is empty for linear systems.

    `names` maps matrices to variables where `match_matrices` does not know them. Raises FileFormatError if the file is
    missing, damaged, too large, of an unknown format, or lacks A, B or C; InvalidSystemError if the matrices do not
    form a system or the time step is not valid.
    """
    path = as_path(path)
    max_bytes = parse_size_limit(max_bytes).max_bytes
    with translate_read_errors(path):
        file_format = _format_of_existing(path)
        variables = file_format.list_variables(path)
        variable_names = match_matrices(path, variables, names, supplied=given)
        file = SystemFile(file_format, path, variables, struct_prefix(variable_names))
        if dt is None:
            dt = read_time_step(file)
        variable_names = {role: name for role, name in variable_names.items() if role not in given}
        values = file.file_format.read(path, list(variable_names.values()), max_bytes=max_bytes)
        matrices = {role: values[name] for role, name in variable_names.items()}
        for name in ("D", "E"):  # [] in MATLAB is no feedthrough, or E = I
            if name in matrices and shape_of(matrices[name], name) == (0, 0):
                del matrices[name]
        _require_dense_size(matrices, given, max_bytes)
    matrices |= given
    for name in ("A", "B", "C"):
        if name not in matrices:
            guesses = guess_matrices(file) if name == "A" else {}
            raise FileFormatError(_missing_matrix_message(path, name, variables, matrices, guesses))
    try:
        system = SystemMatrices(**matrices, dt=dt)
        counts = {"inputs": system.n_inputs, "outputs": system.n_outputs, "states": system.n_states}
        file_names = read_signal_names(file, counts)
        settings = read_settings(file, n_inputs=system.n_inputs, n_outputs=system.n_outputs, dt=system.dt)
        with translate_read_errors(path):
            products = _read_products(file, system, max_bytes)
        return system.with_names(system.names.with_defaults(file_names)), settings, products
    except InvalidSystemError as error:
        raise InvalidSystemError(f"{format_path(path)}: {error}") from None
    except MemoryError as error:
        raise FileFormatError(f"{format_path(path)} cannot be read: there is not enough memory for it") from error


def _read_products(file: SystemFile, system: SystemMatrices, max_bytes: float) -> dict[str, Any]:
    """Return the variables of a model with products.

    A file with `ModelClass` holds one. A file of another program does if its N, H or A_p has the shape of products, for two
    states and more; of other shapes they are taken for something else.
    """
    names = (*PRODUCT_LISTS, "H", *PRODUCT_FACTORS)
    if MODEL_CLASS in file.variables:
        numbers = [name for name in names if name in file.variables]
        texts = [name for name in (MODEL_CLASS, SCHEDULING_NAMES) if name in file.variables]
        values = file.file_format.read(file.path, numbers, max_bytes=max_bytes)
        return values | {name: file.file_format.read_texts(file.path, name) for name in texts}
    n, m = system.n_states, system.n_inputs
    values = {}
    for name in names:
        with suppress(UnsupportedVariableError):  # no numbers, such as cell arrays
            for variable in file.present(name):
                values[name] = file.read(variable, max_bytes=max_bytes)
    shapes = {name: tuple(getattr(value, "shape", ())) for name, value in values.items()}
    rows, columns = shapes.get("A_p", (0, 0)) if len(shapes.get("A_p", ())) == 2 else (0, 0)
    has_products = (
        shapes.get("N") in ((n, n * m), (m, n, n))
        or shapes.get("H") == (n, n * n)
        or (rows == n and columns > 0 and columns % n == 0)
    )
    return values if n > 1 and has_products else {}


def write_system(
    system: SystemMatrices,
    path: str | PathLike[str],
    *,
    mat_version: str,
    settings: SignalSettings = NO_SETTINGS,
    products: Mapping[str, Any] | None = None,
    product_texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write matrices, time step, names and settings atomically, in the format of the suffix; a sparse A with its E.

    `products` and `product_texts` are further variables, of models with products.

    Raises FileFormatError if the suffix is unknown or the file cannot be written, MissingDependencyError if h5py is
    needed and not installed.
    """
    path = as_path(path)
    matrices = _matrices_to_write(system)
    if system.dt is not None:
        matrices[_TIME_STEP] = np.array([[system.dt]])
    numbers, texts = settings_variables(settings, system.dt)
    matrices |= numbers | dict(products or {})
    texts |= {name: list(lines) for name, lines in (product_texts or {}).items()}
    texts |= {NAME_VARIABLES[kind]: list(signal_names) for kind, signal_names in system.names.by_kind.items()}
    try:
        file_format = _format_to_write(path, mat_version)
        if not path.parent.is_dir():
            raise FileFormatError(
                f"{format_path(path)} cannot be written: there is no folder {format_path(path.parent)}; create it first"
            )
        if file_format is None and product_texts:
            raise FileFormatError(
                f"{format_path(path)} cannot be written: models with products need a .npz or .mat file"
            )
        if file_format is None and not settings.is_default:
            raise FileFormatError(
                f"{format_path(path)} cannot be written: a folder of Matrix Market files does not support delays, "
                "operating point, hold and sample time; choose a .mat or .npz file, or remove them with "
                "system.with_signal_settings(input_delay=0, …)"
            )
        if file_format is None:
            write_folder_atomically(path, matrix_market.contents(matrices))
        else:
            content = io.BytesIO()
            file_format.write(content, matrices, texts)
            write_file_atomically(path, content.getvalue())
    except LtinetError:
        raise
    except Exception as error:  # no space, no permission, too large for the format: each library has its own type
        raise FileFormatError(
            f"{format_path(path)} cannot be written: {error_reason(error)}; what was there before is unchanged"
        ) from error


def _require_dense_size(matrices: Mapping[str, Any], given: Mapping[str, MatrixLike], max_bytes: float) -> None:
    """Raise SizeLimitError if matrices exceed `max_bytes` as arrays.

    Only A and, beside a sparse A, E stay sparse. The limit includes the zero D that is created when D is omitted.
    """
    allowance, is_sparse = parse_size_limit(max_bytes), issparse(given.get("A", matrices.get("A")))
    for name, matrix in matrices.items():
        if name not in ("A", "E" if is_sparse else "A") and hasattr(matrix, "nnz"):
            allowance.claim(shape_of(matrix, name), name)
    known = {**matrices, **given}
    if {"B", "C"} <= known.keys() and "D" not in known:
        allowance.claim((*shape_of(known["C"], "C")[:1], *shape_of(known["B"], "B")[1:]), "D")


def _matrices_to_write(system: SystemMatrices) -> dict[str, Any]:
    """Return the matrices of a file; those of a sparse model are the original ones."""
    ends = {"C": system.C, "D": system.D}
    if system.sparse is None:
        return {"A": system.A, "B": system.B, **ends}
    E = {} if system.sparse.mass is None else {"E": system.sparse.mass}
    return {"A": system.sparse.state, "B": system.sparse.B, **ends, **E}


def _format_of_existing(path: Path) -> ReadableFormat:
    mode = file_mode(path)
    if stat.S_ISDIR(mode):
        return matrix_market
    require_regular(path, mode)
    suffix = path.suffix.lower()
    if suffix in _WRITERS:
        return format_of_file(path)
    if suffix == ".safetensors":
        raise FileFormatError(
            f"{format_path(path)} is a network, not a system; read it with ltinet.load(path), whose .system is the "
            "system that it was constructed from"
        )
    if suffix in (".mtx", ".gz"):
        raise FileFormatError(
            f"{format_path(path)} is one matrix; pass the folder that holds A.mtx, B.mtx, C.mtx: "
            f"{format_path(path.parent)}"
        )
    raise FileFormatError(f"{format_path(path)} is of an unknown kind; known are {_KNOWN_PATHS}")


def format_of_file(path: Path) -> ReadableFormat:
    """Return the format of a `.npz` or `.mat` file; versions of MATLAB files differ in their first bytes."""
    if path.suffix.lower() == ".npz":
        return npz
    if mat73.is_hdf5(path):
        return mat73
    with open_regular(path) as file:
        return mat4 if mat4.is_version_4(file.bytes_at(0, min(file.length, 4))) else mat5


def _format_to_write(path: Path, mat_version: str) -> _WritableFormat | None:
    """Return the format of a file, or None for a folder of Matrix Market files."""
    if mat_version not in ("5", "7.3"):
        raise FileFormatError(f'mat_version must be "5" or "7.3", got {sanitize(repr(mat_version))}')
    if path.is_dir():
        ours = (*MATRIX_NAMES, _TIME_STEP)
        other_files = [entry.name for entry in path.iterdir() if matrix_market.variable_of(entry) not in ours]
        if other_files:
            raise FileFormatError(
                f"the folder {format_path(path)} holds other files ({', '.join(map(sanitize, sorted(other_files)[:3]))}, …) "
                f"and is not replaced; pass a new name, for example {format_path(path / 'system')}"
            )
        return None
    suffix = path.suffix.lower()
    if suffix in _WRITERS:
        return mat73 if suffix == ".mat" and mat_version == "7.3" else _WRITERS[suffix]
    if suffix == "" and not path.exists():
        return None
    if suffix == "":
        raise FileFormatError(
            f"{format_path(path)} is a file, and without a suffix it would become a folder; pass another name"
        )
    raise FileFormatError(
        f"{format_path(path)} has the suffix {sanitize(repr(path.suffix))}; known are {_KNOWN_PATHS}, which has no suffix"
    )


def _missing_matrix_message(
    path: Path, name: str, variables: Collection[str], matrices: Mapping[str, Any], guesses: Mapping[str, str]
) -> str:
    if guesses:
        names = ", ".join(f'"{role}": "{sanitize(variable)}"' for role, variable in guesses.items())
        return (
            f"{format_path(path)} has no {name} (it holds {format_names(variables)}); by their sizes these could be its "
            f"matrices: load_system(path, names={{{names}}}), or on the command line --matrix A={sanitize(guesses['A'])} …"
        )
    example = f"{name}=…"
    if name == "C":
        example = f"C=np.eye({shape_of(matrices['A'], 'A')[0]}) for all states as outputs"
    return (
        f"{format_path(path)} has no {name} (it holds {format_names(variables)}); give it: load_system(path, {example}), "
        "or store plain matrices A, B, C (in MATLAB: [A, B, C, D] = ssdata(sys))"
    )
