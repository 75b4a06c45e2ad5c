"""One exact step of fixed length, as a recurrence that asks for one sample at a time, and its powers.

With w_k = z_k − G₁ u_k the linear hold becomes w_{k+1} = P w_k + Γ u_k, Γ = P G₁ + G₀, y_k = C w_k + (D + C G₁) u_k;
the zero hold has this form with G₁ = 0. Vectors are packed as real numbers (`packing`).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.modal import ModalSystem
from ltinet.solve.steps.packing import pack, pack_weights
from ltinet.solve.steps.propagators import MatrixSteps, exp_of_multiples, matrix_steps, scalar_steps
from ltinet.solve.steps.recurrence import Decay, accumulate, matrix_powers, size, without_dust
from ltinet.solve.steps.short_steps import is_short

_FAST_GROWTH = 0.5  # λh up to which G₁ is of the size of h: w = z − G₁ u loses nothing


class Drive(NamedTuple):
    """How inputs enter the states: scalars `(m, n_scalars)`, and a matrix for each dense block."""

    scalars: Complex
    dense: tuple[Matrix, ...]


class Powers(NamedTuple):
    """Some powers of P: those of the scalars `(count, n_scalars)`, and those of each dense block `(count, k, k)`."""

    scalars: Complex
    dense: tuple[Array, ...]

    @property
    def largest(self) -> float:
        """The largest number in the last power, NaN if one of them is."""
        return float(np.max([size(self.scalars[-1]), *(size(powers[-1]) for powers in self.dense)]))

    def backwards(self) -> "Powers":
        """The same powers, the last first."""
        return Powers(self.scalars[::-1], tuple(powers[::-1] for powers in self.dense))

    def first(self, count: int) -> "Powers":
        """The first of them."""
        return Powers(self.scalars[:count], tuple(powers[:count] for powers in self.dense))


@dataclass(frozen=True)
class OneStep:
    """Everything that depends on the step and the hold, but not on how many steps are taken at a time."""

    system: ModalSystem
    length: float
    shift_factors: Complex
    """G₁ = factors ∘ B for scalars."""
    gamma_factors: Complex
    """Γ = factors ∘ B for scalars."""
    dense: tuple[Matrix, ...]
    """P of the dense blocks."""
    G0: Drive
    G1: Drive
    Gamma: Drive
    starts_apart: bool
    """Whether w = z − G₁ u would lose the state at the first sample: G₁ grows as e^{λh} where a state grows."""
    careful: bool = False
    """Whether P of dense blocks must not be multiplied with itself: its norms rise before they fall."""

    @cached_property
    def shift(self) -> Matrix:
        """G₁, packed, (n × m): z = w + G₁ u."""
        return pack(self.system, self.G1.scalars, [part.T for part in self.G1.dense]).T

    @cached_property
    def direct(self) -> Matrix:
        """D + C G₁, from an input to the output of the same sample."""
        return np.asarray(self.system.D + self.out_of(self.powers(1))[0] @ self.shift)

    def start(self, z: Array, u: Array) -> Array:
        """Packed w at a sample from the packed states and the inputs there."""
        return np.asarray(z - np.dot(u, self.shift.T)) if np.count_nonzero(u) else z

    def after_first(self, z: Array, u: Array) -> Array:
        """Packed w = P z + G₀ u one step after a sample with these states and inputs."""
        after = (u @ pack(self.system, self.G0.scalars, [part.T for part in self.G0.dense]))[:, None]
        accumulate(after, z, self.decay(self.powers(2)))
        return after[:, 0]

    def powers(self, count: int, *, stride: int = 1) -> Powers:
        """The powers P^0, P^s, P^2s … with a stride s."""
        with np.errstate(over="ignore", invalid="ignore"):  # unstable systems: whoever asks looks at the size
            scalars = exp_of_multiples(self.system.rates, self.length, stride * np.arange(count))
            dense = tuple(matrix_powers(np.linalg.matrix_power(P, stride), count) for P in self.dense)
        return Powers(without_dust(scalars), dense)

    def decay(self, powers: Powers) -> Decay:
        """The last of some powers, as that by which states are multiplied."""
        pairs = self.system.n_pairs
        last = powers.scalars[-1]
        blocks = tuple(own[-1] for own in powers.dense)
        return Decay(last[:pairs], last[pairs:].real, blocks, careful=self.careful, less_one=self._less_one)

    @cached_property
    def _less_one(self) -> tuple[Matrix, ...]:
        """P − 1 of the dense blocks where steps are careful, one by one, and short for all of them."""
        factors = [block.F for block in self.system.blocks]
        if not self.careful or not all(is_short(F, self.length) for F in factors):
            return ()
        h = np.array([self.length])
        return tuple(matrix_steps(F, F, h, linear=False).begin[0] for F in factors)

    def into(self, powers: Powers, drive: Drive) -> Array:
        """P^k G for some k, packed and transposed: `(count, m, n)`."""
        dense = [(own @ part).transpose(0, 2, 1) for own, part in zip(powers.dense, drive.dense, strict=True)]
        return pack(self.system, powers.scalars[:, None] * drive.scalars, dense)

    def out_of(self, powers: Powers) -> Array:
        """C P^k for some k, packed: `(count, p, n)`."""
        dense = [block.C @ own for block, own in zip(self.system.blocks, powers.dense, strict=True)]
        return pack_weights(self.system, self.system.C * powers.scalars[:, None], dense)

    def responses(self, count: int) -> tuple[Array, Array]:
        """C P^k Γ and C P^k G₁ for all k below `count`, `(count, p, m)` each.

        As products of about √count powers with about √count others.
        """
        inner = math.isqrt(max(count - 1, 0)) + 1
        out = self.out_of(self.powers(inner))
        outer = self.powers(-(-count // inner), stride=inner)
        rows = out.reshape(-1, out.shape[-1]).T

        def response(drive: Drive) -> Array:
            into = self.into(outer, drive)
            each = (into.reshape(-1, into.shape[-1]) @ rows).reshape(*into.shape[:2], *out.shape[:2])
            return each.transpose(0, 2, 3, 1).reshape(-1, out.shape[1], into.shape[1])[:count]

        return response(self.Gamma), response(self.G1)


def one_step(system: ModalSystem, length: float, *, linear: bool, of_blocks: MatrixSteps = matrix_steps) -> OneStep:
    """Prepare steps of one length, of coupled blocks by some way to take exponentials."""
    scalars = scalar_steps(system.rates, np.array([length]), linear=linear)
    slowest = np.max(np.concatenate([system.rates.real, system.slowest_of_blocks]), initial=0.0)
    shift_factors, gamma_factors = scalars.end[0], scalars.P[0] * scalars.end[0] + scalars.begin[0]
    dense = [of_blocks(block.F, block.G, np.array([length]), linear=linear) for block in system.blocks]
    return OneStep(
        system=system,
        length=length,
        shift_factors=shift_factors,
        gamma_factors=gamma_factors,
        dense=tuple(part.P[0] for part in dense),
        G0=Drive(scalars.begin[0] * system.B.T, tuple(part.begin[0] for part in dense)),
        G1=Drive(shift_factors * system.B.T, tuple(part.end[0] for part in dense)),
        Gamma=Drive(gamma_factors * system.B.T, tuple(part.P[0] @ part.end[0] + part.begin[0] for part in dense)),
        starts_apart=bool(linear and slowest * length > _FAST_GROWTH),
    )
