"""Error bounds of runs of the exact engine, in continuous and in discrete time, from the defect of their states.

The states of a run at its samples are the reference trajectory of `error_bounds.trajectory_defect`, and its outputs are
compared with those of the corrected trajectory: how both were computed does not matter. The recurrence is that of the
system itself, in the user's states and balanced units, with E⁻¹A and E⁻¹B in pairs of doubles; a network without a system
stands for itself, with the matrices that follow from its parameters in pairs of doubles.

Evenly spaced steps have one length h, and times beside their grid are remainders of steps, which change the states by
δ (A x + B u). Where δ is not small compared with the time constants, and at uneven times, steps are composed of exact
steps of lengths h 2⁻ᵏ. Outputs between samples follow by such steps from the sample before.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.cache import cached_property
from ltinet._util.double_double import DoubleDouble, add, multiply_matrices, product_terms, sum_matrices, two_sum
from ltinet._util.floating_point import EPS, Array, balancing_units
from ltinet.error_bounds.double_double_exponentials import DoubleDoubleStep, double_double_steps
from ltinet.error_bounds.output_bounds import OutputErrors, UnknownBound
from ltinet.error_bounds.trajectory_defect import (
    N_CELLS,
    UNIT_ROUNDOFF,
    Defects,
    ExactProduct,
    StateEquation,
    StepInputs,
    StepLadder,
    bounded_product,
    exponents_of,
    lag_peaks,
    lag_sums,
    propagate,
)
from ltinet.network.network import Network
from ltinet.network.realization import descriptor_form
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.recurrence import StepDecay, scan_states
from ltinet.simulation.response_bounds import bound_impulse_responses
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.system_matrices import SystemMatrices

# Remainder of steps relative to a time constant, up to which even steps have one length: its square is 2⁻⁶⁰.
_MAX_REMAINDER = 2.0**-30
# Ratio of the distance of a function from its lines to the distance measured. Empirical safety factor: with a tenth of it
# tests/trust/test_inputs.py holds as well.
_INPUT_ERROR_MARGIN = 2.0
_MAX_LEVELS = 160  # of halves of the longest step
_MAX_REFINEMENTS = 40  # of E⁻¹A: enough where each has one correct bit more
_NEGLIGIBLE_CORRECTION = 2.0**-80  # relative to the entries of a row
_PIECE_NUMBERS, _MIN_PIECE = 2**15, 256  # numbers in the states of a piece of time, and samples: speed only
_MAX_QUERIES = 2**18  # numbers in states at times between samples that are processed together
_SMALLEST = 2.0**-1074  # of underflow
_IGNORE_OVERFLOW = np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")


# State equation


def state_equation(origin: SystemMatrices | None, network: Network | None) -> StateEquation:
    """Return the state equation of a system, or of a network that stands for itself, in pairs of doubles."""
    if origin is None:
        if network is None:
            raise TypeError("a system or a network is expected")
        form = descriptor_form(network)
        n = len(form.E)
        AB = solve_descriptor(form.E, np.hstack([form.A, form.B, form.V]), None)
        A, B, J = (DoubleDouble(part.high, part.low) for part in _columns(AB, [n, n + network.n_inputs]))
        B, C = add(B, multiply_matrices(A, J)), np.asarray(network.output_weights)
        CJ = multiply_matrices(DoubleDouble(C, np.zeros_like(C)), J)
        return StateEquation(A, B, C, add(CJ, DoubleDouble(network.Psi, np.zeros_like(network.Psi))))
    D = DoubleDouble(origin.D, np.zeros_like(origin.D))
    if origin.descriptor is None:
        A, B = (DoubleDouble(part, np.zeros_like(part)) for part in (origin.A, origin.B))
        return StateEquation(A, B, origin.C, D)
    E, A_E, B_E = origin.descriptor
    A, B = _columns(solve_descriptor(E, np.hstack([A_E, B_E]), np.hstack([origin.A, origin.B])), [len(E)])
    return StateEquation(A, B, origin.C, D)


def solve_descriptor(E: Array, right: Array, first: Array | None) -> DoubleDouble:
    """Return E⁻¹ `right` in pairs of doubles, by refinement of a solution in double precision.

    Each correction is cond(E) eps times the one before. Where corrections do not become negligible the result is NaN.
    """
    X = eliminate_descriptor(E, right) if first is None else first
    solution = DoubleDouble(X, np.zeros_like(X))
    for _ in range(_MAX_REFINEMENTS):
        terms = [right, *(-term for part in solution for term in product_terms(E, part))]
        correction = eliminate_descriptor(E, sum_matrices(terms).high)
        solution = add(solution, DoubleDouble(correction, np.zeros_like(correction)))
        sizes = np.abs(solution.high).max(axis=1, initial=0.0)
        if np.all(np.abs(correction).max(axis=1, initial=0.0) <= _NEGLIGIBLE_CORRECTION * sizes):
            return solution
    return DoubleDouble(X, np.full_like(X, np.nan))


def _columns(matrix: DoubleDouble, places: list[int]) -> list[DoubleDouble]:
    """Return a matrix split into parts at some columns."""
    parts = zip(np.split(matrix.high, places, axis=1), np.split(matrix.low, places, axis=1), strict=True)
    return [DoubleDouble(*part) for part in parts]


def _in_units(equation: StateEquation, units: Array) -> StateEquation:
    """Return the equation for x/units, which are powers of two."""
    ratios = units / units[:, None]
    A = DoubleDouble(*(part * ratios for part in equation.A))
    B = DoubleDouble(*(part / units[:, None] for part in equation.B))
    return StateEquation(A, B, equation.C * units, equation.D)


# Bound


class _Piece(NamedTuple):
    """Samples of a run with states x̃ in balanced units, their errors ẽ, and bounds on what remains."""

    samples: slice
    x: Array
    """`(batch, k, n)`."""
    errors: Array
    u: Array
    y_of_states: Array
    """Outputs that follow from these states, in the coordinates of the run, `(batch, k, p)`."""
    rounding: Array
    """Bound on the rounding of these."""
    unknown: Array
    """Remaining defects of the steps to these samples, `(batch, steps, n)`."""
    steps: NDArray[np.intp]
    """Index of the sample at which each step begins."""


class TrajectoryErrorBound:
    """Error bound of an exact run at its samples, and at times between them on demand.

    Parameters
    ----------
    run : ExactRun
        The run.
    outputs : ndarray or None
        Its outputs at all samples, `(..., T, p)`; None if they were not computed.
    input_roundings : float
        Relative error of the inputs.
    """

    def __init__(self, run: ExactRun, outputs: Array | None, *, input_roundings: float = 0.0) -> None:
        self._run, self._outputs, self._input_roundings = run, outputs, input_roundings

    @property
    def times(self) -> Array:
        """Times of the samples."""
        return self._run.samples.t

    # Model

    @cached_property
    def _units(self) -> Array:
        return balancing_units(self._original_equation.A.high)

    @cached_property
    def _original_equation(self) -> StateEquation:
        origin = self._run.realization.origin
        return state_equation(origin, None if origin is not None else getattr(self._run.network, "network", None))

    @cached_property
    @_IGNORE_OVERFLOW
    def _equation(self) -> StateEquation:
        return _in_units(self._original_equation, self._units)

    @cached_property
    def _norm(self) -> float:
        """‖A‖₁ in balanced units."""
        return float(np.abs(self._equation.A.high).sum(axis=0).max(initial=0.0))

    @cached_property
    def _step_lengths(self) -> DoubleDouble:
        """Differences of successive times, exactly."""
        t = self._run.samples.t
        if self._run.realization.dt is not None:
            return DoubleDouble(np.full(len(t) - 1, self._run.realization.dt), np.zeros(len(t) - 1))
        return two_sum(t[1:], -t[:-1])

    @cached_property
    def _is_even(self) -> bool:
        """True if all steps have one length, up to small remainders."""
        step = self._run.samples.step
        if step is None:
            return False
        lengths = self._step_lengths
        remainder = np.abs((lengths.high - step) + lengths.low).max(initial=0.0)
        return bool(remainder * max(self._norm, 1.0 / step) <= _MAX_REMAINDER)

    @cached_property
    def _ladder(self) -> StepLadder:
        """Steps of a run: one length, or halves."""
        if not self._is_even:
            return self._halves
        equation, step = self._equation, float(self._run.samples.step or 0.0)
        if self._run.realization.dt is not None:
            (A, A_low), (B, B_low) = equation.A, equation.B
            none = np.zeros_like(B)
            matrices = DoubleDoubleStep(
                np.hstack([A, B, none]), np.hstack([A_low, B_low, none]), np.zeros((len(A), len(A) + 2 * B.shape[1]))
            )
            return StepLadder(equation, np.array([step]), [matrices], 0.0)
        return StepLadder(
            equation,
            np.array([step]),
            double_double_steps(equation.A, equation.B, step, 0, linear=self._run.linear),
            0.0,
        )

    @cached_property
    def _halves(self) -> StepLadder:
        """Steps of halves of the longest step, as far as the shortest step or the last digits of times need them."""
        run = self._run
        lengths = self._step_lengths.high
        positive = lengths[lengths > 0.0]
        if not len(positive):
            return StepLadder(self._equation, np.zeros(0), [], 0.0)
        top = 2.0 ** (math.frexp(float(positive.max()))[1] - 1)
        smallest = 2.0**-42 * min(1.0 / self._norm if self._norm > 0.0 else math.inf, float(positive.max()))
        last_digits = 2.0 ** max(-1074, math.frexp(float(np.abs(run.samples.t).max()))[1] - 200)
        least = max(min(smallest, 2.0**-42 * float(positive.min())), last_digits)
        n_halvings = int(min(max(0, math.ceil(math.log2(top) - math.log2(least))), _MAX_LEVELS))
        equation = self._equation
        steps = double_double_steps(equation.A, equation.B, top, n_halvings, linear=run.linear)
        return StepLadder(equation, np.ldexp(top, -np.arange(n_halvings + 1)), steps, smallest)

    # States and their errors

    def _to_states(self, z: Array) -> Array:
        """Return states in the coordinates of the equation from packed ones."""
        realization = self._run.realization
        blocks = realization.system.blocks_from_packed(z)
        if realization.origin is None:
            return realization.coordinates.neurons_from_blocks(blocks) / self._units
        return realization.coordinates.user_from_blocks(blocks) / self._units

    def _pieces(self) -> Iterator[_Piece]:
        """Yield the samples of a run with their errors, in pieces of time that fit into the cache."""
        carried: tuple[Array, Array, Array] | None = None
        for piece, x, u, y, rounding in self._sampled_states():
            if carried is None:
                start, unknown_start = self._start(x[:, 0])
                x_steps, u_steps, first = x, u, piece.start
            else:
                before, inputs, start = carried
                x_steps, u_steps = np.concatenate([before, x], axis=1), np.concatenate([inputs, u], axis=1)
                first, unknown_start = piece.start - 1, None
            errors = np.empty(x_steps.shape)
            errors[:, 0] = start
            unknown, steps = self._advance(x_steps, u_steps, first, errors)
            if unknown_start is not None and unknown.size:
                unknown[:, 0] += unknown_start
            carried = x[:, -1:], u[:, -1:], errors[:, -1]
            yield _Piece(piece, x, errors[:, piece.start - first :], u, y, rounding, unknown, first + steps)

    def _sampled_states(self) -> Iterator[tuple[slice, Array, Array, Array, Array]]:
        """Yield some samples, states x̃ and inputs there, outputs that follow from them, and bounds on their rounding.

        Outputs are computed for as many samples together as the run does.
        """
        run = self._run
        weights, D = run.realization.output_weights, run.realization.system.D
        at_once = max(_MIN_PIECE, _PIECE_NUMBERS // max(1, len(self._units) * len(run.u)))
        for piece, z in run.sampled_states.pieces():
            inputs = run.u[:, piece]
            outputs = z @ weights.T + inputs @ D.T
            for begin in range(0, z.shape[1], at_once):
                part = slice(begin, min(begin + at_once, z.shape[1]))
                states, u = z[:, part], inputs[:, part]
                rounding = np.abs(states) @ np.abs(weights).T + np.abs(u) @ np.abs(D).T
                rounding *= (states.shape[2] + u.shape[2] + 4) * UNIT_ROUNDOFF
                samples = slice(piece.start + part.start, piece.start + part.stop)
                yield samples, self._to_states(states), u, outputs[:, part], rounding

    def _start(self, x: Array) -> tuple[Array, Array]:
        """Return the errors of the states at the first sample, and a bound on what is unknown of them."""
        run = self._run
        if run.x0 is None:
            return -x, np.zeros_like(x)
        realization = run.realization
        if realization.origin is None and realization.form is not None:  # the states of a file that contains A only
            coordinates, T_inv = realization.coordinates, realization.form.T_inv
            sizes = np.abs(run.x0) @ np.abs(T_inv).T @ np.abs(coordinates.to_neurons.toarray()).T
            return np.zeros_like(x), 2.0 * (x.shape[1] + 4) * EPS * sizes / self._units
        errors = run.x0 / self._units - x
        amplified = np.abs(errors) @ np.maximum(np.abs(self._equation_step), np.eye(x.shape[1])).T
        return errors, EPS * amplified

    @property
    def _equation_step(self) -> Array:
        n = len(self._units)
        return self._ladder.steps[0].high[:, :n] if self._ladder.steps else np.eye(n)

    def _inputs(self, u: Array, first: int) -> StepInputs:
        """Return the inputs of the steps from sample `first` on for samples u `(batch, k + 1, m)`."""
        batch, m, k = len(u), u.shape[2], u.shape[1] - 1
        lengths = (np.tile(part[first : first + k], batch) for part in self._step_lengths)
        begin, end = u[:, :-1].reshape(batch * k, m), u[:, 1:].reshape(batch * k, m)
        return StepInputs(begin, end, DoubleDouble(*lengths), self._run.linear)

    def _advance(self, x: Array, u: Array, first: int, errors: Array) -> tuple[Array, NDArray[np.intp]]:
        """Fill in the errors after the first of some states, and return what remains of the defects, and their steps."""
        batch, n_steps, n = len(x), x.shape[1] - 1, x.shape[2]
        if not n_steps or not n:
            return np.zeros((batch, 0, n)), np.zeros(0, dtype=np.intp)
        ladder, inputs = self._ladder, self._inputs(u, first)
        defects, _ = ladder.defects(x[:, :-1].reshape(-1, n), x[:, 1:].reshape(-1, n), inputs, inputs.lengths)
        if self._input_roundings:
            driven = np.abs(inputs.begin) @ np.abs(self._equation.B.high).T
            defects[0].error[...] += self._input_roundings * driven
        unknown = np.zeros((batch * n_steps, n))
        if len(ladder.lengths) == 1:
            self._scan(defects, errors, unknown)
        else:
            self._step(defects, errors, unknown)
        return unknown.reshape(batch, n_steps, n), np.arange(n_steps)

    def _scan(self, defects: list[Defects], errors: Array, unknown: Array) -> None:
        """Step errors by one length of steps, and measure what this leaves."""
        batch, n_steps, n = len(errors), errors.shape[1] - 1, errors.shape[2]
        step, P = self._ladder.steps[0], self._ladder.steps[0].high[:, :n]
        total = defects[0].value.copy()
        unknown += defects[0].error
        for late in defects[1:]:
            total[late.rows] += late.value
            unknown[late.rows] += late.error + UNIT_ROUNDOFF * np.abs(total[late.rows])
        scanned = total.reshape(batch, n_steps, n).copy()
        decay = StepDecay(np.zeros(0, dtype=np.complex128), np.zeros(0), (np.ascontiguousarray(P),))
        scan_states(scanned, errors[:, 0], decay)
        errors[:, 1:] = scanned
        before, after = errors[:, :-1].reshape(-1, n), scanned.reshape(-1, n)
        weights = (n + 4) * UNIT_ROUNDOFF * np.abs(P) + np.abs(step.low[:, :n]) + step.error[:, :n]
        unknown += np.abs((before @ P.T - after) + total) + bounded_product(np.abs(before), weights)
        unknown += 4.0 * UNIT_ROUNDOFF * (np.abs(after) + np.abs(total)) + (n + 4) * _SMALLEST
        if len(defects) > 1:
            lengths = self._step_lengths
            remainder = float(np.abs((lengths.high - self._ladder.lengths[0]) + lengths.low).max())
            unknown += 2.0 * remainder * bounded_product(np.abs(after), np.abs(self._equation.A.high))

    def _step(self, defects: list[Defects], errors: Array, unknown: Array) -> None:
        """Step errors by steps that are composed of some lengths."""
        batch, n_steps, n = len(errors), errors.shape[1] - 1, errors.shape[2]
        steps = self._ladder.steps
        index = np.concatenate([part.rows for part in defects]) if defects else np.zeros(0, dtype=np.intp)
        values = np.concatenate([part.value for part in defects]) if defects else np.zeros((0, n))
        levels = np.concatenate([np.full(len(part.rows), part.level) for part in defects]) if defects else index
        order = np.argsort(index, kind="stable")
        edges = np.searchsorted(index[order], np.arange(batch * n_steps + 1))
        matrices = [np.ascontiguousarray(step.high[:, :n]) for step in steps]
        before = np.zeros_like(values)
        places, at_levels = order.tolist(), levels[order].tolist()
        for member in range(batch):
            error = errors[member, 0]
            for k in range(n_steps):
                row = member * n_steps + k
                for place in range(edges[row], edges[row + 1]):
                    entry, level = places[place], at_levels[place]
                    before[entry] = error
                    error = (error if level < 0 else matrices[level] @ error) + values[entry]
                errors[member, k + 1] = error
        first = 0
        for part in defects:
            own = before[first : first + len(part.rows)]
            first += len(part.rows)
            np.add.at(unknown, part.rows, part.error + self._rounding_of_errors(self._ladder, part, own))

    def _rounding_of_errors(self, ladder: StepLadder, part: Defects, before: Array) -> Array:
        """Return a bound on the rounding of a step of errors in double precision."""
        n = before.shape[1]
        if part.level < 0:
            A = np.abs(self._equation.A.high)
            late = max([ladder.smallest, *ladder.lengths[-1:].tolist()]) * (np.abs(before) @ A.T)
            return np.asarray(
                2.0 * late + 2.0 * UNIT_ROUNDOFF * (np.abs(before) + np.abs(part.value)) + 2.0 * _SMALLEST
            )
        step = ladder.steps[part.level]
        weights = (n + 4) * UNIT_ROUNDOFF * np.abs(step.high[:, :n]) + np.abs(step.low[:, :n]) + step.error[:, :n]
        rounding = 2.0 * UNIT_ROUNDOFF * np.abs(part.value) + (n + 4) * _SMALLEST
        return np.asarray(bounded_product(np.abs(before), weights) + rounding)

    # Cells

    @cached_property
    def _cells(self) -> tuple[NDArray[np.intp], int, float]:
        """Cell of each step, number of cells, and number of steps or duration of a cell."""
        t = self._run.samples.t
        n_steps = len(t) - 1
        if self._is_even:
            length = max(1, -(-n_steps // N_CELLS))
            return np.arange(n_steps) // length, max(1, -(-n_steps // length)), float(length)
        span, longest = float(t[-1] - t[0]), float(self._step_lengths.high.max(initial=0.0))
        n_cells = max(1, min(N_CELLS, int(span / longest) if longest > 0.0 else 1))
        duration = span / n_cells
        cells = self._cells_at(t[:-1], duration)
        return np.clip(cells, 0, n_cells - 1), n_cells, duration

    @_IGNORE_OVERFLOW
    def _weights(self, C: Array) -> Array:
        """Return bounds on the response C e^{As} to defects, by the distance of cells."""
        _, n_cells, length = self._cells
        if self._is_even:
            n = len(self._units)
            return lag_sums(C, self._ladder.steps[0].high[:, :n], length=int(length), count=n_cells)
        return lag_peaks(C, self._equation.A.high, cell=length, count=n_cells)

    def _collect(self, defects: Array, piece: _Piece) -> None:
        """Add the remaining defects of a piece to those of cells `(batch, cells, n)`: the largest, or their sum."""
        cells, _, _ = self._cells
        of_steps = cells[piece.steps]
        if not len(of_steps):
            return
        edges = np.flatnonzero(np.diff(of_steps, prepend=-1))
        reduce = np.maximum if self._is_even else np.add
        found = reduce.reduceat(piece.unknown, edges, axis=1)
        target = of_steps[edges]
        defects[:, target] = reduce(defects[:, target], found)

    def _cells_at(self, t: Array, duration: float) -> NDArray[np.intp]:
        """Return the cells of times, for cells of a duration."""
        since = t - self.times[0]
        return np.floor(since / duration if duration > 0.0 else np.zeros(len(t))).astype(np.intp)

    def _cell_of_samples(self) -> NDArray[np.intp]:
        """Return the cell of each sample: of the step before it, or of its time."""
        cells, n_cells, duration = self._cells
        if self._is_even:
            return np.concatenate([cells[:1] if len(cells) else np.zeros(1, dtype=np.intp), cells])
        return np.clip(self._cells_at(self.times, duration), 0, n_cells - 1)

    # Outputs

    @_IGNORE_OVERFLOW
    def _output_errors(self, x: Array, errors: Array, u: Array, y: Array, u_low: Array | None = None) -> OutputErrors:
        """Return the errors of outputs y `(K, p)`, without the effect of the defects that remain."""
        equation, n = self._equation, x.shape[1]
        values = np.hstack([x, u])
        low = None if u_low is None else np.hstack([np.zeros_like(x), u_low])
        product = ExactProduct(
            np.hstack([equation.C, equation.D.high]),
            np.hstack([np.zeros_like(equation.C), equation.D.low]),
            None,
            units=exponents_of(values, axis=0),
            results=exponents_of(y, axis=0),
        )
        residual = product.residual(product.slices(values, low), y)
        of_states = errors @ equation.C.T
        correction = residual.value + of_states
        remainder = residual.error + (n + 4) * UNIT_ROUNDOFF * (np.abs(errors) @ np.abs(equation.C).T)
        remainder += 2.0 * UNIT_ROUNDOFF * np.abs(correction) + self._input_roundings * (
            np.abs(u) @ np.abs(equation.D.high).T
        )
        remainder += 0.5 * np.spacing(np.abs(y))  # for comparison with exact outputs that were rounded to doubles
        return OutputErrors(correction, remainder + 2.0 * (n + 4) * _SMALLEST)

    @cached_property
    @_IGNORE_OVERFLOW
    def _walk(self) -> tuple[OutputErrors, OutputErrors, Array]:
        """Errors of outputs at samples, those of outputs computed from states there, and remaining defects of cells.

        Sums over states depend in their last digits on how many of them are computed together: that is a part of the second
        remainder.
        """
        run = self._run
        batch, n_times, p, n = len(run.u), len(run.samples.t), len(self._equation.C), len(self._units)
        correction, remainder, recomputed, rounding = np.empty((4, batch, n_times, p))
        defects = np.zeros((batch, self._cells[1], n))
        outputs = None if self._outputs is None else self._outputs.reshape(batch, n_times, p)
        with limit_blas_threads_for_work(run.n_multiplications * max(n, 1)):
            for piece in self._pieces():
                self._collect(defects, piece)
                y = piece.y_of_states if outputs is None else outputs[:, piece.samples]
                n_rows = y.shape[0] * y.shape[1]
                flat = (part.reshape(n_rows, part.shape[2]) for part in (piece.x, piece.errors, piece.u, y))
                found = self._output_errors(*flat)
                correction[:, piece.samples] = found.correction.reshape(y.shape)
                remainder[:, piece.samples] = found.remainder.reshape(y.shape)
                recomputed[:, piece.samples] = correction[:, piece.samples] + (y - piece.y_of_states)
                rounding[:, piece.samples] = piece.rounding
            rest = propagate(defects, self._weights(self._equation.C))
        remainder[:, :] += rest[:, self._cell_of_samples()] * 1.01
        return OutputErrors(correction, remainder), OutputErrors(recomputed, remainder + rounding), defects

    @cached_property
    def bound_at_samples(self) -> Array:
        """Bound on the errors of the outputs of the run at samples, `(batch, T, p)`."""
        return self._walk[0].bound

    def errors_at(self, t: Array) -> OutputErrors:
        """Return the errors of the outputs of the run at any times, `(batch, len(t), p)`."""
        at, _, between = self._places(t)
        errors = self._walk[0]
        found = OutputErrors(errors.correction[:, at], errors.remainder[:, at])
        if len(between):
            own = self._errors_between(t, between)
            found.correction[:, between], found.remainder[:, between] = own.correction, own.remainder
        return found

    def bound_at(self, t: Array) -> Array:
        """Return a bound on the errors of outputs at any times, `(batch, len(t), p)`.

        At samples it holds for the outputs of the run and for those that are computed again from its states.
        """
        at, _, _ = self._places(t)
        found, again = self.errors_at(t), self._walk[1]
        if np.array_equal(self.times, t):  # evaluated as they were
            again = OutputErrors(again.correction, found.remainder)
        recomputed = OutputErrors(again.correction[:, at], again.remainder[:, at]).bound
        is_sample = (self.times[at] == t)[:, None]
        return np.where(is_sample, np.maximum(found.bound, recomputed), found.bound)

    def _places(self, t: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Return the sample of each time, the last one up to it, and which times are between samples.

        The sample of the first of two equal times is that before a jump.
        """
        before = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 1)
        doubled, at = np.flatnonzero(t[1:] == t[:-1]), before.copy()
        at[doubled] = np.searchsorted(self.times, t[doubled], side="left")
        return at, before, np.flatnonzero(self.times[at] != t)

    @_IGNORE_OVERFLOW
    def _errors_between(self, t: Array, between: NDArray[np.intp]) -> OutputErrors:
        """Return errors at times between samples, for the outputs that the run gives at all times t."""
        run, n, before = self._run, len(self._units), self._places(t)[1][between]
        y = run.outputs(t).reshape(len(run.u), len(t), -1)[:, between]
        times = t[between]
        rest = propagate(self._walk[2], self._weights(np.eye(n))) if n else np.zeros((len(run.u), self._cells[1], 0))
        of_sample = rest[:, self._cell_of_samples()[before]]
        states, errors = np.empty((2, len(run.u), len(times), n))
        for piece in self._pieces():
            inside = np.flatnonzero((before >= piece.samples.start) & (before < piece.samples.stop))
            states[:, inside] = piece.x[:, before[inside] - piece.samples.start]
            errors[:, inside] = piece.errors[:, before[inside] - piece.samples.start]
        ladder, found = self._halves, OutputErrors(*np.empty((2, len(run.u), len(times), len(self._equation.C))))
        at_once = max(1, _MAX_QUERIES // max(1, n))
        for begin in range(0, len(times), at_once):
            part = slice(begin, begin + at_once)
            for member in range(len(run.u)):
                own = self._between(
                    ladder, times[part], before[part], states[member, part], errors[member, part],
                    of_sample[member, part], run.u[member], y[member, part],
                )  # fmt: skip
                found.correction[member, part], found.remainder[member, part] = own.correction, own.remainder
        return found

    def _between(
        self, ladder: StepLadder, t: Array, before: NDArray[np.intp], x: Array, errors: Array, unknown: Array, u: Array,
        y: Array,
    ) -> OutputErrors:  # fmt: skip
        """Return the errors of outputs y at times t after some samples, for one signal."""
        equation, samples, n = self._equation, self._run.samples.t, x.shape[1]
        after = np.minimum(before + 1, len(samples) - 1)
        inputs = StepInputs(u[before], u[after], two_sum(samples[after], -samples[before]), self._run.linear)
        lengths = two_sum(t, -samples[before])
        ends = inputs.at(np.arange(len(t)), *lengths)
        defects, x = ladder.defects(x, None, inputs, lengths)
        errors, unknown = errors.copy(), 1.01 * unknown
        for part in defects:
            own = errors[part.rows]
            P = np.eye(n) if part.level < 0 else ladder.steps[part.level].high[:, :n]
            unknown[part.rows] = (
                unknown[part.rows] @ np.abs(P).T + part.error + self._rounding_of_errors(ladder, part, own)
            )
            errors[part.rows] = own @ P.T + part.value
        found = self._output_errors(x, errors, ends.high, y, ends.low)
        # Values depend in their last digits on how many times are evaluated together.
        sizes = np.abs(x) @ np.abs(equation.C).T + np.abs(ends.high) @ np.abs(equation.D.high).T
        rounding = (n + u.shape[1] + 4) * UNIT_ROUNDOFF * sizes
        return OutputErrors(found.correction, found.remainder + 1.01 * unknown @ np.abs(equation.C).T + rounding)


@dataclass(frozen=True, eq=False)
class ExactErrorBound:
    """Bound on the error of a solution: rounding of all kinds, and the distance of a function from its samples."""

    trajectory: TrajectoryErrorBound
    batch_shape: tuple[int, ...]
    input_error: Array | None
    """Effect of the distance of a function of time from the lines that replace it, `(p,)`; None without one."""
    start: float
    stop: float

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(..., len(t), p)` each."""
        return self._parts(self.trajectory.bound_at(t))

    def overall(self) -> dict[str, Array]:
        """Return the parts for the outputs at all samples of the solution, `(..., p)` each."""
        t = self.trajectory.times
        inside = (t >= self.start) & (t <= self.stop)
        return self._parts(self.trajectory.bound_at_samples[:, inside].max(axis=1))

    def errors_at(self, t: Array) -> OutputErrors:
        """Return the errors at any times, `(..., len(t), p)`, without that of a function's samples."""
        errors = self.trajectory.errors_at(t)
        shape = (*self.batch_shape, *errors.correction.shape[1:])
        return OutputErrors(errors.correction.reshape(shape), errors.remainder.reshape(shape))

    def _parts(self, bound: Array) -> dict[str, Array]:
        parts = {"rounding": bound.reshape(*self.batch_shape, *bound.shape[1:])}
        if self.input_error is not None:
            parts["input"] = np.broadcast_to(self.input_error, parts["rounding"].shape).copy()
        return parts


def bound_exact_run(run: ExactRun, outputs: Array | None, start: float, stop: float) -> ExactErrorBound | UnknownBound:
    """Return the error bound between two times, for outputs at all samples that were computed by the run."""
    origin = run.realization.origin
    if run.realization.has_operator or (origin is not None and origin.sparse is not None and origin.sparse.is_large):
        return UnknownBound(run.samples.batch_shape, run.realization.system.n_outputs)
    input_error = None
    context = run.network
    if run.input_error > 0.0 and isinstance(context, SimulationContext):
        gains = bound_impulse_responses(context, stop - start).integral + np.abs(context.system.D)
        input_error = _INPUT_ERROR_MARGIN * run.input_error * gains.sum(axis=1)
    return ExactErrorBound(TrajectoryErrorBound(run, outputs), run.samples.batch_shape, input_error, start, stop)
