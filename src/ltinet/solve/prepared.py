"""What every engine needs from a network: its coordinates, its arrays, and the whole journey of x0.

    x0 ──checked, one row for each member of a batch──▶ x ──T⁻¹──▶ z ──packed──▶ (Re v, Im v, dense states)
                                                                   │
                                                                   └──N──▶ (ξ, ζ) ──+ J u──▶ (ξ, ξ̇)

`user_start` checks and spreads x0, `initial_state` takes it through T⁻¹ into the blocks (`coordinates`), the exact
engine packs z into modes (`modal`) and steps there, solver engines go on to the neurons. Where T would cost a run too
many digits (`for_run`) there is another prepared network of the same system, whose T is 1: all arrows but the first
become equalities there.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import InvalidSignalError
from ltinet.model.matrices import Matrix
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.block_system import BlockSystem
from ltinet.network.files import StoredNetwork, has_operator
from ltinet.network.network import Network
from ltinet.once import cached_property
from ltinet.signals.numbers import check_state
from ltinet.signals.times import TimeAxis
from ltinet.solve.coordinates import Coordinates, as_given, placed, whole
from ltinet.solve.grids import Grids
from ltinet.solve.modal import ModalSystem, modal_system
from ltinet.solve.steps.hump import is_moderate, rises
from ltinet.solve.steps.packing import pack_weights
from ltinet.solve.steps.propagators import reached
from ltinet.solve.steps.short_steps import is_short, size_in_best_units
from ltinet.threads import threads_for_work
from ltinet.tolerances import EPS

# cond(T) as given, beyond which states may be off by 1e-10 of their size after 10,000 steps, and outputs of runs that
# begin in a state, which see differences of states.
_COSTS_STATES, _COSTS_OUTPUTS = 1e3, 1e5
_COSTS_SHORT_STEPS = 3e3  # likewise, for outputs after steps so short that little has happened yet
_COSTS_EXPONENTIALS = 2e3  # |A|h: slow states lose as many digits in the exponential of a step of all states
_UNTOLD = 1e-10  # of its size: by what an output may be off because of times beside their grid
_FIRST_INPUTS = 8.0  # shares, in which they may cancel each other
_FADES = 40.0  # |λ| times a step: what is left after it is below a double
_ROUNDINGS = 16.0  # n eps: what a well-conditioned change of states leaves beside a multiple of the identity
_SMALL = 32  # states


Made = TypeVar("Made")


class PreparedNetwork:
    """A network with the arrays that its runs share."""

    def __init__(
        self,
        network: Network,
        form: BlockDiagonalForm | None,
        *,
        origin: SystemMatrices | None = None,
        blocks: BlockSystem | None = None,
        reduced_error: float | None = None,
    ) -> None:
        self.network, self.form, self.origin = network, form, origin
        self.reduced_error = reduced_error  # in the H2 norm, from the system that this one was reduced from
        self._blocks = blocks
        self._last_axis: TimeAxis | None = None
        self._kept: dict[Any, Any] = {}

    @property
    def names(self) -> SignalNames:
        """How inputs and outputs are called: as in the system that the network came from."""
        return UNNAMED if self.origin is None else self.origin.names

    @property
    def has_operator(self) -> bool:
        """Whether T is an operator, of a large structured model: nothing of n² numbers can be asked for."""
        return has_operator(self.form)

    @cached_property
    def is_small(self) -> bool:
        """Whether one block of all states costs little more than many."""
        return self.network.n_states <= _SMALL

    @property
    def stored(self) -> StoredNetwork:
        """What a file of the network holds."""
        return StoredNetwork(self.network, self.form, self.origin, self._blocks, self.reduced_error)

    @property
    def in_user_states(self) -> "PreparedNetwork | None":
        """The same system in the user's own states, where T would cost these digits; None elsewhere.

        States that are small beside others in the user's units are small differences of large z.
        """
        if self.form is None or self.has_operator or (not self.is_small and self.form.condition_raw <= _COSTS_STATES):
            return None
        return self.as_given

    @cached_property
    def as_given(self) -> "PreparedNetwork | None":
        """The same system as one block in the user's own states; None where these are unknown, many or no numbers."""
        if self.form is None or self.origin is None or not self.origin.n_states or self.has_operator:
            return None
        if not (np.isfinite(self.origin.A).all() and np.isfinite(self.origin.B).all()):
            return None  # by a tiny E
        prepared = PreparedNetwork(self.network, None, origin=self.origin, reduced_error=self.reduced_error)
        prepared.__dict__["_placed"] = as_given(self.origin)
        return prepared

    @cached_property
    def whole(self) -> "PreparedNetwork | None":
        """The same system in its block coordinates, with what rounding left outside of blocks; None as above."""
        if self.form is None or self.as_given is None or self.origin is None:
            return None
        prepared = PreparedNetwork(self.network, self.form, origin=self.origin, reduced_error=self.reduced_error)
        prepared.__dict__["_placed"] = whole(self.origin, self.form, self.blocks)
        if not np.isfinite(prepared.blocks.A).all():
            return None
        prepared.__dict__.update(as_given=self.as_given, whole=None)
        return prepared

    @cached_property
    def _is_nearly_diagonal(self) -> bool:
        """Whether few states are coupled by rounding only: any T turns such states into each other."""
        if self.origin is None or not 1 < self.origin.n_states <= _SMALL:
            return False
        A = np.abs(self.origin.A)
        couplings = A - np.diag(A.diagonal())
        return bool(0.0 < couplings.max() <= _ROUNDINGS * len(A) * EPS * A.diagonal().min())

    @cached_property
    def size(self) -> float:
        """The norm of A in block coordinates, in the units that make it smallest."""
        return size_in_best_units(self.blocks.A)

    def is_short(self, length: float) -> bool:
        """Whether steps of all states up to this length come from a short series."""
        return is_short(self.blocks.A, length, size=self.size)

    def for_run(self, longest_step: float, *, from_state: bool) -> "PreparedNetwork":
        """The network for a run: T may cost one that begins in a state, or takes short steps, too many digits.

        Outputs of the first short steps are small beside the states that T mixes for them.
        """
        if self._is_nearly_diagonal and self.in_user_states is not None:
            return self.in_user_states
        costs = 0.0 if self.form is None else self.form.condition_raw
        limit = _COSTS_OUTPUTS if from_state else _COSTS_SHORT_STEPS
        direct = self.in_user_states if costs > min(limit, _COSTS_SHORT_STEPS) else None
        if direct is None or not direct.is_short(longest_step):
            return self
        return direct if from_state or self.is_small else self

    def for_states(self, longest_step: float) -> "PreparedNetwork | None":
        """The network in the user's own states, where these keep more digits: not where exponentials lose them.

        T mixes states that know nothing of each other, large ones with small ones.
        """
        direct = self.in_user_states
        if direct is None or self.form is None or np.count_nonzero(self.form.T) == len(self.form.T):
            return None  # or T gives states other units and places, and costs nothing
        A = direct.blocks.A
        if direct.size * longest_step > _COSTS_EXPONENTIALS and reached(A != 0.0).all():
            return None
        if self.form.condition_raw > _COSTS_STATES:
            return direct
        if not rises(A, longest_step):
            return direct
        return direct if is_moderate(A, longest_step) and not reached(A != 0.0).all() else None

    def rival(self, *, from_state: bool) -> "PreparedNetwork | None":
        """Another network for a run from a state: T costs it digits; an exponential of a long step may cost more."""
        costs = 0.0 if self.form is None else self.form.condition_raw
        return self.in_user_states if from_state and costs > _COSTS_OUTPUTS else None

    @cached_property
    def _placed(self) -> tuple[BlockSystem, Coordinates]:
        with threads_for_work(self.network.n_states**3):  # many solves of a few states
            return placed(self.network, self.form, self._blocks)

    @property
    def blocks(self) -> BlockSystem:
        """The network in block coordinates, without the maps to others where it is known already."""
        return self._placed[0] if self.form is None or self._blocks is None else self._blocks

    @property
    def coordinates(self) -> Coordinates:
        """Maps between the states of the user, of the blocks and of the neurons."""
        return self._placed[1]

    @cached_property
    def system(self) -> ModalSystem:
        """The same in modal coordinates, in which steps are taken."""
        return modal_system(self.blocks)

    @cached_property
    def grids(self) -> Grids:
        """What was prepared for evenly spaced samples."""
        return Grids(self.system, careful=self.form is None and self.origin is not None)

    @cached_property
    def output_weights(self) -> Matrix:
        """From packed states to outputs, (p × n)."""
        return pack_weights(self.system, self.system.C, [block.C for block in self.system.blocks])

    @cached_property
    def fastest(self) -> float:
        """The largest |λ|."""
        dense = [np.abs(np.linalg.eigvals(block.F)).max(initial=0.0) for block in self.system.blocks]
        return float(np.max(np.concatenate([np.abs(self.system.rates), dense]), initial=0.0))

    def feels(self, axis: TimeAxis) -> bool:
        """Whether outputs tell even times at an offset from the grid that they stand beside.

        In a time δ a state moves by up to |λ|δ of its size; one that has faded between two samples does not. Of one
        that grows the first inputs are all that is seen in the end, and each of them adds δ/h of its share.
        """
        if axis.step is None or axis.beside_grid == 0.0:
            return False
        speed = min(self.fastest, _FADES / axis.step)
        return axis.beside_grid * (max(speed, _FIRST_INPUTS / axis.step) if self._grows else speed) > _UNTOLD

    @cached_property
    def _grows(self) -> bool:
        """Whether some state does."""
        return bool(np.any(self.system.rates.real > 0.0) or np.any(self.system.slowest_of_blocks > 0.0))

    def keep(self, make: "Callable[[PreparedNetwork], Made]") -> "Made":
        """What a function makes of this network, made once: a place for what only some of those who run it need."""
        if make not in self._kept:
            self._kept.setdefault(make, make(self))
        made: Made = self._kept[make]
        return made

    def time_axis(self, t: ArrayLike) -> TimeAxis:
        """Times, checked; those of the last call are recognised and not checked again."""
        last, given = self._last_axis, np.asarray(t)
        if last is None or given.shape != last.t.shape or np.count_nonzero(given != last.t):  # faster than any()
            last = self._last_axis = TimeAxis.of(t)
        return last

    def initial_state(self, x0: ArrayLike | None, batch_shape: tuple[int, ...]) -> Array:
        """States z of the blocks at the start, `(batch, n)`, from the user's x0."""
        n = self.system.n_states
        if x0 is None:
            return np.zeros((math.prod(batch_shape), n))
        return self.coordinates.blocks_from_user(self.user_start(x0, batch_shape))

    def user_start(self, x0: ArrayLike, batch_shape: tuple[int, ...]) -> Array:
        """The user's x0, checked, one row for each member of a batch."""
        n = self.system.n_states
        x = np.asarray(x0, dtype=np.float64)
        check_state(x, n)
        try:
            x = np.broadcast_to(x, (*batch_shape, n))
        except ValueError:
            raise InvalidSignalError(
                f"x0 has shape {x.shape} but the inputs come in a batch of shape {batch_shape}; give one state or one "
                "for each input"
            ) from None
        return x.reshape(math.prod(batch_shape), n)
