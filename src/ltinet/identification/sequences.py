"""What modes do over a record, compressed: every output of a model, and every derivative of it, is a sum of these.

For the modes λ_i they are their decays λ_iᵏ, what every input drives in them (v[k+1] = λ v[k] + u[k]), what that drives
once more (the derivative by λ), the inputs themselves, a constant and a slope. All outputs share them, so that one QR
decomposition of them, beside the measured outputs, takes the place of the record in every least-squares problem.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.record import Record
from ltinet.solve.steps.recurrence import Decay, accumulate
from ltinet.threads import one_blas_thread

_AT_ONCE = 2**21  # numbers that are worked on together


@dataclass(frozen=True, eq=False)
class Sequences:
    """The sequences of a record, all turned by one orthogonal matrix into q numbers each (or as they are)."""

    decays: Complex
    """λ_iᵏ, `(q, k)`."""
    driven: Complex
    """`(q, k, m)`."""
    twice: Complex
    """The derivative by λ_i of Σ_j b_ij driven_ij + x0_i λ_iᵏ, `(q, k)`; nothing where b is not known."""
    inputs: Array
    """`(q, m)`."""
    trends: Array
    """A constant, and a slope that is 1 at the end of the record: `(q, 2)`."""
    outputs: Array
    """Those that were measured, `(q, p)`."""


@dataclass(frozen=True, eq=False)
class Drive:
    """How modes are driven, for derivatives by their poles: b `(k, m)` and the states at the first sample `(k,)`."""

    B: Complex
    start: Complex


def compressed_sequences(model: ModalModel, record: Record, drive: Drive | None = None) -> Sequences:
    """The sequences over a record after QR decompositions, some samples after the other."""
    with one_blas_thread():
        R = functools.reduce(rotated_away, _columns(model, record, drive))
    return _unpacked(rotated_away(R[:0], R), model, record, with_twice=drive is not None)


def rotated_away(above: Array, columns: Array) -> Array:
    """Two sets of rows as one with no more rows than columns; as they are where these are few."""
    stacked = np.vstack([above, columns])
    if len(stacked) <= stacked.shape[1]:
        return stacked
    return np.asarray(linalg.qr(stacked, mode="r", check_finite=False)[0][: stacked.shape[1]], dtype=np.float64)


def portions(model: ModalModel, record: Record) -> Iterator[Sequences]:
    """The sequences, a row for every sample, some samples after the other."""
    return (_unpacked(own, model, record, with_twice=False) for own in _columns(model, record, None))


def sequences(model: ModalModel, record: Record, drive: Drive | None = None) -> Sequences:
    """The sequences over a record, a row for every sample."""
    columns = np.concatenate(list(_columns(model, record, drive)))
    return _unpacked(columns, model, record, with_twice=drive is not None)


def _columns(model: ModalModel, record: Record, drive: Drive | None) -> Iterator[Array]:
    """All sequences as real columns, some samples after the other: (Re, Im) of pairs, real parts of others."""
    n_samples, m = record.u.shape
    poles, pairs = model.poles, model.is_pair
    decay = Decay(poles[pairs], poles[~pairs].real, ())
    width = 2 * int(pairs.sum()) + int((~pairs).sum())
    n_kinds = m + 1 + (drive is not None)
    at_once = max(256, _AT_ONCE // max(1, n_kinds * width))
    states = np.zeros((n_kinds, width))
    begin_decay = np.concatenate(
        [np.stack([np.ones(pairs.sum()), np.zeros(pairs.sum())], 1).ravel(), np.ones(width - 2 * int(pairs.sum()))]
    )
    states[0] = begin_decay
    for begin in range(0, n_samples, at_once):
        own = slice(begin, min(begin + at_once, n_samples))
        found, states = _advanced(record.u[own], states, decay, drive, pairs)
        ramp = np.arange(own.start, own.stop) / max(n_samples - 1, 1)
        flat = found.transpose(1, 0, 2).reshape(own.stop - own.start, -1)
        yield np.hstack([flat, record.u[own], np.ones((len(ramp), 1)), ramp[:, None], record.y[own]])


def _advanced(
    u: Array, states: Array, decay: Decay, drive: Drive | None, pairs: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """States `(kinds, T, width)` at samples, from those at the first, and those one sample after the last."""
    n_samples, m = u.shape
    n_pairs2 = 2 * len(decay.pairs)
    added = np.zeros((m + 1, n_samples, states.shape[1]))
    for j in range(m):
        added[1 + j, :, 0:n_pairs2:2] = u[:, j, None]
        added[1 + j, :, n_pairs2:] = u[:, j, None]
    accumulate(added, states[: m + 1], decay)
    here = np.concatenate([states[: m + 1, None], added[:, :-1]], axis=1)
    after = added[:, -1]
    if drive is None:
        return here, after
    v = _weighted(here, drive, pairs)
    w = np.ascontiguousarray(v[None])
    accumulate(w, states[m + 1 :], decay)
    twice = np.concatenate([states[m + 1 :, None], w[:, :-1]], axis=1)
    return np.concatenate([here, twice]), np.concatenate([after, w[:, -1]])


def _weighted(here: Array, drive: Drive, pairs: NDArray[np.bool_]) -> Array:
    """The states v of the modes themselves, packed, `(T, width)`."""
    n_pairs2 = 2 * int(pairs.sum())
    weights = np.concatenate([drive.start[:, None], drive.B], axis=1).T  # (m + 1, k)
    total = np.empty(here.shape[1:])
    as_complex = np.ascontiguousarray(here[..., :n_pairs2]).view(np.complex128)
    total[:, :n_pairs2] = np.ascontiguousarray(np.einsum("ktp,kp->tp", as_complex, weights[:, pairs])).view(np.float64)
    total[:, n_pairs2:] = np.einsum("ktp,kp->tp", here[..., n_pairs2:], weights[:, ~pairs].real)
    return total


def _unpacked(columns: Array, model: ModalModel, record: Record, *, with_twice: bool) -> Sequences:
    poles, pairs = model.poles, model.is_pair
    n_pairs, m = int(pairs.sum()), record.u.shape[1]
    width = 2 * n_pairs + len(poles) - n_pairs
    n_kinds = m + 1 + with_twice
    packed = columns[:, : n_kinds * width].reshape(len(columns), n_kinds, width)
    modes = np.zeros((len(columns), n_kinds, len(poles)), dtype=np.complex128)
    modes[..., pairs] = packed[..., 0 : 2 * n_pairs : 2] + 1j * packed[..., 1 : 2 * n_pairs : 2]
    modes[..., ~pairs] = packed[..., 2 * n_pairs :]
    rest = columns[:, n_kinds * width :]
    return Sequences(
        decays=modes[:, 0],
        driven=modes[:, 1 : m + 1].transpose(0, 2, 1),
        twice=modes[:, m + 1] if with_twice else np.zeros((len(columns), 0), dtype=np.complex128),
        inputs=rest[:, :m],
        trends=rest[:, m : m + 2],
        outputs=rest[:, m + 2 :],
    )
