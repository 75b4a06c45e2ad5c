"""Input and output matrices from lists of degrees of freedom.

A degree of freedom is a row of the state equation, counted from 0: a state of E x' = A x + B u, or a position of M q'' +
D q' + K q = B u. As an input it is a unit load on that row, as an output its value.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, MatrixLike
from ltinet.systems.signal_names import NamesLike

Dofs: TypeAlias = Sequence[int] | NDArray[np.integer[Any]] | None
"""List of degrees of freedom, counted from 0."""
ChannelsLike: TypeAlias = NamesLike | Dofs
"""Names of inputs or outputs, or the degrees of freedom that they are."""


def count_rows(matrix: Any) -> int:
    """Return the number of rows of a matrix that is not validated yet; zero for a number."""
    return int((*np.shape(matrix), 0)[0])


def split_dofs(value: Any) -> tuple[NDArray[np.intp] | None, NamesLike]:
    """Return (degrees of freedom, None) for a list of integers, and (None, value) for anything else, such as names."""
    if value is None or isinstance(value, str | bytes) or not hasattr(value, "__len__") or not len(value):
        return None, value
    indices = np.asarray(value) if isinstance(value, np.ndarray | range) else None
    if indices is None and all(isinstance(item, int | np.integer) and not isinstance(item, bool) for item in value):
        indices = np.asarray(list(value))
    if indices is None or indices.ndim != 1 or indices.dtype.kind not in "iu":
        return None, value
    return indices.astype(np.intp), None


def validate_dofs(dofs: Any, n: int, name: str) -> NDArray[np.intp]:
    """Return a list of degrees of freedom as an array.

    Raises InvalidSystemError for anything but different integers from 0 to n − 1.
    """
    indices, _ = split_dofs(dofs)
    if indices is None:
        raise InvalidSystemError(
            f"{name} must be a list of degrees of freedom, integers from 0 to {n - 1}, got {sanitize(repr(dofs))[:100]}"
            f"{_hint(dofs, name)}"
        )
    outside = indices[(indices < 0) | (indices >= n)]
    if len(outside):
        raise InvalidSystemError(
            f"{name} has the degree of freedom {outside[0]}; they are counted from 0, so that the last is {n - 1}"
        )
    if len(np.unique(indices)) < len(indices):
        values, counts = np.unique(indices, return_counts=True)
        raise InvalidSystemError(f"{name} has the degree of freedom {values[counts > 1][0]} twice; give each once")
    return indices


def _describe_names(names: Any, kind: str) -> str:
    """Return what was given in place of degrees of freedom."""
    if names is None:
        return ""
    return f", and {kind} = {sanitize(repr(names))[:100]} is not a list of integers{_hint(names, kind)}"


def _hint(value: Any, kind: str) -> str:
    """Return what to write for degrees of freedom that were given with names, or as a mask."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "b":
        return "; pass numpy.flatnonzero(mask) of a mask"
    if isinstance(value, Mapping):
        return f'; pass {kind}=[5] and name them by StateSpace.with_names({kind}=["tip"])'
    return ""


def edge_matrix(
    matrix: MatrixLike | None, dofs: NDArray[np.intp] | None, n: int, *, kind: str, names: NamesLike = None
) -> MatrixLike:
    """Return B ("inputs") or C ("outputs"): the matrix, or the one that selects degrees of freedom.

    Raises InvalidSystemError unless exactly one of both is given.
    """
    letter, meaning = ("B", "unit loads on") if kind == "inputs" else ("C", "values of")
    if (matrix is None) == (dofs is None):
        if matrix is None:
            problem = f"{letter} is missing{_describe_names(names, kind)}"
        else:
            problem = f"both {letter} and {kind} as degrees of freedom are given"
        raise InvalidSystemError(
            f"{problem}; pass the matrix {letter}, or {kind}=[0, 7] for {meaning} these degrees of freedom"
        )
    if dofs is None or matrix is not None:
        return matrix  # type: ignore[return-value]  # one of both is given
    selection: Matrix = np.zeros((len(dofs), n))
    selection[np.arange(len(dofs)), validate_dofs(dofs, n, kind)] = 1.0
    return selection.T if kind == "inputs" else selection
