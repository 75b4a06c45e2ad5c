"""A sampled model as modes: v_i[k+1] = λ_i v_i[k] + b_i u[k], y = Re Σ c_i (v_i + ρ_i b_i u) + D u.

Real poles have real b_i and c_i; of a pair of complex ones only that with Im λ > 0 is kept, and c_i counts for both.
ρ_i is 0 where inputs are held. Where they are lines between samples, v_i is the state less what the sample of the same
time brings, and ρ_i restores it (`hold_factors`); D is that of continuous time in both cases.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Complex
from ltinet.identification.hold_factors import direct_share
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS

_HALF_THE_DIGITS = np.sqrt(EPS)  # that are left of a mode at least


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
        return direct_share(self.poles) if self.linear else np.zeros_like(self.poles)

    @property
    def is_stable(self) -> bool:
        """Whether no mode grows."""
        return bool(np.all(np.abs(self.poles) <= 1.0))

    def with_inputs(self, B: Complex, D: Matrix) -> "ModalModel":
        """The same modes, driven otherwise."""
        return replace(self, B=B, D=D)

    def sampled(self) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Real A, B, C and D of x[k+1] = A x[k] + B u[k], y = C x + D u, pairs as 2×2 rotations."""
        A, B, C = real_blocks(self.poles, self.B, self.C, self.is_pair)
        return A, B, C, self.D + (self.C @ (self.direct_shares[:, None] * self.B)).real

    def places(self) -> list[int]:
        """Where the (first) state of every mode stands."""
        return _places(self.is_pair)


def real_blocks(poles: Complex, B: Complex, C: Complex, is_pair: NDArray[np.bool_]) -> tuple[Matrix, Matrix, Matrix]:
    """Modes as real A, B and C: numbers for real ones, 2×2 blocks [[a, −b], [b, a]] for pairs a ± bj."""
    n = len(poles) + int(is_pair.sum())
    real_A, real_B, real_C = np.zeros((n, n)), np.zeros((n, B.shape[1])), np.zeros((len(C), n))
    for at, pole, b, c, pair in zip(_places(is_pair), poles, B, C.T, is_pair, strict=True):
        real_A[at, at], real_B[at], real_C[:, at] = pole.real, b.real, c.real
        if pair:
            real_A[at : at + 2, at : at + 2] = [[pole.real, -pole.imag], [pole.imag, pole.real]]
            real_B[at + 1], real_C[:, at + 1] = b.imag, -c.imag
    return real_A, real_B, real_C


def kept_parts(is_pair: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of (real, imaginary) parts, mode after mode, those that there are: imaginary ones of pairs only."""
    kept = np.ones(2 * len(is_pair), dtype=bool)
    kept[1::2] = is_pair
    return kept


def _places(is_pair: NDArray[np.bool_]) -> list[int]:
    sizes = 1 + is_pair.astype(np.intp)
    return [int(place) for place in np.cumsum(sizes) - sizes]


def driven_modes_of(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> ModalModel | None:
    """The modes of a system of continuous time, None where A has too few eigenvectors to tell them apart."""
    values, vectors = np.linalg.eig(A)
    if len(A) and np.linalg.cond(vectors) * len(A) * EPS > _HALF_THE_DIGITS:
        return None
    weights = np.linalg.solve(vectors, B.astype(np.complex128))
    kept = values.imag >= 0.0
    is_pair = values[kept].imag > 0.0
    seen = np.asarray(C @ vectors[:, kept], dtype=np.complex128)
    seen = np.where(is_pair, 2.0 * seen, seen.real)  # it counts for both poles of a pair
    weights = np.where(is_pair[:, None], weights[kept], weights[kept].real)
    return ModalModel(values[kept].astype(np.complex128), is_pair, seen, weights, D, linear=False)


def modes_of(A: Matrix, C: Matrix, *, n_inputs: int, linear: bool) -> ModalModel:
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
