"""How what is left of the system, in the user's own states, reaches the outputs: |C e^{Fs} X⁻¹| along all lags.

Counted mode by mode, an error of the decomposition is multiplied by the condition number of X, which cancels again in
C e^{Fs} X⁻¹. Modes that are slow beside the lags that are looked at are summed with their signs; fast ones, which could
hide between two lags, by their sizes.
"""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import PLACES, DenseKernel, phi1
from ltinet.bounds.dense_chain import dense_chain
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.steps.packing import pack_weights

_SLOW = 0.5  # |λ| times the distance of two lags


def user_kernel(
    arrays: EngineArrays, X_inv: Array, kernels: list[DenseKernel], *, cell: float, n_cells: int
) -> DenseKernel:
    """The sizes of C e^{Fs} X⁻¹ in cells of lags, at most and on the whole; `kernels` are those of coupled blocks."""
    blocks, spacing = arrays.system.blocks, cell / PLACES
    is_slow = np.concatenate(
        [
            arrays.rates * spacing < _SLOW,
            np.repeat([np.linalg.norm(own.F, 2) * spacing < _SLOW for own in blocks], [len(own.F) for own in blocks]),
        ]
    ).astype(bool)
    with np.errstate(over="ignore", invalid="ignore"):
        peak, area = _with_signs(arrays, X_inv, is_slow, n_lags=n_cells * PLACES, spacing=spacing)
    by_cell = (n_cells, PLACES, *peak.shape[1:])
    peak, area = peak.reshape(by_cell).max(axis=1), area.reshape(by_cell).sum(axis=1)
    sizes = arrays.modes(np.abs(X_inv).T).T
    fast = np.flatnonzero(~is_slow[: arrays.n_scalars])
    if fast.size:
        most, whole = _decaying(arrays.growth[fast], cell=cell, n_cells=n_cells)
        weights = arrays.mode_outputs[:, fast]
        peak = peak + (weights * most[:, None]) @ sizes[fast]
        area = area + (weights * whole[:, None]) @ sizes[fast]
    for own, kernel in zip(arrays.mode_slices, kernels, strict=True):
        if not is_slow[own.start]:
            peak, area = peak + kernel.peak @ sizes[own], area + kernel.integral @ sizes[own]
    return DenseKernel(peak, area)


def _with_signs(
    arrays: EngineArrays, X_inv: Array, is_slow: NDArray[np.bool_], *, n_lags: int, spacing: float
) -> tuple[Array, Array]:
    """The largest |C e^{Fs} X⁻¹| of slow modes between two lags, and its integral there, `(lags, p, n)`."""
    system, lags = arrays.system, spacing * np.arange(n_lags + 1)
    scalars = np.where(is_slow[: arrays.n_scalars], system.rates, -np.inf)
    C = np.where(is_slow[: arrays.n_scalars], system.C, 0.0)
    turned = np.exp(np.where(np.isfinite(scalars), scalars, 0.0) * lags[:, None])
    dense = []
    for block, own in zip(system.blocks, arrays.mode_slices, strict=True):
        rows = np.zeros((n_lags + 1, *block.C.shape))
        if is_slow[own.start]:
            rows[0], P = block.C, dense_chain(block.F, spacing).exponentials[0]
            for lag in range(n_lags):
                rows[lag + 1] = rows[lag] @ P
        dense.append(rows)
    values = pack_weights(system, C * turned[:, None], dense) @ X_inv
    steps = np.abs(np.diff(values, axis=0))
    values = np.abs(values)
    peak = np.maximum(values[:-1], values[1:]) + steps
    return peak, peak * spacing


def _decaying(growth: Array, *, cell: float, n_cells: int) -> tuple[Array, Array]:
    """The largest e^{Re λ s} in each cell of lags, and its integral, `(cells, n)`."""
    starts = cell * np.arange(n_cells)[:, None]
    with np.errstate(over="ignore"):
        first = np.exp(growth * starts)
        return first * np.maximum(1.0, np.exp(growth * cell)), first * cell * phi1(growth * cell)
