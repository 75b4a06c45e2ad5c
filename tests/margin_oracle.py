"""Crossings of a loop N/D to 60 digits: isolated roots of exact rational polynomials in the frequency, by python-flint.

Nothing of ltinet takes part. In discrete time z = (1 + jv)/(1 − jv) with v = tan(ω dt/2).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from flint import acb, arb, arb_poly, ctx, fmpq, fmpq_poly

_BITS = 200


class Crossings(NamedTuple):
    """Frequencies with |L| = 1 and phase margins in degrees; frequencies with L < 0 and gain margins."""

    gain_crossovers: list[float]
    phase_margins: list[float]
    phase_crossovers: list[float]
    gain_margins: list[float]


class _Complex(NamedTuple):
    """Polynomial in v with complex rational coefficients."""

    re: Any
    im: Any

    def times(self, other: "_Complex") -> "_Complex":
        return _Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def plus(self, other: "_Complex") -> "_Complex":
        return _Complex(self.re + other.re, self.im + other.im)

    def at(self, v: Any) -> Any:
        return acb(arb_poly(self.re)(v), arb_poly(self.im)(v))


_ZERO, _ONE, _V = fmpq_poly([0]), fmpq_poly([1]), fmpq_poly([0, 1])


def _rational(value: Any) -> Any:
    return value if isinstance(value, fmpq) else fmpq(*Fraction(float(value)).as_integer_ratio())


def _on_boundary(coefficients: Sequence[float], degree: int, *, discrete: bool) -> _Complex:
    """P(jv), or P(z)(1 − jv)ⁿ."""
    total, up, down = _Complex(_ZERO, _ZERO), _Complex(_ONE, _V), _Complex(_ONE, -_V)
    for k, value in enumerate(reversed(list(coefficients))):
        term = _Complex(fmpq_poly([_rational(value)]), _ZERO)
        for factor in ([up] * k + [down] * (degree - k)) if discrete else [_Complex(_ZERO, _V)] * k:
            term = term.times(factor)
        total = total.plus(term)
    return total


def _positive_roots(polynomial: Any) -> list[Any]:
    """Positive roots as balls; of a double root one."""
    numerator = polynomial.numer()
    if numerator.degree() < 1:
        return []
    roots = [root for root, _ in numerator.complex_roots() if root.imag == 0 and root.real > 0]
    return sorted((root.real for root in roots), key=float)


def crossings(num: Sequence[Any], den: Sequence[Any], dt: float | None = None) -> Crossings:
    """All crossings at positive frequencies, and L < 0 at zero and in discrete time at π/dt."""
    with ctx.workprec(_BITS):
        degree = max(len(num), len(den)) - 1
        N, D = (_on_boundary(P, degree, discrete=dt is not None) for P in (num, den))
        gains = _positive_roots(N.re**2 + N.im**2 - D.re**2 - D.im**2)
        phases = _positive_roots(N.im * D.re - N.re * D.im)

        def frequency(v: Any) -> float:
            return float(v if dt is None else 2 * v.atan() / arb(dt))

        margins = [float((-N.at(v) / D.at(v)).arg() * 180 / arb.pi()) for v in gains]
        real = [(frequency(v), (N.at(v) / D.at(v)).real) for v in phases]
        at_zero = D.at(arb(0))
        if not at_zero.contains(0):
            real.insert(0, (0.0, (N.at(arb(0)) / at_zero).real))
        if dt is not None:
            n, d = (sum(_rational(value) * (-1) ** k for k, value in enumerate(reversed(list(P)))) for P in (num, den))
            real.append((float(arb.pi() / arb(dt)), arb(n) / arb(d)))
        critical = [(omega, float(-1 / value)) for omega, value in real if value < 0]
        return Crossings(
            [frequency(v) for v in gains], margins, [omega for omega, _ in critical], [margin for _, margin in critical]
        )


def loop_distance(num: Sequence[float], den: Sequence[float], omega: float, dt: float | None = None) -> float:
    """|1 + L| at a frequency."""
    with ctx.workprec(_BITS):
        s = acb(0, omega) if dt is None else acb(0, arb(omega) * arb(dt)).exp()
        values = []
        for P in (num, den):
            value = acb(0)
            for coefficient in P:
                value = value * s + arb(float(coefficient))
            values.append(value)
        return float(abs(1 + values[0] / values[1]))
