"""Circulant matrices, A_ij = c_{(i − j) mod n}: the Fourier transform of c has the eigenvalues, cosines and sines T."""

import math
from typing import final

import numpy as np
import scipy  # which loads scipy.fft when it is first used
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.decompose.structures.basis import Rotated
from ltinet.decompose.structures.diagonal_blocks import of_rates
from ltinet.decompose.structures.structure import Structure, sizes_of
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.tolerances import EPS

_ROUNDED = 4.0 * EPS  # relative to the largest entry
_FEW = 64  # entries of a column that are summed one by one
_ROOT = float(np.sqrt(2.0))


@final
class Waves:
    """1/√n, then √(2/n) cos(2πjk/n) and ±√(2/n) sin(2πjk/n) for k = 1, 2, …, and (−1)^j/√n where n is even."""

    def __init__(self, n: int, signs: Array) -> None:
        self.n, self.signs = n, signs  # of the sines

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        waves = scipy.fft.rfft(x, norm="ortho", axis=0)
        z = np.empty(x.shape)
        z[0], k = waves[0].real, len(self.signs)
        z[1 : 2 * k : 2] = _ROOT * waves[1 : k + 1].real
        z[2 : 2 * k + 1 : 2] = -_ROOT * self.signs[:, None] * waves[1 : k + 1].imag
        if self.n % 2 == 0:
            z[-1] = waves[-1].real
        return z

    def backward(self, z: Array) -> Array:
        """Q z."""
        k = len(self.signs)
        waves = np.zeros((self.n // 2 + 1, *z.shape[1:]), dtype=np.complex128)
        waves[0] = z[0]
        waves[1 : k + 1] = (z[1 : 2 * k : 2] - 1j * self.signs[:, None] * z[2 : 2 * k + 1 : 2]) / _ROOT
        if self.n % 2 == 0:
            waves[-1] = z[-1]
        return np.asarray(scipy.fft.irfft(waves, n=self.n, norm="ortho", axis=0))


def circulant(A: SparseMatrix) -> Structure | None:
    """The structure of a circulant matrix; None for any other."""
    n = int(A.shape[0])
    column = A[:, [0]].toarray().ravel()
    if n < 3 or A.nnz != n * np.count_nonzero(column):
        return None
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    if not np.all(np.abs(A.data - column[(rows - A.indices) % n]) <= _ROUNDED * np.abs(column).max()):
        return None
    values = _eigenvalues(column)
    # A column and its mirror image that differ by rounding have real eigenvalues but for that.
    noise = _ROUNDED * np.log2(n) * np.abs(column).sum()
    omega = np.where(np.abs(values.imag) <= noise, 0.0, values.imag)
    k = (n - 1) // 2
    rates = np.zeros(n, dtype=np.complex128)
    rates[0] = values[0].real
    rates[1 : 2 * k : 2] = values[1 : k + 1].real + 1j * np.abs(omega[1 : k + 1])
    rates[2 : 2 * k + 1 : 2] = rates[1 : 2 * k : 2].conj()
    if n % 2 == 0:
        rates[-1] = values[-1].real
    signs = np.where(omega[1 : k + 1] < 0.0, -1.0, 1.0)
    told = "circulant matrix, by Fourier transforms"
    return Structure(told, of_rates(rates), rates, sizes_of(rates), Rotated(Waves(n, signs)))


def _eigenvalues(column: Array) -> NDArray[np.complex128]:
    """The first half of the Fourier transform of the column, without cancellation where there are few entries.

    Σ c_j e^{−2πijk/n} = Σ c_j − 2 Σ c_j sin²(πjk/n) − i Σ c_j sin(2πjk/n): slow modes beside fast ones are small
    differences in any other way.
    """
    n, places = len(column), np.flatnonzero(column)
    if len(places) > _FEW:
        return np.asarray(scipy.fft.fft(column)[: n // 2 + 1], dtype=np.complex128)
    k = np.arange(n // 2 + 1)
    real, imaginary = np.full(len(k), math.fsum(column[places].tolist())), np.zeros(len(k))
    for place in places.tolist():
        turns = (place * k) % n / n
        real -= 2.0 * column[place] * np.sin(np.pi * turns) ** 2
        imaginary -= column[place] * np.sin(2.0 * np.pi * turns)
    return np.asarray(real + 1j * imaginary)
