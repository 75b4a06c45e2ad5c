"""A large sparse mechanical model with D = αM + βK, and what its structure lets one prove."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.once import cached_property
from ltinet.reduction.definite import Definite, definite
from ltinet.reduction.mechanical.whole_modes import not_definite
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.pencil import Pencil, Sparse, is_symmetric, pencil
from ltinet.reduction.states import Rayleigh
from ltinet.tolerances import EPS, sum_rounding

_TRIES = (0.9, 0.5, 0.1)  # of an estimate of the smallest eigenvalue
_POWER_STEPS = 6
_NEARLY = 1e-9  # of the sizes of αM and βK: by so much D may be off, which is counted


@dataclass(frozen=True, eq=False)
class DampedPencil:
    """M and K as the first-order pencil (E, A) = (M, −K), the damping, and a proven λ_min(K, M) ≥ `smallest`."""

    pencil: Pencil
    D: Sparse
    mass: Definite
    stiffness: Definite
    smallest: float

    @cached_property
    def damping(self) -> Rayleigh | None:
        """α and β, where D is αM + βK but for rounding."""
        M, K, D = self.pencil.E, -self.pencil.A, self.D
        for found in _candidates(M, D, K):
            off = abs(D - found.alpha * M - found.beta * K) - _NEARLY * (found.alpha * abs(M) + found.beta * abs(K))
            if found.alpha + found.beta > 0.0 and float(off.max()) <= 0.0:
                return found
        return None

    @cached_property
    def distance(self) -> Distance:
        """Of the model from the one with exactly α and β: ΔD counts with ω/|P|² ≤ √(2k) h² of the slowest mode."""
        if self.damping is None:
            return Distance(math.inf, math.inf)
        M, K = self.pencil.E, -self.pencil.A
        off = self.D - self.damping.alpha * M - self.damping.beta * K
        rounded = 4.0 * EPS * (abs(self.D) + self.damping.alpha * abs(M) + self.damping.beta * abs(K))
        sizes = abs(off) + rounded
        largest = max(float(sizes.sum(axis=0).max()), float(sizes.sum(axis=1).max()))
        return self.perturbed(0.0, largest / self.mass.smallest)

    def perturbed(self, in_K: float, in_D: float) -> Distance:
        """What changes of K and D by these norms, relative to M, may do to G: all modes at once, the slowest worst.

        (Δ_K + ωΔ_D)/|P| ≤ (Δ_K + √(2k) Δ_D) h, and with h ≤ max(√2/(d√k), 1/k) everything falls with k.
        """
        k = self.smallest
        h = self.largest_gain(k)
        per_mode = in_K + math.sqrt(2.0 * k) * in_D
        if not per_mode * h < 0.5:
            return Distance(math.inf, math.inf)
        size = per_mode * h / (1.0 - per_mode * h) * self.ends
        return Distance(size * h, size * math.sqrt(2.0 / math.pi * math.sqrt(2.0 * k) * h * h))

    def largest_gain(self, k: float) -> float:
        """A bound on h of all modes with stiffnesses from k on."""
        damping = self.damping or Rayleigh(0.0, 0.0)
        d = damping.alpha + damping.beta * k
        return max(math.sqrt(2.0) / (d * math.sqrt(k)), 1.0 / k) * (1.0 + 8.0 * EPS)

    @cached_property
    def ends(self) -> float:
        """‖C‖ ‖B‖ in the norm of M⁻¹, or more."""
        both = float(np.linalg.norm(self.pencil.B)) * float(np.linalg.norm(self.pencil.C))
        return both / self.mass.smallest * (1.0 + sum_rounding(self.pencil.n_states))


def damped_pencil(model: SecondOrderMatrices) -> DampedPencil:
    """Prove that M and K are positive definite.

    Raises:
        InvalidSystemError: one of them is not.
    """
    M, D, K = (sparse.csc_array(own) for own in (model.M, model.D, model.K))
    for name, matrix in (("M", M), ("K", K)):
        if not is_symmetric(matrix):
            raise not_definite(name, "is not symmetric")
    mass, stiffness = definite(M), definite(K)
    if mass is None:
        raise not_definite("M", "is not positive definite, as far as could be proven")
    smallest = None if stiffness is None else _smallest(K, M, stiffness)
    if stiffness is None or smallest is None:
        raise not_definite("K", "is not positive definite, as far as could be proven")
    return DampedPencil(pencil(-K, model.B, model.C, E=M), D, mass, stiffness, smallest)


def _smallest(K: Sparse, M: Sparse, stiffness: Definite) -> float | None:
    """A proven lower bound of λ_min(K, M): K − μM has positive pivots."""
    x = np.random.default_rng(0).standard_normal((K.shape[0], 1))
    for _ in range(_POWER_STEPS):
        x = stiffness.solve(M @ x)
        x /= np.linalg.norm(x)
    estimate = float((x.T @ (K @ x)).item() / (x.T @ (M @ x)).item())
    for share in _TRIES:
        if definite(K - share * estimate * M) is not None:
            return share * estimate
    return None


def _candidates(M: Sparse, D: Sparse, K: Sparse) -> list[Rayleigh]:
    """Masses alone, springs alone, and both, by least squares in which every entry counts with its own size."""
    rows, columns = (abs(D) + abs(M) + abs(K)).nonzero()
    masses, springs, dampers = (np.asarray(own[rows, columns]).ravel() for own in (M, K, D))
    sizes = np.abs(dampers) + EPS * (np.abs(masses) + np.abs(springs))
    masses, springs, dampers = masses / sizes, springs / sizes, dampers / sizes
    both = np.linalg.lstsq(np.column_stack([masses, springs]), dampers, rcond=None)[0]
    alone = [(dampers @ own) / (own @ own) for own in (masses, springs)]
    pairs = ((alone[0], 0.0), (0.0, alone[1]), both)
    return [Rayleigh(max(float(alpha), 0.0), max(float(beta), 0.0)) for alpha, beta in pairs]
