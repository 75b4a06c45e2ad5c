"""Step model (P, G₀, G₁, C, D): one exact step of fixed length as a recurrence, and simulation by single steps.

With a linear hold and w_k = z_k − G₁ u_k a step needs one input sample at a time:

    w_{k+1} = P w_k + Γ u_k,    y_k = C w_k + (D + C G₁) u_k,    Γ = P G₁ + G₀.

The zero-order hold has the same form with G₁ = 0. All algorithms for evenly spaced samples (single steps here,
`time_blocks`, `convolution`) take a step model, and none depends on whether its states are the user's (one dense
block) or those of a block-diagonal form (scalars and small blocks). Powers of P come from repeated squaring; they are
used only while their norm stays below `MAX_AMPLIFICATION`, since a product with a matrix of norm q may lose log₁₀ q
digits.

Single steps give the states at all samples, and outputs where blocks of time do not pay off. Batches are processed in
groups that fit into the cache and are distributed over threads.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import MAX_AMPLIFICATION, Array, Complex, balancing_units
from ltinet.simulation.modal import ModalSystem, pack_states, pack_weights
from ltinet.simulation.propagators import exp_of_multiples, matrix_steps, scalar_steps
from ltinet.simulation.recurrence import StepDecay, flush_underflow, max_abs, scan_states
from ltinet.systems.matrices import Matrix

# e^½, largest entry of P up to which G₁ is of the size of h, so that w = z − G₁ u loses no digits of z.
_FAST_GROWTH = 1.65


class InputMatrices(NamedTuple):
    """Input matrices of a step: scalars `(m, n_scalars)`, and one matrix for each dense block."""

    scalars: Complex
    dense: tuple[Matrix, ...]


@dataclass(frozen=True)
class ExactStep:
    """Step model: P, G₀, G₁, C and D of one step, which depend on its length and the hold only."""

    system: ModalSystem
    length: float
    dense: tuple[Matrix, ...]
    """P of the dense blocks."""
    G0: InputMatrices
    G1: InputMatrices
    Gamma: InputMatrices
    has_fast_growth: bool
    """True if the first step must start from z itself: w = z − G₁ u loses z where G₁ grows as e^{λh}."""

    @cached_property
    def shift(self) -> Matrix:
        """G₁, packed, (n × m): z = w + G₁ u."""
        return pack_states(self.system, self.G1.scalars, [block.T for block in self.G1.dense]).T

    @cached_property
    def direct(self) -> Matrix:
        """D + C G₁, from an input to the output of the same sample."""
        return np.asarray(self.system.D + self.observability_rows(1)[0] @ self.shift)

    def shifted_state(self, z: Array, u: Array) -> Array:
        """Return packed w = z − G₁ u at a sample."""
        return np.asarray(z - np.dot(u, self.shift.T)) if np.count_nonzero(u) else z

    def after_first(self, z: Array, u: Array) -> Array:
        """Return packed w = P z + G₀ u one step after a sample with these states and inputs."""
        after = (u @ pack_states(self.system, self.G0.scalars, [block.T for block in self.G0.dense]))[:, None]
        scan_states(after, z, self.decay(1))
        return after[:, 0]

    @cached_property
    def _squares(self) -> list[tuple[Matrix, ...]]:
        """P, P², P⁴, … of the dense blocks, as far as they were needed."""
        return [self.dense]

    def _square(self, level: int) -> tuple[Matrix, ...]:
        """Return P^(2^level) of the dense blocks."""
        while len(self._squares) <= level:
            with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
                self._squares.append(tuple(power @ power for power in self._squares[-1]))
        return self._squares[level]

    def _squares_up_to(self, count: int, *, stride: int = 1) -> list[list[Matrix]]:
        """Return P^s, P^2s, P^4s, … below P^(s·count) of each dense block; s is a power of two."""
        first = stride.bit_length() - 1
        levels = [self._square(first + level) for level in range(max(count - 1, 0).bit_length())]
        return [[level[number] for level in levels] for number in range(len(self.dense))]

    def widest_block(self, limit: int) -> int:
        """Return the largest power of two K ≤ `limit` with ‖P^(2^i)‖ ≤ `MAX_AMPLIFICATION` for all 2^i in [2, K].

        A product with a matrix of norm q loses up to log₁₀ q digits of what the state would keep step by step. Norms
        are submultiplicative, ‖P^2k‖ ≤ ‖P^k‖²: a power is normed only if that bound exceeds the limit.
        """
        last = limit.bit_length() - 1
        bound = self._power_norm(0) if last else 0.0
        for level in range(last):
            bound *= bound
            if not bound <= MAX_AMPLIFICATION:
                bound = self._power_norm(level + 1)
                if not bound <= MAX_AMPLIFICATION:
                    return 1 << level
        return 1 << last

    def _power_norm(self, level: int) -> float:
        """Return the largest 1-norm of P^(2^level) of the dense blocks, in the units in which F is balanced."""
        powers = zip(self._square(level), self._units, strict=True)
        return max([float(((1.0 / units) @ np.abs(power) * units).max()) for power, units in powers], default=0.0)

    @cached_property
    def _units(self) -> list[Array]:
        return [balancing_units(block.F) for block in self.system.blocks]

    def scalar_powers(self, counts: NDArray[np.intp]) -> Complex:
        """Return P^k of the scalars for some k, `(counts, n_scalars)`."""
        if not len(self.system.rates):
            return np.zeros((len(counts), 0), dtype=np.complex128)
        with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
            return flush_underflow(exp_of_multiples(self.system.rates, self.length, counts))

    def decay(self, count: int) -> StepDecay:
        """Return P^k of all states, k a power of two."""
        pairs, scalars = self.system.n_pairs, self.scalar_powers(np.array([count]))[0]
        return StepDecay(scalars[:pairs], scalars[pairs:].real, self._square(count.bit_length() - 1))

    def reachability_rows(self, drive: InputMatrices, count: int, *, stride: int = 1) -> Array:
        """Return (P^{ks} G)ᵀ for all k below `count`, packed: `(count, m, n)`."""
        squares = self._squares_up_to(count, stride=stride)
        dense = [
            _rows_times_powers(G.T, [P.T for P in powers], count)
            for powers, G in zip(squares, drive.dense, strict=True)
        ]
        return pack_states(self.system, self.scalar_powers(stride * np.arange(count))[:, None] * drive.scalars, dense)

    def observability_rows(self, count: int) -> Array:
        """Return C P^k for all k below `count`, packed: `(count, p, n)`."""
        squares = self._squares_up_to(count)
        dense = [
            _rows_times_powers(block.C, powers, count)
            for block, powers in zip(self.system.blocks, squares, strict=True)
        ]
        return pack_weights(self.system, self.system.C * self.scalar_powers(np.arange(count))[:, None], dense)

    def markov_parameters(self, count: int) -> tuple[Array, Array]:
        """Return C P^k Γ and C P^k G₁ for all k below `count`, `(count, p, m)` each.

        They are products of about √count rows C P^j with about √count columns P^{is} Γ.
        """
        inner = 1 << (math.isqrt(max(count - 1, 0))).bit_length()
        rows = self.observability_rows(inner)
        weights = rows.reshape(-1, rows.shape[-1]).T

        def response(drive: InputMatrices) -> Array:
            columns = self.reachability_rows(drive, -(-count // inner), stride=inner)
            products = (columns.reshape(-1, columns.shape[-1]) @ weights).reshape(*columns.shape[:2], *rows.shape[:2])
            return products.transpose(0, 2, 3, 1).reshape(-1, rows.shape[1], columns.shape[1])[:count]

        return response(self.Gamma), response(self.G1)


def _rows_times_powers(rows: Matrix, squares: list[Matrix], count: int) -> Array:
    """Return rows · P^k for all k below `count` from P, P², P⁴, …; every product doubles their number."""
    n_rows, known = rows.shape[0], 1
    products = np.empty((count * n_rows, rows.shape[1]))
    products[:n_rows] = rows
    with np.errstate(over="ignore", invalid="ignore"):  # unstable systems
        for P in squares:
            new = min(known, count - known)
            np.matmul(products[: new * n_rows], P, out=products[known * n_rows : (known + new) * n_rows])
            known += new
    return products.reshape(count, n_rows, rows.shape[1])


def prepare_step_model(system: ModalSystem, length: float, *, linear: bool) -> ExactStep:
    """Prepare the step model of one length."""
    scalars = scalar_steps(system.rates, np.array([length]), linear=linear)
    dense = [matrix_steps(block.F, block.G, np.array([length]), linear=linear) for block in system.blocks]
    P = tuple(part.P[0] for part in dense)
    with np.errstate(over="ignore", invalid="ignore"):
        growth = np.max([max_abs(scalars.P[0]), *(max_abs(part) for part in P)], initial=0.0)
        Gamma = tuple(part.P[0] @ part.end[0] + part.begin[0] for part in dense)
    return ExactStep(
        system=system,
        length=length,
        dense=P,
        G0=InputMatrices(scalars.begin[0] * system.B.T, tuple(part.begin[0] for part in dense)),
        G1=InputMatrices(scalars.end[0] * system.B.T, tuple(part.end[0] for part in dense)),
        Gamma=InputMatrices((scalars.P[0] * scalars.end[0] + scalars.begin[0]) * system.B.T, Gamma),
        has_fast_growth=bool(linear and not growth < _FAST_GROWTH),
    )


# Single steps.

_MAX_STATE_NUMBERS = 2**19  # numbers in the states of a piece of time, which stay in the cache (4 MiB)


@dataclass(frozen=True)
class SingleSteps:
    """A grid that is stepped sample by sample; its products with B and C are as large as possible."""

    step: ExactStep
    from_inputs: Matrix
    """Γ, transposed, (m × n)."""
    to_outputs: Matrix
    """C, transposed, (n × p)."""
    decay: StepDecay
    """P of all states."""

    width = 1

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Return outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed w at the first."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))

        def work(group: slice) -> None:
            self._fill_outputs(y[group], u[group], w[group])

        run_in_groups(work, len(u), at_once=len(u), threads=threads)
        return y

    def outputs_and_state(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Return outputs at all samples, and packed w one step after the last."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))
        return y, self._fill_outputs(y, u, w)

    def _fill_outputs(self, y: Array, u: Array, w: Array) -> Array:
        """Fill y in pieces of time; return packed w after the last."""
        system = self.step.system
        at_once = max(1, _MAX_STATE_NUMBERS // max(1, system.n_states * len(u)))
        for begin in range(0, u.shape[1], at_once):
            piece = slice(begin, begin + at_once)
            z, w = self.states(u[:, piece], w)
            np.matmul(z, self.to_outputs, out=y[:, piece])
            if system.D.any():
                y[:, piece] += u[:, piece] @ system.D.T
        return w

    def states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Return packed z `(batch, T, n)` at all samples, and w one step after the last."""
        ends, z = u @ self.from_inputs, u @ self.step.shift.T
        scan_states(ends, w, self.decay)
        z[:, 0] += w
        z[:, 1:] += ends[:, :-1]
        return z, ends[:, -1]


def prepare_single_steps(step: ExactStep) -> SingleSteps:
    """Prepare a grid of single steps."""
    return SingleSteps(
        step,
        from_inputs=step.reachability_rows(step.Gamma, 1)[0],
        to_outputs=np.ascontiguousarray(step.observability_rows(1)[0].T),
        decay=step.decay(1),
    )


# Batches.


def run_in_groups(work: Callable[[slice], None], n_members: int, *, at_once: int, threads: int) -> None:
    """Process the members of a batch in groups of up to `at_once`, which are independent, on some threads.

    NumPy releases the interpreter lock. With several threads BLAS uses one thread in each: more would contend.
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

    def work_without_warnings(group: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # the caller's error state is that of its own thread
            work(group)

    with single_blas_thread(), ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work_without_warnings, groups):
            pass
