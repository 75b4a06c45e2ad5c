"""What is explored: a system with its ladder, and whatever is the same at every budget, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.explorer.budgets import budgets_of
from ltinet.explorer.examples import example_system
from ltinet.explorer.files import DroppedFile, Held, read_dropped
from ltinet.explorer.frequencies import drawn_frequencies
from ltinet.explorer.identified_subject import identified_system
from ltinet.explorer.state import InvalidStateError, State
from ltinet.ladders import Ladder, Rung, ladder
from ltinet.once import cached_property
from ltinet.responses.horizon import suggested_end
from ltinet.state_space import StateSpace
from ltinet.tables.table import Table

if TYPE_CHECKING:
    from ltinet.reduced import Reduced

MOST_STATES = 400  # of a system that is taken apart as it is; larger ones are reduced first
_TOLERANCE = 1e-6  # of such a reduction, relative to the largest gain

Files = Mapping[str, DroppedFile]


@final
@dataclass(frozen=True, eq=False)
class Subject:
    """A system under a title, reduced where that was asked for or needed; nothing here depends on a budget."""

    title: str
    given: StateSpace
    system: StateSpace
    """What the ladder is of: the system that was given, or its reduction."""
    reduction: "Reduced | None" = None
    remarks: tuple[str, ...] = ()
    reduced_error: float | None = None
    """What a network that was given says of its own reduction."""
    facts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def ladder(self) -> Ladder:
        """Every form that some budget buys."""
        return ladder(self.system)

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """For each rung a budget that buys it, in as few digits as there are."""
        return budgets_of([rung.condition for rung in self.ladder])

    def place(self, k: float) -> int:
        """The number of the rung that a budget buys."""
        return sum(rung.condition <= k for rung in self.ladder) - 1

    def network(self, place: int) -> DynamicNetwork:
        """The network of a rung; its bounds count what a reduction left out."""
        rung = self.ladder[place]
        # A rung of its own: those of the ladder would keep every network that was ever looked at.
        net = Rung(replace(rung.known), rung.system).network
        lost = self.reduced_error if self.reduction is None else self.reduction.mean()
        return net if lost is None else replace(net, reduced_error=lost)

    @cached_property
    def frequencies(self) -> Array:
        """Angular frequencies at which responses are drawn."""
        return drawn_frequencies(self.system)

    @cached_property
    def response(self) -> NDArray[np.complex128] | None:
        """H(jω) of the system that was given, `(frequencies, outputs, inputs)`; None where that would take minutes."""
        is_large = self.given.sparse is not None and self.given.n_states > MOST_STATES
        return None if is_large else self.given.frequency_response(self.frequencies)

    def end(self, input: int, output: int) -> float:
        """A time by which a step response shows what there is to see, its delay included; the same for every budget."""
        late = float(self.system.input_delay[input] + self.system.output_delay[output])
        return late + suggested_end(self._first._prepared, self.system.matrices, input=input, output=output)

    @cached_property
    def _first(self) -> DynamicNetwork:
        """The network of the best conditioned form."""
        return self.network(0)


def subject_of(state: State, files: Files) -> Subject:
    """The system that a state names, reduced where it says so or where nothing else is possible.

    Raises:
        LtinetError: there is no such system, or nothing can be made of it.
    """
    kind, _, name = state.system.partition(":")
    if kind == "example":
        return _with_order(Subject(name, *_twice(example_system(name))), state)
    file = held_file(files, name)
    return _with_order(_of_held(file.title, read_dropped(file), state), state)


def held_file(files: Files, digest: str) -> DroppedFile:
    """A file that was dropped.

    Raises:
        InvalidStateError: it is not here any more, or never was.
    """
    if digest not in files:
        raise InvalidStateError("the file of this address is not here (any more); drop it again")
    return files[digest]


def _of_held(title: str, held: Held, state: State) -> Subject:
    if isinstance(held, Table):
        found = identified_system(held, state.drive, state.answer)
        return Subject(title, *_twice(found.system), remarks=found.remarks, facts=found.facts)
    if isinstance(held, DynamicNetwork):
        system = held.system or held.to_state_space()
        condition = "" if held.form is None else f" with cond(T) = {held.form.condition:.4g}"
        told = f"the file holds a network of {held.n_layers} layers{condition}; the ladder is that of its system"
        return Subject(title, *_twice(system), remarks=(told,), reduced_error=held.reduced_error)
    return Subject(title, *_twice(held))


def _twice(system: StateSpace) -> tuple[StateSpace, StateSpace]:
    if system.dt is not None:
        raise InvalidSystemError(
            f"the system is discrete in time (dt = {system.dt:g}), and networks live in continuous time; convert it "
            "first: ltinet.load_system(path).to_continuous()"
        )
    if not system.n_inputs or not system.n_outputs:
        raise InvalidSystemError("the system has no inputs or no outputs, so that there is nothing to see of it")
    return system, system


def _with_order(subject: Subject, state: State) -> Subject:
    """The subject, reduced to the order that the state asks for, or because it is too large to be taken apart."""
    n_states = subject.given.n_states
    if (MOST_STATES if state.order is None else state.order) >= n_states:
        return subject
    from ltinet.reduced import reduce  # here: most pages reduce nothing

    if state.order is not None:
        found = reduce(subject.given, order=state.order)
        return replace(subject, system=found.system, reduction=found)
    found = reduce(subject.given, tolerance=_TOLERANCE)
    told = (
        f"{n_states} states are more than can be taken apart at once: reduced first, to {found.order} states, "
        f"with an error of at most {_TOLERANCE:g} of the largest gain asked for"
    )
    return replace(subject, system=found.system, reduction=found, remarks=(*subject.remarks, told))
