"""Files of models and networks with products.

A model is a system file (`.npz` or `.mat`) with further variables: `ModelClass`; N, the matrices N_k side by side, n×nm;
A_p, B_p, C_p and D_p likewise, and `SchedulingName`; H, n×n², or its factors H_S, H_J and H_K. Files of other programs
have no `ModelClass`, and their N may also be m×n×n. A network is a safetensors file with the tensors of its linear
network and of the products. Sizes are validated before anything is built, and nothing is unpickled.
"""

import json
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.text import format_path, sanitize
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.io.file_access import as_path, error_text
from ltinet.io.system_files import MODEL_CLASS, PRODUCT_FACTORS, PRODUCT_LISTS, SCHEDULING_NAMES, write_system
from ltinet.network.file_format import (
    parse_description,
    read_kind,
    read_safetensors,
    reject_duplicate_keys,
    write_safetensors,
)
from ltinet.network.network_file import SUFFIX, VERSION, StoredNetwork, pack_stored, unpack_stored
from ltinet.nonlinear.models import LPV, Bilinear, NonlinearModel, QuadraticBilinear, without_mass
from ltinet.nonlinear.product_terms import ProductTerms, QuadraticFactors, as_quadratic_factors, as_sparse_of_shape
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import as_real_matrix
from ltinet.systems.signal_names import SignalNames

_CLASSES: dict[str, type[NonlinearModel]] = {cls.__name__: cls for cls in (Bilinear, LPV, QuadraticBilinear)}
_KIND, _VERSION = "ltinet-product-network", "1"
_PREFIX = "products."


def write_model(model: NonlinearModel, path: str | PathLike[str], *, mat_version: str) -> None:
    """Write a model to a `.npz` or `.mat` file."""
    matrices = {
        name: sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in getattr(model.terms, name)]))
        for name in PRODUCT_LISTS
        if getattr(model.terms, name)
    }
    if model.terms.H is not None:
        matrices |= dict(zip(PRODUCT_FACTORS, model.terms.H, strict=True))
    texts = {MODEL_CLASS: [type(model).__name__]}
    texts |= {SCHEDULING_NAMES: list(model.scheduling_names)} if model.n_scheduling else {}
    settings = model.linear.signal_settings
    write_system(
        model.linear.matrices, path, mat_version=mat_version, settings=settings, products=matrices, product_texts=texts
    )


def assemble_model(path: str | PathLike[str], linear: StateSpace, values: dict[str, Any]) -> NonlinearModel:
    """Return the model of the variables of products in a file; raise FileFormatError if they do not fit."""
    try:
        return _assemble(linear, values)
    except (InvalidSystemError, ValueError) as error:
        raise FileFormatError(
            f"{format_path(path)} does not hold a model with products: {error}. Its linear part alone has A, B, C and D."
        ) from None


def _assemble(linear: StateSpace, values: dict[str, Any]) -> NonlinearModel:
    n, m, p = linear.n_states, linear.n_inputs, linear.n_outputs
    name = "".join(values.get(MODEL_CLASS, [])) or _class_of_variables(values)
    if name not in _CLASSES:
        raise InvalidSystemError(f"its class is {sanitize(repr(name))}; known are {', '.join(_CLASSES)}")
    scheduling = tuple(values.get(SCHEDULING_NAMES, ())) if name == "LPV" else ()
    if name == "LPV" and not scheduling:
        columns = np.shape(values["A_p"])[-1] if "A_p" in values else 0
        scheduling = tuple(f"p{index + 1}" for index in range(columns // max(n, 1)))
    SignalNames.of(scheduling, None, None)
    count = len(scheduling)
    shapes = {"N": (m, n, n), "A_p": (count, n, n), "B_p": (count, n, m), "C_p": (count, p, n), "D_p": (count, p, m)}
    lists: dict[str, tuple[Any, ...]] = {}
    for key, (number, rows, columns) in shapes.items():
        belongs = (key == "N") == (name != "LPV")
        if not belongs or (key == "N" and key not in values):
            lists[key] = ()
            continue
        parts = _split(values.get(key, np.zeros((rows, number * columns))), key, number, rows, columns)
        lists[key] = parts if key in ("N", "A_p") else tuple(as_real_matrix(part, key) for part in parts)
    H = _read_quadratic(values, n) if name == "QuadraticBilinear" else None
    return _CLASSES[name].of(*without_mass(linear, ProductTerms(**lists, H=H)), scheduling)


def _class_of_variables(values: dict[str, Any]) -> str:
    if "H" in values or set(PRODUCT_FACTORS) <= set(values):
        return "QuadraticBilinear"
    return "LPV" if "A_p" in values else "Bilinear"


def _split(value: Any, name: str, count: int, rows: int, columns: int) -> tuple[Any, ...]:
    """Return the matrices of a variable, side by side or `(count, rows, columns)`."""
    if np.ndim(value) == 3:
        if value.shape != (count, rows, columns):
            raise InvalidSystemError(f"{name} has shape {value.shape}; it must be {(count, rows, columns)}")
        value = np.hstack(list(value)) if count else np.zeros((rows, 0))
    needs = f"{count} matrices of {rows}×{columns} side by side"
    matrix = as_sparse_of_shape(value, name, (rows, count * columns), needs=needs).tocsc()
    return tuple(
        as_sparse_of_shape(matrix[:, index * columns : (index + 1) * columns], name, (rows, columns), needs=needs)
        for index in range(count)
    )


def _read_quadratic(values: dict[str, Any], n: int) -> QuadraticFactors:
    if set(PRODUCT_FACTORS) <= set(values):
        return as_quadratic_factors(tuple(values[name] for name in PRODUCT_FACTORS), n)
    return as_quadratic_factors(values.get("H", np.zeros((n, n * n))), n)


# Networks


def write_product_network(model: NonlinearModel, linear: DynamicNetwork, path: str | Path) -> None:
    """Write the model and the linear part of a network with products to a safetensors file."""
    path = as_path(path)
    if path.suffix.lower() not in (SUFFIX, ""):
        raise FileFormatError(f"{format_path(path)} must end in {SUFFIX}, the format of network files")
    stored = StoredNetwork(
        linear.network, linear.form, model.linear.matrices, linear.blocks, settings=linear.signal_settings
    )
    content, tensors = pack_stored(stored)
    facts = {"class": type(model).__name__, "scheduling": list(model.scheduling_names), "linear": content}
    products: dict[str, NDArray[Any]] = {}
    for name, matrix in model.terms.arrays().items():
        rows = sparse.csr_array(matrix)
        products |= {
            f"{_PREFIX}{name}.data": np.array(rows.data, dtype=np.float64),
            f"{_PREFIX}{name}.indices": np.array(rows.indices, dtype=np.int64),
            f"{_PREFIX}{name}.indptr": np.array(rows.indptr, dtype=np.int64),
            f"{_PREFIX}{name}.shape": np.array(rows.shape, dtype=np.int64),
        }
    text = json.dumps(facts, sort_keys=True)
    write_safetensors(path, {**tensors, **products}, text, kind=_KIND, version=int(_VERSION))


def is_product_network(path: str | Path) -> bool:
    """Return whether a file is a network with products."""
    return read_kind(as_path(path)) == _KIND


def read_product_network(path: str | Path, *, max_bytes: float) -> tuple[NonlinearModel, DynamicNetwork]:
    """Read the model and the linear part of a network; raise FileFormatError if the file is damaged or of another format."""
    path = as_path(path)
    metadata, tensors = read_safetensors(path, partial(_validate_version, path), max_bytes=max_bytes)
    try:
        facts = json.loads(metadata.get("content", ""), object_pairs_hook=reject_duplicate_keys)
        if not isinstance(facts, dict) or set(facts) != {"class", "scheduling", "linear"}:
            raise ValueError("its description must have a class, scheduling names and a linear network")
        if not isinstance(facts["linear"], str) or not isinstance(facts["class"], str):
            raise ValueError("its class and its linear network must be texts")
        own = {name: array for name, array in tensors.items() if not name.startswith(_PREFIX)}
        stored = unpack_stored(own, parse_description(facts["linear"], version=VERSION - 1))
        if stored.system is None:
            raise ValueError("it has no system")
        linear = DynamicNetwork(
            stored.network, stored.form, StateSpace.of(stored.system, settings=stored.settings), stored.block_system
        )
        if linear.system is None:
            raise ValueError("it has no system")
        values: dict[str, Any] = {MODEL_CLASS: [facts["class"]], SCHEDULING_NAMES: facts["scheduling"]}
        values |= _join_products({k.removeprefix(_PREFIX): v for k, v in tensors.items() if k.startswith(_PREFIX)})
        return _assemble(linear.system, values), linear
    except (LtinetError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise FileFormatError(f"{format_path(path)} does not hold a complete network: {error_text(error)}") from None


def _join_products(tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return N, A_p, …, H_S, H_J and H_K from the parts of sparse matrices."""
    names = sorted({name.rpartition(".")[0] for name in tensors}, key=lambda name: (len(name), name))
    matrices: dict[str, list[Any]] = {}
    for name in names:
        if {f"{name}.{part}" for part in ("data", "indices", "indptr", "shape")} - set(tensors):
            raise ValueError(f"the tensor {sanitize(name)} is incomplete")
        data, indices, indptr, shape = (tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr", "shape"))
        if (
            shape.shape != (2,)
            or data.dtype != np.float64
            or any(x.dtype != np.int64 for x in (indices, indptr, shape))
        ):
            raise ValueError(f"the tensor {sanitize(name)} is not a sparse matrix")
        if indptr.shape != (int(shape[0]) + 1,) or int(shape[0]) < 0 or int(shape[1]) < 0:
            raise ValueError(f"the tensor {sanitize(name)} has a shape that does not fit")
        matrix = sparse.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
        owner = f"H_{name}" if name in ("S", "J", "K") else name.rstrip("0123456789")
        if owner not in (*PRODUCT_LISTS, *PRODUCT_FACTORS):
            raise ValueError(f"the tensor {sanitize(name)} is not part of this format")
        matrices.setdefault(owner, []).append(matrix)
    return {name: sparse.csr_array(sparse.hstack(parts)) for name, parts in matrices.items()}


def _validate_version(path: Path, metadata: Any) -> None:
    if metadata.get("format") != _KIND or metadata.get("version") != _VERSION:
        raise FileFormatError(f"{format_path(path)} is of a newer format; read it with a newer version of ltinet")
