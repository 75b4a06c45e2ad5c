"""Frequency responses H(s) = C (s E − A)⁻¹ B + D, and the frequencies at which to compute them.

Dense models are decomposed once for all s; the result is checked at a few frequencies by one step of refinement, δH = C
(s E − A)⁻¹ R with R = B − (s E − A) X for the matrices as given, and corrected everywhere if the correction exceeds
3e-13 of the peak of |H_ij|. Large sparse models are factorised for each s. Mechanical models use their own matrices
of half the size, H(jω) = C (K − ω² M + jω D)⁻¹ B. Frequencies extend a decade beyond poles and zeros, with close
steps at resonances.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import lu_factor, lu_solve

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.double_double import product_terms, sum_matrices, two_product
from ltinet._util.floating_point import EPS, Array, Complex, balancing_units
from ltinet._util.progress import Progress, track_progress
from ltinet.analysis.resolvent import Resolvent, SparseResolvent, compute_resolvent, real_matrix_product
from ltinet.blockdiag.eigenmodes import QuasiTriangularMatrix
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, as_real_matrix, shape_of
from ltinet.systems.second_order_matrices import SecondOrderMatrices
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

# Frequencies.

_POINTS_PER_DECADE, _MAX_POINTS = 100, 1000  # of the logarithmic grid
_LIGHT_DAMPING = 0.3  # damping ratio below which resonances get points of their own; drawing only
_MAX_RESONANCES = 200  # the sharpest that get points of their own; drawing only
# Distances from a resonance in units of its half width: from its peak to where the logarithmic grid resolves it.
_RESONANCE_OFFSETS = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0])


def frequencies_for(
    poles: ArrayLike, zeros: ArrayLike = (), *, dt: float | None = None, sample_time: float | None = None
) -> Array:
    """Return angular frequencies at which a frequency response should be computed to be drawn.

    They extend from a tenth of the slowest pole or zero to ten times the fastest, in discrete time to π/dt, and for a
    model of sampled data at most to their Nyquist frequency π/sample_time. Poles and zeros at the origin are ignored;
    without any others, frequencies around 1 (or π/dt) are returned.

    Parameters
    ----------
    poles : array_like
        Poles, `(n,)`, complex.
    zeros : array_like, optional
        Zeros, `(k,)`, complex.
    dt : float, optional
        Time step of a model in discrete time.
    sample_time : float, optional
        Time between samples of the data that a model in continuous time was identified from.

    Returns
    -------
    ndarray
        Angular frequencies, ascending, about 5,400 at most.

    Examples
    --------
    >>> ltinet.frequencies_for([-1.0, -100.0]).min()
    np.float64(0.1)
    """
    s = np.concatenate([np.atleast_1d(np.asarray(values, dtype=np.complex128)) for values in (poles, zeros)])
    if dt is not None:
        with np.errstate(divide="ignore", invalid="ignore"):  # a pole at zero
            s = np.log(s) / dt
    sizes = np.abs(s[np.isfinite(s)])
    # Values of the size of the rounding of eigenvalues may be at the origin.
    s = s[np.isfinite(s) & (np.abs(s) > 10.0 * len(s) * EPS * np.max(sizes, initial=0.0))]
    steps = [step for step in (dt, sample_time) if step is not None]
    largest = np.pi / max(steps) if steps else np.inf
    sizes = np.abs(s)
    low, high = (0.1 * sizes.min(), 10.0 * sizes.max()) if len(s) else (min(1.0, largest) / 100.0, 100.0)
    high = min(high, largest)
    low = min(low, 0.01 * high)
    count = int(np.clip(_POINTS_PER_DECADE * np.log10(high / low), 100, _MAX_POINTS))
    return np.unique(np.concatenate([np.geomspace(low, high, count), _resonances(s, low, high)]))


def _resonances(s: NDArray[np.complex128], low: float, high: float) -> Array:
    light = s[(s.imag > 0.0) & (np.abs(s.real) < _LIGHT_DAMPING * np.abs(s))]
    if len(light) > _MAX_RESONANCES:  # the sharpest
        light = light[np.argsort(np.abs(light.real) / np.abs(light))[:_MAX_RESONANCES]]
    # An undamped resonance has no width, and is infinite at its frequency.
    width = np.maximum(np.abs(light.real), 1e-4 * np.abs(light))[:, None]
    omega = np.concatenate(
        [light.imag[:, None] + width * _RESONANCE_OFFSETS, light.imag[:, None] - width * _RESONANCE_OFFSETS[1:]], axis=1
    )
    return omega[(omega > low) & (omega < high)]


# Dense systems.

_CHUNK = 1 << 22  # complex numbers held at a time, 64 MB
# Largest correction at the sampled frequencies, relative to the peak of |H_ij|, without refinement everywhere: a third
# of the error of 1e-12 that responses may have.
_REFINEMENT_TOLERANCE = 3e-13
_REFINEMENT_STEPS = 2  # of `refined_evaluator`: the first removes the error of the decomposition, the second its trace
# States up to which residuals are summed in twice the precision: transfer functions of high degree lose half of their
# digits in double precision where poles are close to each other, and loops are usually small.
_MAX_EXTENDED_STATES = 32
_N_SAMPLES = 24  # sampled frequencies, half of them spread evenly, half where cancellation is largest
_MAX_PRODUCT_PAIRS = 64  # pairs of input and output up to which products c·b are formed for every mode
_DENSE_SHARE = 0.1  # share of nonzero entries of A from which on a dense product is faster


def apply_delays(H: Complex, omega: ArrayLike, delays: Array) -> Complex:
    """Return H(jω) e^{−jωτ} for responses `(K, p, m)` and delays τ `(p, m)`; entries that are not finite stay.

    The angle ωτ is computed with twice the digits: a rounded product would be off by eps·ωτ.
    """
    angle, error = two_product(np.asarray(omega, dtype=np.float64).reshape(-1, 1, 1), delays)
    delayed = H * (np.exp(-1j * angle) * (1.0 - 1j * error))
    return np.where(np.isfinite(H), delayed, H)


def evaluation_points(omega: ArrayLike, dt: float | None) -> Complex:
    """Return the points s = jω, in discrete time z = e^{jω dt}.

    Raises:
        InvalidSystemError: omega is not a list of real, finite frequencies.
    """
    if len(shape_of(omega, "omega")) > 1:
        raise InvalidSystemError(f"omega must be a list of frequencies, got an array of shape {np.shape(omega)}")
    frequencies = as_real_matrix(omega, "omega", vector="row")[0]
    points = 1j * frequencies if dt is None else np.exp(1j * (frequencies * dt))
    return np.asarray(points, dtype=np.complex128)


def solve_at_points(system: SystemMatrices, s: Complex) -> Complex:
    """Return H(s) as `transfer_function` does, by one factorization of s I − A for each point.

    For few points anywhere in the plane: no decomposition of A stands between, whose eigenvectors may be nearly
    parallel, and A is balanced. Cost O(n³) for each point.
    """
    units = balancing_units(system.A)
    A, B, C = system.A * (units / units[:, None]), system.B / units[:, None], system.C * units
    H = np.empty((len(s), system.n_outputs, system.n_inputs), dtype=np.complex128)
    with np.errstate(all="ignore"), limit_blas_threads(system.n_states):
        for index, point in enumerate(s.tolist()):
            try:
                H[index] = C @ np.linalg.solve(point * np.eye(len(A)) - A, B.astype(np.complex128)) + system.D
            except np.linalg.LinAlgError:
                H[index] = complex(np.inf, np.nan)
    return H


def transfer_function(resolvent: Resolvent, s: Complex) -> Complex:
    """Return H(s) = C (s E − A)⁻¹ B + D, shape (len(s), p, m); complex(inf, nan) in every entry where s is a pole.

    The decomposition gives H as a product of matrices. Its error is estimated at a few frequencies by one step of
    refinement with E, A and B as given; if a correction is noticeable, all frequencies are corrected.
    """
    system = resolvent.system
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"), limit_blas_threads(system.n_states):
        width = (system.n_states + 1) * (min(system.n_inputs, system.n_outputs) + 1)
        pieces = np.array_split(s, max(1, -(-len(s) * width // _CHUNK)))
        H = np.concatenate([_unrefined_response(resolvent, piece) for piece in pieces], axis=-1)
        if system.n_states and H.size:
            _refine_if_needed(resolvent, s, H)
    H[..., ~np.isfinite(H).all(axis=(0, 1))] = complex(np.inf, np.nan)
    return np.ascontiguousarray(H.transpose(2, 0, 1))


def _unrefined_response(resolvent: Resolvent, s: Complex) -> Complex:
    """Return H from the decomposition, (p, m, len(s)); the last axis allows long vector operations."""
    D, B, C = resolvent.system.D, resolvent.B, resolvent.C
    if resolvent.triangle is not None:
        return D[:, :, None] + _triangular_response(resolvent.triangle, B.real, C.real, s)
    gains = 1.0 / (s - resolvent.rates[:, None])
    n, (p, m) = len(B), D.shape
    if D.size <= _MAX_PRODUCT_PAIRS:
        products = C[:, None, :] * B.T
        return np.asarray(D[:, :, None] + (products.reshape(D.size, n) @ gains).reshape(p, m, len(s)))
    if m <= p:
        X = gains[:, None, :] * B[:, :, None]
        return np.asarray(D[:, :, None] + (C @ X.reshape(n, m * len(s))).reshape(p, m, len(s)))
    Y = gains[:, None, :] * C.T[:, :, None]
    return np.asarray(D[:, :, None] + (B.T @ Y.reshape(n, p * len(s))).reshape(m, p, len(s)).swapaxes(0, 1))


def _triangular_response(triangle: QuasiTriangularMatrix, B: Matrix, C: Matrix, s: Complex) -> Complex:
    """Return C (s I − R)⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
    n, (m, p) = len(B), (B.shape[1], len(C))
    if m <= p:
        X = triangle.solve(s, B[:, :, None])
        return _matrix_product(np.ascontiguousarray(C), X.reshape(n, -1)).reshape(p, m, len(s))
    Y = triangle.reversed_transpose.solve(s, C.T[::-1, :, None])
    return _matrix_product(np.ascontiguousarray(B[::-1].T), Y.reshape(n, -1)).reshape(m, p, len(s)).swapaxes(0, 1)


def _refine_if_needed(resolvent: Resolvent, s: Complex, H: Complex) -> None:
    """Correct H in place, at all frequencies or at none."""
    finite = np.asarray(np.isfinite(H).all(axis=(0, 1)))
    if not finite.any():
        return
    usable = np.flatnonzero(finite)
    sizes = np.abs(H if finite.all() else H[..., finite])
    peak = sizes.max(axis=-1)
    step = _Refinement(resolvent)
    if not (
        np.abs(step.at(s[_sample_indices(resolvent, s, sizes, usable)])) > _REFINEMENT_TOLERANCE * peak[..., None]
    ).any():
        return
    n_pieces = max(1, -(-len(s) * resolvent.system.n_states * max(resolvent.system.n_inputs, 1) // _CHUNK))
    for piece in np.array_split(usable, n_pieces):
        H[..., piece] += step.at(s[piece])


def _sample_indices(
    resolvent: Resolvent, s: Complex, sizes: NDArray[np.float64], usable: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return indices of frequencies: some spread evenly, and those where errors are likely to be largest.

    These are where the largest modal terms cancel, relative to the peak of |H_ij|, or for a quasi-triangular form,
    which has no such terms, where |H_ij| has its peak.
    """
    if len(usable) <= _N_SAMPLES:
        return usable
    even = usable[np.linspace(0, len(usable) - 1, _N_SAMPLES // 2).astype(np.intp)]
    if resolvent.triangle is not None:
        return np.union1d(even, usable[sizes.reshape(-1, len(usable)).argmax(axis=1)[: _N_SAMPLES // 2]])
    peak = sizes.max(axis=-1)
    inverse_peak = np.divide(1.0, peak, out=np.zeros_like(peak), where=peak > 0.0)
    mode_weights = np.einsum("pk,pk->k", np.abs(resolvent.C), inverse_peak @ np.abs(resolvent.B).T)
    real = np.subtract.outer(s.real[usable], resolvent.rates.real)
    imaginary = np.subtract.outer(s.imag[usable], resolvent.rates.imag)
    term_sizes = (1.0 / (real * real + imaginary * imaginary)) @ (mode_weights * mode_weights)
    return np.union1d(even, usable[np.argsort(term_sizes)[-(_N_SAMPLES // 2) :]])


class _Refinement:
    """Correction δH = C (s E − A)⁻¹ R with R = B − (s E − A) X, where X = (s E − A)⁻¹ B is computed by the decomposition."""

    def __init__(self, resolvent: Resolvent) -> None:
        self.resolvent = resolvent
        system = resolvent.system
        descriptor = system.descriptor
        self.A = _sparse_if_worthwhile(system.A if descriptor is None else descriptor.A)
        self.B = system.B if descriptor is None else descriptor.B
        self.E = None if descriptor is None else _sparse_if_worthwhile(descriptor.E)
        self.factors = None if descriptor is None else lu_factor(descriptor.E)

    def at(self, s: Complex) -> Complex:
        """Return δH at some points, (p, m, len(s))."""
        resolvent = self.resolvent
        n, m = self.B.shape
        X = resolvent.from_modes(resolvent.solve(s, resolvent.B[:, :, None]).reshape(n, -1))
        change = self._change(s, X)
        return np.asarray((resolvent.C @ change.reshape(n, -1)).reshape(-1, m, len(s)))

    def response(self, s: Complex) -> Complex:
        """Return D + C X with refined X, (p, m, len(s))."""
        resolvent, system = self.resolvent, self.resolvent.system
        n, m = self.B.shape
        X = resolvent.from_modes(resolvent.solve(s, resolvent.B[:, :, None]).reshape(n, -1))
        for _ in range(_REFINEMENT_STEPS):
            change = self._change(s, X, extended=n <= _MAX_EXTENDED_STATES)
            X += resolvent.from_modes(change.reshape(n, -1))
        CX = _matrix_product(system.C, X).reshape(-1, m, len(s))
        return np.asarray(system.D[:, :, None] + CX, dtype=np.complex128)

    def _change(self, s: Complex, X: Complex, *, extended: bool = False) -> Complex:
        """Return (s E − A)⁻¹ R in the coordinates of the decomposition, (n, m, len(s)), for states X `(n, m·len(s))`."""
        resolvent = self.resolvent
        n, m = self.B.shape
        if extended and self.E is None:
            A = self.A if isinstance(self.A, np.ndarray) else self.A.toarray()
            exact = _exact_residual(A, self.B, s, X)
            return resolvent.solve(s, resolvent.to_modes(exact).reshape(n, m, -1))
        EX = X if self.E is None else _matrix_product(self.E, X)
        R = self.B[:, :, None] - s * EX.reshape(n, m, -1) + _matrix_product(self.A, X).reshape(n, m, -1)
        residual: Complex = np.asarray(R).reshape(n, -1)
        if self.factors is not None:
            residual = lu_solve(self.factors, residual)
        return resolvent.solve(s, resolvent.to_modes(residual).reshape(n, m, -1))


def _exact_residual(A: Matrix, B: Matrix, s: Complex, X: Complex) -> Complex:
    """Return B − (s I − A) X for columns X `(n, m·len(s))`, summed in twice the precision."""
    columns = np.tile(s, B.shape[1])
    residual = np.empty(X.shape, dtype=np.complex128)
    right = np.repeat(B, len(s), axis=1)
    x, y = np.ascontiguousarray(X.real), np.ascontiguousarray(X.imag)
    real = [*two_product(-columns.real, x), *two_product(columns.imag, y), *product_terms(A, x)]
    imaginary = [*two_product(-columns.real, y), *two_product(-columns.imag, x), *product_terms(A, y)]
    residual.real, residual.imag = sum_matrices([right, *real]).high, sum_matrices(imaginary).high
    return residual


def _matrix_product(matrix: Matrix | sparse.csr_array, columns: Complex) -> Complex:
    product = real_matrix_product(matrix, columns) if isinstance(matrix, np.ndarray) else matrix @ columns
    return np.asarray(product, dtype=np.complex128)


def _sparse_if_worthwhile(matrix: Matrix) -> Matrix | sparse.csr_array:
    is_sparse = np.count_nonzero(matrix) < _DENSE_SHARE * matrix.size
    return sparse.csr_array(matrix) if is_sparse else matrix


_MAX_DENSE_STATES = 500  # of a sparse model, up to which one decomposition of the dense matrix is cheaper


def transfer_evaluator(system: SystemMatrices) -> Callable[..., Complex]:
    """Return a function from points s to H(s), (len(s), p, m), with an optional `progress` as second argument.

    The decomposition of a dense system is computed once, here.
    """
    if system.sparse is not None and system.n_states > _MAX_DENSE_STATES:
        return SparseResolvent(system, system.sparse).at
    resolvent = compute_resolvent(system)
    return lambda s, _progress=None: transfer_function(resolvent, s)


def refined_evaluator(system: SystemMatrices) -> Callable[[Complex], Complex]:
    """Return a function from points s to H(s), (len(s), p, m), that is accurate relative to |H_ij(s)| where that is small.

    States are refined twice with A, B and E as given, so that H(s) belongs to matrices whose entries are changed by
    rounding only: the phase of a loop is right where its gain is 1e-9 of the largest. Up to 32 states residuals are
    summed in twice the precision.
    """
    resolvent = compute_resolvent(system)
    step = _Refinement(resolvent)

    def evaluate(s: Complex) -> Complex:
        if not system.n_states or not len(s) or not system.D.size:
            return np.broadcast_to(system.D, (len(s), *system.D.shape)).astype(np.complex128)
        n_pieces = max(1, -(-len(s) * system.n_states * system.n_inputs // _CHUNK))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"), limit_blas_threads(system.n_states):
            H = np.concatenate([step.response(piece) for piece in np.array_split(s, n_pieces)], axis=-1)
        H[..., ~np.isfinite(H).all(axis=(0, 1))] = complex(np.inf, np.nan)
        return np.ascontiguousarray(H.transpose(2, 0, 1))

    return evaluate


# Mechanical models.


def second_order_response(model: SecondOrderMatrices, omega: Array, progress: Progress = None) -> Complex:
    """Return H at angular frequencies, (len(omega), p, m); complex(inf, nan) at a pole.

    Raises:
        InvalidSystemError: the factors do not fit into memory.
    """
    values = np.empty((len(omega), len(model.C), model.B.shape[1]), dtype=np.complex128)
    matrices: Any = (model.M, model.D, model.K)
    if not model.is_sparse:
        matrices = np.asarray(matrices, dtype=np.complex128)
    M, D, K = matrices
    B, symmetric = model.B.astype(np.complex128), model.is_sparse and has_symmetric_pattern(M, D, K)
    with explain_memory_error(model.n_positions, model.n_nonzeros) if model.is_sparse else nullcontext():
        frequencies = track_progress(omega.tolist(), total=len(omega), noun="frequency response", progress=progress)
        for index, frequency in enumerate(frequencies):
            P: Any = K - frequency**2 * M + 1j * frequency * D
            try:
                X = SparseLU(P, has_symmetric_pattern=symmetric).solve(B) if model.is_sparse else np.linalg.solve(P, B)
                values[index] = model.C @ X
            except (SingularMatrixError, np.linalg.LinAlgError):
                values[index] = complex(np.inf, np.nan)
    return values
