"""Names of inputs, outputs and states, with units as part of the name: "Force (N)".

Signals without names are numbered: u1, u2, … for inputs, y1, … for outputs and x1, … for states. Names are taken from
arguments, from row and column labels of pandas DataFrames, and from labels of python-control systems.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from ltinet._util.text import format_count, format_first_names, sanitize
from ltinet.errors import InvalidSystemError

# MERGED ltinet.systems.signal_names
# How inputs, outputs and states are called, units as part of the name: "Force (N)".

NamesLike: TypeAlias = Sequence[str] | None
"""One name for each input, output or state, in their order; None where nobody gave any."""

Names: TypeAlias = tuple[str, ...]
_MAX_NAME_LENGTH = 200  # characters: what is longer is a description, and would fill screens and files
_DEFAULT_LETTERS = {"inputs": "u", "outputs": "y", "states": "x"}


@final
@dataclass(frozen=True)
class SignalNames:
    """The names that were given, None for each kind of which none were; what has none is numbered: u1, y1, x1.

    Raises:
        InvalidSystemError: a name is not text, empty, very long, has control characters or comes twice.
    """

    inputs: Names | None = None
    outputs: Names | None = None
    states: Names | None = None

    def __post_init__(self) -> None:
        for kind in _DEFAULT_LETTERS:
            given = getattr(self, kind)
            object.__setattr__(self, kind, None if given is None else _validate_names(given, kind))

    @classmethod
    def of(cls, inputs: NamesLike, outputs: NamesLike, states: NamesLike) -> "SignalNames":
        """The names in any kind of lists."""
        given = zip(_DEFAULT_LETTERS, (inputs, outputs, states), strict=True)
        return cls(**{kind: None if own is None else _validate_names(own, kind) for kind, own in given})

    def validate_for(self, *, n_inputs: int, n_outputs: int, n_states: int) -> "SignalNames":
        """These names, which are those of a system of this size.

        Raises:
            InvalidSystemError: there are more or fewer than the system has.
        """
        for kind, count in (("inputs", n_inputs), ("outputs", n_outputs), ("states", n_states)):
            own = getattr(self, kind)
            if own is not None and len(own) != count:
                raise InvalidSystemError(
                    f"{kind} has {format_count(len(own), 'name')}, but the system has {format_count(count, kind[:-1])}; give "
                    "one for each, in their order"
                )
        return self

    def with_defaults(self, other: "SignalNames") -> "SignalNames":
        """These names, and those of another where here are none."""
        return SignalNames(*(mine if mine is not None else getattr(other, kind) for kind, mine in self._kinds))

    @property
    def without_states(self) -> "SignalNames":
        """Those of inputs and outputs alone, for the same system with other states."""
        return SignalNames(self.inputs, self.outputs)

    def with_output(self, index: int) -> "SignalNames":
        """The names where one of the outputs is left."""
        return SignalNames(self.inputs, None if self.outputs is None else (self.outputs[index],), self.states)

    @property
    def by_kind(self) -> dict[str, Names]:
        """The names by kind, of the kinds that have any."""
        return {kind: own for kind, own in self._kinds if own is not None}

    @property
    def rows(self) -> list[tuple[str, str]]:
        """A line of a summary for each kind that has names."""
        return [(kind, format_first_names(own)) for kind, own in self.by_kind.items()]

    @property
    def _kinds(self) -> list[tuple[str, Names | None]]:
        return [(kind, getattr(self, kind)) for kind in _DEFAULT_LETTERS]


UNNAMED = SignalNames()
"""Of a system whose signals nobody named."""


def names_or_defaults(given: Names | None, kind: str, count: int) -> Names:
    """The names that were given, or u1, u2, … for inputs, y1, … for outputs and x1, … for states."""
    return tuple(f"{_DEFAULT_LETTERS[kind]}{index + 1}" for index in range(count)) if given is None else given


def _validate_names(given: Any, kind: str) -> Names:
    what = f"a name of {kind}"
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidSystemError(f'{kind} is {sanitize(repr(given))}; give a list of names, such as ["Force (N)"]')
    names = tuple(given)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise InvalidSystemError(f"{what} is {sanitize(repr(name))}, not text; give a list of texts")
        if not name.strip() or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidSystemError(
                f"{what} is {sanitize(repr(name))}; names have 1 to {_MAX_NAME_LENGTH} characters that can be printed"
            )
        if name in seen:
            raise InvalidSystemError(f"{what}, {sanitize(repr(name))}, comes twice; each needs one of its own")
        seen.add(name)
    return tuple(str(name) for name in names)


# MERGED ltinet.systems.signal_names
# Names that matrices and other libraries' systems bring along: labels of DataFrames, labels of python-control.

# A matrix, what its rows and its columns belong to.
LabelledMatrix = tuple[str, Any, str | None, str]
_DEFAULT_LABEL = re.compile(r"[uyx]\[\d+\]")  # python-control's names for what nobody named


def names_from_dataframes(A: Any, B: Any, C: Any, D: Any, E: Any) -> SignalNames:
    """The names in rows and columns of matrices that are DataFrames, where they are text.

    With an E the rows of E, A and B are equations, which are no states.

    Raises:
        InvalidSystemError: two of them call the same thing by different names, or by the same in another order.
    """
    equations = "states" if E is None else None
    matrices: Sequence[LabelledMatrix] = (
        ("A", A, equations, "states"),
        ("B", B, equations, "inputs"),
        ("C", C, "outputs", "states"),
        ("D", D, "outputs", "inputs"),
        ("E", E, None, "states"),
    )
    found: dict[str, tuple[Names, str]] = {}
    for own in matrices:
        for kind, labels, place in _labels(own):
            known, where = found.setdefault(kind, (labels, place))
            if known != labels:
                raise InvalidSystemError(
                    f"{kind} are called {sanitize(list(known))} in the {where} and {sanitize(list(labels))} in the {place}; "
                    "bring them into one order with reindex, or pass the numbers alone, with to_numpy()"
                )
    return SignalNames(**{kind: labels for kind, (labels, _) in found.items()})


def _labels(matrix: LabelledMatrix) -> Iterable[tuple[str, Names, str]]:
    name, value, of_rows, of_columns = matrix
    if not (hasattr(value, "columns") and hasattr(value, "index") and hasattr(value, "to_numpy")):
        return
    for kind, labels, axis in ((of_rows, value.index, "rows"), (of_columns, value.columns, "columns")):
        texts = tuple(labels)
        if kind is not None and texts and all(isinstance(text, str) for text in texts):
            yield kind, texts, f"{axis} of {name}"


def names_from_labels(system: Any) -> SignalNames:
    """The labels of a system of python-control; those that it makes up by itself, u[0], are none."""
    kinds = ("input_labels", "output_labels", "state_labels")
    return SignalNames(*(_user_labels(getattr(system, kind, None)) for kind in kinds))


def _user_labels(labels: Any) -> Names | None:
    if not isinstance(labels, list | tuple) or not labels:
        return None
    return None if all(_DEFAULT_LABEL.fullmatch(str(label)) for label in labels) else tuple(labels)
