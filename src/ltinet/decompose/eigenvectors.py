"""Eigenvectors of a quasi-triangular matrix: the fast way to decouple single neurons, all at once and without solves.

LAPACK's `trevc` is a tenth of the work of the Sylvester equations, but SciPy wraps it for C only, in `cython_lapack`.
It is called through that pointer if its signature is the expected one; otherwise `decouple` gives the same subspaces.
"""

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from ltinet.decompose.decouple import Decoupled
from ltinet.decompose.schur import SchurForm

# The real and imaginary parts of an eigenvector are computed to eps of the larger one. Below this ratio of ω to the
# pair's off-diagonal entry the imaginary part would lose too many digits, and the pair's plane with it.
_SMALLEST_RATIO = 1e-2

_REAL = "__pyx_t_5scipy_6linalg_13cython_lapack_d *"
_SIGNATURE = (
    f"void (char *, char *, int *, int *, {_REAL}, int *, {_REAL}, int *, {_REAL}, int *, int *, int *, {_REAL}, int *)"
)


def decouple_neurons(schur: SchurForm) -> Decoupled | None:
    """Decouple every diagonal block from all others, R X = X Λ, or None where `trevc` is not the right tool.

    Pairs stand as [[a, ω], [−ω, a]] in Λ, on the real and imaginary part of an eigenvector. Cost ~n³/3 flops.
    """
    R, pairs = schur.R, schur.pairs
    b, c = np.abs(R[pairs, pairs + 1]), np.abs(R[pairs + 1, pairs])
    if _trevc is None or (np.minimum(b, c) < _SMALLEST_RATIO**2 * np.maximum(b, c)).any():
        return None
    X = _right_eigenvectors(R)
    diagonal = np.diag(R.diagonal())
    omega = schur.eigenvalues.imag[schur.sizes == 2]
    diagonal[pairs, pairs + 1], diagonal[pairs + 1, pairs] = omega, -omega
    return Decoupled(X, diagonal)


def _right_eigenvectors(R: Any) -> Any:
    n = len(R)
    if n == 0:
        return R
    R = np.asfortranarray(R)
    X = np.zeros((n, n), order="F")
    work = np.empty(
        4 * n
    )  # the last quarter stands for the selection, which is not read when all vectors are asked for
    size, found, info = ctypes.c_int(n), ctypes.c_int(), ctypes.c_int()
    side, which = ctypes.c_char(b"R"), ctypes.c_char(b"A")
    ref = ctypes.byref
    matrix, vectors, scratch = (array.__array_interface__["data"][0] for array in (R, X, work))
    _trevc(
        ref(side), ref(which), scratch + 24 * n, ref(size), matrix, ref(size), None, ref(size),
        vectors, ref(size), ref(size), ref(found), scratch, ref(info),
    )  # fmt: skip
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
