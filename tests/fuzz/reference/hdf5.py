"""MATLAB version 7.3 by the HDF5 library itself, which may die of a damaged file: called in a process of its own."""

import h5py
import numpy as np

_NUMERIC = ["double", "single", "logical", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))]


def variables(path: str, names: tuple[str, ...]) -> dict:
    """Those of the variables that are there."""
    with h5py.File(path, "r") as file:
        return {name: _value(file, name) for name in names if name in file}


def _value(file, name: str) -> np.ndarray | None:
    assert isinstance(file.get(name, getlink=True), h5py.HardLink)
    node = file[name]
    attributes = {key: node.attrs[key] for key in node.attrs}
    if "MATLAB_sparse" in attributes:
        return _sparse(node, int(attributes["MATLAB_sparse"]))
    kind = attributes.get("MATLAB_class", b"double")
    if not isinstance(node, h5py.Dataset) or bytes(kind).decode() not in _NUMERIC:
        return None
    assert not node.external
    assert not node.is_virtual
    data = node[()]
    if data.dtype.kind not in "iuf":
        return None
    if attributes.get("MATLAB_empty", 0):
        assert 0 in data
        return np.zeros(tuple(int(size) for size in data.ravel()))
    return np.asarray(data).T


def _sparse(group, n_rows: int) -> np.ndarray:
    starts = [int(value) for value in group["jc"][()]]
    rows = [int(value) for value in group["ir"][()]] if "ir" in group else []
    data = group["data"][()].ravel().tolist() if "data" in group else []
    assert starts[0] == 0
    filled = np.zeros((n_rows, len(starts) - 1))
    taken = set()
    for column in range(len(starts) - 1):
        assert starts[column] <= starts[column + 1]
        for entry in range(starts[column], starts[column + 1]):
            assert 0 <= rows[entry] < n_rows
            assert (rows[entry], column) not in taken
            taken.add((rows[entry], column))
            filled[rows[entry], column] = data[entry]
    return filled
