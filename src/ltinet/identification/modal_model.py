"""Modal models at the sampling instants, and their conversion to continuous time.

The model is v_i[k+1] = λ_i v_i[k] + b_i u[k], y = Re Σ c_i (v_i + ρ_i b_i u) + D u. Real poles have real b_i and c_i;
of a complex pair only the pole with Im λ > 0 is stored, and c_i counts for both.

Hold factors. Over a step of length h a mode v' = s v + b u becomes, with z = s h and λ = eᶻ, λ v + g₀ b u₀ + g₁ b u₁:
a zero-order hold has g₀ = h φ₁(z), g₁ = 0; a first-order hold has g₁ = h φ₂(z), g₀ = h (φ₁ − φ₂)(z). In w = v − g₁ b
u the step is λ w + γ b u₀ with γ = λ g₁ + g₀ = h φ₁(z)², and the output contains v = w + g₁ b u, the share ρ = g₁/γ
of the input weight γ b at the samples. ρ is 0 for a zero-order hold. D is that of continuous time in both cases.

Continuous time. A pole λ becomes log(λ)/dt, exact at the samples. A negative real pole has no real logarithm: it is
treated as a pair at half the sampling frequency whose second state is weighted such that it vanishes at the samples.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Complex
from ltinet.simulation.propagators import phi_functions
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.modal_model
# Between the input weights of continuous and of sampled modes, for inputs that are held or straight lines.
#
# Over a step of length h a mode v' = s v + b u goes, with z = s h and λ = eᶻ, to λ v + g₀ b u₀ + g₁ b u₁: held inputs
# have g₀ = h φ₁(z), g₁ = 0; lines g₁ = h φ₂(z), g₀ = h (φ₁ − φ₂)(z). In w = v − g₁ b u the step is λ w + γ b u₀ with
# γ = λ g₁ + g₀ = h φ₁(z)², and the output sees v = w + g₁ b u: the share ρ = g₁/γ of the input weight γ b at samples.


def log_poles(poles: Complex) -> Complex:
    """The z = s h with λ = eᶻ, imaginary parts from 0 to π: negative real poles become halves of pairs at π."""
    return np.asarray(np.log(poles.astype(np.complex128)))


def input_factor(poles: Complex, *, linear: bool) -> Complex:
    """γ/h: by what b of continuous time, in units of 1/h, becomes that at samples."""
    first, _ = phi_functions(log_poles(poles))
    return np.asarray(first * first if linear else first)


def feedthrough_share(poles: Complex) -> Complex:
    """ρ of lines between samples."""
    first, second = phi_functions(log_poles(poles))
    return np.asarray(second / first**2)


# MERGED ltinet.identification.modal_model
# A sampled model as modes: v_i[k+1] = λ_i v_i[k] + b_i u[k], y = Re Σ c_i (v_i + ρ_i b_i u) + D u.
#
# Real poles have real b_i and c_i; of a pair of complex ones only that with Im λ > 0 is kept, and c_i counts for both.
# ρ_i is 0 where inputs are held. Where they are lines between samples, v_i is the state less what the sample of the same
# time brings, and ρ_i restores it (`hold_factors`); D is that of continuous time in both cases.

_MAX_EIGENVECTOR_ERROR = np.sqrt(EPS)  # that are left of a mode at least


@dataclass(frozen=True, eq=False)
class ModalModel:
    """Poles `(k,)`, c `(p, k)`, b `(k, m)` and D `(p, m)` of a model at samples."""

    poles: Complex
    is_pair: NDArray[np.bool_]
    """Which of the modes are pairs: on its way to a better model a pair may pass below the real axis."""
    C: Complex
    B: Complex
    D: Matrix
    linear: bool

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
        """Whether no mode grows."""
        return bool(np.all(np.abs(self.poles) <= 1.0))

    def with_inputs(self, B: Complex, D: Matrix) -> "ModalModel":
        """The same modes, driven otherwise."""
        return replace(self, B=B, D=D)

    def sampled(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Real A, B, C and D of x[k+1] = A x[k] + B u[k], y = C x + D u, pairs as 2×2 rotations."""
        A, B, C = real_block_form(self.poles, self.B, self.C, self.is_pair)
        return A, B, C, self.D + (self.C @ (self.direct_shares[:, None] * self.B)).real

    def places(self) -> list[int]:
        """Where the (first) state of every mode stands."""
        return _places(self.is_pair)


def real_block_form(
    poles: Complex, B: Complex, C: Complex, is_pair: NDArray[np.bool_]
) -> tuple[Matrix, Matrix, Matrix]:
    """Modes as real A, B and C: numbers for real ones, 2×2 blocks [[a, −b], [b, a]] for pairs a ± bj."""
    n = len(poles) + int(is_pair.sum())
    real_A, real_B, real_C = np.zeros((n, n)), np.zeros((n, B.shape[1])), np.zeros((len(C), n))
    for at, pole, b, c, pair in zip(_places(is_pair), poles, B, C.T, is_pair, strict=True):
        real_A[at, at], real_B[at], real_C[:, at] = pole.real, b.real, c.real
        if pair:
            real_A[at : at + 2, at : at + 2] = [[pole.real, -pole.imag], [pole.imag, pole.real]]
            real_B[at + 1], real_C[:, at + 1] = b.imag, -c.imag
    return real_A, real_B, real_C


def component_mask(is_pair: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of (real, imaginary) parts, mode after mode, those that there are: imaginary ones of pairs only."""
    kept = np.ones(2 * len(is_pair), dtype=bool)
    kept[1::2] = is_pair
    return kept


def _places(is_pair: NDArray[np.bool_]) -> list[int]:
    sizes = 1 + is_pair.astype(np.intp)
    return [int(place) for place in np.cumsum(sizes) - sizes]


def modal_model_of_system(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> ModalModel | None:
    """The modes of a system of continuous time, None where A has too few eigenvectors to tell them apart."""
    values, vectors = np.linalg.eig(A)
    if len(A) and np.linalg.cond(vectors) * len(A) * EPS > _MAX_EIGENVECTOR_ERROR:
        return None
    weights = np.linalg.solve(vectors, B.astype(np.complex128))
    kept = values.imag >= 0.0
    is_pair = values[kept].imag > 0.0
    seen = np.asarray(C @ vectors[:, kept], dtype=np.complex128)
    seen = np.where(is_pair, 2.0 * seen, seen.real)  # it counts for both poles of a pair
    weights = np.where(is_pair[:, None], weights[kept], weights[kept].real)
    return ModalModel(values[kept].astype(np.complex128), is_pair, seen, weights, D, linear=False)


def undriven_modal_model(A: Matrix, C: Matrix, *, n_inputs: int, linear: bool) -> ModalModel:
    """The modes of A, undriven; of a scale in which all c_i have norm 1."""
    values, vectors = np.linalg.eig(A)
    kept = values.imag >= 0.0
    poles, seen = values[kept].astype(np.complex128), np.asarray(C @ vectors[:, kept], dtype=np.complex128)
    norms = np.linalg.norm(seen, axis=0)
    seen = seen / np.where(norms > 0.0, norms, 1.0)
    real = poles.imag == 0.0
    seen[:, real] = seen[:, real].real  # eig gives real vectors for these
    return ModalModel(
        poles, ~real, seen, np.zeros((len(poles), n_inputs), complex), np.zeros((len(C), n_inputs)), linear=linear
    )


# MERGED ltinet.identification.modal_model
# From modes at samples to those of continuous time, with the hold of the data; exact at the samples.
#
# A pole λ becomes log(λ)/dt. A negative real one has no real logarithm: it is what is seen of a pair at half the sampling
# frequency, whose other state is given such an input weight that at samples it is never seen.

_SMALLEST_POLE = (
    1e-12  # |λ| below which a pole at 0, a state that forgets everything in one step, is taken for this one
)


class ContinuousModel(NamedTuple):
    """Real A, B, C and D, pairs as 2×2 blocks; how many negative real poles became pairs."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    n_doubled: int


def to_continuous_time(model: ModalModel, dt: float) -> ContinuousModel:
    """The model of continuous time that gives the same outputs at samples."""
    size = np.abs(model.poles)
    poles = np.where(size < _SMALLEST_POLE, _SMALLEST_POLE, model.poles)
    s = log_poles(poles) / dt
    weights = model.B / (dt * input_factor(poles, linear=model.linear))[:, None]
    is_pair = model.is_pair | (s.imag != 0.0)
    A, B, C = real_block_form(s, weights, model.C, is_pair)
    return ContinuousModel(A, B, C, model.D, int((is_pair & ~model.is_pair).sum()))
