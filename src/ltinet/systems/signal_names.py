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

NamesLike: TypeAlias = Sequence[str] | None
"""Name of each input, output or state in their order; None for default names."""

Names: TypeAlias = tuple[str, ...]
_MAX_NAME_LENGTH = 200  # characters
_DEFAULT_LETTERS = {"inputs": "u", "outputs": "y", "states": "x"}


@final
@dataclass(frozen=True)
class SignalNames:
    """Names of inputs, outputs and states; None for kinds with default names (u1, y1, x1).

    Raises InvalidSystemError if a name is not text, empty, too long, not printable or not unique.
    """

    inputs: Names | None = None
    outputs: Names | None = None
    states: Names | None = None

    def __post_init__(self) -> None:
        for kind in _DEFAULT_LETTERS:
            names = getattr(self, kind)
            object.__setattr__(self, kind, None if names is None else _validate_names(names, kind))

    @classmethod
    def of(cls, inputs: NamesLike, outputs: NamesLike, states: NamesLike) -> "SignalNames":
        """Create names from sequences of any type."""
        return cls(inputs, outputs, states)  # type: ignore[arg-type]  # validation converts them to tuples

    def validate_for(self, *, n_inputs: int, n_outputs: int, n_states: int) -> "SignalNames":
        """Return these names; raise InvalidSystemError if their numbers differ from those of the system."""
        for kind, count in (("inputs", n_inputs), ("outputs", n_outputs), ("states", n_states)):
            names = getattr(self, kind)
            if names is not None and len(names) != count:
                raise InvalidSystemError(
                    f"{kind} has {format_count(len(names), 'name')}, but the system has "
                    f"{format_count(count, kind[:-1])}; give one for each, in their order"
                )
        return self

    def with_defaults(self, other: "SignalNames") -> "SignalNames":
        """Return these names, completed by those of `other` for kinds without names."""
        return SignalNames(**{**other.by_kind, **self.by_kind})

    @property
    def without_states(self) -> "SignalNames":
        """Names of inputs and outputs only, for a system with other states."""
        return SignalNames(self.inputs, self.outputs)

    def with_output(self, index: int) -> "SignalNames":
        """Return the names of the system with one of the outputs."""
        return SignalNames(self.inputs, None if self.outputs is None else (self.outputs[index],), self.states)

    @property
    def by_kind(self) -> dict[str, Names]:
        """Names by kind, "inputs", "outputs" and "states", without kinds that have none."""
        names = {kind: getattr(self, kind) for kind in _DEFAULT_LETTERS}
        return {kind: values for kind, values in names.items() if values is not None}

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Summary row for each kind that has names."""
        return [(kind, format_first_names(names)) for kind, names in self.by_kind.items()]


UNNAMED = SignalNames()
"""Default names only."""


def names_or_defaults(names: Names | None, kind: str, count: int) -> Names:
    """Return the names, or u1, u2, … for inputs, y1, … for outputs and x1, … for states if there are none."""
    return tuple(f"{_DEFAULT_LETTERS[kind]}{index + 1}" for index in range(count)) if names is None else names


def _validate_names(value: Any, kind: str) -> Names:
    if isinstance(value, str):
        value = [value]
    if not hasattr(value, "__iter__"):
        raise InvalidSystemError(f'{kind} must be a list of names, such as ["Force (N)"], got {sanitize(repr(value))}')
    names, unique = tuple(value), set[str]()
    for name in names:
        if not isinstance(name, str):
            raise InvalidSystemError(f"names of {kind} must be text, got {sanitize(repr(name))}")
        if not name.strip() or len(name) > _MAX_NAME_LENGTH or not name.isprintable():
            raise InvalidSystemError(
                f"names of {kind} must have 1 to {_MAX_NAME_LENGTH} printable characters, got {sanitize(repr(name))}"
            )
        if name in unique:
            raise InvalidSystemError(f"names of {kind} must be unique, got {sanitize(repr(name))} twice")
        unique.add(name)
    return tuple(str(name) for name in names)


# Name and value of a matrix, kinds of its rows and of its columns.
LabelledMatrix = tuple[str, Any, str | None, str]
_DEFAULT_LABEL = re.compile(r"[uyx]\[\d+\]")  # default labels of python-control


def names_from_dataframes(A: Any, B: Any, C: Any, D: Any, E: Any) -> SignalNames:
    """Return the names in row and column labels of DataFrames, where these are text.

    With an E the rows of E, A and B are equations, not states. Raises InvalidSystemError if two matrices have different
    names for the same signals, or in different order.
    """
    equations = "states" if E is None else None
    matrices: Sequence[LabelledMatrix] = (
        ("A", A, equations, "states"),
        ("B", B, equations, "inputs"),
        ("C", C, "outputs", "states"),
        ("D", D, "outputs", "inputs"),
        ("E", E, None, "states"),
    )
    names: dict[str, tuple[Names, str]] = {}
    for matrix in matrices:
        for kind, labels, axis in _labels(matrix):
            first_labels, first_axis = names.setdefault(kind, (labels, axis))
            if first_labels != labels:
                raise InvalidSystemError(
                    f"{kind} are called {sanitize(list(first_labels))} in the {first_axis} and {sanitize(list(labels))} in "
                    f"the {axis}; reorder them with reindex, or pass the numbers alone, with to_numpy()"
                )
    return SignalNames(**{kind: labels for kind, (labels, _) in names.items()})


def _labels(matrix: LabelledMatrix) -> Iterable[tuple[str, Names, str]]:
    name, value, row_kind, column_kind = matrix
    if not (hasattr(value, "columns") and hasattr(value, "index") and hasattr(value, "to_numpy")):
        return
    for kind, labels, axis in ((row_kind, value.index, "rows"), (column_kind, value.columns, "columns")):
        texts = tuple(labels)
        if kind is not None and texts and all(isinstance(text, str) for text in texts):
            yield kind, texts, f"{axis} of {name}"


def names_from_labels(system: Any) -> SignalNames:
    """Return the labels of a python-control system, without default labels such as u[0]."""
    kinds = ("input_labels", "output_labels", "state_labels")
    return SignalNames(*(_user_labels(getattr(system, kind, None)) for kind in kinds))


def _user_labels(labels: Any) -> Names | None:
    if not isinstance(labels, list | tuple) or not labels:
        return None
    return None if all(_DEFAULT_LABEL.fullmatch(str(label)) for label in labels) else tuple(labels)
