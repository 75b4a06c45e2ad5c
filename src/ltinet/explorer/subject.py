"""Systems of the page: built-in examples, uploads, and models identified from uploaded tables.

`Subject` holds a system with its trade-off curve and all results that do not depend on the limit on cond(T). Systems
that are too large to decompose are reduced first. Each point of the curve has a readable limit ("budget"): the shortest
decimal at least as large as its condition number and below that of the next point. Frequencies of Bode plots are
thinned to 600, with peaks and dips of the gain kept.
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
from ltinet._util.text import format_count, suggest_names
from ltinet.analysis.responses import suggest_end_time
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError, InvalidSystemError
from ltinet.explorer.files import Upload, UploadContent, read_upload
from ltinet.explorer.state import InvalidStateError, ViewState
from ltinet.explorer.uploaded_tables import page_messages, parse_reading_options
from ltinet.files import named_system
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork
from ltinet.signals.sampled import Hold
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.tables.table import Table
from ltinet.tradeoff import TradeoffCurve, TradeoffPoint, condition_tradeoff

if TYPE_CHECKING:
    from ltinet.reduction.api import ReductionResult

_MIN_DIGITS, _MAX_DIGITS = 3, 17  # significant digits; 17 distinguish all doubles


def readable_budgets(conditions: Sequence[float]) -> tuple[float, ...]:
    """Return for each of ascending condition numbers a limit that is at least as large and below the next one."""
    after = [*conditions[1:], float("inf")]
    return tuple(_shortest_decimal(low, high) for low, high in zip(conditions, after, strict=True))


def _shortest_decimal(low: float, high: float) -> float:
    """Return the shortest decimal in [low, high)."""
    for digits in range(_MIN_DIGITS, _MAX_DIGITS + 1):
        rounded = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(low))
        if low <= rounded < high:
            return rounded
    return low


_MAX_FREQUENCIES = 600


def plot_frequencies(system: StateSpace) -> Array:
    """Return at most 600 angular frequencies, with those at peaks and dips of the gain."""
    omega = system.plot_frequencies()
    if len(omega) <= _MAX_FREQUENCIES:
        return omega
    size = np.linalg.norm(system.frequency_response(omega), axis=(1, 2))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(size))) != 0) + 1
    if len(turns) > _MAX_FREQUENCIES // 2:  # keep the sharpest ones
        sharpness = np.abs(np.log(size[turns - 1] * size[turns + 1] / size[turns] ** 2))
        turns = turns[np.argsort(-sharpness)[: _MAX_FREQUENCIES // 2]]
    even = np.linspace(0, len(omega) - 1, _MAX_FREQUENCIES - len(turns)).astype(np.intp)
    return omega[np.union1d(turns, even)]


class Example(NamedTuple):
    """A built-in system with parameters that suit the page."""

    title: str
    name: str
    parameters: Mapping[str, Any]


EXAMPLES: Mapping[str, Example] = MappingProxyType(
    {
        "triangular": Example("Triangular, 10 states", "triangular", {}),
        "transport": Example("Convection–diffusion, 16 states", "convection_diffusion", {"points": 4}),
        "masses": Example("Ten masses on springs", "mass_spring_damper", {}),
        "rod": Example("Heat in a rod, 40 states", "heat_rod", {"n_states": 40}),
        "penzl": Example("Penzl's three resonances, 106 states", "penzl", {"n_real": 100}),
        "blobs": Example("Clusters of poles, 134 states (takes seconds)", "blobs", {}),
        "plate": Example("Heated plate, 10⁵ sparse states, reduced first", "heat_plate", {"n": 100_000}),
    }
)


def example_system(name: str) -> StateSpace:
    """Return a built-in system; raise `InvalidStateError` for an unknown name."""
    if name not in EXAMPLES:
        raise InvalidStateError(f"there is no example {name!r}; {suggest_names(name, list(EXAMPLES))}")
    return named_system(EXAMPLES[name].name, **EXAMPLES[name].parameters)


def identify_table(
    title: str, table: Table, inputs: Sequence[int], outputs: Sequence[int], resample: float | None = None
) -> "Subject":
    """Return the system between columns of a table, counted from 1, with its fit.

    Raise `InvalidStateError` for missing or wrong columns, `InvalidSignalError` for uneven times without `resample`.
    """
    from ltinet.identification.api import identify  # here, since most pages do not need it

    if not inputs or not outputs:
        raise InvalidStateError("this file is a table; choose its input and output columns")
    u, y = (_named_columns(table, numbers) for numbers in (inputs, outputs))
    try:
        result = identify(u, y, t=table.t, resample=resample)
    except InvalidSignalError as error:
        raise InvalidSignalError(page_messages(str(error))) from None
    fits = ", ".join(f"{fit:.1f} %" for fit in result.fits)
    facts = {"identified": f"{format_count(result.order, 'state')}, fit {fits}"}
    return Subject(title, *_check_system(result.system), notes=table.notes, facts=facts)


def _named_columns(table: Table, numbers: Sequence[int]) -> Table:
    """Return columns by their numbers from 1, with their names."""
    values = table_columns(table, numbers)
    return replace(table, values=values, names=tuple(table.names[number - 1] for number in numbers), notes=())


def table_columns(table: Table, numbers: Sequence[int]) -> Array:
    """Return columns of a table by their numbers from 1, `(T, k)`; raise `InvalidStateError` for a wrong number."""
    for number in numbers:
        if not 1 <= number <= table.values.shape[1]:
            raise InvalidStateError(f"the table has no column {number}; its columns are 1 to {table.values.shape[1]}")
    return table.values[:, [number - 1 for number in numbers]]


MAX_STATES = 400  # of a system that is decomposed directly, within seconds; larger ones are reduced first
REDUCTION_TOLERANCE = (
    1e-6  # relative to the largest gain: below what a drawing of 1,000 pixels shows, with two digits to spare
)

UploadsByHash = Mapping[str, Upload]


@final
@dataclass(frozen=True, eq=False)
class Subject:
    """A system with a title, reduced if asked for or needed; nothing here depends on the limit on cond(T)."""

    title: str
    full_order_system: StateSpace
    system: StateSpace
    """The system of the trade-off curve: the full-order system or its reduction."""
    reduction: "ReductionResult | None" = None
    notes: tuple[str, ...] = ()
    reduction_error: float | None = None
    """Error of its reduction that an uploaded network states."""
    facts: Mapping[str, str] = field(default_factory=dict)
    model: NonlinearModel | None = None
    """Model with products whose linear part is the system."""

    @cached_property
    def curve(self) -> TradeoffCurve:
        """Trade-off curve between cond(T) and connections."""
        return condition_tradeoff(self.system)

    @cached_property
    def budgets(self) -> tuple[float, ...]:
        """For each point of the curve a limit that selects it, in as few digits as possible."""
        return readable_budgets([point.condition for point in self.curve])

    def point_index(self, k: float) -> int:
        """Return the index of the point that a limit selects."""
        return sum(point.condition <= k for point in self.curve) - 1

    def network(self, index: int) -> DynamicNetwork:
        """Return the network of a point; its bounds include the error of a reduction."""
        point = self.curve[index]
        # A copy of the point: points of the curve would keep every network that was ever shown.
        net = TradeoffPoint(replace(point.candidate), point.system).network
        lost = self.reduction_error if self.reduction is None else self.reduction.h2_bound()
        return net if lost is None else replace(net, reduction_error=lost)

    @cached_property
    def frequencies(self) -> Array:
        """Angular frequencies at which responses are drawn."""
        return plot_frequencies(self.system)

    @cached_property
    def response(self) -> NDArray[np.complex128] | None:
        """H(jω) of the full-order system, `(frequencies, outputs, inputs)`; None where that would take minutes."""
        is_large = self.full_order_system.sparse is not None and self.full_order_system.n_states > MAX_STATES
        return None if is_large else self.full_order_system.frequency_response(self.frequencies)

    def end(self, input: int, output: int) -> float:
        """Return an end time that suits a step response, delays included; the same for every limit."""
        dead_time = float(self.system.input_delay[input] + self.system.output_delay[output])
        return dead_time + suggest_end_time(self._first._context, self.system.matrices, input=input, output=output)

    @cached_property
    def _first(self) -> DynamicNetwork:
        """The network of the best conditioned form."""
        return self.network(0)


def build_subject(state: ViewState, files: UploadsByHash) -> Subject:
    """Return the system of a state, reduced if the state asks for it or if it is too large.

    Raise `LtinetError` if there is no such system, or if it cannot be used.
    """
    kind, _, name = state.system.partition(":")
    if kind == "example":
        return _with_order(Subject(name, *_check_system(example_system(name))), state)
    file = find_upload(files, name)
    subject = _with_order(_subject_of_upload(file, read_upload(file), state), state)
    # The states of a reduced linear part are not those of the products.
    return replace(subject, model=None) if subject.reduction is not None else subject


def find_upload(files: UploadsByHash, digest: str) -> Upload:
    """Return an uploaded file; raise `InvalidStateError` if it is not loaded."""
    if digest not in files:
        raise InvalidStateError("the file of this address is not loaded; upload it again")
    return files[digest]


def _subject_of_upload(file: Upload, content: UploadContent, state: ViewState) -> Subject:
    if isinstance(content, Table):
        resample = parse_reading_options(file.options).get("resample")
        return identify_table(file.title, content, state.drive, state.answer, resample)
    if isinstance(content, NonlinearModel | NonlinearNetwork):
        model = content if isinstance(content, NonlinearModel) else content.model
        note = (
            f"the file holds a {type(model).__name__} model; this page shows its linear part, and its product neurons in a "
            "list. Responses and poles are those of the linear part"
        )
        return Subject(file.title, *_check_system(model.linear), notes=(note,), model=model)
    if isinstance(content, DynamicNetwork):
        system = content.system or content.to_state_space()
        condition = "" if content.form is None else f" with cond(T) = {content.form.condition:.4g}"
        note = f"the file holds a network of {content.n_layers} layers{condition}; the trade-off curve is that of its system"
        return Subject(file.title, *_check_system(system), notes=(note,), reduction_error=content.reduction_error)
    return Subject(file.title, *_check_system(content))


def _check_system(system: StateSpace) -> tuple[StateSpace, StateSpace]:
    """Return the system as full-order and as reduced one; raise `InvalidSystemError` if the page cannot show it."""
    if system.dt is not None:
        raise InvalidSystemError(
            f"the system is discrete in time (dt = {system.dt:g}), and the page needs continuous time; convert it first: "
            "ltinet.load_system(path).to_continuous()"
        )
    if not system.n_inputs or not system.n_outputs:
        raise InvalidSystemError("the system has no inputs or no outputs; the page needs at least one of each")
    return system, system


def _with_order(subject: Subject, state: ViewState) -> Subject:
    """Return the subject, reduced to the order of the state, or because it is too large to decompose."""
    n_states = subject.full_order_system.n_states
    if (MAX_STATES if state.order is None else state.order) >= n_states:
        return subject
    from ltinet.reduction.api import reduce  # here, since most pages do not need it

    if state.order is not None:
        result = reduce(subject.full_order_system, order=state.order, progress=False)
        return replace(subject, system=result.system, reduction=result)
    result = reduce(subject.full_order_system, tolerance=REDUCTION_TOLERANCE, progress=False)
    note = (
        f"{n_states} states are too many to decompose: the system was reduced first, to {result.order} states, with a "
        f"relative error tolerance of {REDUCTION_TOLERANCE:g}"
    )
    return replace(subject, system=result.system, reduction=result, notes=(*subject.notes, note))


# Excitation: a step, an impulse, a chirp, or columns of an uploaded table. The chirp is sin(2π (s + 19.5 s²)) at the
# fraction s ∈ [0, 1] of the time, whose frequency rises linearly.

N_TIMES = 801
_MAX_SAMPLES = 200_000  # of a table
CHIRP = "np.sin(2.0 * np.pi * (share + 19.5 * share**2))"  # frequency from 1 to 40 periods per end time


class ExcitationRun(NamedTuple):
    """Arguments of `net.simulate(u, t, x0=x0, hold=hold)`, and the signal settings of that network.

    Steps, impulses and chirps are deviations from the operating point. An impulse is a run from x0 = b, on which input
    delays do not act: its outputs are delayed by the sum of both delays.
    """

    t: Array
    u: Any
    """Samples `(T, m)`, or a signal."""
    x0: Array | None
    hold: Hold
    settings: SignalSettings = NO_SETTINGS


def build_run(subject: Subject, state: ViewState, net: DynamicNetwork, files: UploadsByHash) -> ExcitationRun:
    """Return the run of a state; raise `InvalidStateError` for a wrong channel or a table that does not fit."""
    driven = channel_index(state.input, net.n_inputs, "input")
    if state.u.startswith("file:"):
        return _table_run(state, net, files)
    end = state.T or subject.end(driven, channel_index(state.output, net.n_outputs, "output"))
    t = np.linspace(0.0, end, N_TIMES)
    u = np.zeros((N_TIMES, net.n_inputs))
    settings = net.signal_settings.delays_only
    if state.u == "impulse":
        delays = net.output_delay + net.input_delay[driven]
        settings = SignalSettings(output_delay=tuple(delays.tolist()))
        return ExcitationRun(t, u, subject.system.B[:, driven], "zero", settings)
    u[:, driven] = 1.0 if state.u == "step" else _chirp(t / end)
    return ExcitationRun(t, u, None, "zero" if state.u == "step" else "linear", settings)


def simulate_run(net: DynamicNetwork, run: ExcitationRun, *, engine: str = "exact") -> Solution:
    """Simulate a run."""
    settings = {name: getattr(run.settings, name) for name in ("input_delay", "output_delay", "u0", "y0", "hold")}
    return net.with_signal_settings(**settings).simulate(run.u, run.t, x0=run.x0, hold=run.hold, engine=engine)


def channel_index(number: int, count: int, noun: str) -> int:
    """Return an index from 0 for a channel number from 1; raise `InvalidStateError` if there is no such channel."""
    if number > count:
        raise InvalidStateError(f"{noun} is {number} in the address; choose one from 1 to {count}")
    return number - 1


def _chirp(share: Array) -> Array:
    """Return `CHIRP` at fractions of the end time."""
    return np.asarray(np.sin(2.0 * np.pi * (share + 19.5 * share**2)))


def _table_run(state: ViewState, net: DynamicNetwork, files: UploadsByHash) -> ExcitationRun:
    table = read_upload(find_upload(files, state.u.removeprefix("file:")))
    if not isinstance(table, Table):
        raise InvalidStateError("the input of the response must be a table; upload a .csv")
    if table.values.shape[1] < net.n_inputs or len(table.t) > _MAX_SAMPLES:
        raise InvalidStateError(
            f"the table has {table.values.shape[1]} columns and {len(table.t)} rows; it needs {net.n_inputs} columns, "
            f"one for each input, and at most {_MAX_SAMPLES} rows"
        )
    chosen = state.drive if len(state.drive) == net.n_inputs else tuple(range(1, net.n_inputs + 1))
    u = table_columns(table, chosen)
    if np.isnan(u).any():
        raise InvalidStateError("an input column of the table has missing values; choose other columns")
    return ExcitationRun(table.t, u, None, net.hold or "linear", net.signal_settings)
