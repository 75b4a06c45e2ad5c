"""What became of many cases, by family, against what must hold."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .families import FAMILIES
from .judge import Outcome

MEDIAN, NINE_TENTHS, FAMILY_MEDIAN = 200.0, 3000.0, 3000.0
"""Limits of `error_bound()` over the error: of all runs the median and nine tenths, of each family the median."""
CONVOLUTION = 30.0
"""Times √T: the limit of every run by fast convolution, whose rounding is spread over all outputs."""

_HEAD = (
    "family", "runs", "raised", "wrong", "above", "inf", "median", "90 %", "max", "floored", "error", "over peer",
    "cost", "90 %", "again",
)  # fmt: skip


def tightness(outcomes: Sequence[Outcome]) -> NDArray[np.float64]:
    """`error_bound()` over the error of the runs that are counted: all but those by fast convolution.

    Runs that raised, and bounds that are infinite, count as infinite; those whose outputs are all zero do not count.
    """
    counted = [own for own in outcomes if not own.by_convolution]
    found = np.array([np.inf if own.raised or own.unbounded else own.tightness for own in counted])
    return found[~np.isnan(found)]


def over_convolution_limit(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The runs by fast convolution whose bound is too wide."""
    return [
        own for own in outcomes if own.by_convolution and own.tightness > CONVOLUTION * np.sqrt(max(own.n_samples, 1))
    ]


def table(outcomes: Sequence[Outcome]) -> str:
    """One line for each family and one for all; then all again by kind of times and by face of the library."""
    lines = [_line(name, own) for name, own in _grouped(outcomes, "family", FAMILIES)]
    lines.append(_line("all", outcomes))
    for kind in ("grid", "face"):
        names = sorted({getattr(own, kind) for own in outcomes})
        lines += [("",) * len(_HEAD), *(_line(name, own) for name, own in _grouped(outcomes, kind, names))]
    widths = [max(len(row[k]) for row in (_HEAD, *lines)) for k in range(len(_HEAD))]
    text = [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (_HEAD, *lines)
    ]
    text.insert(1, "-" * len(text[0]))
    return "\n".join([*text, "", *_notes(outcomes)])


def _grouped(outcomes: Sequence[Outcome], kind: str, names: Iterable[str]) -> Iterator[tuple[str, list[Outcome]]]:
    for name in names:
        own = [outcome for outcome in outcomes if getattr(outcome, kind) == name]
        if own:
            yield name, own


def _line(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    ratios = tightness(outcomes)
    cost = [own.seconds["bound"] / own.seconds["run"] for own in outcomes if own.seconds]
    again = [own.seconds["bound"] / own.seconds["again"] for own in outcomes if "again" in own.seconds]
    over_peer = [own.over_peer for own in outcomes if not np.isnan(own.over_peer)]
    return (
        name,
        str(len(outcomes)),
        str(sum(bool(own.raised) for own in outcomes)),
        str(sum(bool(own.wrong) for own in outcomes)),
        str(sum(bool(own.above) for own in outcomes)),
        str(sum(own.unbounded for own in outcomes)),
        _number(quantile(ratios, 0.5)),
        _number(quantile(ratios, 0.9)),
        _number(quantile(ratios, 1.0)),
        f"{100.0 * np.mean([own.floored for own in outcomes]):.0f} %",
        f"{max(own.error for own in outcomes):.0e}",
        f"{max(over_peer):.0e}" if over_peer else "-",
        _number(quantile(cost, 0.5)),
        _number(quantile(cost, 0.9)),
        _number(quantile(again, 0.5)),
    )


def _notes(outcomes: Sequence[Outcome]) -> list[str]:
    ratios = tightness(outcomes)
    convolved = [own for own in outcomes if own.by_convolution]
    shares = [own.tightness / np.sqrt(own.n_samples) for own in convolved]
    worst = f", at most {max(shares):.3g}·√T" if shares else ""
    return [
        f"bound over error, limits: median {_number(quantile(ratios, 0.5))} (≤ {MEDIAN:g}), "
        f"90 % {_number(quantile(ratios, 0.9))} (≤ {NINE_TENTHS:g}), each family's median ≤ {FAMILY_MEDIAN:g}",
        f"by fast convolution: {len(convolved)} runs, {len(over_convolution_limit(outcomes))} above "
        f"{CONVOLUTION:g}·√T{worst}",
        "floored: error below half a unit in the last place of the peak, which is then what the bound is compared with",
        "over peer: largest error over the peer's, of errors above 1e-10; cost: error_bound() over its run, median and "
        "90 %; again: over a second run, whose grids are prepared",
    ]


def quantile(values: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """The smallest value that so many are not above; infinite ones are the largest."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return float(ordered[max(int(np.ceil(share * len(ordered))) - 1, 0)]) if len(ordered) else float("nan")


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}" if 0.01 <= value < 1e4 else f"{value:.0e}"
