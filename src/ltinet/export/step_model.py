"""One exact step of a network as arrays, and the validated settings of an export.

    z_{k+1} = P z_k + Γ₀ u_k + Γ₁ u_{k+1}        y_k = C z_k + D u_k

in the coordinates of the exact engine, with P made of pairs (complex numbers), reals and dense blocks; C, FMU and ONNX
exports compute the same step. A state consists of the real parts of all pairs, their imaginary parts, reals, and dense
blocks. Slow modes stand last in each group: dense blocks, and in single precision scalars too, are advanced by
increments z ← z + ((P − 1) z + …), with P − 1 computed without cancellation. In coordinates of very different sizes
this gains four digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.sampled import validate_hold
from ltinet.signals.times import as_time_step
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.discrete_step import eigenvalue_powers
from ltinet.simulation.modal import ModalSystem
from ltinet.simulation.propagators import exp_of_multiples, matrix_steps, scalar_steps
from ltinet.simulation.recurrence import flush_underflow
from ltinet.simulation.step_model import ExactStep
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings

Indices = NDArray[np.intp]
# |λ|h below which a mode is slow: in single precision, of seven digits, e^{λh} = 1 + λh loses three or more of λh.
SLOW_MODE_LIMIT = 1e-3


class BlockStep(NamedTuple):
    """A dense block: z' = F z + G u, and its step."""

    F: Matrix
    G: Matrix
    P: Matrix
    P_minus_1: Matrix
    """P − 1, without cancellation."""


@dataclass(frozen=True, eq=False)
class StepModel:
    """The arrays of one step; `slow_…` counts the modes at the end of each kind that are advanced by increments."""

    dt: float
    hold: Literal["linear", "zero"]
    rates: Complex
    """λ of pairs, then of reals."""
    P: Complex
    P_minus_1: Complex
    """P − 1 of pairs and reals."""
    n_pairs: int
    blocks: tuple[BlockStep, ...]
    slow_pairs: int
    slow_reals: int
    slow_blocks: int
    B: Matrix
    Gamma0: Matrix
    Gamma1: Matrix
    C: Matrix
    D: Matrix
    start: Array
    """Initial state."""
    context: SimulationContext
    positions: Indices
    """Index of each state among the engine's packed states."""
    is_discrete: bool = False
    """True for a difference equation, whose P and Γ are those of the model itself; its rates are log(z)/dt."""
    tapped: bool = False
    """True if inputs are taps of delay lines (`tapped_delay_line`), and not the inputs of the dense blocks."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.B)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.D)

    @property
    def n_slow_states(self) -> int:
        """Number of states that are advanced by increments."""
        dense = sum(len(block.F) for block in self.blocks[len(self.blocks) - self.slow_blocks :])
        return 2 * self.slow_pairs + self.slow_reals + dense

    @property
    def n_reals(self) -> int:
        """Number of real scalars."""
        return len(self.rates) - self.n_pairs

    @property
    def growth_rates(self) -> Array:
        """Real parts of the rates of all modes, −∞ for eigenvalues z = 0."""
        dense = [np.linalg.eigvals(block.F) for block in self.blocks]
        if self.is_discrete:
            dense = [_logarithms(values, self.dt) for values in dense]
        return np.concatenate([self.rates, *dense]).real

    def scalar_powers(self, counts: Indices) -> Complex:
        """Return P^k of pairs and reals for some k, `(counts, n_scalars)`."""
        if self.is_discrete:
            return eigenvalue_powers(self.P, counts)
        return flush_underflow(exp_of_multiples(self.rates, self.dt, counts))

    def advanced(self, z: Array) -> Array:
        """Return P z in double precision."""
        pairs, n_scalars = self.n_pairs, len(self.rates) + self.n_pairs
        moved = self.P[:pairs] * (z[:pairs] + 1j * z[pairs : 2 * pairs])
        parts, first = [moved.real, moved.imag, self.P[pairs:].real * z[2 * pairs : n_scalars]], n_scalars
        for block in self.blocks:
            parts.append(block.P @ z[first : first + len(block.F)])
            first += len(block.F)
        return np.concatenate(parts)

    @cached_property
    def T(self) -> Matrix:
        """Matrix from states of the model to those of the user, x = T z."""
        engine = self.context
        units = np.zeros((self.n_states, self.n_states))
        units[np.arange(self.n_states), self.positions] = 1.0
        return np.asarray(engine.coordinates.user_from_blocks(engine.system.blocks_from_packed(units)).T)


def build_step_model(
    context: SimulationContext, dt: float, *, hold: Literal["linear", "zero"], x0: Array | None, by_increments: bool
) -> StepModel:
    """Return the step that a stepper of the network takes; `by_increments` separates slow scalars."""
    system, is_discrete = context.system, context.dt is not None
    step = context.grids.step(dt, linear=hold == "linear")
    P = step.scalar_powers(np.array([1]))[0]
    P_minus_1 = (
        P - 1.0 if is_discrete else scalar_steps(system.rates, np.array([dt]), linear=False).begin[0] * system.rates
    )
    slowness = np.abs(P_minus_1) if is_discrete else np.abs(system.rates) * dt
    order, slow_pairs, slow_reals = _order_scalars(system, slowness, by_increments=by_increments)
    blocks, block_order, slow_blocks = _order_dense_blocks(system, step, is_discrete=is_discrete)
    positions = _state_positions(system, order, block_order)
    start = np.zeros(system.n_states)
    if x0 is not None:
        start = system.packed_from_blocks(context.initial_state(x0, ()))[0]
    drives = (step.G0, step.G1)
    Gamma0, Gamma1 = (
        _pack_inputs(system, drive.scalars, [part.T for part in drive.dense])[:, positions].T for drive in drives
    )
    return StepModel(
        dt=dt,
        hold=hold,
        rates=(_logarithms(system.rates, dt) if is_discrete else system.rates)[order],
        P=P[order],
        P_minus_1=P_minus_1[order],
        n_pairs=system.n_pairs,
        blocks=blocks,
        slow_pairs=slow_pairs,
        slow_reals=slow_reals,
        slow_blocks=slow_blocks,
        B=_pack_inputs(system, system.B.T, [block.G.T for block in system.blocks])[:, positions].T,
        Gamma0=Gamma0,
        Gamma1=Gamma1,
        C=context.output_weights[:, positions],
        D=system.D,
        start=start[positions],
        context=context,
        positions=positions,
        is_discrete=is_discrete,
    )


def _logarithms(eigenvalues: NDArray[Any], dt: float) -> Complex:
    """Return log(z)/dt; −∞ for z = 0."""
    values: Complex = np.asarray(eigenvalues, dtype=np.complex128)
    result = np.full(len(values), -np.inf, dtype=np.complex128)
    moves = values != 0.0
    result[moves] = np.log(values[moves]) / dt
    return result


def _pack_inputs(system: ModalSystem, scalars: Complex, dense: list[Array]) -> Array:
    """Return input matrices `(m, …)` of scalars and dense blocks as those of packed states, `(m, n)`."""
    pairs = np.ascontiguousarray(scalars[:, : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, scalars[:, system.n_pairs :].real, *dense], axis=-1)


def _order_scalars(system: ModalSystem, slowness: Array, *, by_increments: bool) -> tuple[Indices, int, int]:
    """Return the order of pairs, then reals, slow ones last, and how many of each are slow; `slowness` is |λ|dt."""
    slow = (slowness < SLOW_MODE_LIMIT) & by_increments
    pairs, reals = np.split(np.arange(len(slow)), [system.n_pairs])
    order = [scalars[np.argsort(slow[scalars], kind="stable")] for scalars in (pairs, reals)]
    return np.concatenate(order), int(slow[pairs].sum()), int(slow[reals].sum())


def _order_dense_blocks(
    system: ModalSystem, step: ExactStep, *, is_discrete: bool
) -> tuple[tuple[BlockStep, ...], list[int], int]:
    """Return dense blocks, blocks with a slow eigenvalue last, with their order and the number of slow ones."""
    values = [np.linalg.eigvals(block.F) for block in system.blocks]
    slowness = [np.abs(value - 1.0) if is_discrete else np.abs(value) * step.length for value in values]
    slow = [bool(entries.min() < SLOW_MODE_LIMIT) for entries in slowness]
    order = sorted(range(len(slow)), key=lambda index: slow[index])
    blocks = []
    for index in order:
        block = system.blocks[index]
        if is_discrete:
            blocks.append(BlockStep(block.F, block.G, block.F, block.F - np.eye(len(block.F))))
            continue
        # P − 1 = ∫ e^{Fs} F ds over a step, without cancellation.
        P_minus_1 = matrix_steps(block.F, block.F, np.array([step.length]), linear=False).begin[0]
        blocks.append(BlockStep(block.F, block.G, step.dense[index], P_minus_1))
    return tuple(blocks), order, sum(slow)


def _state_positions(system: ModalSystem, order: Indices, block_order: list[int]) -> Indices:
    """Return the index of each state of the model among packed states."""
    pairs, reals = np.split(order, [system.n_pairs])
    n_scalars = len(system.rates) + system.n_pairs
    sizes = np.array([len(block.F) for block in system.blocks], dtype=np.intp)
    starts = n_scalars + np.cumsum(sizes) - sizes
    dense = [np.arange(starts[index], starts[index] + sizes[index]) for index in block_order]
    return np.concatenate([2 * pairs, 2 * pairs + 1, reals + system.n_pairs, *dense]).astype(np.intp)


Precision = Literal["double", "float"]
PRECISIONS: dict[str, type[np.floating[Any]]] = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True)
class ExportSettings:
    """Validated options of an export."""

    dt: float
    hold: Literal["linear", "zero"]
    dtype: Precision
    x0: Array | None = None
    signals: SignalSettings = NO_SETTINGS
    """Delays and operating point."""


def validate_settings(
    dt: Any, *, hold: Any, dtype: Any, x0: Any, signals: SignalSettings = NO_SETTINGS
) -> ExportSettings:
    """Return the options of an export.

    Raise `InvalidSignalError` for an invalid dt, hold or x0, and `FileFormatError` for an unknown precision.
    """
    if dtype not in PRECISIONS:
        raise FileFormatError(f'dtype is {sanitize(repr(dtype))}; give "double" or "float"')
    hold, start = validate_hold(hold), None if x0 is None else as_real_array(x0, "x0")
    return ExportSettings(as_time_step(dt, "dt"), hold, dtype, start, signals)


def build_exported_model(
    context: SimulationContext, settings: ExportSettings, *, by_increments: bool = True
) -> StepModel:
    """Return the arrays of one step, which must fit the precision; in single precision slow scalars go by increments.

    Raise `FileFormatError` if an entry overflows in that precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        by_increments = by_increments and settings.dtype == "float"
        model = build_step_model(context, settings.dt, hold=settings.hold, x0=settings.x0, by_increments=by_increments)
        dense = [entry.ravel() for block in model.blocks for entry in (block.P, block.P_minus_1)]
        parts = [model.Gamma0, model.Gamma1, model.C, model.D, model.start, np.abs(model.P), *dense]
        require_representable(parts, settings.dtype, "one step of this network")
    return model


def require_representable(parts: Sequence[NDArray[Any]], dtype: Precision, noun: str) -> None:
    """Raise `FileFormatError` if an entry overflows in a precision."""
    largest = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    if not largest <= float(np.finfo(PRECISIONS[dtype]).max):
        is_single = dtype == "float" and np.isfinite(largest)
        remedy = 'choose dtype="double"' if is_single else "choose a smaller dt"
        raise FileFormatError(
            f"{noun} has an entry of size {largest:.2g}, too large for {dtype}; {remedy}, or other units for inputs and "
            "outputs"
        )


def growth_warnings(model: StepModel) -> tuple[str, ...]:
    """Return a warning if the network is unstable, so that its outputs overflow eventually."""
    fastest = float(np.max(model.growth_rates, initial=-np.inf))
    if fastest <= 0.0:
        return ()
    tenfold = np.log(10.0) / fastest / model.dt
    return (
        f"the network is unstable: a mode grows as exp({fastest:.3g} t), tenfold in {tenfold:.3g} steps; its outputs will "
        "overflow",
    )
