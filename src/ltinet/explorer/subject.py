"""Systems that can be explored: built-in examples, uploads, and models identified from uploaded tables.

`Subject` holds a system with its trade-off curve, and whatever is the same for every budget, computed once. Systems
that are too large to decompose are reduced first. Each point of the curve has a readable budget: the shortest
decimal at least as large as its condition number and below that of the next point. Frequencies of Bode plots are
thinned to 600, peaks and dips of the gain included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet._util.text import suggest_names
from ltinet.analysis.responses import suggest_end_time
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.explorer.files import Upload, UploadContent, read_upload
from ltinet.explorer.state import InvalidStateError, ViewState
from ltinet.files import named_system
from ltinet.signals.times import TimeAxis
from ltinet.state_space import StateSpace
from ltinet.tables.table import Table
from ltinet.tradeoff import TradeoffCurve, TradeoffPoint, condition_tradeoff

if TYPE_CHECKING:
    from ltinet.reduction.api import ReductionResult

_MIN_DIGITS, _MAX_DIGITS = 3, 17  # digits; 17 tell every double apart


def readable_budgets(conditions: Sequence[float]) -> tuple[float, ...]:
    """One budget for each of rising condition numbers: at least that one, below the next."""
    after = [*conditions[1:], float("inf")]
    return tuple(_between(own, later) for own, later in zip(conditions, after, strict=True))


def _between(condition: float, later: float) -> float:
    for digits in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        rounded = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(condition))
        if condition <= rounded < later:
            return rounded
    return condition


_MAX_FREQUENCIES = 600


def plot_frequencies(system: StateSpace) -> Array:
    """At most 600 angular frequencies, those at peaks and dips of the gain among them."""
    omega = system.plot_frequencies()
    if len(omega) <= _MAX_FREQUENCIES:
        return omega
    size = np.linalg.norm(system.frequency_response(omega), axis=(1, 2))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(size))) != 0) + 1
    if len(turns) > _MAX_FREQUENCIES // 2:  # the sharpest ones
        bend = np.abs(np.log(size[turns - 1] * size[turns + 1] / size[turns] ** 2))
        turns = turns[np.argsort(-bend)[: _MAX_FREQUENCIES // 2]]
    even = np.linspace(0, len(omega) - 1, _MAX_FREQUENCIES - len(turns)).astype(np.intp)
    return omega[np.union1d(turns, even)]


class Example(NamedTuple):
    """A built-in system with the parameters that suit the page."""

    title: str
    name: str
    parameters: Mapping[str, Any]


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        "triangular": Example("Triangular, 10 states: each connection costs", "triangular", {}),
        "transport": Example("Convection and diffusion, 16 states", "convection_diffusion", {"points": 4}),
        "masses": Example("Ten masses on springs", "mass_spring_damper", {}),
        "rod": Example("Heat in a rod, 40 states", "heat_rod", {"n_states": 40}),
        "penzl": Example("Penzl's three resonances, 106 states", "penzl", {"n_real": 100}),
        "blobs": Example("Clusters of poles, 134 states (takes seconds)", "blobs", {}),
        "plate": Example("Heated plate, 10⁵ sparse states, reduced first", "heat_plate", {"n": 100_000}),
    }
)


def example_system(name: str) -> StateSpace:
    """The system that is offered under this name.

    Raises:
        InvalidStateError: there is none.
    """
    if name not in EXAMPLES:
        raise InvalidStateError(f"there is no example {name!r}; {suggest_names(name, list(EXAMPLES))}")
    return named_system(EXAMPLES[name].name, **EXAMPLES[name].parameters)


class TableModel(NamedTuple):
    """What was identified, and how far to trust it."""

    system: StateSpace
    notes: tuple[str, ...]
    facts: Mapping[str, str]


def identify_table(table: Table, drive: Sequence[int], answer: Sequence[int]) -> TableModel:
    """The system between columns of a table, counted from 1.

    Raises:
        InvalidStateError: the columns are not chosen yet, or there are no such columns.
        LtinetError: nothing can be identified from them.
    """
    from ltinet.identification.api import identify  # here: most pages identify nothing

    if not drive or not answer:
        raise InvalidStateError("this is a table; say which of its columns drive and which answer")
    u, y = (_named_columns(table, numbers) for numbers in (drive, answer))
    step = TimeAxis.of(table.t).step
    if step is None or not step > 0.0:
        raise InvalidStateError("the times of the table are not evenly spaced; resample it first")
    found = identify(u, y, dt=step)
    fits = ", ".join(f"{fit:.1f} %" for fit in found.fit(u, y))
    return TableModel(found.system, table.notes, {"identified": f"{found.order} states, fit {fits}"})


def _named_columns(table: Table, numbers: Sequence[int]) -> Table:
    """Columns by their numbers from 1, under their names."""
    values = table_columns(table, numbers)
    return Table(table.t, values, tuple(table.names[number - 1] for number in numbers), table.start, ())


def table_columns(table: Table, numbers: Sequence[int]) -> Array:
    """Columns of a table by their numbers from 1, `(T, k)`.

    Raises:
        InvalidStateError: one of them is not there.
    """
    for number in numbers:
        if not 1 <= number <= table.values.shape[1]:
            raise InvalidStateError(f"the table has columns 1 to {table.values.shape[1]}, and no column {number}")
    return table.values[:, [number - 1 for number in numbers]]


MOST_STATES = 400  # of a system that is taken apart as it is; larger ones are reduced first
_TOLERANCE = 1e-6  # of such a reduction, relative to the largest gain

UploadsByHash = Mapping[str, Upload]


@final
@dataclass(frozen=True, eq=False)
class Subject:
    """A system under a title, reduced where that was asked for or needed; nothing here depends on a budget."""

    title: str
    given: StateSpace
    system: StateSpace
    """What the ladder is of: the system that was given, or its reduction."""
    reduction: "ReductionResult | None" = None
    notes: tuple[str, ...] = ()
    reduction_error: float | None = None
    """What a network that was given says of its own reduction."""
    facts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def ladder(self) -> TradeoffCurve:
        """Every form that some budget buys."""
        return condition_tradeoff(self.system)

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """For each rung a budget that buys it, in as few digits as there are."""
        return readable_budgets([rung.condition for rung in self.ladder])

    def place(self, k: float) -> int:
        """The number of the rung that a budget buys."""
        return sum(rung.condition <= k for rung in self.ladder) - 1

    def network(self, place: int) -> DynamicNetwork:
        """The network of a rung; its bounds count what a reduction left out."""
        rung = self.ladder[place]
        # A rung of its own: those of the ladder would keep every network that was ever looked at.
        net = TradeoffPoint(replace(rung.candidate), rung.system).network
        lost = self.reduction_error if self.reduction is None else self.reduction.h2_bound()
        return net if lost is None else replace(net, reduction_error=lost)

    @cached_property
    def frequencies(self) -> Array:
        """Angular frequencies at which responses are drawn."""
        return plot_frequencies(self.system)

    @cached_property
    def response(self) -> NDArray[np.complex128] | None:
        """H(jω) of the system that was given, `(frequencies, outputs, inputs)`; None where that would take minutes."""
        is_large = self.given.sparse is not None and self.given.n_states > MOST_STATES
        return None if is_large else self.given.frequency_response(self.frequencies)

    def end(self, input: int, output: int) -> float:
        """A time by which a step response shows what there is to see, its delay included; the same for every budget."""
        late = float(self.system.input_delay[input] + self.system.output_delay[output])
        return late + suggest_end_time(self._first._context, self.system.matrices, input=input, output=output)

    @cached_property
    def _first(self) -> DynamicNetwork:
        """The network of the best conditioned form."""
        return self.network(0)


def build_subject(state: ViewState, files: UploadsByHash) -> Subject:
    """The system that a state names, reduced where it says so or where nothing else is possible.

    Raises:
        LtinetError: there is no such system, or nothing can be made of it.
    """
    kind, _, name = state.system.partition(":")
    if kind == "example":
        return _with_order(Subject(name, *_order_two_subject(example_system(name))), state)
    file = find_upload(files, name)
    return _with_order(_subject_of_upload(file.title, read_upload(file), state), state)


def find_upload(files: UploadsByHash, digest: str) -> Upload:
    """A file that was dropped.

    Raises:
        InvalidStateError: it is not here any more, or never was.
    """
    if digest not in files:
        raise InvalidStateError("the file of this address is not here (any more); drop it again")
    return files[digest]


def _subject_of_upload(title: str, held: UploadContent, state: ViewState) -> Subject:
    if isinstance(held, Table):
        found = identify_table(held, state.drive, state.answer)
        return Subject(title, *_order_two_subject(found.system), notes=found.notes, facts=found.facts)
    if isinstance(held, DynamicNetwork):
        system = held.system or held.to_state_space()
        condition = "" if held.form is None else f" with cond(T) = {held.form.condition:.4g}"
        told = f"the file holds a network of {held.n_layers} layers{condition}; the ladder is that of its system"
        return Subject(title, *_order_two_subject(system), notes=(told,), reduction_error=held.reduction_error)
    return Subject(title, *_order_two_subject(held))


def _order_two_subject(system: StateSpace) -> tuple[StateSpace, StateSpace]:
    if system.dt is not None:
        raise InvalidSystemError(
            f"the system is discrete in time (dt = {system.dt:g}), and networks live in continuous time; convert it "
            "first: ltinet.load_system(path).to_continuous()"
        )
    if not system.n_inputs or not system.n_outputs:
        raise InvalidSystemError("the system has no inputs or no outputs, so that there is nothing to see of it")
    return system, system


def _with_order(subject: Subject, state: ViewState) -> Subject:
    """The subject, reduced to the order that the state asks for, or because it is too large to be taken apart."""
    n_states = subject.given.n_states
    if (MOST_STATES if state.order is None else state.order) >= n_states:
        return subject
    from ltinet.reduction.api import reduce  # here: most pages reduce nothing

    if state.order is not None:
        found = reduce(subject.given, order=state.order)
        return replace(subject, system=found.system, reduction=found)
    found = reduce(subject.given, tolerance=_TOLERANCE)
    told = (
        f"{n_states} states are more than can be taken apart at once: reduced first, to {found.order} states, "
        f"with an error of at most {_TOLERANCE:g} of the largest gain asked for"
    )
    return replace(subject, system=found.system, reduction=found, notes=(*subject.notes, told))
