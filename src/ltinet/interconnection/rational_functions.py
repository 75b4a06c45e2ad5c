"""Rational functions: the results of `system.tf()` and `system.zpk()`, and arithmetic of polynomials with `tf("s")`.

The gain k of an entry follows from its value at a point s₀, k = H(s₀) Π(s₀ − p)/Π(s₀ − z), where s₀ is the one of a few
real points at which H(s₀) loses fewest digits to cancellation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet._util.text import sanitize
from ltinet.analysis.poles import compute_poles
from ltinet.analysis.zeros import invariant_zeros
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.operators import SystemOperators
from ltinet.state_space import StateSpace
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices
from ltinet.systems.transfer_functions import (
    minimal_realization,
    realize_polynomial_matrix,
    realize_zpk_matrix,
)

Polynomials: TypeAlias = Any
"""A 1-D array for one input and one output; otherwise a list of such arrays for each output."""


class RationalFunction(SystemOperators):
    """A transfer matrix by polynomials or roots; methods of `StateSpace` work on its realization, `system`."""

    dt: float | None
    signal_settings: SignalSettings

    @property
    def system(self) -> StateSpace:
        """Minimal realization; raises InvalidSystemError if the function is improper."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self.system, name)

    def _delay_prefix(self, row: int, column: int, shape: tuple[int, int]) -> str:
        delay = float(self.signal_settings.total_delay(*shape)[row, column])
        if delay == 0.0:
            return ""
        return f"exp(-{delay:g} s) * " if self.dt is None else f"z^-{round(delay / self.dt)} * "


@final
@dataclass(frozen=True, eq=False, repr=False)
class TransferFunction(RationalFunction):
    """Transfer function num(s)/den(s), or a matrix of them; the result of `system.tf()` and `tf("s")`.

    Sums, products and quotients of transfer functions with one input and one output are computed with their
    polynomials, so that `s = ltinet.tf("s"); G = (s + 1)/(s**2 + s)` works although s alone is not a system. Any other
    operation, and every method of `StateSpace`, uses the realization `system`.

    Parameters
    ----------
    num, den : ndarray or list of list of ndarray
        Coefficients, highest power first; for several inputs or outputs `num[i][j]` from input j to output i.
    dt : float, optional
        Time step of a system in discrete time.
    signal_settings : SignalSettings, optional
        Delays of the inputs and outputs.

    Examples
    --------
    >>> import ltinet
    >>> s = ltinet.tf("s")
    >>> G = 4.0 / (s * (s + 2.0))
    >>> print(G)
         4
    -----------
     s^2 + 2 s
    >>> G(1j).round(3)
    np.complex128(-0.8-1.6j)
    >>> ltinet.feedback(G).dcgain()
    array([[1.]])
    """

    num: Polynomials
    den: Polynomials
    dt: float | None = None
    signal_settings: SignalSettings = NO_SETTINGS

    @cached_property
    def system(self) -> StateSpace:
        """Minimal realization; raises InvalidSystemError if the function is improper."""
        matrices = minimal_realization(realize_polynomial_matrix(*_as_matrices(self.num, self.den)))
        return StateSpace.of(matrices.with_time_step(self.dt), settings=self.signal_settings)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(_as_matrices(self.num, self.den)[0])

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(_as_matrices(self.num, self.den)[0][0])

    def tf(self) -> "TransferFunction":
        """Return the transfer function itself.

        Returns
        -------
        TransferFunction
            This object.
        """
        return self

    def __call__(self, s: ArrayLike) -> Any:
        """Evaluate the function from its polynomials; see `StateSpace.__call__`.

        Parameters
        ----------
        s : array_like of complex
            A number or an array of any shape.

        Returns
        -------
        complex or ndarray
            Values, as for systems.
        """
        if self.signal_settings.has_delays:
            return self.system(s)
        points = np.asarray(s, dtype=np.complex128)
        num, den = _as_matrices(self.num, self.den)
        with np.errstate(divide="ignore", invalid="ignore"):
            H = np.array([[np.polyval(n, points) / np.polyval(d, points) for n, d in zip(*rows, strict=True)]
                          for rows in zip(num, den, strict=True)])  # fmt: skip
        H = np.moveaxis(H, (0, 1), (-2, -1))
        return H[0, 0] if H.shape == (1, 1) else H

    def __add__(self, other: Any) -> Any:
        return self._combine(other, "add", _add)

    def __radd__(self, other: Any) -> Any:
        return self._combine(other, "add", _add, is_right=True)

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, "sub", lambda a, b: _add(a, (-b[0], b[1])))

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, "sub", lambda a, b: _add(a, (-b[0], b[1])), is_right=True)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, "mul", _multiply)

    def __rmul__(self, other: Any) -> Any:
        return self._combine(other, "mul", _multiply, is_right=True)

    def __truediv__(self, other: Any) -> Any:
        return self._combine(other, "truediv", lambda a, b: _multiply(a, b[::-1]))

    def __rtruediv__(self, other: Any) -> Any:
        return self._combine(other, "truediv", lambda a, b: _multiply(a, b[::-1]), is_right=True)

    def __neg__(self) -> Any:
        return self * -1.0

    def __pow__(self, exponent: Any) -> Any:
        parts = self._polynomials(self)
        if parts is None or not isinstance(exponent, int | np.integer):
            return super().__pow__(exponent)
        base = parts if exponent >= 0 else parts[::-1]
        result = np.ones(1), np.ones(1)
        for _ in range(abs(int(exponent))):
            result = _multiply(result, base)
        return self._of(result)

    def _combine(self, other: Any, name: str, combine: Callable[..., Any], *, is_right: bool = False) -> Any:
        """Combine polynomials if both operands have them; otherwise their realizations."""
        parts, others = self._polynomials(self), self._polynomials(other)
        if parts is None or others is None:
            return getattr(super(), f"__{'r' if is_right else ''}{name}__")(other)
        return self._of(combine(others, parts) if is_right else combine(parts, others))

    def _polynomials(self, other: Any) -> tuple[Array, Array] | None:
        """Return numerator and denominator of a number or a function with one input and one output; None for others."""
        if isinstance(other, TransferFunction):
            is_single = isinstance(other.den, np.ndarray) and not other.signal_settings.has_delays
            return (other.num, other.den) if is_single and other.dt == self.dt else None
        is_number = isinstance(other, int | float | np.integer | np.floating) and not isinstance(other, bool)
        return (np.array([float(other)]), np.ones(1)) if is_number else None

    def _of(self, parts: tuple[Array, Array]) -> "TransferFunction":
        num, den = (np.trim_zeros(part, "f") for part in parts)
        if not len(den):
            raise InvalidSystemError("the denominator is zero; divide by a function other than 0")
        return TransferFunction(num if len(num) else np.zeros(1), den, self.dt)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransferFunction):
            return NotImplemented
        return (self.dt, self.signal_settings) == (other.dt, other.signal_settings) and _equal_entries(
            _as_matrices(self.num, self.den), _as_matrices(other.num, other.den)
        )

    def __hash__(self) -> int:
        return hash((self.dt, self.signal_settings))

    def __repr__(self) -> str:
        dt = "" if self.dt is None else f", dt={self.dt:g}"
        if isinstance(self.den, np.ndarray):
            return f"TransferFunction({self.num.tolist()}, {self.den.tolist()}{dt})"
        return f"TransferFunction(n_outputs={self.n_outputs}, n_inputs={self.n_inputs}{dt})"

    def __str__(self) -> str:
        variable = "s" if self.dt is None else "z"
        num, den = _as_matrices(self.num, self.den)
        return _format_entries(
            num, den, lambda n, d, prefix: _fraction(prefix, _format_polynomial(n, variable),
            _format_polynomial(d, variable)), self)  # fmt: skip


@final
@dataclass(frozen=True, eq=False, repr=False)
class ZerosPolesGain(RationalFunction):
    """Zeros, poles and gain of a transfer function, or of each entry of a matrix; the result of `system.zpk()`.

    Parameters
    ----------
    zeros, poles : ndarray or list of list of ndarray
        Roots by falling real part; for several inputs or outputs `zeros[i][j]` from input j to output i.
    gain : float or ndarray
        Ratio of the leading coefficients; shape (p, m) for several inputs or outputs.
    dt : float, optional
        Time step of a system in discrete time.
    signal_settings : SignalSettings, optional
        Delays of the inputs and outputs.

    Examples
    --------
    >>> import ltinet
    >>> print(ltinet.tf([2, 6], [1, 3, 2]).zpk())
    2 (s + 3) / ((s + 1) (s + 2))
    """

    zeros: Any
    poles: Any
    gain: Any
    dt: float | None = None
    signal_settings: SignalSettings = NO_SETTINGS

    @cached_property
    def system(self) -> StateSpace:
        """Minimal realization."""
        zeros, poles = _as_matrices(self.zeros, self.poles)
        matrices = realize_zpk_matrix(zeros, poles, np.atleast_2d(self.gain))
        return StateSpace.of(matrices.with_time_step(self.dt), settings=self.signal_settings)

    def __repr__(self) -> str:
        dt = "" if self.dt is None else f", dt={self.dt:g}"
        if isinstance(self.poles, np.ndarray):
            return f"ZerosPolesGain({self.zeros.tolist()}, {self.poles.tolist()}, {self.gain:g}{dt})"
        n_outputs, n_inputs = np.shape(self.gain)
        return f"ZerosPolesGain(n_outputs={n_outputs}, n_inputs={n_inputs}{dt})"

    def __str__(self) -> str:
        variable = "s" if self.dt is None else "z"
        zeros, poles = _as_matrices(self.zeros, self.poles)
        gains = np.atleast_2d(self.gain)
        numerators = [[(k, z) for k, z in zip(*rows, strict=True)] for rows in zip(gains, zeros, strict=True)]
        return _format_entries(
            numerators, poles, lambda n, p, prefix: prefix + _format_factors(n[0], n[1], p, variable), self)  # fmt: skip


# From systems


def zeros_poles_gain(system: StateSpace) -> ZerosPolesGain:
    """Return zeros, poles and gain of every entry of the transfer matrix of a system."""
    matrices = system.matrices
    if matrices.sparse is not None and matrices.sparse.is_large:
        raise matrices.sparse.size_error("zpk()")
    entries = [[_entry_zpk(matrices, i, j) for j in range(matrices.n_inputs)] for i in range(matrices.n_outputs)]
    settings = system.signal_settings.delays_only
    if matrices.n_inputs == matrices.n_outputs == 1:
        return ZerosPolesGain(*entries[0][0], system.dt, settings)
    zeros, poles = ([[entry[part] for entry in row] for row in entries] for part in (0, 1))
    gains = np.array([[entry[2] for entry in row] for row in entries]).reshape(matrices.n_outputs, matrices.n_inputs)
    return ZerosPolesGain(zeros, poles, gains, system.dt, settings)


def transfer_function(system: StateSpace) -> TransferFunction:
    """Return the polynomials of every entry of the transfer matrix of a system."""
    roots = zeros_poles_gain(system)
    if isinstance(roots.poles, np.ndarray):
        num, den = roots.gain * _polynomial(roots.zeros), _polynomial(roots.poles)
        return TransferFunction(num, den, system.dt, roots.signal_settings)
    nums = [[k * _polynomial(z) for k, z in zip(*rows, strict=True)]
            for rows in zip(roots.gain, roots.zeros, strict=True)]  # fmt: skip
    dens = [[_polynomial(p) for p in row] for row in roots.poles]
    return TransferFunction(nums, dens, system.dt, roots.signal_settings)


def _entry_zpk(system: SystemMatrices, row: int, column: int) -> tuple[Complex, Complex, float]:
    entry = minimal_realization(
        SystemMatrices(system.A, system.B[:, [column]], system.C[[row]], system.D[row : row + 1, column : column + 1])
    )
    zeros, poles = invariant_zeros(entry), compute_poles(entry)
    return zeros, poles, _gain(entry, zeros, poles)


_POINTS_OF_GAIN = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # relative to the largest root


def _gain(entry: SystemMatrices, zeros: Complex, poles: Complex) -> float:
    """Return k = H(s₀) Π(s₀ − p)/Π(s₀ − z) from the point s₀ where H(s₀) is largest relative to its terms."""
    if entry.n_states == 0:
        return float(entry.D[0, 0])
    radius = float(np.max(np.abs(np.concatenate([zeros, poles])))) or 1.0
    points = radius * np.concatenate([_POINTS_OF_GAIN, -_POINTS_OF_GAIN])
    matrices = points[:, None, None] * np.eye(entry.n_states) - entry.A
    is_regular = np.array([np.linalg.cond(matrix) < 1.0 / EPS for matrix in matrices])
    points, resolvents = points[is_regular], np.linalg.inv(matrices[is_regular])
    H = (entry.C @ resolvents @ entry.B)[:, 0, 0] + entry.D[0, 0]
    size = (np.abs(entry.C) @ np.abs(resolvents) @ np.abs(entry.B))[:, 0, 0] + abs(entry.D[0, 0])
    best = int(np.argmax(np.abs(H) / size))
    factors = np.concatenate([points[best] - poles, 1.0 / (points[best] - zeros)])
    # By logarithms, since products of many factors overflow.
    log = np.log(np.abs(factors)).sum() + np.log(np.abs(H[best]))
    sign = np.sign(np.exp(1j * np.angle(factors).sum()).real) * np.sign(H[best])
    return float(sign * np.exp(log))


def _polynomial(roots: Complex) -> Array:
    return np.atleast_1d(np.real(np.poly(roots))).astype(np.float64)


# Text


def _as_matrices(num: Any, den: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return entries by output and input, also of a single function."""
    return ([[num]], [[den]]) if isinstance(den, np.ndarray) else (num, den)


def _equal_entries(one: Any, other: Any) -> bool:
    shapes = [[len(row) for row in part] for parts in (one, other) for part in parts]
    return shapes[:2] == shapes[2:] and all(
        np.array_equal(a, b)
        for part, others in zip(one, other, strict=True)
        for row, other_row in zip(part, others, strict=True)
        for a, b in zip(row, other_row, strict=True)
    )


def _format_entries(
    nums: Sequence[Sequence[Any]], dens: Sequence[Sequence[Any]], fraction: Callable[..., str], owner: RationalFunction
) -> str:
    """Return the text of one function, or of each entry under a line with its output and input."""
    shape = len(nums), len(nums[0]) if nums else 0
    if shape == (1, 1):
        return fraction(nums[0][0], dens[0][0], owner._delay_prefix(0, 0, shape))
    return "\n\n".join(
        f"input {j} to output {i}\n{fraction(nums[i][j], dens[i][j], owner._delay_prefix(i, j, shape))}"
        for i in range(shape[0])
        for j in range(shape[1])
    )


def _fraction(prefix: str, num: str, den: str) -> str:
    if den == "1":
        return prefix + num
    width = max(len(num), len(den)) + 2
    lines = num.center(width), "-" * width, den.center(width)
    return "\n".join(
        f"{prefix if index == 1 else ' ' * len(prefix)}{line}".rstrip() for index, line in enumerate(lines)
    )


def _format_polynomial(coefficients: Array, variable: str) -> str:
    """Return a polynomial as text: "s^2 + 0.4 s + 4"."""
    terms = []
    for power, value in zip(range(len(coefficients) - 1, -1, -1), np.asarray(coefficients).tolist(), strict=True):
        text = f"{abs(value):.6g}"
        if value == 0.0:
            continue
        factor = "" if power == 0 else variable if power == 1 else f"{variable}^{power}"
        body = factor if text == "1" and factor else f"{text} {factor}".strip()
        terms.append(("-" if value < 0.0 else "+", body))
    if not terms:
        return "0"
    first = f"{'-' if terms[0][0] == '-' else ''}{terms[0][1]}"
    return " ".join([first, *(f"{sign} {body}" for sign, body in terms[1:])])


def _format_factors(gain: float, zeros: Complex, poles: Complex, variable: str) -> str:
    """Return gain, zeros and poles as text: "2 (s + 3) / ((s + 1) (s + 2))"."""
    above, below = _factors(zeros, variable), _factors(poles, variable)
    text = " ".join([*([f"{gain:.6g}"] if not above or f"{gain:.6g}" != "1" else []), *above])
    if not below:
        return text
    return f"{text} / {below[0] if len(below) == 1 else '(' + ' '.join(below) + ')'}"


def _factors(roots: NDArray[np.complex128], variable: str) -> list[str]:
    """Return factors with real coefficients: roots one by one, pairs as quadratic polynomials."""
    factors = []
    for root in roots[roots.imag >= 0.0]:
        if root.imag == 0.0:
            factors.append(_format_polynomial(np.array([1.0, -root.real]), variable))
        else:
            factors.append(_format_polynomial(np.array([1.0, -2.0 * root.real, abs(root) ** 2]), variable))
    return [variable if factor == variable else f"({factor})" for factor in factors]


# Sums and products of polynomials

Fraction: TypeAlias = tuple[Any, Any]
"""Numerator and denominator."""


def _add(one: Fraction, other: Fraction) -> Fraction:
    """Return the sum; equal denominators stay, others are multiplied."""
    if np.array_equal(one[1], other[1]):
        return np.polyadd(one[0], other[0]), one[1]
    num = np.polyadd(np.polymul(one[0], other[1]), np.polymul(other[0], one[1]))
    return num, np.polymul(one[1], other[1])


def _multiply(one: Fraction, other: Fraction) -> Fraction:
    return np.polymul(one[0], other[0]), np.polymul(one[1], other[1])


def variable(name: str, dt: float | None) -> TransferFunction:
    """Return the transfer function s, or z for a time step.

    Raises InvalidSystemError for other names, and for a variable that does not fit the time step.
    """
    if name not in ("s", "z"):
        raise InvalidSystemError(
            f'tf takes polynomials, a system, "s" or "z", got {sanitize(repr(name))}; write tf([1], [1, 2]) for 1/(s + 2)'
        )
    if name == "z" and dt is None:
        raise InvalidSystemError('z belongs to discrete time and needs a time step; write tf("z", dt=0.1)')
    if name == "s" and dt is not None:
        raise InvalidSystemError(f's belongs to continuous time; write tf("z", dt={dt:g}) for discrete time')
    return TransferFunction(np.array([1.0, 0.0]), np.ones(1), dt)
