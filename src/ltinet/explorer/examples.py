"""The systems that the page offers by name: most are small enough to answer at once, and budgets move something."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ltinet.explorer.state import InvalidStateError
from ltinet.shown import near
from ltinet.state_space import StateSpace
from ltinet.systems import named_system


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
        raise InvalidStateError(f"there is no example {name!r}; {near(name, list(EXAMPLES))}")
    return named_system(EXAMPLES[name].name, **EXAMPLES[name].parameters)
