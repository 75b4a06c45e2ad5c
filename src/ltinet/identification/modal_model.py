"""Modal models at the sampling instants, and their conversion to continuous time.

The model is v_i[k+1] = λ_i v_i[k] + b_i u[k], y = Re Σ c_i (v_i + ρ_i b_i u) + D u. Real poles have real b_i and c_i;
of a complex pair only the pole with Im λ > 0 is stored, and c_i counts for both.

Hold factors. Over a step of length h a mode v' = s v + b u becomes, with z = s h and λ = eᶻ, λ v + g₀ b u₀ + g₁ b u₁:
a zero-order hold has g₀ = h φ₁(z), g₁ = 0; a first-order hold (inputs linear between samples) has g₁ = h φ₂(z) and
g₀ = h (φ₁ − φ₂)(z). In w = v − g₁ b u the step is λ w + γ b u₀ with γ = λ g₁ + g₀ = h φ₁(z)², and
the output contains v = w + g₁ b u, the share ρ = g₁/γ of the input weight γ b at the samples. ρ is 0 for a zero-order
hold. D is that of continuous time in both cases.

Continuous time. A pole λ becomes log(λ)/dt, exact at the samples. A negative real pole has no real logarithm: it is
treated as a pair at half the sampling frequency whose second state is weighted such that it vanishes at the samples.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Complex
from ltinet._util.phi_functions import phi_functions
from ltinet.systems.matrices import Matrix

_MAX_EIGENVECTOR_ERROR = np.sqrt(EPS)  # error of cond(V) n eps at which half of the digits of a mode are lost
# |λ| that replaces smaller ones: a pole at 0 has no logarithm, and one of eps leaves a rounding error after one step.
_SMALLEST_POLE = EPS


def log_poles(poles: Complex) -> Complex:
    """Return z = s h with λ = eᶻ; imaginary parts are π for negative real poles, halves of pairs."""
    return np.asarray(np.log(poles.astype(np.complex128)))


def input_factor(poles: Complex, *, linear: bool) -> Complex:
    """Return γ/h, the ratio of b at the samples and h b of continuous time."""
    first, _ = phi_functions(log_poles(poles))
    return np.asarray(first * first if linear else first)


def feedthrough_share(poles: Complex) -> Complex:
    """Return ρ of the first-order hold."""
    first, second = phi_functions(log_poles(poles))
    return np.asarray(second / first**2)


@dataclass(frozen=True, eq=False)
class ModalModel:
    """Poles `(k,)`, c `(p, k)`, b `(k, m)` and D `(p, m)` of a model at the samples."""

    poles: Complex
    is_pair: NDArray[np.bool_]
    """Modes that are pairs; during a refinement the stored pole of a pair may cross the real axis."""
    C: Complex
    B: Complex
    D: Matrix
    linear: bool
    """True for inputs that are linear between samples (first-order hold)."""

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.poles) + int(self.is_pair.sum())

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.D)

    @property
    def direct_shares(self) -> Complex:
        """ρ of every mode."""
        return feedthrough_share(self.poles) if self.linear else np.zeros_like(self.poles)

    @property
    def is_stable(self) -> bool:
        """True where no mode grows."""
        return bool(np.all(np.abs(self.poles) <= 1.0))

    def sampled(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Return real A, B, C and D of x[k+1] = A x[k] + B u[k], y = C x + D u, pairs as 2×2 rotations."""
        A, B, C = real_block_form(self.poles, self.B, self.C, self.is_pair)
        return A, B, C, self.D + (self.C @ (self.direct_shares[:, None] * self.B)).real


def real_block_form(
    poles: Complex, B: Complex, C: Complex, is_pair: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, Matrix]:
    """Return modes as real A, B and C, with 2×2 blocks [[a, −b], [b, a]] for pairs a ± bj."""
    n = len(poles) + int(is_pair.sum())
    real_A, real_B, real_C = np.zeros((n, n)), np.zeros((n, B.shape[1])), np.zeros((len(C), n))
    for at, pole, b, c, pair in zip(first_states(is_pair), poles, B, C.T, is_pair, strict=True):
        real_A[at, at], real_B[at], real_C[:, at] = pole.real, b.real, c.real
        if pair:
            real_A[at : at + 2, at : at + 2] = [[pole.real, -pole.imag], [pole.imag, pole.real]]
            real_B[at + 1], real_C[:, at + 1] = b.imag, -c.imag
    return real_A, real_B, real_C


def component_mask(is_pair: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the (real, imaginary) parts, mode by mode, that exist: imaginary ones of pairs only."""
    mask = np.ones(2 * len(is_pair), dtype=bool)
    mask[1::2] = is_pair
    return mask


def first_states(is_pair: NDArray[np.bool_]) -> list[int]:
    """Return the index of the (first) state of every mode."""
    sizes = 1 + is_pair.astype(np.intp)
    return [int(state) for state in np.cumsum(sizes) - sizes]


def modal_model_of_system(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> ModalModel | None:
    """Return the modes of a continuous-time system, None where its eigenvectors are nearly dependent."""
    values, vectors = np.linalg.eig(A)
    if len(A) and np.linalg.cond(vectors) * len(A) * EPS > _MAX_EIGENVECTOR_ERROR:
        return None
    weights = np.linalg.solve(vectors, B.astype(np.complex128))
    upper = values.imag >= 0.0
    is_pair = values[upper].imag > 0.0
    c = np.asarray(C @ vectors[:, upper], dtype=np.complex128)
    c = np.where(is_pair, 2.0 * c, c.real)  # it counts for both poles of a pair
    weights = np.where(is_pair[:, None], weights[upper], weights[upper].real)
    return ModalModel(values[upper].astype(np.complex128), is_pair, c, weights, D, linear=False)


def undriven_modal_model(A: Matrix, C: Matrix, *, n_inputs: int, linear: bool) -> ModalModel:
    """Return the modes of A with b = 0 and D = 0, scaled such that all c_i have norm 1."""
    values, vectors = np.linalg.eig(A)
    upper = values.imag >= 0.0
    poles, c = values[upper].astype(np.complex128), np.asarray(C @ vectors[:, upper], dtype=np.complex128)
    norms = np.linalg.norm(c, axis=0)
    c = c / np.where(norms > 0.0, norms, 1.0)
    real = poles.imag == 0.0
    c[:, real] = c[:, real].real  # eig returns real vectors for these
    B = np.zeros((len(poles), n_inputs), complex)
    return ModalModel(poles, ~real, c, B, np.zeros((len(C), n_inputs)), linear=linear)


class ContinuousModel(NamedTuple):
    """Real A, B, C and D, pairs as 2×2 blocks, and the number of negative real poles that became pairs."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    n_doubled: int


def to_continuous_time(model: ModalModel, dt: float) -> ContinuousModel:
    """Return the continuous-time model with the same outputs at the samples."""
    size = np.abs(model.poles)
    poles = np.where(size < _SMALLEST_POLE, _SMALLEST_POLE, model.poles)
    s = log_poles(poles) / dt
    weights = model.B / (dt * input_factor(poles, linear=model.linear))[:, None]
    is_pair = model.is_pair | (s.imag != 0.0)
    A, B, C = real_block_form(s, weights, model.C, is_pair)
    return ContinuousModel(A, B, C, model.D, int((is_pair & ~model.is_pair).sum()))
