"""Arithmetic of systems: series, parallel, append, feedback, linear fractional transformations and the operators.

Operands are systems of any supported kind, numbers and arrays. Each operation is a wiring of `connection.connect`. Sums,
products, multiples and selections of `DynamicNetwork` alone are networks again, which reuse the blocks of their
operands (`networks`); every other result is a `StateSpace`.

Names: inputs and outputs keep the names of the systems that they belong to, except inputs of `feedback`. Where several
systems share an input or an output, the names of the first that has any are taken; joined names that are not unique
get the number of their system.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import rounding_tolerance
from ltinet._util.text import format_count, sanitize, suggest_names
from ltinet.analysis.frequency_response import solve_at_points, transfer_evaluator
from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.connection import connect
from ltinet.interconnection.delays import Wiring
from ltinet.interconnection.networks import parallel_networks, series_networks, with_system
from ltinet.interconnection.operators import SystemOperators, register_operations
from ltinet.interconnection.rational_functions import transfer_function, zeros_poles_gain
from ltinet.second_order import SecondOrder
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix, as_real_matrix
from ltinet.systems.signal_names import Names, SignalNames

System: TypeAlias = StateSpace | DynamicNetwork

# Operands


def as_operand(value: Any) -> StateSpace:
    """Return an operand as `StateSpace`; numbers and arrays are static gains.

    Raises InvalidSystemError if it is not a system.
    """
    if isinstance(value, StateSpace):
        return value
    if isinstance(value, DynamicNetwork):
        return value.system if value.system is not None else value.to_state_space()
    if _is_number(value) or isinstance(value, np.ndarray | list):
        D = as_real_matrix(value, "gain", vector="column")
        return StateSpace(np.zeros((0, 0)), np.zeros((0, D.shape[1])), np.zeros((len(D), 0)), D)
    return as_state_space(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_operand(value: Any) -> bool:
    """Return whether a value may be an operand of an operator; of others Python reports the types."""
    if isinstance(value, SystemOperators | SecondOrder | np.ndarray | list | tuple) or _is_number(value):
        return True
    return any(
        all(hasattr(value, name) for name in names) for names in (("A", "B", "C"), ("num", "den"), ("zeros", "poles"))
    )


def _are_networks(*values: Any) -> bool:
    return all(isinstance(value, DynamicNetwork) for value in values)


def _operands(values: Sequence[Any], function: str) -> list[StateSpace]:
    if not values:
        raise InvalidSystemError(f"{function} needs at least one system, got none")
    return [as_operand(value) for value in values]


# Names


def _names_of(system: StateSpace) -> SignalNames:
    return system.matrices.names


def _first(names: Sequence[Names | None]) -> Names | None:
    return next((name for name in names if name is not None), None)


def _joined(systems: Sequence[StateSpace], kind: str) -> Names | None:
    """Return the names of all systems one after the other; None if none of the systems has any."""
    if all(getattr(_names_of(system), kind) is None for system in systems):
        return None
    attribute = {"inputs": "input_names", "outputs": "output_names", "states": "state_names"}[kind]
    groups = [getattr(system, attribute) for system in systems]
    names = [name for group in groups for name in group]
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(f"{name}_{number}" for number, group in enumerate(groups, start=1) for name in group)


def _states(systems: Sequence[StateSpace]) -> Names | None:
    return _joined(systems, "states")


# Connections


def series(*systems: Any) -> Any:
    """Connect systems in series: signals pass through the first system first, as in `G3 * G2 * G1`.

    Parameters
    ----------
    *systems : object
        Systems, numbers or arrays; each takes the outputs of the one before it as its inputs.

    Returns
    -------
    StateSpace or DynamicNetwork
        System from the inputs of the first to the outputs of the last; a network if all are.

    Raises
    ------
    InvalidSystemError
        If numbers of inputs and outputs, time steps or operating points do not fit, or delays between systems in
        continuous time cannot be moved to the ends.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.series(ltinet.tf([1], [1, 1]), ltinet.tf([2], [1, 3])).dcgain().round(4)
    array([[0.6667]])
    """
    if len(systems) > 1 and _are_networks(*systems):
        return reduce(_network_series, systems)
    return _series(_operands(systems, "series"))


def _network_series(first: DynamicNetwork, second: DynamicNetwork) -> DynamicNetwork:
    return series_networks(first, second, _series([as_operand(first), as_operand(second)]))


def _series(operands: Sequence[StateSpace]) -> StateSpace:
    for first, second in pairwise(operands):
        if first.n_outputs != second.n_inputs:
            raise InvalidSystemError(
                f"systems in series must fit: the first of two has {format_count(first.n_outputs, 'output')}, the "
                f"second {format_count(second.n_inputs, 'input')}; select channels with system[outputs, inputs]"
            )
    n_u, n_y = ([getattr(system, size) for system in operands] for size in ("n_inputs", "n_outputs"))
    K = np.zeros((sum(n_u), sum(n_y)))
    K[n_u[0] :, : sum(n_y[:-1])] = np.eye(sum(n_y[:-1]))
    E, F = np.eye(sum(n_u), n_u[0]), np.eye(n_y[-1], sum(n_y), sum(n_y[:-1]))
    names = SignalNames(_names_of(operands[0]).inputs, _names_of(operands[-1]).outputs, _states(operands))
    return connect(operands, Wiring(K, E, F, np.zeros((n_y[-1], n_u[0]))), names=names)


def parallel(*systems: Any) -> Any:
    """Connect systems in parallel: all take the same inputs, and their outputs are added.

    Parameters
    ----------
    *systems : object
        Systems, numbers or arrays of one size; those with one input and one output, and numbers, are added to every
        entry of larger ones.

    Returns
    -------
    StateSpace or DynamicNetwork
        Sum of the systems; a network if all are.

    Raises
    ------
    InvalidSystemError
        If sizes or time steps do not fit.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.parallel(ltinet.tf([1], [1, 1]), 2.0).dcgain()
    array([[3.]])
    """
    if len(systems) > 1 and _are_networks(*systems):
        return reduce(_network_parallel, systems)
    return _parallel(_operands(systems, "parallel"))


def _network_parallel(first: DynamicNetwork, second: DynamicNetwork) -> DynamicNetwork:
    return parallel_networks(first, second, _parallel([as_operand(first), as_operand(second)]))


def _parallel(operands: Sequence[StateSpace]) -> StateSpace:
    shape = max((system.n_outputs, system.n_inputs) for system in operands)
    operands = [_spread(system, *shape) for system in operands]
    for system in operands:
        if (system.n_outputs, system.n_inputs) != shape:
            raise InvalidSystemError(
                f"systems in parallel must have equal sizes, got {shape[0]}×{shape[1]} and {system.n_outputs}×"
                f"{system.n_inputs} (outputs × inputs)"
            )
    count, (p, m) = len(operands), shape
    names = SignalNames(
        _first([_names_of(system).inputs for system in operands]),
        _first([_names_of(system).outputs for system in operands]),
        _states(operands),
    )
    K, H = np.zeros((count * m, count * p)), np.zeros(shape)
    E, F = np.tile(np.eye(m), (count, 1)), np.tile(np.eye(p), (1, count))
    return connect(operands, Wiring(K, E, F, H), names=names)


def _spread(system: StateSpace, n_outputs: int, n_inputs: int) -> StateSpace:
    """Return a system with one input and one output as a matrix with that system in every entry."""
    if (system.n_outputs, system.n_inputs) != (1, 1) or (n_outputs, n_inputs) == (1, 1):
        return system
    wiring = Wiring(np.zeros((1, 1)), np.ones((1, n_inputs)), np.ones((n_outputs, 1)), np.zeros((n_outputs, n_inputs)))
    return connect([system], wiring, names=SignalNames(states=_names_of(system).states))


def append(*systems: Any) -> Any:
    """Put systems side by side without connecting them: inputs and outputs one after the other.

    Parameters
    ----------
    *systems : object
        Systems, numbers or arrays.

    Returns
    -------
    StateSpace
        System with a block-diagonal transfer matrix.

    Raises
    ------
    InvalidSystemError
        If time steps differ.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.append(ltinet.tf([1], [1, 1]), 2.0).dcgain()
    array([[1., 0.],
           [0., 2.]])
    """
    operands = _operands(systems, "append")
    m, p = (sum(getattr(system, size) for system in operands) for size in ("n_inputs", "n_outputs"))
    names = SignalNames(_joined(operands, "inputs"), _joined(operands, "outputs"), _states(operands))
    return connect(operands, Wiring(np.zeros((m, p)), np.eye(m), np.eye(p), np.zeros((p, m))), names=names)


def feedback(P: Any, C: Any = 1.0, sign: int = -1) -> Any:
    """Close a loop: P in the forward path and C in the feedback path.

    The closed loop (I − sign·P C)⁻¹ P has as many inputs and outputs as P; with sign −1, the default, the output of C is
    subtracted from its input. Loops of direct gains are solved if they are well-posed. Outputs keep their names. Inputs
    have default names, since they are not the inputs of P, which are differences: `with_names(inputs=["Set point (K)"])`
    names them.

    Parameters
    ----------
    P : object
        System in the forward path, such as the series connection of a plant and its controller.
    C : object, optional
        System in the feedback path; 1 by default, the identity for several channels.
    sign : {-1, 1}, optional
        Sign of the feedback.

    Returns
    -------
    StateSpace
        Closed loop.

    Raises
    ------
    InvalidSystemError
        If sizes or time steps do not fit, the loop is ill-posed, or a delay in the loop is in continuous time.

    Examples
    --------
    >>> import ltinet
    >>> plant, controller = ltinet.tf([1], [1, 1]), ltinet.pid(9.0)
    >>> ltinet.feedback(plant * controller).dcgain()
    array([[0.9]])
    """
    if not _is_number(sign) or sign not in (-1, 1):
        raise InvalidSystemError(f"sign must be -1 or 1, got {sanitize(repr(sign))}")
    forward, back = as_operand(P), as_operand(C)
    m, p = forward.n_inputs, forward.n_outputs
    if (back.n_outputs, back.n_inputs) == (1, 1) and (m, p) != (1, 1) and m == p:
        back = append(*[back] * m)
    if (back.n_outputs, back.n_inputs) != (m, p):
        raise InvalidSystemError(
            f"the feedback path must have {format_count(p, 'input')} and {format_count(m, 'output')}, as many as the "
            f"forward path has outputs and inputs; it has {back.n_inputs} and {back.n_outputs}"
        )
    K = np.zeros((m + p, p + m))
    K[:m, p:], K[m:, :p] = sign * np.eye(m), np.eye(p)
    names = SignalNames(None, _names_of(forward).outputs, _states([forward, back]))
    wiring = Wiring(K, np.eye(m + p, m), np.eye(p, p + m), np.zeros((p, m)))
    return connect([forward, back], wiring, names=names, labels=["forward path", "feedback path"])


def lft(P: Any, K: Any, *, nu: int | None = None, ny: int | None = None) -> Any:
    """Close the lower linear fractional transformation of P with K.

    The last `ny` outputs of P drive the first inputs of K, and the first outputs of K drive the last `nu` inputs of P.
    Other inputs and outputs of P, then those of K, are the inputs and outputs of the result.

    Parameters
    ----------
    P : object
        Generalised plant.
    K : object
        Controller.
    nu, ny : int, optional
        Number of signals from K to P and from P to K; by default as many as both have.

    Returns
    -------
    StateSpace
        Closed loop.

    Raises
    ------
    InvalidSystemError
        If sizes or time steps do not fit, or the loop is ill-posed.

    Examples
    --------
    >>> import ltinet
    >>> plant = ltinet.ss([[0]], [[1, 1]], [[1], [1]])  # from disturbance and control to performance and measurement
    >>> ltinet.lft(plant, -2.0).poles()
    array([-2.+0.j])
    """
    plant, other = as_operand(P), as_operand(K)
    nu = min(plant.n_inputs, other.n_outputs) if nu is None else nu
    ny = min(plant.n_outputs, other.n_inputs) if ny is None else ny
    for name, value, limits in (
        ("nu", nu, (plant.n_inputs, other.n_outputs)),
        ("ny", ny, (plant.n_outputs, other.n_inputs)),
    ):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value <= min(limits):
            raise InvalidSystemError(
                f"{name} must be an integer between 0 and {min(limits)}, got {sanitize(repr(value))}"
            )
    m, p, mk, pk = plant.n_inputs, plant.n_outputs, other.n_inputs, other.n_outputs
    gains = np.zeros((m + mk, p + pk))
    gains[m - nu : m, p : p + nu] = np.eye(nu)
    gains[m : m + ny, p - ny : p] = np.eye(ny)
    inputs = [*range(m - nu), *range(m + ny, m + mk)]
    outputs = [*range(p - ny), *range(p + nu, p + pk)]
    wiring = Wiring(gains, np.eye(m + mk)[:, inputs], np.eye(p + pk)[outputs], np.zeros((len(outputs), len(inputs))))
    both = [plant, other]
    all_inputs, all_outputs = _joined(both, "inputs"), _joined(both, "outputs")
    names = SignalNames(
        None if all_inputs is None else tuple(all_inputs[i] for i in inputs),
        None if all_outputs is None else tuple(all_outputs[i] for i in outputs),
        _states(both),
    )
    return connect(both, wiring, names=names, labels=["plant", "controller"])


# Operators


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the function of an operator, which leaves operands of unknown types to Python."""

    def operate(one: Any, other: Any) -> Any:
        return function(one, other) if _is_operand(one) and _is_operand(other) else NotImplemented

    return operate


def add(one: Any, other: Any) -> Any:
    """Return the sum of two operands."""
    return parallel(one, other)


def subtract(one: Any, other: Any) -> Any:
    """Return the difference of two operands."""
    return parallel(one, negate(other))


def negate(system: Any) -> Any:
    """Return −G."""
    if isinstance(system, DynamicNetwork):
        return scale(system, -1.0)
    operand = as_operand(system)
    return _gained(operand, -np.eye(operand.n_outputs))


def _gained(system: StateSpace, gain: Matrix) -> StateSpace:
    """Return gain·G for a square gain on the outputs, with their names."""
    wiring = Wiring(
        np.zeros((system.n_inputs, system.n_outputs)), np.eye(system.n_inputs), gain,
        np.zeros((len(gain), system.n_inputs)),
    )  # fmt: skip
    return connect([system], wiring, names=_names_of(system))


def scale(system: Any, factor: float) -> Any:
    """Return a multiple of a system or network."""
    operand = as_operand(system)
    scaled = _gained(operand, float(factor) * np.eye(operand.n_outputs))
    if isinstance(system, DynamicNetwork):
        return with_system(system, scaled, error_factor=abs(factor))
    return scaled


def multiply(one: Any, other: Any) -> Any:
    """Return one·other: signals pass through `other` first."""
    if _is_number(one):
        return scale(other, one)
    if _is_number(other):
        return scale(one, other)
    if _are_networks(one, other):
        return _network_series(other, one)
    second, first = as_operand(one), as_operand(other)
    if (second.n_outputs, second.n_inputs) == (1, 1) and first.n_outputs != 1:
        second = append(*[second] * first.n_outputs)
    if (first.n_outputs, first.n_inputs) == (1, 1) and second.n_inputs != 1:
        first = append(*[first] * second.n_inputs)
    return _series([first, second])


def divide(one: Any, other: Any) -> Any:
    """Return one divided by a number, or one times the inverse of a system."""
    if _is_number(other):
        if other == 0:
            raise ZeroDivisionError("division of a system by zero")
        operand = as_operand(one)
        scaled = _gained(operand, np.eye(operand.n_outputs) / float(other))
        return with_system(one, scaled, error_factor=1.0 / abs(other)) if isinstance(one, DynamicNetwork) else scaled
    return multiply(one, inverse(as_operand(other)))


def inverse(system: StateSpace) -> StateSpace:
    """Return the inverse, u = D⁻¹(y − C x); raise InvalidSystemError if D is singular or the system has delays."""
    if system.n_inputs != system.n_outputs:
        raise InvalidSystemError(
            f"a system with {format_count(system.n_inputs, 'input')} and {format_count(system.n_outputs, 'output')} has no "
            "inverse"
        )
    system.signal_settings.refuse_unsupported("the inverse of a system")
    D = system.D
    values = np.linalg.svd(D, compute_uv=False)
    if len(values) and not values[-1] > rounding_tolerance(len(D)) * values[0]:
        raise InvalidSystemError(
            "the inverse of the system is improper, since its feedthrough D is singular; for loops use "
            "ltinet.feedback(P, C), which needs no inverse"
        )
    C, D_inverse = np.linalg.solve(D, system.C), np.linalg.inv(D)
    A, B = system.A - system.B @ C, system.B @ D_inverse
    names = _names_of(system)
    named = StateSpace(A, B, -C, D_inverse, dt=system.dt)
    return StateSpace.of(named.matrices.with_names(SignalNames(names.outputs, names.inputs, names.states)))


def power(system: Any, exponent: Any) -> Any:
    """Return an integer power of a square system."""
    if not isinstance(exponent, int | np.integer) or isinstance(exponent, bool):
        return NotImplemented
    operand = as_operand(system)
    if operand.n_inputs != operand.n_outputs:
        raise InvalidSystemError(
            f"powers need as many inputs as outputs, the system has {operand.n_inputs} and {operand.n_outputs}"
        )
    if exponent == 0:
        identity = as_operand(np.eye(operand.n_outputs))
        return StateSpace.of(identity.matrices.with_time_step(operand.dt))
    if exponent < 0:
        system = operand = inverse(operand)
    return series(*[system] * abs(int(exponent)))


Index: TypeAlias = Any
"""Number, name, slice or list of numbers and names."""


def select(system: Any, channels: tuple[Index, Index]) -> Any:
    """Return the system with some of its outputs and inputs, `system[outputs, inputs]`."""
    if not isinstance(channels, tuple) or len(channels) != 2:
        raise InvalidSystemError(
            "a system has outputs and inputs: write system[outputs, inputs], such as system[0, 1] or system[:, 'u1']"
        )
    operand = as_operand(system)
    rows = _indices(channels[0], operand.output_names, "output")
    columns = _indices(channels[1], operand.input_names, "input")
    names = _names_of(operand)
    inputs, outputs = (
        None if values is None or len(set(at)) < len(at) else tuple(values[i] for i in at)
        for values, at in ((names.inputs, columns), (names.outputs, rows))
    )
    p, m = operand.n_outputs, operand.n_inputs
    settings = operand.signal_settings
    delays = {"input_delay": operand.input_delay[columns], "output_delay": operand.output_delay[rows]}
    points = {"u0": operand.u0[columns], "y0": operand.y0[rows]}
    wiring = Wiring(np.zeros((m, p)), np.eye(m)[:, columns], np.eye(p)[rows], np.zeros((len(rows), len(columns))))
    bare = (
        operand.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0) if not settings.is_default else operand
    )
    selected = connect([bare], wiring, names=SignalNames(inputs, outputs, names.states))
    if settings.shifts_signals:
        selected = selected.with_signal_settings(**delays, **points)
    return with_system(system, selected) if isinstance(system, DynamicNetwork) else selected


def _indices(index: Index, names: Names, kind: str) -> list[int]:
    if isinstance(index, slice):
        return list(range(len(names)))[index]
    if isinstance(index, list | tuple | np.ndarray):
        return [position for part in index for position in _indices(part, names, kind)]
    if isinstance(index, str):
        if index not in names:
            raise InvalidSystemError(f"there is no {kind} {sanitize(repr(index))}; {suggest_names(index, names)}")
        return [names.index(index)]
    if not isinstance(index, int | np.integer) or isinstance(index, bool):
        raise InvalidSystemError(
            f"{kind}s are selected by numbers, names, slices or lists of them, got {sanitize(repr(index))}"
        )
    if not -len(names) <= index < len(names):
        raise InvalidSystemError(f"there is no {kind} {index}; the system has {format_count(len(names), kind)}")
    return [int(index) % len(names)]


def evaluate(system: Any, s: ArrayLike) -> Any:
    """Return the transfer function at complex numbers, with delays."""
    operand = as_operand(system)
    try:
        points = np.asarray(s, dtype=np.complex128)
    except (TypeError, ValueError):
        raise InvalidSystemError(f"s must be one or several complex numbers, got {sanitize(repr(s))}") from None
    if not np.isfinite(points).all():
        raise InvalidSystemError("s must be finite")
    flat = points.reshape(-1)
    matrices = operand.matrices
    is_sparse = matrices.sparse is not None and matrices.sparse.is_large
    H = transfer_evaluator(matrices)(flat) if is_sparse else solve_at_points(matrices, flat)
    if operand.signal_settings.has_delays:
        delays = operand.signal_settings.total_delay(operand.n_outputs, operand.n_inputs)
        if operand.dt is None:
            H = H * np.exp(-flat[:, None, None] * delays)
        else:
            H = H * flat[:, None, None] ** -np.round(delays / operand.dt)
    H = H.reshape(*points.shape, *H.shape[1:])
    return H[0, 0] if H.shape == (1, 1) else H


register_operations(
    add=_binary(add),
    subtract=_binary(subtract),
    multiply=_binary(multiply),
    divide=_binary(divide),
    negate=negate,
    power=power,
    select=select,
    evaluate=evaluate,
    feedback=feedback,
    tf=lambda system: transfer_function(as_operand(system)),
    zpk=lambda system: zeros_poles_gain(as_operand(system)),
)
