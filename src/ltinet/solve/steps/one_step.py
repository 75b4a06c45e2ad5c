"""The step model: one exact step of fixed length, as a recurrence that needs one sample at a time, and its powers.

With w_k = z_k − G₁ u_k the linear hold becomes w_{k+1} = P w_k + Γ u_k, Γ = P G₁ + G₀, y_k = C w_k + (D + C G₁) u_k;
the zero hold has this form with G₁ = 0. Vectors are packed as real numbers (`packing`).

All ways through time (`single_steps`, `time_blocks`, `convolution`) take a step model. None of them knows whether its
states are those of the user, one dense block, or those of a block-diagonal form, many numbers and small blocks.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.bounds.units import best_units
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.modal import ModalSystem
from ltinet.solve.steps.packing import pack, pack_weights
from ltinet.solve.steps.propagators import exp_of_multiples, matrix_steps, scalar_steps
from ltinet.solve.steps.recurrence import LARGEST_POWER, Decay, accumulate, size, without_dust

_FAST_GROWTH = 1.65  # e^{½}, size of an entry of P up to which G₁ is of the size of h: w = z − G₁ u loses nothing


class Drive(NamedTuple):
    """How inputs enter the states: scalars `(m, n_scalars)`, and a matrix for each dense block."""

    scalars: Complex
    dense: tuple[Matrix, ...]


@dataclass(frozen=True)
class OneStep:
    """P, G₀, G₁, C and D of one step, which depend on its length and the hold, not on how many steps are taken."""

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
    """Whether the first step is taken from z itself: w = z − G₁ u loses z where G₁ grows as e^{λh}."""

    @cached_property
    def shift(self) -> Matrix:
        """G₁, packed, (n × m): z = w + G₁ u."""
        return pack(self.system, self.G1.scalars, [part.T for part in self.G1.dense]).T

    @cached_property
    def direct(self) -> Matrix:
        """D + C G₁, from an input to the output of the same sample."""
        return np.asarray(self.system.D + self.out_of(1)[0] @ self.shift)

    def start(self, z: Array, u: Array) -> Array:
        """Packed w at a sample from the packed states and the inputs there."""
        return np.asarray(z - np.dot(u, self.shift.T)) if np.count_nonzero(u) else z

    def after_first(self, z: Array, u: Array) -> Array:
        """Packed w = P z + G₀ u one step after a sample with these states and inputs."""
        after = (u @ pack(self.system, self.G0.scalars, [part.T for part in self.G0.dense]))[:, None]
        accumulate(after, z, self.decay(1))
        return after[:, 0]

    @cached_property
    def _squares(self) -> list[tuple[Matrix, ...]]:
        """P, P², P⁴, … of the dense blocks, as far as they were needed."""
        return [self.dense]

    def _square(self, level: int) -> tuple[Matrix, ...]:
        """P^(2^level) of the dense blocks."""
        while len(self._squares) <= level:
            with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
                self._squares.append(tuple(power @ power for power in self._squares[-1]))
        return self._squares[level]

    def _squares_up_to(self, count: int, *, stride: int = 1) -> list[list[Matrix]]:
        """P^s, P^2s, P^4s, … below P^(s·count) of each dense block; s is a power of two."""
        n_levels = max(count - 1, 0).bit_length()
        first = stride.bit_length() - 1
        levels = [self._square(first + level) for level in range(n_levels)]
        return [[level[number] for level in levels] for number in range(len(self.dense))]

    def widest_block(self, most: int) -> int:
        """The largest power of two K ≤ `most` so that no P^(2^i) up to P^K is larger than `LARGEST_POWER` in norm.

        A product with a matrix of norm q loses up to log₁₀ q digits of what the state would keep step by step.
        """
        level, last = 0, most.bit_length() - 1
        while level < last and self._norm(level + 1) <= LARGEST_POWER:
            level += 1
        return 1 << level

    def _norm(self, level: int) -> float:
        """The largest 1-norm of P^(2^level) of the dense blocks, in the units in which F is balanced."""
        powers = zip(self._square(level), self._units, strict=True)
        return max([float(((1.0 / units) @ np.abs(power) * units).max()) for power, units in powers], default=0.0)

    @cached_property
    def _units(self) -> list[Array]:
        return [best_units(block.F) for block in self.system.blocks]

    def scalar_powers(self, counts: NDArray[np.intp]) -> Complex:
        """P^k of the scalars for some k, `(counts, n_scalars)`."""
        if not len(self.system.rates):
            return np.zeros((len(counts), 0), dtype=np.complex128)
        with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
            return without_dust(exp_of_multiples(self.system.rates, self.length, counts))

    def decay(self, count: int) -> Decay:
        """P^k, k a power of two, as that by which states are multiplied."""
        pairs, scalars = self.system.n_pairs, self.scalar_powers(np.array([count]))[0]
        return Decay(scalars[:pairs], scalars[pairs:].real, self._square(count.bit_length() - 1))

    def into(self, drive: Drive, count: int, *, stride: int = 1) -> Array:
        """P^{ks} G for all k below `count`, packed and transposed: `(count, m, n)`."""
        squares = self._squares_up_to(count, stride=stride)
        dense = [
            _doubled_rows(part.T, [P.T for P in own], count) for own, part in zip(squares, drive.dense, strict=True)
        ]
        return pack(self.system, self.scalar_powers(stride * np.arange(count))[:, None] * drive.scalars, dense)

    def out_of(self, count: int) -> Array:
        """C P^k for all k below `count`, packed: `(count, p, n)`."""
        squares = self._squares_up_to(count)
        dense = [_doubled_rows(block.C, own, count) for block, own in zip(self.system.blocks, squares, strict=True)]
        return pack_weights(self.system, self.system.C * self.scalar_powers(np.arange(count))[:, None], dense)

    def responses(self, count: int) -> tuple[Array, Array]:
        """C P^k Γ and C P^k G₁ for all k below `count`, `(count, p, m)` each.

        As products of about √count powers with about √count others.
        """
        inner = 1 << (math.isqrt(max(count - 1, 0))).bit_length()
        out = self.out_of(inner)
        rows = out.reshape(-1, out.shape[-1]).T

        def response(drive: Drive) -> Array:
            into = self.into(drive, -(-count // inner), stride=inner)
            each = (into.reshape(-1, into.shape[-1]) @ rows).reshape(*into.shape[:2], *out.shape[:2])
            return each.transpose(0, 2, 3, 1).reshape(-1, out.shape[1], into.shape[1])[:count]

        return response(self.Gamma), response(self.G1)


def _doubled_rows(rows: Matrix, squares: list[Matrix], count: int) -> Array:
    """Rows · P^k for all k below `count` from P, P², P⁴, …, twice as many with each product."""
    n_rows, known = rows.shape[0], 1
    found = np.empty((count * n_rows, rows.shape[1]))
    found[:n_rows] = rows
    with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
        for P in squares:
            new = min(known, count - known)
            np.matmul(found[: new * n_rows], P, out=found[known * n_rows : (known + new) * n_rows])
            known += new
    return found.reshape(count, n_rows, rows.shape[1])


def one_step(system: ModalSystem, length: float, *, linear: bool) -> OneStep:
    """Prepare steps of one length."""
    scalars = scalar_steps(system.rates, np.array([length]), linear=linear)
    shift_factors, gamma_factors = scalars.end[0], scalars.P[0] * scalars.end[0] + scalars.begin[0]
    dense = [matrix_steps(block.F, block.G, np.array([length]), linear=linear) for block in system.blocks]
    P = tuple(part.P[0] for part in dense)
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.max([size(scalars.P[0]), *(size(part) for part in P)], initial=0.0)
        Gamma = tuple(part.P[0] @ part.end[0] + part.begin[0] for part in dense)
    return OneStep(
        system=system,
        length=length,
        shift_factors=shift_factors,
        gamma_factors=gamma_factors,
        dense=P,
        G0=Drive(scalars.begin[0] * system.B.T, tuple(part.begin[0] for part in dense)),
        G1=Drive(shift_factors * system.B.T, tuple(part.end[0] for part in dense)),
        Gamma=Drive(gamma_factors * system.B.T, Gamma),
        starts_apart=bool(linear and not growth < _FAST_GROWTH),
    )
