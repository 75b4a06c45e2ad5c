"""Named systems by formula, so that an example or a test needs no file: `named_system("penzl", n_real=500)`."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ltinet.errors import InvalidSystemError
from ltinet.model.benchmark_systems import heat_rod, mass_spring_damper, penzl
from ltinet.model.paper_systems import blobs, convection_diffusion, diffusion, triangular
from ltinet.model.plate_systems import convection_diffusion_plate, heat_plate
from ltinet.model.system_matrices import SystemMatrices

NAMED_SYSTEMS: Mapping[str, Callable[..., SystemMatrices]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            blobs,
            convection_diffusion,
            convection_diffusion_plate,
            diffusion,
            heat_plate,
            heat_rod,
            mass_spring_damper,
            penzl,
            triangular,
        )
    }
)
"""Every named system: the name and the function that builds it, whose parameters all have default values."""


def build_system(name: str, parameters: Mapping[str, Any]) -> SystemMatrices:
    """Build the system called `name`.

    Raises:
        InvalidSystemError: there is no system of that name, it has no such parameter, or a value does not fit.
    """
    if name not in NAMED_SYSTEMS:
        raise InvalidSystemError(f"there is no system named {name!r}; there are {', '.join(NAMED_SYSTEMS)}")
    function = NAMED_SYSTEMS[name]
    known = inspect.signature(function).parameters
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise InvalidSystemError(f"{name} has no parameter {', '.join(unknown)}; it has {', '.join(known)}")
    return function(**parameters)
