"""What a run of the exact engine commits along its way, and what becomes of it in the outputs."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed, DenseKernel, dense_kernel, scalar_errors
from ltinet.bounds.chance import dense_spread, scalar_spread
from ltinet.bounds.crowds import Crowds
from ltinet.bounds.repeated_roundings import LAST_DIGITS
from ltinet.bounds.step_rounding import DenseSteps, ScalarSteps, StepSizes, roundings, steps_within
from ltinet.once import cached_property
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.exact.between_samples import BlockErrors, block_errors
from ltinet.solve.exact.error_sources import Late, Sources
from ltinet.solve.exact.finer_sizes import FinerSizes
from ltinet.solve.exact.infinite_sizes import ratio, weighted
from ltinet.solve.exact.kinds_of_steps import kinds_of_steps
from ltinet.solve.exact.sizes import length_of, running_max
from ltinet.solve.exact.uneven_steps import UnevenErrors
from ltinet.solve.exact.user_kernel import user_kernel
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.propagators import phi2
from ltinet.tolerances import EPS

_LARGEST = 1e300  # what takes the place of a number that is not finite
_FACTORS_OF_STATES = 1.0  # eps, beside sums, where outputs are C z of a state: a product ½, the last sum ½
_FACTORS = 3.2  # eps, beside sums: an exponential 1, what its exponent lost ½, a complex product √5/2, the last sum ½
_SECOND_ORDER = 1e-3  # of the outputs: errors so large that what they do to each other counts
_PASSES, _NO_MORE = 16, 1e-3  # passes of feedback, and the share of the sum below which there is no more to come
_LOOKS, _STEEPEST, _STILL_LESS = 64, 16, 0.99  # where there is: at one cell, doublings from cell to cell, their end


@dataclass(frozen=True, eq=False)
class ExactRun:
    """How the engine goes through time: samples of one length, or up to it, so many at a time."""

    arrays: EngineArrays
    cells: Array
    """Edges of equal cells of time."""
    h: float
    """The longest step between samples."""
    width: int
    n_samples: Array
    """In each cell, `(cells,)`."""
    n_steps: Array
    """Steps of the recurrence in each cell."""
    n_blocks: Array
    """Blocks of time that end in each cell, at most: those of states begin one sample after those of outputs."""
    linear: bool
    shares: Array | None = None
    """On uneven times: which share of the steps in each cell is about as long as h, h/2, h/4, …"""
    uneven: UnevenErrors | None = None
    """On uneven times: how far the engine's own steps are off."""
    crowds: Crowds | None = None
    """On uneven times: how close steps stand."""
    lost: Array | None = None
    """On uneven times: what rounding took from the lengths of all steps in each cell."""
    repeats: bool = True
    """Whether some inputs are held for many samples; without knowing them, they may be."""
    convolution: Convolution | None = None

    @property
    def cell(self) -> float:
        """Length of one; edges far from zero are rounded, and many in a row are not to add that up."""
        return length_of(self.cells)

    @property
    def window(self) -> int:
        """How many samples a sum takes together."""
        return self.width if self.convolution is None else 2 * self.convolution.width

    @cached_property
    def kinds(self) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
        """Which modes step how."""
        return kinds_of_steps(self.arrays, self.h, self.window, shares=self.shares, repeats=self.repeats)

    @cached_property
    def kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach the outputs."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(block.C, block.F, horizon=horizon, n_cells=n_cells) for block in blocks]

    def sizes(
        self,
        states: Array,
        inputs: Array,
        *,
        summed: Array,
        norms: Array,
        changes: Array | None = None,
        finer: FinerSizes | None = None,
    ) -> StepSizes:
        """Sizes of states and inputs at samples, and over as many cells as a step is long."""
        steps = 1 if self.window == 1 else 2  # what faded in one was there at the beginning of the one before
        n_behind = min(math.ceil((steps * self.window - 1) * self.h / self.cell), len(states) - 1)
        begun, within = (states, None) if finer is None else finer
        behind, inputs = running_max(begun, n_behind), running_max(inputs, n_behind)
        return StepSizes(states, begun, behind, inputs, summed, norms, changes, within)

    @cached_property
    def user_kernel(self) -> DenseKernel:
        """How errors in the user's states reach the outputs."""
        if self.arrays.basis is None:
            raise ValueError("a network without a form has no states but its own")
        _, X_inv = self.arrays.basis
        return user_kernel(self.arrays, X_inv, self.kernels, cell=self.cell, n_cells=len(self.cells) - 1)

    def parts(self, sizes: StepSizes, *, start: Array, user_start: Array, late: Late | None = None) -> dict[str, Array]:
        """Bounds on the errors of outputs, `(cells, p)`, for states and inputs of some sizes at the samples."""
        arrays, residuals = self.arrays, self.arrays.residuals
        inside = self._inside(sizes)
        sources = Sources(arrays, sizes.inputs, start, user_start)
        decomposition = self._by_residuals(sources, inside)
        largest = np.max(weighted(inside, arrays.mode_outputs), axis=0)
        if np.any(np.max(decomposition, axis=0) > _SECOND_ORDER * largest):
            decomposition = self._by_residuals(sources, inside + self._states_off(sources, inside))
        rounding = self._rounding(self._shifted(sizes)) + self._by_even_inputs(sizes)
        rounding = sum((block.outputs(sizes) for block in self._blocks), rounding)
        found = {"rounding": rounding, "decomposition": np.zeros_like(decomposition)}
        found[residuals.part] += decomposition
        if late is not None:
            found["times"] = self._by_late_samples(late)
        if self.lost is not None:
            off = self.lost[:, None] * self._speeds(sizes)
            none = np.zeros_like(off)
            found["times"] = self.outputs(Committed(none[0], off, np.ones(len(off)), none))
        return found

    def _inside(self, sizes: StepSizes) -> Array:
        """How large states are anywhere in each cell, `(cells, modes)`."""
        known, gap = (sizes.here, self.h) if sizes.within is None else (sizes.within, self.cell)
        return np.hstack([steps.inside(known[:, own], sizes.inputs, gap) for own, steps in self.kinds])

    def _by_late_samples(self, late: Late) -> Array:
        """A sample beside its place on the grid: the step before it ends, and the input changes, at another time."""
        per_input = np.vstack([steps.moved_by_sample(linear=self.linear) for _, steps in self.kinds])
        none = np.zeros((len(late.moved), len(per_input)))
        # Where states fade within a cell it counts how many samples still matter, where they last what all sum up to.
        by_largest = self.outputs(Committed(none[0], late.largest @ per_input.T, self.n_samples, none))
        by_sum = self.outputs(Committed(none[0], late.summed @ per_input.T, np.ones(len(none)), none))
        return np.fmin(by_largest, by_sum) + late.moved

    def _by_residuals(self, sources: Sources, states: Array) -> Array:
        """What is left of the system does to the outputs, for states as large as `states` `(cells, modes)`."""
        arrays, residuals = self.arrays, self.arrays.residuals
        bound = self.outputs(sources.in_modes(states, self.n_steps))
        if residuals.in_user_states is not None:
            errors = sources.in_user_states(residuals.in_user_states, states, self.n_steps)
            bound = np.fmin(bound, self.user_kernel.output_errors(errors, cell=self.cell))
        return np.asarray(bound + arrays.packed(states) @ residuals.in_output.T)

    def _states_off(self, sources: Sources, states: Array) -> Array:
        """How far the states of the system are from those of the engine, `(cells, modes)`.

        ε' = (F + ΔF) ε + ΔF z + ΔG u: what ε feeds back into itself through ΔF is added pass by pass, until no more
        comes.
        """
        added = self.states(sources.in_modes(states, self.n_steps))
        total = np.zeros_like(added)
        for _ in range(_PASSES):
            total += added
            if not np.any(added > _NO_MORE * total):
                return total
            added = self.states(sources.fed_back(added, self.n_steps))
        return total + self._all_further(sources, added, total)

    def _all_further(self, sources: Sources, added: Array, total: Array) -> Array:
        """What the last pass and all after it add: at most w/(1 − q), where w is no less and a pass makes q w of it.

        Errors act on what comes after them: w is what a cell passes on to itself, and rises fast from cell to cell.
        """
        shape, cells = total.max(axis=0), np.arange(len(total))[:, None]
        for _ in range(_LOOKS):  # towards the shape of which a pass makes the least in its own cell
            shape = shape + self.states(sources.fed_back(shape[None], self.n_steps[:1]))[0]
            shape /= np.max(shape)
        for doublings in range(1, _STEEPEST):
            rising = shape * 2.0 ** (doublings * cells)
            kept = np.max(ratio(self.states(sources.fed_back(rising, self.n_steps)), rising))
            if kept < _STILL_LESS:
                return np.asarray(rising * (np.max(ratio(added, rising)) / (1.0 - kept)))
        return np.full_like(total, np.inf)

    def states(self, errors: Committed) -> Array:
        """What errors on their way into the states do to these, `(cells, modes)`."""
        arrays = self.arrays
        parts = [scalar_errors(arrays.growth, errors.part(slice(0, arrays.n_scalars)), cell=self.cell)]
        for kernel, own in zip(self.state_kernels, arrays.mode_slices, strict=True):
            parts.append(kernel.output_errors(errors.part(own), cell=self.cell))
        return np.hstack(parts)

    @cached_property
    def state_kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach their states."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(np.eye(len(own.F)), own.F, horizon=horizon, n_cells=n_cells) for own in blocks]

    def _shifted(self, sizes: StepSizes) -> StepSizes:
        """Those of w = z − G₁ u, in which even steps are taken."""
        if not self.linear or self.shares is not None:
            return sizes
        arrays = self.arrays
        with np.errstate(over="ignore", invalid="ignore"):
            factors = np.minimum(self.h * np.abs(phi2(arrays.system.rates * self.h)), _LARGEST)
        scalars = factors[:, None] * arrays.mode_inputs[: arrays.n_scalars]
        dense = [kind.one.integral @ kind.inputs for _, kind in self.kinds if isinstance(kind, DenseSteps)]
        shift = sizes.inputs @ np.vstack([scalars, *dense]).T
        return replace(sizes, here=sizes.here + shift, behind=sizes.behind + shift)

    def _rounding(self, sizes: StepSizes) -> Array:
        """Rounding in the steps, and in the sums that make the outputs."""
        sums = self._sums(sizes)
        if self.convolution is not None:  # outputs between samples come from steps
            by_steps = replace(self, convolution=None)._rounding(sizes)
            return np.maximum(sums + self.convolution.rounding(sizes.norms), by_steps)
        stepped = np.hstack([steps.committed(sizes.part(own)) for own, steps in self.kinds])
        none, begun = np.zeros_like(stepped), EPS * sizes.here[0]
        if self.uneven is None:
            by_steps = self.outputs(Committed(begun, stepped, self.n_steps, none))
            return np.asarray(sums + by_steps + self._by_what_faded(sizes))
        changes = self._changes(sizes)
        by_chance = changes > LAST_DIGITS * EPS * sizes.largest  # other last digits at every step
        alike = np.where(by_chance, self._in_the_same_direction(sizes, changes), stepped)
        surely = Committed(begun, alike, self.n_steps, none, self.crowds)
        new = Committed(none[0], stepped * by_chance, self.n_steps, none, self.crowds)
        return np.asarray(sums + self.outputs(surely) + self._by_chance(new) + self._by_uneven_steps(sizes))

    def _by_what_faded(self, sizes: StepSizes) -> Array | float:
        """What is left of states where blocks of time take them to have faded."""
        left = np.hstack([steps.left_out(sizes.part(own)) for own, steps in self.kinds])
        none = np.zeros_like(left)
        return self.outputs(Committed(none[0], left, self.n_blocks, none)) if left.any() else 0.0

    @cached_property
    def _blocks(self) -> list[BlockErrors]:
        """By how much steps of coupled blocks are off, at samples and between them."""
        return block_errors(self.arrays, self.h, linear=self.linear)

    @cached_property
    def _inputs_off(self) -> Array:
        """What even steps are off per unit of the inputs, `(modes, m)`; uneven ones are looked at elsewhere."""
        off = np.zeros_like(self.arrays.mode_inputs)
        for block in self._blocks if self.shares is None else []:
            off[block.modes] = block.inputs_of_longest
        return off

    def _by_even_inputs(self, sizes: StepSizes) -> Array:
        """What even steps are off in what inputs add: the same at every sample."""
        off = sizes.inputs @ self._inputs_off.T
        return self.outputs(Committed(np.zeros(off.shape[1]), off, self.n_samples, np.zeros_like(off)))

    def _by_uneven_steps(self, sizes: StepSizes) -> Array:
        """What the engine's own steps of many lengths are off: the largest each time, or all together at once."""
        assert self.uneven is not None  # noqa: S101 - who calls has looked
        average, largest = self.uneven.committed(sizes)
        none, once = np.zeros_like(average), np.ones(len(average))
        each = self.outputs(Committed(none[0], largest, self.n_steps, none, self.crowds))
        return np.fmin(each, self.outputs(Committed(none[0], self.n_steps[:, None] * average, once, none)))

    @cached_property
    def _usual_steps(self) -> Array:
        """How long they are in each cell, where most of them stand."""
        crowding = 1.0 if self.crowds is None else self.crowds.crowding(0.0)
        return np.asarray(self.cell / (crowding * np.maximum(self.n_steps, 1.0)))

    def _changes(self, sizes: StepSizes) -> Array:
        """By how much what inputs add to states in a step differs from one to the next, `(cells, modes)`."""
        if sizes.changes is None:
            return np.zeros_like(sizes.here)
        return np.asarray(self._usual_steps[:, None] * (sizes.changes @ self.arrays.mode_inputs.T))

    def _in_the_same_direction(self, sizes: StepSizes, changes: Array) -> Array:
        """What rounding adds alike at every step even where states have other last digits each time."""
        assert self.uneven is not None  # noqa: S101 - who calls has looked
        found = np.zeros_like(changes)
        for own, steps in self.kinds:
            if isinstance(steps, DenseSteps):
                found[:, own] = steps.in_the_same_direction(
                    sizes.part(own), changes[:, own], self._usual_steps, of_products=self.uneven.common
                )
        return found

    def _speeds(self, sizes: StepSizes) -> Array:
        """How fast states move at most, `(cells, modes)`."""
        arrays, here = self.arrays, sizes.here
        blocks = zip(arrays.mode_slices, arrays.system.blocks, strict=True)
        of_blocks = [here[:, own] @ np.abs(block.F).T for own, block in blocks]
        alone = np.hstack([here[:, : arrays.n_scalars] * arrays.rates, *of_blocks])
        return np.asarray(alone + sizes.inputs @ arrays.mode_inputs.T)

    def _by_chance(self, errors: Committed) -> Array:
        """What errors at every step do to the outputs if they do not know of each other."""
        growth, own, cell = self.arrays.growth, slice(0, self.arrays.n_scalars), self.cell
        scalars = errors.part(own)
        moved = np.fmin(scalar_errors(growth, scalars, cell=cell), scalar_spread(growth, scalars, cell=cell))
        total = weighted(moved, self.arrays.mode_outputs[:, own])
        for place, kernel in zip(self.arrays.mode_slices, self.kernels, strict=True):
            block = errors.part(place)
            spread = dense_spread(kernel, block, cell=cell)
            total = total + np.fmin(kernel.output_errors(block, cell=cell), spread)
        return np.asarray(total)

    def _sums(self, sizes: StepSizes) -> Array:
        """Rounding of the sums that make the outputs, or the responses that inputs are convolved with."""
        system = self.arrays.system
        n, m = system.n_states, system.n_inputs
        n_within = steps_within(self.width) if self.convolution is None else 0.0
        if self.convolution is not None:  # responses are sums over states; what transforms add is counted elsewhere
            share = (_FACTORS + roundings(n)) * EPS
        elif self.window == 1:  # outputs are C z + D u
            share = (_FACTORS_OF_STATES + roundings(n + m)) * EPS
        else:  # responses as before, then sums over them and over states
            share = (_FACTORS + roundings(n) + roundings(n + self.width * m)) * EPS
        total = share * (sizes.inputs @ np.abs(system.D).T)
        for own, steps in self.kinds:
            total = total + steps.in_outputs(sizes.part(own), share=share, n_within=n_within)
        return np.asarray(total)

    def outputs(self, errors: Committed) -> Array:
        """What errors on their way into the states do to the outputs."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        moved = scalar_errors(arrays.growth, errors.part(scalars), cell=self.cell)
        total = weighted(moved, arrays.mode_outputs[:, scalars])
        for own, kernel in zip(arrays.mode_slices, self.kernels, strict=True):
            total = total + kernel.output_errors(errors.part(own), cell=self.cell)
        return np.asarray(total)
