"""Validation of simulation options, and the options of ODE solvers for each neuron.

A SciPy method, rtol and atol are given once for all neurons, as a mapping from a layer or from (layer, neuron), or as
a function of the neuron. Values are checked before a run: an option that an engine cannot use raises
`SimulationError`.
"""

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ltinet._util.floating_point import EPS
from ltinet._util.text import sanitize
from ltinet.errors import SimulationError
from ltinet.network.neuron import Neuron

if TYPE_CHECKING:
    from scipy import integrate

# MERGED ltinet.simulation.options
# The arguments of a run, checked at its door: what an engine does not know or cannot use is refused, not swallowed.

# Values of a function are rounded themselves: how close lines come to them says nothing below this.
_SMALLEST_INPUT_TOLERANCE = 8.0 * EPS


def validate_input_tolerance(value: Any) -> float:
    """A distance of lines from a function, relative to it.

    Raises:
        SimulationError: it is not a number between rounding and infinity.
    """
    tolerance = validate_positive(value, "input_tolerance")
    if tolerance < _SMALLEST_INPUT_TOLERANCE:
        raise SimulationError(
            f"input_tolerance is {tolerance:g}; u's own values are rounded themselves: give {_SMALLEST_INPUT_TOLERANCE:.2g} or more"
        )
    return tolerance


def validate_n_jobs(value: Any) -> int:
    """A number of threads or processes: positive, or negative to count down from all cores, −1 for all.

    Raises:
        SimulationError: it is not an integer, zero, or counts down beyond the first core.
    """
    try:
        n_jobs = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n_jobs = 0
    if n_jobs > 0:
        return n_jobs
    cores = os.cpu_count() or 1
    if n_jobs == 0 or n_jobs < -cores:
        raise SimulationError(
            f"n_jobs is {sanitize(repr(value))}; give a whole number of them, or count down from the {cores} cores here: "
            f"-1 for all of them, -2 for all but one, and so on to -{cores}"
        )
    return n_jobs


def validate_positive(value: Any, name: str) -> float:
    """A positive, finite number; text that looks like one is none.

    Raises:
        SimulationError: it is not; the message calls it `name`.
    """
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; other libraries' arrays that refuse
        given = np.asarray(None)
    number = float(given) if given.ndim == 0 and given.dtype.kind in "iuf" else np.nan
    if not 0.0 < number < np.inf:
        raise SimulationError(f"{name} is {sanitize(repr(value))}; give a positive, finite number")
    return number


# MERGED ltinet.simulation.options
# Which solver and tolerances each neuron gets: one for all, by layer, by neuron, or by a function of the neuron.

# Degree of the dense output of each method, per step.
DEGREES = {"RK23": 3, "RK45": 4, "DOP853": 7, "Radau": 3, "BDF": 5, "LSODA": 12}
_IMPLICIT = {"Radau", "BDF"}


@dataclass(frozen=True)
class SolverOptions:
    """Options as a user gives them: one for all, a mapping (from a layer, or a layer and a neuron), or a function."""

    method: Any = "DOP853"
    rtol: Any = 1e-8
    atol: Any = 1e-10
    first_step: float | None = None
    max_step: float = np.inf

    def check_keys(self, neurons_per_layer: Sequence[int]) -> None:
        """Refuse mappings with keys that name no layer and no neuron, and values that no solver takes.

        What a function of the neuron returns is checked when it is asked.

        Raises:
            SimulationError: there are such keys or values.
        """
        layers = range(len(neurons_per_layer))
        known = {*layers, *((layer, neuron) for layer in layers for neuron in range(neurons_per_layer[layer]))}
        for name, check in (("method", _known_method), ("rtol", validate_positive), ("atol", validate_positive)):
            option = getattr(self, name)
            unknown = [key for key in option if key not in known] if isinstance(option, Mapping) else []
            if unknown:
                raise SimulationError(
                    f"{name} has the key {unknown[0]!r}; a key is a layer, 0 to {len(layers) - 1}, or (layer, neuron), "
                    "both counted from zero"
                )
            for value in option.values() if isinstance(option, Mapping) else () if callable(option) else (option,):
                check(value, name)
        if self.first_step is not None:
            validate_positive(self.first_step, "first_step")
        if self.max_step != np.inf:  # which means no limit
            validate_positive(self.max_step, "max_step")

    def of(self, layer: int, neuron: Neuron) -> "NeuronOptions":
        """The options of one neuron, checked."""
        return NeuronOptions(
            _known_method(_resolve(self.method, layer, neuron, SolverOptions.method), "method"),
            validate_positive(_resolve(self.rtol, layer, neuron, SolverOptions.rtol), "rtol"),
            validate_positive(_resolve(self.atol, layer, neuron, SolverOptions.atol), "atol"),
            self.first_step,
            self.max_step,
        )


@dataclass(frozen=True)
class NeuronOptions:
    """The solver of one neuron."""

    method: str
    rtol: float
    atol: float
    first_step: float | None
    max_step: float

    @property
    def degree(self) -> int:
        """Degree of the dense output."""
        return DEGREES[self.method]

    @property
    def solver_class(self) -> Callable[..., "integrate.OdeSolver[np.float64]"]:
        """SciPy's class for the method."""
        from scipy import integrate  # here, because it would be a third of the time that importing ltinet takes

        return getattr(integrate, self.method)  # type: ignore[no-any-return]

    @property
    def takes_jacobian(self) -> bool:
        """Whether the method is implicit and profits from the constant Jacobian."""
        return self.method in _IMPLICIT


def _resolve(option: Any, layer: int, neuron: Neuron, default: Any) -> Any:
    if isinstance(option, Mapping):
        return option.get((layer, neuron.index), option.get(layer, default))
    if isinstance(option, Callable):  # type: ignore[arg-type]
        return option(neuron)
    return option


def _known_method(value: Any, name: str) -> str:
    if not isinstance(value, str) or value not in DEGREES:
        raise SimulationError(f"{name} is {sanitize(repr(value))}; known are {', '.join(DEGREES)}")
    return value
