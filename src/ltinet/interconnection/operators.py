"""Operators of systems: `G * C`, `G + 1`, `-G`, `G**2`, `G[0, "u1"]` and `G(1j)`.

`SystemOperators` is a base class of `StateSpace` and `DynamicNetwork`. The functions behind the operators accept both
and cannot be imported here; `interconnection.algebra` registers them when it is imported.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_OPERATORS = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.matmul: "matmul", np.divide: "truediv"}
_operations: dict[str, Callable[..., Any]] = {}


def register_operations(**functions: Callable[..., Any]) -> None:
    """Set the functions behind the operators, by name."""
    _operations.update(functions)


class SystemOperators:
    """Arithmetic of systems, with the conventions of python-control.

    `G * C` is the series connection in which signals pass through C first. A number or an array is a static gain; a
    system with one input and one output combined with a larger one applies to each channel. The other operand may be
    any system that `as_state_space` accepts.
    """

    __slots__ = ()
    __array_priority__ = 100.0  # python-control leaves `control_system * system` to this class

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply the operators to `array * system` and `array *= system`; refuse all other functions of NumPy."""
        name = _OPERATORS.get(ufunc)
        if name and method == "__call__" and options.get("out", inputs)[0] is inputs[0]:
            first, second = inputs
            return getattr(self, f"__{name}__")(second) if first is self else getattr(self, f"__r{name}__")(first)
        if ufunc in (np.equal, np.not_equal):
            return ufunc is np.not_equal
        hint = "; a dead time is an option, as in ltinet.tf([1], [1, 1], input_delay=4)" if ufunc is np.exp else ""
        raise TypeError(f"numpy.{ufunc.__name__} is not defined for systems{hint}")

    def __add__(self, other: Any) -> Any:
        return _operations["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return _operations["add"](other, self)

    def __sub__(self, other: Any) -> Any:
        return _operations["subtract"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operations["subtract"](other, self)

    def __mul__(self, other: Any) -> Any:
        return _operations["multiply"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operations["multiply"](other, self)

    def __matmul__(self, other: Any) -> Any:
        return _operations["multiply"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _operations["multiply"](other, self)

    def __truediv__(self, other: Any) -> Any:
        return _operations["divide"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _operations["divide"](other, self)

    def __neg__(self) -> Any:
        return _operations["negate"](self)

    def __pos__(self) -> Any:
        return self

    def __pow__(self, exponent: Any) -> Any:
        return _operations["power"](self, exponent)

    def __getitem__(self, channels: Any) -> Any:
        return _operations["select"](self, channels)

    # Without it `iter(system)` would try system[0], system[1], …
    __iter__ = None

    def __call__(self, s: "ArrayLike") -> Any:
        """Evaluate the transfer function at complex numbers s, or z in discrete time, with delays.

        Parameters
        ----------
        s : array_like of complex
            A number or an array of any shape.

        Returns
        -------
        complex or ndarray
            `(*s.shape, p, m)`; a complex number for one number s and a system with one input and one output.
        """
        return _operations["evaluate"](self, s)

    def feedback(self, other: Any = 1.0, sign: int = -1) -> Any:
        """Close a loop around the system; see `ltinet.feedback`.

        Parameters
        ----------
        other : object, optional
            System in the feedback path; 1 by default.
        sign : {-1, 1}, optional
            Sign of the feedback.

        Returns
        -------
        StateSpace
            Closed loop.
        """
        return _operations["feedback"](self, other, sign)

    def tf(self) -> Any:
        """Convert the system to transfer functions num(s)/den(s), one for each output and input.

        Each entry is reduced to its controllable and observable part; its poles and zeros are computed and multiplied
        out, which for degrees of about 20 and more loses digits that `zpk` keeps.

        Returns
        -------
        TransferFunction
            Polynomials, highest power first; delays are kept beside them.
        """
        return _operations["tf"](self)

    def zpk(self) -> Any:
        """Compute the zeros, poles and gain of each entry of the transfer matrix.

        Returns
        -------
        ZerosPolesGain
            Zeros, poles and gain of the controllable and observable part of each entry; delays are kept beside them.
        """
        return _operations["zpk"](self)
