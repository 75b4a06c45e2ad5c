"""The differential equation of a neuron as people write it, for a terminal and for a notebook."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

_MOST_TERMS = 12  # of a side: a neuron of a large layer has hundreds
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_DOTS = ("", "\N{COMBINING DOT ABOVE}", "\N{COMBINING DIAERESIS}")
_LATEX_DOTS = ("{}", r"\dot{{{}}}", r"\ddot{{{}}}")


class Term(NamedTuple):
    """A number times a signal, ξ or u, counted from 1 and derived `order` times with respect to time."""

    weight: float
    signal: str
    number: int
    order: int


@final
@dataclass(frozen=True, repr=False)
class NeuronEquation:
    """m ξ̈ + c ξ̇ + k ξ = w u of one neuron, its numbers in five digits: text for a terminal, LaTeX for a notebook."""

    left: tuple[Term, ...]
    right: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{_side(self.left, _plain)} = {_side(self.right, _plain)}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def latex(self) -> str:
        """The equation in LaTeX, without dollar signs."""
        return f"{_side(self.left, _latex)} = {_side(self.right, _latex)}".replace("−", "-").replace("…", r"\dots")

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


def equation_of(
    place: int,
    coefficients: tuple[float, float, float],
    inputs: tuple[Sequence[float], Sequence[float]],
    couplings: tuple[Sequence[float], Sequence[float]],
) -> NeuronEquation:
    """The equation of the neuron at a place of its layer, counted from 0; terms of no weight are left out.

    From (k, c, m), the weights (e, v) of inputs and their rates, and (k_ij, c_ij) of the neurons after it.
    """
    left = [Term(weight, "ξ", place + 1, order) for order, weight in enumerate(coefficients)][::-1]
    right = [Term(own, "u", j + 1, order) for order, weights in enumerate(inputs) for j, own in enumerate(weights)]
    for order, weights in enumerate(couplings):
        right += [Term(-own, "ξ", place + 2 + j, order) for j, own in enumerate(weights)]
    return NeuronEquation(*(tuple(term for term in side if term.weight != 0.0) for side in (left, right)))


def _side(terms: Sequence[Term], written: Callable[[Term], str]) -> str:
    """A sum, with signs between its terms."""
    text = ""
    for term in terms[:_MOST_TERMS]:
        sign = "−" if term.weight < 0.0 else "+"
        text += f" {sign} {written(term)}" if text else f"{'−' if sign == '−' else ''}{written(term)}"
    left_out = " + …" if len(terms) > _MOST_TERMS else ""
    return f"{text}{left_out}" or "0"


def _plain(term: Term) -> str:
    size = f"{abs(term.weight):.5g}"
    symbol = f"{term.signal}{_DOTS[term.order]}{str(term.number).translate(_SUBSCRIPTS)}"
    return symbol if size == "1" else f"{size} {symbol}"


def _latex(term: Term) -> str:
    letter = r"\xi" if term.signal == "ξ" else term.signal
    symbol = f"{_LATEX_DOTS[term.order].format(letter)}_{{{term.number}}}"
    digits, _, power = f"{abs(term.weight):.5g}".partition("e")
    size = rf"{digits} \cdot 10^{{{int(power)}}}" if power else digits
    return symbol if size == "1" else rf"{size}\,{symbol}"
