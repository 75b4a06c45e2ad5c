"""Eigenvectors of a quasi-triangular matrix: the fast way to decouple single neurons, all at once and without solves.

LAPACK's `trevc` is a fraction of the work of Sylvester equations, but SciPy wraps it for C only, in `cython_lapack`. It
is called through that pointer if its signature is the expected one; otherwise `decouple` gives the same subspaces.
"""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from ltinet.decompose.decouple import Decoupled, decouple, invariant_subspace
from ltinet.decompose.schur import SchurForm
from ltinet.model.matrices import Matrix

# The real and imaginary parts of an eigenvector are computed to eps of the larger one. Below this ratio of ω to the
# pair's off-diagonal entry the imaginary part would lose too many digits, and the pair's plane with it.
_SMALLEST_RATIO = 1e-2

_REAL = "__pyx_t_5scipy_6linalg_13cython_lapack_d *"
_SIGNATURE = (
    f"void (char *, char *, int *, int *, {_REAL}, int *, {_REAL}, int *, {_REAL}, int *, int *, int *, {_REAL}, int *)"
)


def decouple_neurons(schur: SchurForm, bounds: NDArray[np.intp]) -> Decoupled:
    """Decouple the blocks that begin at `bounds`, R X = X Λ: neurons alone by eigenvectors, others as `decouple` does.

    A pair that stands alone becomes [[a, ω], [−ω, a]] in Λ, on the real and imaginary part of an eigenvector; a nearly
    real one, whose parts would be nearly parallel, stays as it is. Cost ~n³/3 flops for single neurons.
    """
    if _trevc is None:
        return decouple(schur.R, bounds)
    R, first, sizes = schur.R, bounds[:-1], bounds[1:] - bounds[:-1]
    has_vectors = schur.neurons_between(bounds) == 1
    pair = has_vectors & (sizes == 2)
    b, c = np.abs(R[first[pair], first[pair] + 1]), np.abs(R[first[pair] + 1, first[pair]])
    has_vectors[pair] = np.minimum(b, c) >= _SMALLEST_RATIO**2 * np.maximum(b, c)
    wanted = np.repeat(has_vectors, sizes)
    X, diagonal = _right_eigenvectors(R, wanted), np.diag(np.where(wanted, R.diagonal(), 0.0))
    at = first[pair & has_vectors]
    omega = np.sqrt(np.abs(R[at, at + 1])) * np.sqrt(np.abs(R[at + 1, at]))
    diagonal[at, at + 1], diagonal[at + 1, at] = omega, -omega
    for block in (~has_vectors).nonzero()[0].tolist():
        start, stop = bounds[block : block + 2].tolist()
        X[:stop, start:stop] = invariant_subspace(R, start, stop)
        diagonal[start:stop, start:stop] = R[start:stop, start:stop]
    return Decoupled(X, diagonal)


def _right_eigenvectors(R: Matrix, wanted: NDArray[np.bool_]) -> Matrix:
    """Eigenvectors in the wanted columns, for a pair its real and imaginary part; zeros in the others."""
    n, n_wanted = len(R), int(np.count_nonzero(wanted))
    X = np.zeros((n, n), order="F")
    if n_wanted == 0:
        return X
    R = np.asfortranarray(R)
    vectors = X if n_wanted == n else np.zeros((n, n_wanted), order="F")
    selection, work = wanted.astype(np.intc), np.empty(3 * n)
    size, columns, found, info = ctypes.c_int(n), ctypes.c_int(n_wanted), ctypes.c_int(), ctypes.c_int()
    side, which = ctypes.c_char(b"R"), ctypes.c_char(b"S")
    ref = ctypes.byref
    chosen, matrix, result, scratch = (array.__array_interface__["data"][0] for array in (selection, R, vectors, work))
    _trevc(
        ref(side), ref(which), chosen, ref(size), matrix, ref(size), None, ref(size),
        result, ref(size), ref(columns), ref(found), scratch, ref(info),
    )  # fmt: skip
    if vectors is not X:
        X[:, wanted] = vectors
    return X


def _load_trevc() -> Any:
    """The `dtrevc` that SciPy exports, or None if it is missing or takes other arguments than expected."""
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get("dtrevc")
    if capsule is None:
        return None
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name = name_of(capsule)
    if name is None or name.decode() != _SIGNATURE:
        return None
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 14)(pointer_of(capsule, name))


_trevc = _load_trevc()
