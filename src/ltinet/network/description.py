"""What a network file says besides numbers: which parts it has, how blocks were chosen, what signals are called."""

import json
from typing import Any, NamedTuple

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import InvalidSystemError
from ltinet.model.names import UNNAMED, SignalNames
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.model.system_matrices import SystemMatrices
from ltinet.shown import shown

_PARTS = {"has_form", "has_system", "has_descriptor"}
_PARTS_OF_VERSION_1 = {"has_form"}
_FORM_FACTS = {"budget", "seen", "remarks"}
_NAMES = "names"  # only where there are any: files without are the same bytes as before
_REDUCED = "reduced_error"  # likewise
_SETTINGS = "signal_settings"  # likewise, from version 3 on
_KINDS = {"inputs", "outputs", "states"}
_SETTING_NAMES = {"input_delay", "output_delay", "u0", "y0", "hold", "sample_time", "remarks"}
_LONGEST_REMARK = 2000
NOT_IN_FILE = "the file carries no delay, operating point or hold"
"""What `print` says of a network from a file of a version that knows of no signal settings."""


class Description(NamedTuple):
    """The facts about a form that are not tensors; empty where there is none."""

    has_form: bool
    has_system: bool = False
    has_descriptor: bool = False
    budget: float | None = None
    seen: tuple[tuple[int, float], ...] = ()
    remarks: tuple[str, ...] = ()
    names: SignalNames = UNNAMED
    reduced_error: float | None = None
    settings: SignalSettings = NO_SETTINGS


def describe(
    form: BlockDiagonalForm | None,
    system: SystemMatrices | None,
    *,
    reduced_error: float | None = None,
    settings: SignalSettings = NO_SETTINGS,
) -> str:
    """The description as JSON, the same text for the same form and system."""
    has_descriptor = system is not None and system.descriptor is not None
    facts: dict[str, Any] = {"has_form": form is not None, "has_system": system is not None}
    facts["has_descriptor"] = has_descriptor
    if form is not None:  # whole numbers and floats of NumPy would not pass as JSON
        facts["budget"] = None if form.budget is None else float(form.budget)
        facts["seen"] = [(int(count), float(condition)) for count, condition in form.seen]
        facts["remarks"] = form.remarks
    if system is not None and system.names.given:
        facts[_NAMES] = system.names.given
    if reduced_error is not None:
        facts[_REDUCED] = float(reduced_error)
    if not settings.is_default:
        facts[_SETTINGS] = settings.facts
    return json.dumps(facts, sort_keys=True)


def parse_description(content: str, *, version: int) -> Description:
    """Read what `describe` wrote, in this version or an earlier one.

    Raises:
        ValueError: it is something else: text where a number is expected, facts that are missing or unknown.
        InvalidSystemError: names are not lists of texts that can be printed.
    """
    facts = json.loads(content, object_pairs_hook=without_repetition)
    parts = _PARTS if version > 1 else _PARTS_OF_VERSION_1
    if not isinstance(facts, dict) or not all(isinstance(facts.get(part), bool) for part in parts):
        raise ValueError("its description does not say which parts there are")
    named = {_NAMES} & set(facts) if facts.get("has_system") and version > 1 else set()
    reduced = {_REDUCED} & set(facts) if version > 1 else set()
    moved = {_SETTINGS} & set(facts) if version > 2 else set()
    if set(facts) != parts | named | reduced | moved | (_FORM_FACTS if facts["has_form"] else set()):
        raise ValueError(f"its description has the facts {shown(sorted(facts))}")
    has_system, has_descriptor = facts.get("has_system", False), facts.get("has_descriptor", False)
    if has_system > facts["has_form"] or has_descriptor > has_system:
        raise ValueError("its description has a system without a form, or E without a system")
    found = Description(facts["has_form"], has_system, has_descriptor)
    found = found._replace(reduced_error=_reduced_error(facts[_REDUCED])) if reduced else found
    if moved:
        found = found._replace(settings=_settings(facts[_SETTINGS]))
    elif version < 3:
        found = found._replace(settings=SignalSettings(remarks=(NOT_IN_FILE,)))
    if not found.has_form:
        return found
    return found._replace(
        budget=_budget(facts["budget"]),
        seen=_seen(facts["seen"]),
        remarks=_remarks(facts["remarks"]),
        names=_names(facts[_NAMES]) if named else UNNAMED,
    )


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads`: a dictionary, unless a key comes twice, where every reader would take another one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it says the same thing twice")
    return found


def _budget(value: Any) -> float | None:
    """None, or a condition number; infinite where every condition was allowed."""
    if value is not None and not (type(value) is float and value >= 1.0):
        raise ValueError(f"budget is {shown(repr(value))}, not a condition number")
    return value


def _reduced_error(value: Any) -> float:
    """A norm, infinite where it is not known."""
    if type(value) is not float or not value >= 0.0:
        raise ValueError(f"reduced_error is {shown(repr(value))}, not a norm")
    return value


def _settings(value: Any) -> SignalSettings:
    """Delays, operating point, hold and sample time; whether they fit is asked when the network is there."""
    if not isinstance(value, dict) or not value or not set(value) <= _SETTING_NAMES:
        raise ValueError("signal_settings is not a table of delays, operating point, hold and sample time")
    for name, own in value.items():
        is_list = name not in ("hold", "sample_time")
        of = str if name == "remarks" else float
        if is_list and not (isinstance(own, list) and all(type(one) is of for one in own)):
            raise ValueError(f"signal_settings has {name} that is not a list")
    try:
        return SignalSettings(**value)
    except InvalidSystemError as error:
        raise ValueError(f"signal_settings: {error}") from None


def _seen(value: Any) -> tuple[tuple[int, float], ...]:
    """Numbers of blocks and condition numbers, infinite for a T that turned out to be singular."""
    if not isinstance(value, list):
        raise ValueError("seen is not a list")
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("seen has an entry that is not a pair")
        count, condition = pair
        if type(count) is not int or not 0 < count < 2**31 or type(condition) is not float or not condition > 0.0:
            raise ValueError(f"seen has the entry {shown(pair)}, not a number of blocks and a condition number")
    return tuple((count, condition) for count, condition in value)


def _remarks(value: Any) -> tuple[str, ...]:
    """They are shown as they are, so nothing in them may act on a terminal."""
    if not isinstance(value, list) or not all(isinstance(remark, str) for remark in value):
        raise ValueError("remarks is not a list of texts")
    for remark in value:
        if len(remark) > _LONGEST_REMARK or not remark.isprintable():
            raise ValueError("remarks has an entry that is too long or has control characters")
    return tuple(value)


def _names(value: Any) -> SignalNames:
    """Names by kind; whether there is one for each input, output and state is asked when the system is there."""
    if not isinstance(value, dict) or not value or not set(value) <= _KINDS:
        raise ValueError("names is not a list for inputs, outputs or states")
    if not all(isinstance(own, list) for own in value.values()):
        raise ValueError("names has something that is not a list of texts")
    return SignalNames.of(value.get("inputs"), value.get("outputs"), value.get("states"))
