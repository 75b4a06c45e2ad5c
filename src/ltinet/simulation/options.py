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

# Degree of the dense output of each SciPy method, per step.
DEGREES = {"RK23": 3, "RK45": 4, "DOP853": 7, "Radau": 3, "BDF": 5, "LSODA": 12}
METHODS_WITH_JACOBIAN = {"Radau", "BDF"}
# Values of a function are rounded themselves: their distance from straight lines has no meaning below this.
_MIN_INPUT_TOLERANCE = 8.0 * EPS


def validate_input_tolerance(value: Any) -> float:
    """Return the largest relative distance of straight lines from an input function.

    Raises
    ------
    SimulationError
        It is not a finite number above rounding.
    """
    tolerance = validate_positive(value, "input_tolerance")
    if tolerance < _MIN_INPUT_TOLERANCE:
        raise SimulationError(
            f"input_tolerance must be at least {_MIN_INPUT_TOLERANCE:.2g}, got {tolerance:g}: u itself is rounded."
        )
    return tolerance


def validate_n_jobs(value: Any) -> int:
    """Return a number of threads or processes: positive, or negative to count down from all cores, −1 for all.

    Raises
    ------
    SimulationError
        It is not an integer, zero, or counts down beyond the first core.
    """
    try:
        n_jobs = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n_jobs = 0
    cores = os.cpu_count() or 1
    if n_jobs == 0 or n_jobs < -cores:
        raise SimulationError(
            f"n_jobs must be a positive integer, or -1 to -{cores} to count down from all {cores} cores, "
            f"got {sanitize(repr(value))}."
        )
    return n_jobs


def validate_positive(value: Any, name: str) -> float:
    """Return a positive, finite number; strings are not converted.

    Raises
    ------
    SimulationError
        It is not positive and finite; the message contains `name`.
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; arrays of other libraries that cannot be converted
        array = np.asarray(None)
    number = float(array) if array.ndim == 0 and array.dtype.kind in "iuf" else np.nan
    if not 0.0 < number < np.inf:
        raise SimulationError(f"{name} must be a positive, finite number, got {sanitize(repr(value))}.")
    return number


@dataclass(frozen=True)
class SolverOptions:
    """Solver options of all neurons: a value, a mapping (from a layer, or a layer and a neuron), or a function."""

    method: Any = "DOP853"
    rtol: Any = 1e-8
    atol: Any = 1e-10
    first_step: float | None = None
    max_step: float = np.inf

    def validate(self, neurons_per_layer: Sequence[int]) -> None:
        """Check the keys of mappings and all values; results of functions are checked by `for_neuron`.

        Raises
        ------
        SimulationError
            A key is not a layer or a neuron of the network, or no solver accepts a value.
        """
        layers = range(len(neurons_per_layer))
        known = {*layers, *((layer, neuron) for layer in layers for neuron in range(neurons_per_layer[layer]))}
        for name, check in (("method", _validate_method), ("rtol", validate_positive), ("atol", validate_positive)):
            option = getattr(self, name)
            if isinstance(option, Mapping):
                unknown = [key for key in option if key not in known]
                if unknown:
                    raise SimulationError(
                        f"{name} has the unknown key {unknown[0]!r}. Keys are layers, 0 to {len(layers) - 1}, or "
                        "(layer, neuron), both counted from zero."
                    )
                for value in option.values():
                    check(value, name)
            elif not callable(option):
                check(option, name)
        if self.first_step is not None:
            validate_positive(self.first_step, "first_step")
        if self.max_step != np.inf:  # the default, no limit
            validate_positive(self.max_step, "max_step")

    def for_neuron(self, layer: int, neuron: Neuron) -> "NeuronOptions":
        """Return the validated options of one neuron."""
        return NeuronOptions(
            _validate_method(_resolve(self.method, layer, neuron, SolverOptions.method), "method"),
            validate_positive(_resolve(self.rtol, layer, neuron, SolverOptions.rtol), "rtol"),
            validate_positive(_resolve(self.atol, layer, neuron, SolverOptions.atol), "atol"),
            self.first_step,
            self.max_step,
        )


@dataclass(frozen=True)
class NeuronOptions:
    """Solver options of one neuron."""

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
        from scipy import integrate  # imported late: it takes a third of the time of importing ltinet

        return getattr(integrate, self.method)  # type: ignore[no-any-return]


def _resolve(option: Any, layer: int, neuron: Neuron, default: Any) -> Any:
    if isinstance(option, Mapping):
        return option.get((layer, neuron.index), option.get(layer, default))
    if isinstance(option, Callable):  # type: ignore[arg-type]
        return option(neuron)
    return option


def _validate_method(value: Any, name: str) -> str:
    if not isinstance(value, str) or value not in DEGREES:
        raise SimulationError(f"{name} must be one of {', '.join(DEGREES)}, got {sanitize(repr(value))}.")
    return value
