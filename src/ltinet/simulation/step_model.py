"""Step model (P, G₀, G₁, C, D): one exact step of fixed length as a recurrence, and simulation by single steps.

With a linear hold and w_k = z_k − G₁ u_k a step needs one input sample at a time:

    w_{k+1} = P w_k + Γ u_k,    y_k = C w_k + (D + C G₁) u_k,    Γ = P G₁ + G₀.

The zero-order hold has the same form with G₁ = 0. All algorithms for evenly spaced samples (single steps here,
`time_blocks`, `convolution`) take a step model, and none depends on whether its states are the user's (one dense
block) or those of a block-diagonal form (scalars and small blocks). Powers of P come from repeated squaring; they are
used only while their norm stays below `MAX_POWER_NORM`, since a product with a matrix of norm q may lose log₁₀ q
digits.

Single steps give the states at all samples, and outputs where blocks of time do not pay off. Batches are processed in
groups that fit into the cache and are distributed over threads.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet.error_bounds.extended_precision import balancing_units
from ltinet.errors import SimulationError
from ltinet.simulation.modal import ModalSystem, pack_states, pack_weights
from ltinet.simulation.propagators import exp_of_multiples, matrix_steps, scalar_steps
from ltinet.simulation.recurrence import MAX_POWER_NORM, StepDecay, flush_underflow, max_abs, scan_states
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.step_model
# Members of a batch: a few at once, so that what is worked on stays in the cache, and shared by threads.


def count_threads(n_jobs: int) -> int:
    """The number of threads that n_jobs asks for; negative ones count down from all cores, as in joblib."""
    if n_jobs == 0:
        raise SimulationError("n_jobs is 0; give the number of threads, or -1 for one per core")
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def run_in_groups(work: Callable[[slice], None], n_members: int, *, at_once: int, threads: int) -> None:
    """Do the work for groups of members, up to `at_once` in each; groups are independent, and NumPy lets threads run.

    With several threads BLAS gets one for each of them: more would wait for each other.
    """
    if n_members == 1:
        work(slice(0, 1))
        return
    size = max(1, min(at_once, -(-n_members // threads)))
    groups = [slice(begin, begin + size) for begin in range(0, n_members, size)]
    if threads == 1 or len(groups) == 1:
        for group in groups:
            work(group)
        return

    def work_quietly(own: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # what the caller told NumPy holds for its own thread
            work(own)

    with single_blas_thread(), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work_quietly, groups):
            pass


# MERGED ltinet.simulation.step_model
# The step model: one exact step of fixed length, as a recurrence that needs one sample at a time, and its powers.
#
# With w_k = z_k − G₁ u_k the linear hold becomes w_{k+1} = P w_k + Γ u_k, Γ = P G₁ + G₀, y_k = C w_k + (D + C G₁) u_k;
# the zero hold has this form with G₁ = 0. Vectors are packed as real numbers (`packing`).
#
# All ways through time (`single_steps`, `time_blocks`, `convolution`) take a step model. None of them knows whether its
# states are those of the user, one dense block, or those of a block-diagonal form, many numbers and small blocks.

_FAST_GROWTH = 1.65  # e^{½}, size of an entry of P up to which G₁ is of the size of h: w = z − G₁ u loses nothing


class InputMatrices(NamedTuple):
    """How inputs enter the states: scalars `(m, n_scalars)`, and a matrix for each dense block."""

    scalars: Complex
    dense: tuple[Matrix, ...]


@dataclass(frozen=True)
class ExactStep:
    """P, G₀, G₁, C and D of one step, which depend on its length and the hold, not on how many steps are taken."""

    system: ModalSystem
    length: float
    shift_factors: Complex
    """G₁ = factors ∘ B for scalars."""
    gamma_factors: Complex
    """Γ = factors ∘ B for scalars."""
    dense: tuple[Matrix, ...]
    """P of the dense blocks."""
    G0: InputMatrices
    G1: InputMatrices
    Gamma: InputMatrices
    starts_apart: bool
    """Whether the first step is taken from z itself: w = z − G₁ u loses z where G₁ grows as e^{λh}."""

    @cached_property
    def shift(self) -> Matrix:
        """G₁, packed, (n × m): z = w + G₁ u."""
        return pack_states(self.system, self.G1.scalars, [part.T for part in self.G1.dense]).T

    @cached_property
    def direct(self) -> Matrix:
        """D + C G₁, from an input to the output of the same sample."""
        return np.asarray(self.system.D + self.out_of(1)[0] @ self.shift)

    def start(self, z: Array, u: Array) -> Array:
        """Packed w at a sample from the packed states and the inputs there."""
        return np.asarray(z - np.dot(u, self.shift.T)) if np.count_nonzero(u) else z

    def after_first(self, z: Array, u: Array) -> Array:
        """Packed w = P z + G₀ u one step after a sample with these states and inputs."""
        after = (u @ pack_states(self.system, self.G0.scalars, [part.T for part in self.G0.dense]))[:, None]
        scan_states(after, z, self.decay(1))
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
        """The largest power of two K ≤ `most` so that no P^(2^i) up to P^K is larger than `MAX_POWER_NORM` in norm.

        A product with a matrix of norm q loses up to log₁₀ q digits of what the state would keep step by step.
        """
        level, last = 0, most.bit_length() - 1
        while level < last and self._norm(level + 1) <= MAX_POWER_NORM:
            level += 1
        return 1 << level

    def _norm(self, level: int) -> float:
        """The largest 1-norm of P^(2^level) of the dense blocks, in the units in which F is balanced."""
        powers = zip(self._square(level), self._units, strict=True)
        return max([float(((1.0 / units) @ np.abs(power) * units).max()) for power, units in powers], default=0.0)

    @cached_property
    def _units(self) -> list[Array]:
        return [balancing_units(block.F) for block in self.system.blocks]

    def scalar_powers(self, counts: NDArray[np.intp]) -> Complex:
        """P^k of the scalars for some k, `(counts, n_scalars)`."""
        if not len(self.system.rates):
            return np.zeros((len(counts), 0), dtype=np.complex128)
        with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
            return flush_underflow(exp_of_multiples(self.system.rates, self.length, counts))

    def decay(self, count: int) -> StepDecay:
        """P^k, k a power of two, as that by which states are multiplied."""
        pairs, scalars = self.system.n_pairs, self.scalar_powers(np.array([count]))[0]
        return StepDecay(scalars[:pairs], scalars[pairs:].real, self._square(count.bit_length() - 1))

    def into(self, drive: InputMatrices, count: int, *, stride: int = 1) -> Array:
        """P^{ks} G for all k below `count`, packed and transposed: `(count, m, n)`."""
        squares = self._squares_up_to(count, stride=stride)
        dense = [
            _doubled_rows(part.T, [P.T for P in own], count) for own, part in zip(squares, drive.dense, strict=True)
        ]
        return pack_states(self.system, self.scalar_powers(stride * np.arange(count))[:, None] * drive.scalars, dense)

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

        def response(drive: InputMatrices) -> Array:
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


def prepare_step_model(system: ModalSystem, length: float, *, linear: bool) -> ExactStep:
    """Prepare steps of one length."""
    scalars = scalar_steps(system.rates, np.array([length]), linear=linear)
    shift_factors, gamma_factors = scalars.end[0], scalars.P[0] * scalars.end[0] + scalars.begin[0]
    dense = [matrix_steps(block.F, block.G, np.array([length]), linear=linear) for block in system.blocks]
    P = tuple(part.P[0] for part in dense)
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.max([max_abs(scalars.P[0]), *(max_abs(part) for part in P)], initial=0.0)
        Gamma = tuple(part.P[0] @ part.end[0] + part.begin[0] for part in dense)
    return ExactStep(
        system=system,
        length=length,
        shift_factors=shift_factors,
        gamma_factors=gamma_factors,
        dense=P,
        G0=InputMatrices(scalars.begin[0] * system.B.T, tuple(part.begin[0] for part in dense)),
        G1=InputMatrices(shift_factors * system.B.T, tuple(part.end[0] for part in dense)),
        Gamma=InputMatrices(gamma_factors * system.B.T, Gamma),
        starts_apart=bool(linear and not growth < _FAST_GROWTH),
    )


# MERGED ltinet.simulation.step_model
# Evenly spaced samples, one step at a time: states at all of them, or outputs where blocks of time do not pay.
#
# With many inputs and outputs no product is larger than those with B and C themselves.

_STATES_AT_ONCE = 2**19  # numbers: pieces of time whose states stay in the cache


@dataclass(frozen=True)
class SingleSteps:
    """A grid whose states are known at all samples."""

    step: ExactStep
    into_state: Matrix
    """Γ, transposed, (m × n)."""
    from_state: Matrix
    """C, transposed, (n × p)."""
    decay: StepDecay
    """P of all states."""

    width = 1

    @cached_property
    def _feeds_through(self) -> bool:
        return bool(self.step.system.D.any())

    @cached_property
    def _input_weights(self) -> Matrix:
        """B of the scalars, packed, (m × 2 pairs + reals)."""
        system = self.step.system
        return pack_states(system, system.B.T, [])

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed w at the first."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))

        def work(own: slice) -> None:
            self._fill_outputs(y[own], u[own], w[own])

        run_in_groups(work, len(u), at_once=len(u), threads=threads)
        return y

    def outputs_from(self, z: Array, u: Array, *, threads: int = 1) -> Array:
        """The same from packed states at the first sample."""
        return outputs_from_states(self, z, u, threads=threads)

    def outputs_and_state(self, u: Array, w: Array) -> tuple[Array, Array]:
        """The same, and packed w one step after the last sample."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))
        return y, self._fill_outputs(y, u, w)

    def _fill_outputs(self, y: Array, u: Array, w: Array) -> Array:
        """Fill y, a piece of time after the other; the states after it."""
        system = self.step.system
        at_once = max(1, _STATES_AT_ONCE // max(1, system.n_states * len(u)))
        for begin in range(0, u.shape[1], at_once):
            own = slice(begin, begin + at_once)
            z, w = self.states(u[:, own], w)
            np.matmul(z, self.from_state, out=y[:, own])
            if self._feeds_through:
                y[:, own] += u[:, own] @ system.D.T
        return w

    def states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Packed z `(batch, T, n)` at all samples, and w one step after the last.

        Scalars are driven by B u: one product, from which G₁ u and Γ u follow by factors.
        """
        dense = slice(self._input_weights.shape[1], None)
        driven = _product_of_rows(u, self._input_weights)
        ends, z = np.empty((2, *u.shape[:-1], self.step.system.n_states))
        _scale(driven, self.step.gamma_factors, out=ends)
        _scale(driven, self.step.shift_factors, out=z)
        ends[..., dense], z[..., dense] = u @ self.into_state[:, dense], u @ self.step.shift.T[:, dense]
        scan_states(ends, w, self.decay)
        z[:, 0] += w
        z[:, 1:] += ends[:, :-1]
        return z, ends[:, -1]


class UniformGrid(Protocol):
    """Evenly spaced samples, prepared."""

    @property
    def step(self) -> ExactStep:
        """One step."""
        ...

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Outputs at all samples, from packed w at the first."""
        ...


def outputs_from_states(grid: UniformGrid, z: Array, u: Array, *, threads: int) -> Array:
    """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed states at the first.

    Where states grow fast the first step is taken by itself.
    """
    step = grid.step
    if not step.starts_apart:
        return grid.outputs(u, step.start(z, u[:, 0]), threads=threads)
    y = np.empty((*u.shape[:2], step.system.n_outputs))
    y[:, 0] = z @ step.out_of(1)[0].T + u[:, 0] @ step.system.D.T
    if u.shape[1] > 1:
        rest = np.ascontiguousarray(u[:, 1:])
        y[:, 1:] = grid.outputs(rest, step.after_first(z, u[:, 0]), threads=threads)
    return y


def prepare_single_steps(step: ExactStep) -> SingleSteps:
    """Prepare a grid of single steps."""
    return SingleSteps(
        step,
        into_state=step.into(step.Gamma, 1)[0],
        from_state=np.ascontiguousarray(step.out_of(1)[0].T),
        decay=step.decay(1),
    )


def _product_of_rows(u: Array, weights: Matrix) -> Array:
    """U · weights; rows of zeros, as before and after a pulse, are not multiplied."""
    rows = u.any(axis=-1)
    if 2 * np.count_nonzero(rows) > rows.size:
        return np.asarray(u @ weights)
    product = np.zeros((*u.shape[:-1], weights.shape[1]))
    product[rows] = u[rows] @ weights
    return product


def _scale(driven: Array, factors: Complex, out: Array) -> None:
    """Packed scalars times a complex number each, into the leading part of `out`."""
    n_scalars = driven.shape[-1]
    pairs = 2 * (n_scalars - len(factors))
    if pairs:
        turned = out[..., :pairs].view(np.complex128)
        np.multiply(driven[..., :pairs].view(np.complex128), factors[: pairs // 2], out=turned)
    np.multiply(driven[..., pairs:], factors[pairs // 2 :].real, out=out[..., pairs:n_scalars])
