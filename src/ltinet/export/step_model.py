"""One exact step of a network as arrays, and the validated settings of an export.

    z_{k+1} = P z_k + Γ₀ u_k + Γ₁ u_{k+1}        y_k = C z_k + D u_k

in the coordinates of the exact engine, with P made of pairs (complex numbers), reals and dense blocks; C, FMU and ONNX
exports compute the same step. A state consists of the real parts of all pairs, their imaginary parts, reals, and dense
blocks. Slow modes stand last in each group: dense blocks, and in single precision scalars too, are advanced there by
increments, for which P − 1 is known to all its digits. In the user's own states, of very different sizes, this is worth
four digits.
"""

import warnings
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
from ltinet.simulation.modal import DenseBlock, ModalSystem
from ltinet.simulation.propagators import matrix_steps, scalar_steps
from ltinet.simulation.step_model import ExactStep
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings

Indices = NDArray[np.intp]
SLOW_MODE_LIMIT = (
    1e-3  # |λ|h below which single precision, which has seven digits, would lose three of them and more beside 1
)


class BlockStep(NamedTuple):
    """A dense block: z' = F z + G u, and its step."""

    F: Matrix
    G: Matrix
    P: Matrix
    less_one: Matrix
    """P − 1."""


@dataclass(frozen=True, eq=False)
class StepModel:
    """The arrays of one step; `slow_…` counts those at the end of each kind that are advanced by increments."""

    dt: float
    hold: Literal["linear", "zero"]
    rates: Complex
    """λ of pairs, then of reals."""
    P: Complex
    less_one: Complex
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
    """The initial state."""
    prepared: SimulationContext
    places: Indices
    """Where each state stands among the engine's packed states."""
    tapped: bool = False
    """Whether inputs are taps of delay lines (`export.tapped`), which are not those of the dense blocks."""

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
    def n_reals(self) -> int:
        """Number of real scalars."""
        return len(self.rates) - self.n_pairs

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
        """From states of the model to those of the user, x = T z."""
        engine = self.prepared
        units = np.zeros((self.n_states, self.n_states))
        units[np.arange(self.n_states), self.places] = 1.0
        return np.asarray(engine.coordinates.user_from_blocks(engine.system.blocks_from_packed(units)).T)

    def state_of(self, x: Array) -> Array:
        """The state of the model for states x of the user, along the last axis."""
        z = self.prepared.initial_state(x, x.shape[:-1])
        packed = self.prepared.system.packed_from_blocks(z).reshape(x.shape)
        return np.asarray(packed[..., self.places])


def build_step_model(
    prepared: SimulationContext, dt: float, *, hold: Literal["linear", "zero"], x0: Array | None, by_increments: bool
) -> StepModel:
    """The step that a stepper of the network takes; `by_increments` sets slow scalars apart."""
    system = prepared.system
    step = prepared.grids.step(dt, linear=hold == "linear")
    order, slow_pairs, slow_reals = _order_scalars(system, dt, by_increments=by_increments)
    blocks, block_order, slow_blocks = _order_dense_blocks(system, step)
    places = _state_positions(system, order, block_order)
    start = np.zeros(system.n_states)
    if x0 is not None:
        start = system.packed_from_blocks(prepared.initial_state(x0, ()))[0]
    drives = (step.G0, step.G1)
    Gamma0, Gamma1 = (
        _pack_inputs(system, drive.scalars, [part.T for part in drive.dense])[:, places].T for drive in drives
    )
    return StepModel(
        dt=dt,
        hold=hold,
        rates=system.rates[order],
        P=step.scalar_powers(np.array([1]))[0][order],
        less_one=(scalar_steps(system.rates, np.array([dt]), linear=False).begin[0] * system.rates)[order],
        n_pairs=system.n_pairs,
        blocks=blocks,
        slow_pairs=slow_pairs,
        slow_reals=slow_reals,
        slow_blocks=slow_blocks,
        B=_pack_inputs(system, system.B.T, [block.G.T for block in system.blocks])[:, places].T,
        Gamma0=Gamma0,
        Gamma1=Gamma1,
        C=prepared.output_weights[:, places],
        D=system.D,
        start=start[places],
        prepared=prepared,
        places=places,
    )


def _pack_inputs(system: ModalSystem, scalars: Complex, dense: list[Array]) -> Array:
    """Inputs `(m, …)` of scalars and dense blocks as those of packed states, `(m, n)`."""
    pairs = np.ascontiguousarray(scalars[:, : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, scalars[:, system.n_pairs :].real, *dense], axis=-1)


def _order_scalars(system: ModalSystem, dt: float, *, by_increments: bool) -> tuple[Indices, int, int]:
    """Pairs, then reals, slow ones last, and how many of each are slow."""
    slow = (np.abs(system.rates) * dt < SLOW_MODE_LIMIT) & by_increments
    pairs, reals = np.split(np.arange(len(slow)), [system.n_pairs])
    order = [own[np.argsort(slow[own], kind="stable")] for own in (pairs, reals)]
    return np.concatenate(order), int(slow[pairs].sum()), int(slow[reals].sum())


def _order_dense_blocks(system: ModalSystem, step: ExactStep) -> tuple[tuple[BlockStep, ...], list[int], int]:
    """Dense blocks, those with a slow eigenvalue last, their order, and how many are slow."""
    slow = [_is_slow(block, step.length) for block in system.blocks]
    order = sorted(range(len(slow)), key=lambda own: slow[own])
    found = []
    for own in order:
        block = system.blocks[own]
        less_one = matrix_steps(block.F, block.F, np.array([step.length]), linear=False).begin[0]
        found.append(BlockStep(block.F, block.G, step.dense[own], less_one))
    return tuple(found), order, sum(slow)


def _is_slow(block: DenseBlock, dt: float) -> bool:
    return bool(np.abs(np.linalg.eigvals(block.F)).min() * dt < SLOW_MODE_LIMIT)


def _state_positions(system: ModalSystem, order: Indices, block_order: list[int]) -> Indices:
    """Where the states of the model stand among packed states."""
    pairs, reals = np.split(order, [system.n_pairs])
    n_scalars = len(system.rates) + system.n_pairs
    sizes = np.array([len(block.F) for block in system.blocks], dtype=np.intp)
    starts = n_scalars + np.cumsum(sizes) - sizes
    dense = [np.arange(starts[own], starts[own] + sizes[own]) for own in block_order]
    return np.concatenate([2 * pairs, 2 * pairs + 1, reals + system.n_pairs, *dense]).astype(np.intp)


Precision = Literal["double", "float"]
PRECISIONS: dict[str, type[np.floating[Any]]] = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True)
class ExportSettings:
    """Checked options."""

    dt: float
    hold: Literal["linear", "zero"]
    dtype: Precision
    x0: Array | None = None
    signals: SignalSettings = NO_SETTINGS
    """Delays and operating point."""


def validate_settings(
    dt: Any, *, hold: Any, dtype: Any, x0: Any, signals: SignalSettings = NO_SETTINGS
) -> ExportSettings:
    """The options of an export.

    Raises:
        InvalidSignalError: dt is no positive time, the hold is not known, x0 is no state.
        FileFormatError: the precision is not known.
    """
    if dtype not in PRECISIONS:
        raise FileFormatError(f'dtype is {sanitize(repr(dtype))}; give "double" or "float"')
    held: Literal["linear", "zero"] = "linear" if validate_hold(hold) in ("linear", "foh") else "zero"
    start = None if x0 is None else as_real_array(x0, "x0")
    return ExportSettings(as_time_step(dt, "dt"), held, dtype, start, signals)


def build_exported_model(
    prepared: SimulationContext, settings: ExportSettings, *, by_increments: bool = True
) -> StepModel:
    """The arrays of one step that fit the precision; single precision takes slow scalars by increments, or not.

    Raises:
        FileFormatError: a number is beyond the largest of that precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        model = build_step_model(
            prepared,
            settings.dt,
            hold=settings.hold,
            x0=settings.x0,
            by_increments=by_increments and settings.dtype == "float",
        )
        dense = [entry.ravel() for block in model.blocks for entry in (block.P, block.less_one)]
        parts = [model.Gamma0, model.Gamma1, model.C, model.D, model.start, np.abs(model.P), *dense]
        largest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if not largest <= float(np.finfo(PRECISIONS[settings.dtype]).max):
        way_out = (
            'choose dtype="double"' if settings.dtype == "float" and np.isfinite(largest) else "choose a smaller dt"
        )
        raise FileFormatError(
            f"one step of this network has a number of size {largest:.2g}, too large for {settings.dtype}; {way_out}, "
            "or other units for inputs and outputs"
        )
    return model


def growth_warnings(model: StepModel) -> tuple[str, ...]:
    """What one might not expect of an exported network: that its states grow without end."""
    rates = [model.rates, *(np.linalg.eigvals(block.F) for block in model.blocks)]
    fastest = float(np.max(np.concatenate(rates).real, initial=-np.inf)) if model.n_states else -np.inf
    if fastest <= 0.0:
        return ()
    tenfold = np.log(10.0) / fastest / model.dt
    return (
        f"the network is unstable: a mode grows as exp({fastest:.3g} t), tenfold in {tenfold:.3g} steps; its outputs "
        "overflow in the end",
    )


def issue_warnings(notes: tuple[str, ...]) -> None:
    """Say it to whoever called."""
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=3)
