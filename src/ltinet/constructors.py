"""Constructors of systems as in MATLAB and python-control: `ss`, `tf`, `zpk` and `pid`.

Each returns a `StateSpace`. Transfer functions become minimal realizations with well-scaled states, see
`systems.transfer_functions`; `system.tf()` and `system.zpk()` lead back.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.other_names import suggest_keywords
from ltinet._util.text import format_count, sanitize
from ltinet.conversion import as_state_space
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.rational_functions import TransferFunction, transfer_function, variable
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import MatrixLike, as_real_matrix
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, validate_time_step
from ltinet.systems.transfer_functions import (
    minimal_realization,
    realize_polynomial_matrix,
    realize_polynomials,
    realize_zpk_matrix,
    scale_states,
)


@suggest_keywords
def ss(  # noqa: PLR0913
    A: Any,
    B: MatrixLike | None = None,
    C: MatrixLike | None = None,
    D: MatrixLike | None = None,
    dt: float | None = None,
    *,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
    states: NamesLike = None,
    input_delay: ArrayLike | None = None,
    output_delay: ArrayLike | None = None,
) -> StateSpace:
    """Create a system from its matrices, or convert another one to state space.

    Parameters
    ----------
    A : array_like, sparse matrix or system
        State matrix, n×n; or a single argument that `as_state_space` accepts.
    B, C, D : array_like, optional
        Input matrix n×m, output matrix p×n and feedthrough p×m, zero by default.
    dt : float, optional
        Time step of a system in discrete time; None or 0 for continuous time.
    inputs, outputs, states : sequence of str, optional
        Names of the signals.
    input_delay, output_delay : float or sequence of float, optional
        Delay of each input and of each output.

    Returns
    -------
    StateSpace
        System with these matrices.

    Raises
    ------
    InvalidSystemError
        If the matrices do not form a system.

    See Also
    --------
    StateSpace : The class, with all options.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.ss([[0, 1], [-4, -0.4]], [[0], [1]], [[1, 0]], 0).poles()
    array([-0.2+1.98997487j, -0.2-1.98997487j])
    """
    if B is None and C is None:
        system = as_state_space(A)
        if D is not None or dt is not None:
            raise InvalidSystemError("ss takes one system, or matrices: ss(A, B, C, D, dt)")
        names = SignalNames.of(inputs, outputs, states).with_defaults(system.matrices.names)
        changes = {"input_delay": input_delay, "output_delay": output_delay}
        changes = {name: value for name, value in changes.items() if value is not None}
        named = StateSpace.of(system.matrices.with_names(names), settings=system.signal_settings)
        return named.with_signal_settings(**changes) if changes else named
    if B is None or C is None:
        raise InvalidSystemError("ss needs A, B and C, and D if there is feedthrough: ss(A, B, C, D)")
    return StateSpace(
        A, B, C, D, dt=dt, inputs=inputs, outputs=outputs, states=states, input_delay=input_delay,
        output_delay=output_delay,
    )  # fmt: skip


@suggest_keywords
def tf(
    num: Any,
    den: Any = None,
    dt: float | None = None,
    *,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
    input_delay: ArrayLike | None = None,
    output_delay: ArrayLike | None = None,
) -> Any:
    """Create a system from the polynomials of its transfer function, or a variable to write transfer functions with.

    The realization is minimal up to rounding, and its states are scaled. Its coefficients are those given: the relative
    error of the transfer function is a few rounding errors times its condition number with respect to the coefficients.

    Parameters
    ----------
    num, den : array_like, or list of list of array_like
        Coefficients, highest power first. For several inputs and outputs `num[i][j]` and `den[i][j]` are those from
        input j to output i; one common `den` may be given. `tf("s")` and `tf("z", dt=0.1)` return the variable as a
        `TransferFunction`; `tf(system)` converts a system.
    dt : float, optional
        Time step of a system in discrete time, with polynomials in z; None or 0 for continuous time.
    inputs, outputs : sequence of str, optional
        Names of the signals.
    input_delay, output_delay : float or sequence of float, optional
        Delay of each input and of each output.

    Returns
    -------
    StateSpace or TransferFunction
        System; for "s", "z" and a system as the only argument a `TransferFunction`.

    Raises
    ------
    InvalidSystemError
        If the function is improper, the denominator is zero, or the arguments are not polynomials.

    Examples
    --------
    >>> import ltinet
    >>> G = ltinet.tf([1], [1, 0.5, 4])
    >>> G.dcgain()
    array([[0.25]])
    >>> s = ltinet.tf("s")
    >>> ltinet.ss(1 / (s**2 + 0.5 * s + 4)) == G
    True
    >>> ltinet.tf([[[1], [2]]], [[[1, 1], [1, 1]]]).n_states  # both inputs share the pole
    1
    """
    step = validate_time_step(dt)
    if den is None:
        if isinstance(num, str):
            return variable(num, step)
        if isinstance(num, TransferFunction):
            return num
        return transfer_function(as_state_space(num))
    nums, dens = _polynomial_matrices(num, den)
    with_index = len(nums) > 1 or len(nums[0]) > 1
    matrices = realize_polynomial_matrix(nums, dens) if with_index else realize_polynomials(nums[0][0], dens[0][0])
    return _named(
        minimal_realization(matrices), step, inputs, outputs, input_delay=input_delay, output_delay=output_delay
    )


@suggest_keywords
def zpk(
    zeros: Any,
    poles: Any,
    gain: ArrayLike,
    dt: float | None = None,
    *,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
    input_delay: ArrayLike | None = None,
    output_delay: ArrayLike | None = None,
) -> StateSpace:
    """Create a system from the zeros, poles and gain of its transfer function, or of each entry of a transfer matrix.

    An entry is a chain of sections of order one and two with exactly the poles given; polynomials are not multiplied
    out. States that entries of a matrix have in common appear once.

    Parameters
    ----------
    zeros, poles : array_like of complex, or list of list of array_like
        Roots of numerator and denominator; complex ones with their conjugates. For several inputs and outputs
        `zeros[i][j]` and `poles[i][j]` are those from input j to output i; one list common to all entries may be given.
    gain : float or array_like, shape (p, m)
        Ratio of the leading coefficients, of each entry for several inputs and outputs.
    dt : float, optional
        Time step of a system in discrete time; None or 0 for continuous time.
    inputs, outputs : sequence of str, optional
        Names of the signals.
    input_delay, output_delay : float or sequence of float, optional
        Delay of each input and of each output.

    Returns
    -------
    StateSpace
        System whose entries are gain·Π(s − zeros)/Π(s − poles).

    Raises
    ------
    InvalidSystemError
        If there are more zeros than poles, complex ones without their conjugates, or shapes that do not agree.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.zpk([-3], [-1, -2], 2).dcgain()
    array([[3.]])
    >>> ltinet.zpk([[[], [-3]]], [-1, -2], [[4, 2]]).dcgain()  # both inputs share the poles
    array([[2., 3.]])
    """
    gains = as_real_matrix(gain, "gain")
    if gains.size == 0 or (gains.size > 1 and np.ndim(gain) != 2):
        raise InvalidSystemError(
            f"gain has shape {np.shape(gain)}; pass a number, or a matrix with a row for each output and a column for each "
            "input"
        )
    matrices = realize_zpk_matrix(
        _root_matrix(zeros, "zeros", gains.shape), _root_matrix(poles, "poles", gains.shape), gains
    )
    return _named(matrices, validate_time_step(dt), inputs, outputs, input_delay=input_delay, output_delay=output_delay)


@suggest_keywords
def pid(
    kp: float,
    ki: float = 0.0,
    kd: float = 0.0,
    tf: float = 0.0,
    dt: float | None = None,
    *,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
) -> StateSpace:
    """Create a PID controller in parallel form with a filter of its derivative.

    In continuous time kp + ki/s + kd s/(tf s + 1). In discrete time both the integrator and the filter use the forward
    Euler formula, as MATLAB's `pid` does by default: kp + ki dt/(z − 1) + kd/(tf + dt/(z − 1)).

    Parameters
    ----------
    kp, ki, kd : float
        Proportional, integral and derivative gain.
    tf : float, optional
        Time constant of the filter of the derivative; positive if kd is not 0, and above dt/2 in discrete time.
    dt : float, optional
        Time step of a controller in discrete time; None or 0 for continuous time.
    inputs, outputs : sequence of str, optional
        Names of the signals.

    Returns
    -------
    StateSpace
        Controller with one input and one output, and a state for each of the integral and the derivative.

    Raises
    ------
    InvalidSystemError
        If the derivative has no filter, which makes the controller improper, or the filter is unstable.

    Examples
    --------
    >>> import ltinet
    >>> ltinet.pid(2.0, 1.0, 0.5, tf=0.01).poles()
    array([   0.+0.j, -100.+0.j])
    """
    gains = {"kp": kp, "ki": ki, "kd": kd, "tf": tf}
    for name, value in gains.items():
        is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or (name == "tf" and value < 0.0):
            expected = "a number ≥ 0" if name == "tf" else "a finite number"
            raise InvalidSystemError(f"{name} must be {expected}, got {sanitize(repr(value))}")
    step = validate_time_step(dt)
    if kd != 0.0 and tf == 0.0:
        raise InvalidSystemError(
            "a derivative without filter is improper; pass tf, the time constant of its filter, about a tenth of kd/kp: "
            f"pid(kp, ki, kd, tf={abs(kd / kp) / 10.0 if kp else 0.01:.3g})"
        )
    if kd != 0.0 and step is not None and tf <= 0.5 * step:
        raise InvalidSystemError(
            f"tf = {tf:g} makes the filter of the derivative unstable in discrete time; it must be above dt/2 = {step / 2:g}"
        )
    # kd s/(tf s + 1) = kd/tf − (kd/tf)/(tf s + 1); with s = (z − 1)/dt the states advance by dt times their derivative.
    rate = 1.0 if step is None else step
    start = 0.0 if step is None else 1.0
    poles, residues = [], []
    if ki != 0.0:
        poles, residues = [start], [ki * rate]
    if kd != 0.0:
        poles, residues = [*poles, start - rate / tf], [*residues, -rate * kd / tf / tf]
    n = len(poles)
    D = kp + (kd / tf if kd != 0.0 else 0.0)
    matrices = SystemMatrices(np.diag(poles).reshape(n, n), np.ones((n, 1)), np.array(residues).reshape(1, n), [[D]])
    return _named(scale_states(matrices), step, inputs, outputs)


def _named(
    matrices: SystemMatrices, dt: float | None, inputs: NamesLike, outputs: NamesLike, **delays: ArrayLike | None
) -> StateSpace:
    matrices = matrices.with_time_step(dt).with_names(SignalNames.of(inputs, outputs, None))
    settings = SignalSettings.of(n_inputs=matrices.n_inputs, n_outputs=matrices.n_outputs, **delays)
    return StateSpace.of(matrices, settings=settings)


def _root_matrix(value: Any, name: str, shape: tuple[int, ...]) -> list[list[Any]]:
    """Return the roots of each entry of a transfer matrix; one list is common to all entries."""
    if _depth(value) < 2:
        return [[_roots(value, name)] * shape[1] for _ in range(shape[0])]
    if _depth(value) != 3 or len(value) != shape[0] or any(_depth(row) == 0 or len(row) != shape[1] for row in value):
        raise InvalidSystemError(
            f"{name} must have a list of roots for each entry of gain, {shape[0]}×{shape[1]}; write {name}[i][j] for input j "
            "and output i, such as [[[-1], [-2, -3]]] for one output and two inputs"
        )
    return [[_roots(entry, f"{name}[{i}][{j}]") for j, entry in enumerate(row)] for i, row in enumerate(value)]


def _roots(value: ArrayLike, name: str) -> Any:
    try:
        roots = np.atleast_1d(np.asarray(value, dtype=np.complex128))
    except (TypeError, ValueError):
        raise InvalidSystemError(f"{name} must be a list of numbers, got {sanitize(repr(value))}") from None
    if roots.ndim != 1 or not np.isfinite(roots).all():
        raise InvalidSystemError(f"{name} must be a list of finite numbers, got {sanitize(repr(value))}")
    return roots


def _polynomial_matrices(num: Any, den: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return numerators and denominators as lists of rows; a polynomial alone becomes one entry."""
    nums = num if _depth(num) > 2 else [[num]] if _depth(num) < 2 else [[row] for row in num]
    if _depth(num) == 2 and _depth(den) < 2:
        nums = [[row] for row in num]  # one input, one output per row of num
    if _depth(num) == 2 and _depth(den) == 2:
        raise InvalidSystemError(
            "num and den are lists of polynomials; write num[i][j] for input j and output i, such as [[[1], [2, 1]]] for "
            "one output and two inputs"
        )
    dens = [[den] * len(row) for row in nums] if _depth(den) < 2 else den
    shapes = [[len(row) for row in part] for part in (nums, dens)]
    if not nums or not nums[0] or shapes[0] != shapes[1] or len(set(shapes[0])) != 1:
        sizes = " and ".join(f"rows of {', '.join(map(str, shape)) or 'nothing'}" for shape in shapes)
        raise InvalidSystemError(
            f"num and den must have a polynomial for each output and input; they have {sizes} "
            f"({format_count(len(nums), 'output')})"
        )
    return nums, dens


def _depth(value: Any) -> int:
    """Return the number of nested levels of a list or array, counted along its first entries."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.ndim
    if isinstance(value, list | tuple | np.ndarray):
        return 1 + (_depth(value[0]) if len(value) else 0)
    return 0
