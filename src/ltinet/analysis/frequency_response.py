"""H(s) of a system at many s: from one decomposition, checked by residuals of the system as it was given."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import lu_factor, lu_solve

from ltinet.analysis.resolvent import Complex, Resolvent, solve_triangle
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix, as_real_matrix, shape_of
from ltinet.threads import threads_for

_CHUNK = 1 << 22  # complex numbers held at a time, 64 MB
# What a step of refinement may change at the places that are looked at, relative to the peak of |H_ij|, before it is
# taken everywhere: a third of the error that nobody should see, 1e-12.
_UNREFINED = 3e-13
_LOOKED_AT = 24  # places, half of them spread evenly, half where most cancels
_FEW = 64  # pairs of input and output: up to here all products c·b of every mode are formed
_DENSE = 0.1  # share of entries of A that are not zero, from which on it is multiplied as a full matrix


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
        H = np.concatenate([_plain(resolvent, piece) for piece in pieces])
        if system.n_states and H.size:
            _refine_if_felt(resolvent, s, H)
    H[~np.isfinite(H).all(axis=(1, 2))] = complex(np.inf, np.nan)
    return H


def _plain(resolvent: Resolvent, s: Complex) -> Complex:
    D, B, C = resolvent.system.D, resolvent.B, resolvent.C
    shape = (len(s), *D.shape)
    triangle = resolvent.form.triangle
    if triangle is not None:
        return D + _of_triangle(triangle, B, C, s)
    gains = 1.0 / (s[:, None] - resolvent.rates)
    if D.size <= _FEW:
        products = C.T[:, :, None] * B[:, None, :]
        return np.asarray(D + (gains @ products.reshape(len(products), D.size)).reshape(shape))
    return np.asarray(D + (C * gains[:, None, :]) @ B)


def _of_triangle(S: Complex, B: Complex, C: Complex, s: Complex) -> Complex:
    """C (s I − S)⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
    if B.shape[1] <= len(C):
        X = solve_triangle(S, s, B[:, None, :])
        return np.asarray((C @ X.reshape(len(S), -1)).reshape(len(C), len(s), -1).transpose(1, 0, 2))
    # Transposed and turned upside down a lower triangle is an upper one again.
    Y = solve_triangle(S.T[::-1, ::-1], s, C.T[::-1, None, :])
    return np.asarray((B[::-1].T @ Y.reshape(len(S), -1)).reshape(B.shape[1], len(s), -1).transpose(1, 2, 0))


def _refine_if_felt(resolvent: Resolvent, s: Complex, H: Complex) -> None:
    """Correct H in place, everywhere or nowhere."""
    finite = np.asarray(np.isfinite(H).all(axis=(1, 2)))
    if not finite.any():
        return
    peak = np.abs(H[finite]).max(axis=0)
    step = _Refinement(resolvent)
    if not (np.abs(step.at(s[_places(resolvent, s, peak, finite)])) > _UNREFINED * peak).any():
        return
    n_pieces = max(1, -(-len(s) * resolvent.system.n_states * max(resolvent.system.n_inputs, 1) // _CHUNK))
    for piece in np.array_split(np.flatnonzero(finite), n_pieces):
        H[piece] += step.at(s[piece])


def _places(resolvent: Resolvent, s: Complex, peak: NDArray[np.float64], finite: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Some places spread evenly, and those where the largest terms cancel, measured against the peak of |H_ij|."""
    usable = np.flatnonzero(finite)
    if len(usable) <= _LOOKED_AT:
        return usable
    even = usable[np.linspace(0, len(usable) - 1, _LOOKED_AT // 2).astype(np.intp)]
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
        """δH at some places, (len(s), p, m)."""
        own = self.resolvent
        n, m = self.B.shape
        X = own.form.states_of(own.solve(s, own.B[:, None, :]).reshape(n, -1)).reshape(n, len(s), m)
        moved = X if self.E is None else np.asarray(self.E @ X.reshape(n, -1)).reshape(X.shape)
        R = self.B[:, None, :] - s[:, None] * moved + np.asarray(self.A @ X.reshape(n, -1)).reshape(X.shape)
        rest: Complex = np.asarray(R).reshape(n, -1)
        if self.factors is not None:
            rest = lu_solve(self.factors, rest)
        change = own.solve(s, own.form.to_modes(rest).reshape(n, len(s), m))
        return np.asarray((own.C @ change.reshape(n, -1)).reshape(-1, len(s), m).transpose(1, 0, 2))


def _cheapest(matrix: Matrix) -> Matrix | sparse.csr_array:
    is_sparse = np.count_nonzero(matrix) < _DENSE * matrix.size
    return sparse.csr_array(matrix) if is_sparse else matrix
