"""Poles as a person reads them, with what their confidence leaves of the digits."""

from collections.abc import Sequence

from ltinet.arrays import Complex
from ltinet.identification.confidence import DEVIATIONS_99
from ltinet.identification.pole_regions import PoleConfidence

_MOST = 8  # poles that are told one by one


def pole_lines(poles: Complex, confidences: Sequence[PoleConfidence]) -> list[str]:
    """One line for each pole, of pairs for both, the slowest first; how many more there are."""
    known = sorted(confidences, key=lambda own: abs(own.pole))
    shown = [_one(own.pole, DEVIATIONS_99 * own.deviation) + _doubt(own) for own in known]
    shown = shown or [_one(complex(pole), None) for pole in sorted(poles[poles.imag >= 0.0].tolist(), key=abs)]
    lines = [f"  pole               {own}" for own in shown[:_MOST]]
    if len(shown) > _MOST:
        lines.append(f"  …                  {len(shown) - _MOST} more")
    if confidences:
        lines.append("                     (in brackets: 99 % of either part)")
    return lines


def _doubt(own: PoleConfidence) -> str:
    if own.meeting is None:
        return ""
    return "  or two real poles" if own.is_pair else "  or one of a pair"


def _one(pole: complex, width: complex | None) -> str:
    real, imaginary = f"{pole.real:.4g}", f" ± {pole.imag:.4g}j" if pole.imag else ""
    if width is None:
        return real + imaginary
    return f"{real} [±{width.real:.2g}]" + (f"{imaginary} [±{width.imag:.2g}]" if imaginary else "")
