"""Reports on an identified model: poles as text, and a self-contained HTML page with numbers, warnings and figures.

Poles are written with their 99 % intervals where the covariance is known. Figures are embedded as PNG images, so that
the page needs no other file.
"""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.display import html_page
from ltinet._util.floating_point import Array, Complex
from ltinet.identification.diagnostics import CandidateSummary
from ltinet.identification.uncertainty import NORMAL_QUANTILE_99, PoleUncertainty
from ltinet.plotting.figures import draw_offscreen

# MERGED ltinet.identification.report
# Poles as a person reads them, with what their confidence leaves of the digits.

_MAX_POLES_SHOWN = 8  # poles that are told one by one


def format_poles(poles: Complex, confidences: Sequence[PoleUncertainty]) -> list[str]:
    """One line for each pole, of pairs for both, the slowest first; how many more there are."""
    known = sorted(confidences, key=lambda own: abs(own.pole))
    shown = [_format_pole(own.pole, NORMAL_QUANTILE_99 * own.deviation) + _ambiguity_note(own) for own in known]
    shown = shown or [_format_pole(complex(pole), None) for pole in sorted(poles[poles.imag >= 0.0].tolist(), key=abs)]
    lines = [f"  pole               {own}" for own in shown[:_MAX_POLES_SHOWN]]
    if len(shown) > _MAX_POLES_SHOWN:
        lines.append(f"  …                  {len(shown) - _MAX_POLES_SHOWN} more")
    if confidences:
        lines.append("                     (in brackets: 99 % of either part)")
    return lines


def _ambiguity_note(own: PoleUncertainty) -> str:
    if own.meeting is None:
        return ""
    return "  or two real poles" if own.is_pair else "  or one of a pair"


def _format_pole(pole: complex, width: complex | None) -> str:
    real, imaginary = f"{pole.real:.4g}", f" ± {pole.imag:.4g}j" if pole.imag else ""
    if width is None:
        return real + imaginary
    return f"{real} [±{width.real:.2g}]" + (f"{imaginary} [±{width.imag:.2g}]" if imaginary else "")


# MERGED ltinet.identification.report
# What was identified as one page that needs nothing else: numbers, warnings and pictures are in it.

_N_CANDIDATES_SHOWN = 12  # models with the smallest errors
_DOTS_PER_INCH = 130
_PIXELS = 96.0  # of a page, per inch


class ReportFigure(NamedTuple):
    """A drawing and what is written below it."""

    caption: str
    draw: Callable[[], Any]


class ReportPage(NamedTuple):
    """All that is on the page."""

    title: str
    summary: str
    warnings: Sequence[str]
    outputs: Sequence[str]
    fits: Array
    poles: Complex
    confidences: Sequence[PoleUncertainty]
    """Empty where it is not known."""
    tried: Sequence[CandidateSummary]
    pictures: Sequence[ReportFigure]
    version: str

    def html(self) -> str:
        """The page."""
        return html_page(f"Identified from {self.title}", _body(self))


def _body(page: ReportPage) -> str:
    figures = "\n".join(_figure(picture) for picture in page.pictures)
    return "\n".join(
        [
            f"<header>\n<h1>A system identified from {escape(page.title)}</h1>",
            f'<p class="lead">{escape(page.summary)}</p>',
            *(f'<p class="note"><b>Warning.</b> {escape(text)}</p>' for text in page.warnings),
            "</header>\n<main>\n<section>\n<h2>How well it fits</h2>",
            _table("Of the data that it was found in", ("output", "fit"), _fits(page)),
            "</section>\n<section>\n<h2>Poles</h2>",
            _table("In continuous time, ± what holds 99 %", ("pole", "real part", "imaginary part"), _poles(page)),
            "</section>\n<section>\n<h2>Pictures</h2>",
            f'<div class="figures">\n{figures}\n</div>',
            "</section>\n<section>\n<h2>What was tried</h2>",
            _table("Errors on data that these models had not seen, relative to their size", _HEADINGS, _tried(page)),
            "</section>\n</main>",
            f"<footer><p>Made by ltinet {escape(page.version)}.</p></footer>",
        ]
    )


_HEADINGS = ("order", "method", "block rows", "refined", "error")


def _fits(page: ReportPage) -> list[tuple[str, str]]:
    return [(name, f"{value:.2f} %") for name, value in zip(page.outputs, page.fits.tolist(), strict=True)]


def _poles(page: ReportPage) -> list[tuple[str, str, str]]:
    if not page.confidences:
        upper = page.poles[page.poles.imag >= 0.0].tolist()
        return [(str(place + 1), f"{pole.real:.5g}", f"±{pole.imag:.5g}") for place, pole in enumerate(upper)]
    rows = []
    for place, own in enumerate(page.confidences):
        deviation = NORMAL_QUANTILE_99 * own.deviation
        imaginary = f"±({own.pole.imag:.5g} ± {deviation.imag:.2g})" if own.is_pair else "0"
        doubt = "" if own.meeting is None else ", or two real ones" if own.is_pair else ", or one of a pair"
        rows.append((f"{place + 1}{doubt}", f"{own.pole.real:.5g} ± {deviation.real:.2g}", imaginary))
    return rows


def _tried(page: ReportPage) -> list[tuple[str, ...]]:
    best = sorted(page.tried, key=lambda one: one.error)[:_N_CANDIDATES_SHOWN]
    return [
        (str(own.order), own.method, str(own.block_rows or "–"), "yes" if own.refined else "no", f"{own.error:.5g}")
        for own in best
    ]


def _figure(picture: ReportFigure) -> str:
    figure = draw_offscreen(picture.draw)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    wide, high = (_PIXELS * np.asarray(figure.get_size_inches())).round().astype(int).tolist()
    kind = ' class="wide"' if wide > 700 else ""
    return (
        f'<figure{kind}><img src="data:image/png;base64,{data}" width="{wide}" height="{high}" '
        f'alt="{escape(picture.caption)}"><figcaption>{escape(picture.caption)}</figcaption></figure>'
    )


def _table(caption: str, headings: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table><caption>'
        f"{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
