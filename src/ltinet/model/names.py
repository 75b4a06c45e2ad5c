"""How inputs, outputs and states are called, units as part of the name: "Force (N)"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from ltinet.errors import InvalidSystemError
from ltinet.shown import count_of, shown, shown_first

NamesLike: TypeAlias = Sequence[str] | None
"""One name for each input, output or state, in their order; None where nobody gave any."""

Names: TypeAlias = tuple[str, ...]
_LONGEST = 200  # characters: what is longer is a description, and would fill screens and files
_LETTERS = {"inputs": "u", "outputs": "y", "states": "x"}


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
        for kind in _LETTERS:
            given = getattr(self, kind)
            object.__setattr__(self, kind, None if given is None else _checked(given, kind))

    @classmethod
    def of(cls, inputs: NamesLike, outputs: NamesLike, states: NamesLike) -> "SignalNames":
        """The names in any kind of lists."""
        given = zip(_LETTERS, (inputs, outputs, states), strict=True)
        return cls(**{kind: None if own is None else _checked(own, kind) for kind, own in given})

    def fitting(self, *, n_inputs: int, n_outputs: int, n_states: int) -> "SignalNames":
        """These names, which are those of a system of this size.

        Raises:
            InvalidSystemError: there are more or fewer than the system has.
        """
        for kind, count in (("inputs", n_inputs), ("outputs", n_outputs), ("states", n_states)):
            own = getattr(self, kind)
            if own is not None and len(own) != count:
                raise InvalidSystemError(
                    f"{kind} has {count_of(len(own), 'name')}, but the system has {count_of(count, kind[:-1])}; give "
                    "one for each, in their order"
                )
        return self

    def over(self, other: "SignalNames") -> "SignalNames":
        """These names, and those of another where here are none."""
        return SignalNames(*(mine if mine is not None else getattr(other, kind) for kind, mine in self._kinds))

    @property
    def of_ends(self) -> "SignalNames":
        """Those of inputs and outputs alone, for the same system with other states."""
        return SignalNames(self.inputs, self.outputs)

    def with_output(self, index: int) -> "SignalNames":
        """The names where one of the outputs is left."""
        return SignalNames(self.inputs, None if self.outputs is None else (self.outputs[index],), self.states)

    @property
    def given(self) -> dict[str, Names]:
        """The names by kind, of the kinds that have any."""
        return {kind: own for kind, own in self._kinds if own is not None}

    @property
    def rows(self) -> list[tuple[str, str]]:
        """A line of a summary for each kind that has names."""
        return [(kind, shown_first(own)) for kind, own in self.given.items()]

    @property
    def _kinds(self) -> list[tuple[str, Names | None]]:
        return [(kind, getattr(self, kind)) for kind in _LETTERS]


UNNAMED = SignalNames()
"""Of a system whose signals nobody named."""


def names_or_numbers(given: Names | None, kind: str, count: int) -> Names:
    """The names that were given, or u1, u2, … for inputs, y1, … for outputs and x1, … for states."""
    return tuple(f"{_LETTERS[kind]}{index + 1}" for index in range(count)) if given is None else given


def _checked(given: Any, kind: str) -> Names:
    what = f"a name of {kind}"
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidSystemError(f'{kind} is {shown(repr(given))}; give a list of names, such as ["Force (N)"]')
    names = tuple(given)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise InvalidSystemError(f"{what} is {shown(repr(name))}, not text; give a list of texts")
        if not name.strip() or len(name) > _LONGEST or not name.isprintable():
            raise InvalidSystemError(
                f"{what} is {shown(repr(name))}; names have 1 to {_LONGEST} characters that can be printed"
            )
        if name in seen:
            raise InvalidSystemError(f"{what}, {shown(repr(name))}, comes twice; each needs one of its own")
        seen.add(name)
    return tuple(str(name) for name in names)
