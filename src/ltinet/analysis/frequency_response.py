"""H(s) of a system at many s: from one decomposition, checked by residuals of the system as it was given."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import lu_factor, lu_solve

from ltinet.analysis.quasi_triangle import QuasiTriangle
from ltinet.analysis.resolvent import Resolvent, times
from ltinet.arrays import Array, Complex
from ltinet.errors import InvalidSystemError
from ltinet.exact_arithmetic import exact_product
from ltinet.model.matrices import Matrix, as_real_matrix, shape_of
from ltinet.threads import threads_for

_CHUNK = 1 << 22  # complex numbers held at a time, 64 MB
# What a step of refinement may change at the places that are looked at, relative to the peak of |H_ij|, before it is
# taken everywhere: a third of the error that nobody should see, 1e-12.
_UNREFINED = 3e-13
_LOOKED_AT = 24  # places, half of them spread evenly, half where most cancels
_FEW = 64  # pairs of input and output: up to here all products c·b of every mode are formed
_DENSE = 0.1  # share of entries of A that are not zero, from which on it is multiplied as a full matrix


def with_delays(H: Complex, omega: ArrayLike, delays: Array) -> Complex:
    """Return H(jω) e^{−jωτ} for responses `(K, p, m)` and delays τ `(p, m)`; entries that are not finite stay.

    The angle ωτ is a product of twice the digits: rounded once it would be off by eps·ωτ.
    """
    angle, lost = exact_product(np.asarray(omega, dtype=np.float64).reshape(-1, 1, 1), delays)
    turned = H * (np.exp(-1j * angle) * (1.0 - 1j * lost))
    return np.where(np.isfinite(H), turned, H)


def points_of(omega: ArrayLike, dt: float | None) -> Complex:
    """The places s = jω, in discrete time z = e^{jω dt}.

    Raises:
        InvalidSystemError: omega is not a list of real, finite frequencies.
    """
    if len(shape_of(omega, "omega")) > 1:
        raise InvalidSystemError(f"omega has shape {np.shape(omega)}; give a list of frequencies")
    frequencies = as_real_matrix(omega, "omega", vector="row")[0]
    points = 1j * frequencies if dt is None else np.exp(1j * (frequencies * dt))
    return np.asarray(points, dtype=np.complex128)


def transfer_function(resolvent: Resolvent, s: Complex) -> Complex:
    """H(s) = C (s E − A)⁻¹ B + D, shape (len(s), p, m); complex(inf, nan) in every entry where s is a pole.

    The first answer is a product of matrices. Where it errs is estimated at a few places by the correction that the
    residual of (s E − A) X = B asks for, E, A and B as they were given; if one is felt, all places are corrected.
    """
    system = resolvent.system
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"), threads_for(system.n_states):
        width = (system.n_states + 1) * (min(system.n_inputs, system.n_outputs) + 1)
        pieces = np.array_split(s, max(1, -(-len(s) * width // _CHUNK)))
        H = np.concatenate([_plain(resolvent, piece) for piece in pieces], axis=-1)
        if system.n_states and H.size:
            _refine_if_felt(resolvent, s, H)
    H[..., ~np.isfinite(H).all(axis=(0, 1))] = complex(np.inf, np.nan)
    return np.ascontiguousarray(H.transpose(2, 0, 1))


def _plain(resolvent: Resolvent, s: Complex) -> Complex:
    """H as the decomposition gives it, (p, m, len(s)): frequencies last, along which everything is done at once."""
    D, B, C = resolvent.system.D, resolvent.B, resolvent.C
    triangle = resolvent.form.triangle
    if triangle is not None:
        return D[:, :, None] + _of_triangle(triangle, B.real, C.real, s)
    gains = 1.0 / (s - resolvent.rates[:, None])
    n, (p, m) = len(B), D.shape
    if D.size <= _FEW:
        products = C[:, None, :] * B.T
        return np.asarray(D[:, :, None] + (products.reshape(D.size, n) @ gains).reshape(p, m, len(s)))
    if m <= p:
        X = gains[:, None, :] * B[:, :, None]
        return np.asarray(D[:, :, None] + (C @ X.reshape(n, m * len(s))).reshape(p, m, len(s)))
    Y = gains[:, None, :] * C.T[:, :, None]
    return np.asarray(D[:, :, None] + (B.T @ Y.reshape(n, p * len(s))).reshape(m, p, len(s)).swapaxes(0, 1))


def _of_triangle(triangle: QuasiTriangle, B: Matrix, C: Matrix, s: Complex) -> Complex:
    """C (s I − R)⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
    n, (m, p) = len(B), (B.shape[1], len(C))
    if m <= p:
        X = triangle.solve(s, B[:, :, None])
        return _times(np.ascontiguousarray(C), X.reshape(n, -1)).reshape(p, m, len(s))
    Y = triangle.turned.solve(s, C.T[::-1, :, None])
    return _times(np.ascontiguousarray(B[::-1].T), Y.reshape(n, -1)).reshape(m, p, len(s)).swapaxes(0, 1)


def _refine_if_felt(resolvent: Resolvent, s: Complex, H: Complex) -> None:
    """Correct H in place, everywhere or nowhere."""
    finite = np.asarray(np.isfinite(H).all(axis=(0, 1)))
    if not finite.any():
        return
    usable = np.flatnonzero(finite)
    sizes = np.abs(H if finite.all() else H[..., finite])
    peak = sizes.max(axis=-1)
    step = _Refinement(resolvent)
    if not (np.abs(step.at(s[_places(resolvent, s, sizes, usable)])) > _UNREFINED * peak[..., None]).any():
        return
    n_pieces = max(1, -(-len(s) * resolvent.system.n_states * max(resolvent.system.n_inputs, 1) // _CHUNK))
    for piece in np.array_split(usable, n_pieces):
        H[..., piece] += step.at(s[piece])


def _places(resolvent: Resolvent, s: Complex, sizes: NDArray[np.float64], usable: NDArray[np.intp]) -> NDArray[np.intp]:
    """Some of the usable places, spread evenly, and those where most is at stake.

    These are where the largest terms cancel, measured against the peak of |H_ij|, or, where there is a triangle in the
    place of terms, where |H_ij| has its peak.
    """
    if len(usable) <= _LOOKED_AT:
        return usable
    even = usable[np.linspace(0, len(usable) - 1, _LOOKED_AT // 2).astype(np.intp)]
    if resolvent.form.triangle is not None:
        return np.union1d(even, usable[sizes.reshape(-1, len(usable)).argmax(axis=1)[: _LOOKED_AT // 2]])
    peak = sizes.max(axis=-1)
    relative = np.divide(1.0, peak, out=np.zeros_like(peak), where=peak > 0.0)
    weight = np.einsum("pk,pk->k", np.abs(resolvent.C), relative @ np.abs(resolvent.B).T)
    real = np.subtract.outer(s.real[usable], resolvent.rates.real)
    imaginary = np.subtract.outer(s.imag[usable], resolvent.rates.imag)
    size = (1.0 / (real * real + imaginary * imaginary)) @ (weight * weight)
    return np.union1d(even, usable[np.argsort(size)[-(_LOOKED_AT // 2) :]])


class _Refinement:
    """δH = C (s E − A)⁻¹ R with R = B − (s E − A) X, for the X that the decomposition gives."""

    def __init__(self, resolvent: Resolvent) -> None:
        self.resolvent = resolvent
        system = resolvent.system
        given = system.descriptor
        self.A = _cheapest(system.A if given is None else given.A)
        self.B = system.B if given is None else given.B
        self.E = None if given is None else _cheapest(given.E)
        self.factors = None if given is None else lu_factor(given.E)

    def at(self, s: Complex) -> Complex:
        """δH at some places, (p, m, len(s))."""
        own = self.resolvent
        n, m = self.B.shape
        X = own.form.states_of(own.solve(s, own.B[:, :, None]).reshape(n, -1))
        moved = X if self.E is None else _times(self.E, X)
        R = self.B[:, :, None] - s * moved.reshape(n, m, -1) + _times(self.A, X).reshape(n, m, -1)
        rest: Complex = np.asarray(R).reshape(n, -1)
        if self.factors is not None:
            rest = lu_solve(self.factors, rest)
        change = own.solve(s, own.form.to_modes(rest).reshape(n, m, -1))
        return np.asarray((own.C @ change.reshape(n, -1)).reshape(-1, m, len(s)))


def _times(matrix: Matrix | sparse.csr_array, columns: Complex) -> Complex:
    product = times(matrix, columns) if isinstance(matrix, np.ndarray) else matrix @ columns
    return np.asarray(product, dtype=np.complex128)


def _cheapest(matrix: Matrix) -> Matrix | sparse.csr_array:
    is_sparse = np.count_nonzero(matrix) < _DENSE * matrix.size
    return sparse.csr_array(matrix) if is_sparse else matrix
