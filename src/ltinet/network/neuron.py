"""One neuron m ξ̈ + c ξ̇ + k ξ = w u (Definition 1), and its differential equation as text and LaTeX."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

# Differential equation as text

_MAX_TERMS = 12  # shown on each side; a neuron of a large layer has hundreds
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_DOTS = ("", "\N{COMBINING DOT ABOVE}", "\N{COMBINING DIAERESIS}")
_LATEX_DOTS = ("{}", r"\dot{{{}}}", r"\ddot{{{}}}")


class Term(NamedTuple):
    """Weight times the `order`-th time derivative of a signal, ξ or u, with channels counted from 1."""

    weight: float
    signal: str
    number: int
    order: int


@final
@dataclass(frozen=True, repr=False)
class NeuronEquation:
    """Differential equation m ξ̈ + c ξ̇ + k ξ = w u of one neuron in five digits, as text or LaTeX.

    Parameters
    ----------
    left : tuple of Term
        Terms of the left-hand side.
    right : tuple of Term
        Terms of the right-hand side.
    """

    left: tuple[Term, ...]
    right: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{_format_side(self.left, _format_plain)} = {_format_side(self.right, _format_plain)}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def latex(self) -> str:
        """Equation in LaTeX, without dollar signs."""
        return f"{_format_side(self.left, _format_latex)} = {_format_side(self.right, _format_latex)}".replace(
            "−", "-"
        ).replace("…", r"\dots")

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


def neuron_equation(
    index: int,
    coefficients: tuple[float, float, float],
    inputs: tuple[Sequence[float], Sequence[float]],
    couplings: tuple[Sequence[float], Sequence[float]],
) -> NeuronEquation:
    """Return the equation of a neuron by its index in its layer; terms of zero weight are omitted.

    The coefficients are (k, c, m), `inputs` the weights (e, v) of inputs and their derivatives, and `couplings` the
    (k_ij, c_ij) of the neurons after it.
    """
    left = [Term(weight, "ξ", index + 1, order) for order, weight in enumerate(coefficients)][::-1]
    right = [Term(w, "u", j + 1, order) for order, weights in enumerate(inputs) for j, w in enumerate(weights)]
    for order, weights in enumerate(couplings):
        right += [Term(-w, "ξ", index + 2 + j, order) for j, w in enumerate(weights)]
    return NeuronEquation(*(tuple(term for term in side if term.weight != 0.0) for side in (left, right)))


def _format_side(terms: Sequence[Term], format_term: Callable[[Term], str]) -> str:
    """Return a sum of formatted terms with signs between them."""
    text = ""
    for term in terms[:_MAX_TERMS]:
        sign = "−" if term.weight < 0.0 else "+"
        text += f" {sign} {format_term(term)}" if text else f"{'−' if sign == '−' else ''}{format_term(term)}"
    omission = " + …" if len(terms) > _MAX_TERMS else ""
    return f"{text}{omission}" or "0"


def _format_plain(term: Term) -> str:
    size = f"{abs(term.weight):.5g}"
    symbol = f"{term.signal}{_DOTS[term.order]}{str(term.number).translate(_SUBSCRIPTS)}"
    return symbol if size == "1" else f"{size} {symbol}"


def _format_latex(term: Term) -> str:
    letter = r"\xi" if term.signal == "ξ" else term.signal
    symbol = f"{_LATEX_DOTS[term.order].format(letter)}_{{{term.number}}}"
    digits, _, power = f"{abs(term.weight):.5g}".partition("e")
    size = rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits
    return symbol if size == "1" else rf"{size}\,{symbol}"


# Neuron

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Neuron:
    """Neuron m ξ̈ + c ξ̇ + k ξ = w u of first order (m = 0, a real eigenvalue) or second order (a complex pair).

    Its inputs are u, u̇ and the outputs of the neurons after it in the layer: w = [e | v | −k_ij −c_ij for each of
    those]. Two neurons are equal when their positions in the layer and all their numbers are.

    Parameters
    ----------
    index : int
        Index in the layer, counted from zero.
    m, c, k : float
        Mass, damping and stiffness.
    e : array_like
        Weights of u.
    v : array_like
        Weights of u̇; zero for first-order neurons of a constructed network.
    stiffness_couplings : array_like
        Weights k_ij of ξ_j for j = index + 1, …, which enter the right-hand side with a minus sign.
    damping_couplings : array_like
        Weights c_ij of ξ̇_j for j = index + 1, …, which enter the right-hand side with a minus sign.
    """

    index: int
    m: float
    c: float
    k: float
    e: Vector
    v: Vector
    stiffness_couplings: Vector
    damping_couplings: Vector

    def __post_init__(self) -> None:
        for name in ("e", "v", "stiffness_couplings", "damping_couplings"):
            vector = np.asarray(getattr(self, name), dtype=np.float64)
            if vector.flags.writeable:  # rows of a layer are read-only and need no copy
                vector = vector.copy()
                vector.setflags(write=False)
            object.__setattr__(self, name, vector)

    @property
    def order(self) -> Literal[1, 2]:
        """Order of the differential equation."""
        return 1 if self.m == 0.0 else 2

    @property
    def w(self) -> Vector:
        """All weights in the paper's order, [e | v | −k_{i,i+1} −c_{i,i+1} | … ]."""
        couplings = np.column_stack([-self.stiffness_couplings, -self.damping_couplings]).ravel()
        return np.concatenate([self.e, self.v, couplings])

    @property
    def poles(self) -> tuple[complex, ...]:
        """Roots of m s² + c s + k, computed without cancellation; `net.poles()` returns those of all neurons."""
        if self.order == 1:
            return (complex(0.0 - self.k / self.c),)  # 0 − 0 is +0: the pole of an integrator prints as 0
        half, product = -0.5 * self.c / self.m, self.k / self.m
        discriminant = half * half - product
        if discriminant < 0.0:
            root = complex(half, np.sqrt(-discriminant))
            return root, root.conjugate()
        larger = half + np.copysign(np.sqrt(discriminant), half)
        return (complex(larger), complex(product / larger)) if larger != 0.0 else (0j, 0j)

    @property
    def equation(self) -> NeuronEquation:
        """Differential equation as text, LaTeX in a notebook; neurons of the layer and inputs count from 1."""
        return neuron_equation(
            self.index,
            (self.k, self.c, self.m),
            (self.e.tolist(), self.v.tolist()),
            (self.stiffness_couplings.tolist(), self.damping_couplings.tolist()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Neuron):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(astuple(self), astuple(other), strict=True))

    def __hash__(self) -> int:
        return hash((self.index, self.m, self.c, self.k))

    def __reduce__(self) -> tuple[Callable[..., "Neuron"], tuple[Any, ...]]:
        # Unpickle by the constructor: NumPy itself would make arrays writeable.
        return Neuron, astuple(self)
