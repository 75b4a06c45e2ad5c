"""One exact step of a network as the arrays that leave Python: what C, FMUs and ONNX graphs compute is the same.

    z_{k+1} = P z_k + Γ₀ u_k + Γ₁ u_{k+1}        y_k = C z_k + D u_k

in the coordinates of the exact engine, P made of pairs (complex numbers), reals and dense blocks. A state of the model
is the real parts of all pairs, then their imaginary parts, then reals, then dense blocks. Slow ones stand behind the
others of their kind: dense blocks, and in single precision scalars too, are advanced by increments there, for which
P − 1 is known to all its digits. In the user's own states, of very different sizes, that is worth four digits.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.modal import DenseBlock, ModalSystem
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.one_step import OneStep
from ltinet.solve.steps.propagators import matrix_steps, scalar_steps

Indices = NDArray[np.intp]
SLOW = 1e-3  # |λ|h below which single precision, which has seven digits, would lose three of them and more beside 1


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
    prepared: PreparedNetwork
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


def step_model(
    prepared: PreparedNetwork, dt: float, *, hold: Literal["linear", "zero"], x0: Array | None, by_increments: bool
) -> StepModel:
    """The step that a stepper of the network takes; `by_increments` sets slow scalars apart."""
    system = prepared.system
    step = prepared.grids.step(dt, linear=hold == "linear")
    order, slow_pairs, slow_reals = _ordered(system, dt, by_increments=by_increments)
    blocks, block_order, slow_blocks = _blocks(system, step)
    places = _places(system, order, block_order)
    start = np.zeros(system.n_states)
    if x0 is not None:
        start = system.packed_from_blocks(prepared.initial_state(x0, ()))[0]
    drives = (step.G0, step.G1)
    Gamma0, Gamma1 = (_packed(system, drive.scalars, [part.T for part in drive.dense])[:, places].T for drive in drives)
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
        B=_packed(system, system.B.T, [block.G.T for block in system.blocks])[:, places].T,
        Gamma0=Gamma0,
        Gamma1=Gamma1,
        C=prepared.output_weights[:, places],
        D=system.D,
        start=start[places],
        prepared=prepared,
        places=places,
    )


def _packed(system: ModalSystem, scalars: Complex, dense: list[Array]) -> Array:
    """Inputs `(m, …)` of scalars and dense blocks as those of packed states, `(m, n)`."""
    pairs = np.ascontiguousarray(scalars[:, : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, scalars[:, system.n_pairs :].real, *dense], axis=-1)


def _ordered(system: ModalSystem, dt: float, *, by_increments: bool) -> tuple[Indices, int, int]:
    """Pairs, then reals, slow ones last, and how many of each are slow."""
    slow = (np.abs(system.rates) * dt < SLOW) & by_increments
    pairs, reals = np.split(np.arange(len(slow)), [system.n_pairs])
    order = [own[np.argsort(slow[own], kind="stable")] for own in (pairs, reals)]
    return np.concatenate(order), int(slow[pairs].sum()), int(slow[reals].sum())


def _blocks(system: ModalSystem, step: OneStep) -> tuple[tuple[BlockStep, ...], list[int], int]:
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
    return bool(np.abs(np.linalg.eigvals(block.F)).min() * dt < SLOW)


def _places(system: ModalSystem, order: Indices, block_order: list[int]) -> Indices:
    """Where the states of the model stand among packed states."""
    pairs, reals = np.split(order, [system.n_pairs])
    n_scalars = len(system.rates) + system.n_pairs
    sizes = np.array([len(block.F) for block in system.blocks], dtype=np.intp)
    starts = n_scalars + np.cumsum(sizes) - sizes
    dense = [np.arange(starts[own], starts[own] + sizes[own]) for own in block_order]
    return np.concatenate([2 * pairs, 2 * pairs + 1, reals + system.n_pairs, *dense]).astype(np.intp)
