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

_MAX_POLES_SHOWN = 8  # in a table
_N_CANDIDATES_SHOWN = 12  # those with the smallest errors
_DOTS_PER_INCH = 130  # of the images
_PIXELS_PER_INCH = 96.0  # of the page, as CSS defines them
_WIDE_PIXELS = 700  # figures that are wider take the whole width of the page


def format_poles(poles: Complex, uncertainties: Sequence[PoleUncertainty]) -> list[str]:
    """Return one line for each real pole and each pair, the slowest first, with the number of those left out."""
    entries = []
    for it in sorted(uncertainties, key=lambda it: abs(it.pole)):
        doubt = "" if it.meeting is None else "  or two real poles" if it.is_pair else "  or one of a pair"
        entries.append(_format_pole(it.pole, NORMAL_QUANTILE_99 * it.deviation) + doubt)
    upper = sorted(poles[poles.imag >= 0.0].tolist(), key=abs)
    entries = entries or [_format_pole(complex(pole), None) for pole in upper]
    lines = [f"  pole               {entry}" for entry in entries[:_MAX_POLES_SHOWN]]
    if len(entries) > _MAX_POLES_SHOWN:
        lines.append(f"  …                  {len(entries) - _MAX_POLES_SHOWN} more")
    if uncertainties:
        lines.append("                     (± 99 % confidence interval)")
    return lines


def _format_pole(pole: complex, width: complex | None) -> str:
    real, imaginary = f"{pole.real:.4g}", f" ± {pole.imag:.4g}j" if pole.imag else ""
    if width is None:
        return real + imaginary
    return f"{real} [±{width.real:.2g}]" + (f"{imaginary} [±{width.imag:.2g}]" if imaginary else "")


class ReportFigure(NamedTuple):
    """Figure with its caption."""

    caption: str
    draw: Callable[[], Any]


class ReportPage(NamedTuple):
    """Contents of the page."""

    title: str
    summary: str
    warnings: Sequence[str]
    outputs: Sequence[str]
    fits: Array
    poles: Complex
    uncertainties: Sequence[PoleUncertainty]
    """Empty where the covariance is not known."""
    candidates: Sequence[CandidateSummary]
    figures: Sequence[ReportFigure]
    version: str

    def html(self) -> str:
        """Return the page as HTML."""
        fits = [(name, f"{value:.2f} %") for name, value in zip(self.outputs, self.fits.tolist(), strict=True)]
        best = sorted(self.candidates, key=lambda candidate: candidate.error)[:_N_CANDIDATES_SHOWN]
        candidates = [
            (str(it.order), it.method, str(it.block_rows or "–"), "yes" if it.refined else "no", f"{it.error:.5g}")
            for it in best
        ]
        figures = "\n".join(map(_figure_html, self.figures))
        parts = [
            f"<header>\n<h1>A system identified from {escape(self.title)}</h1>",
            f'<p class="lead">{escape(self.summary)}</p>',
            *(f'<p class="note"><b>Warning.</b> {escape(text)}</p>' for text in self.warnings),
            "</header>\n<main>\n<section>\n<h2>Fit</h2>",
            _table_html("On the data that it was identified from", ("output", "fit"), fits),
            "</section>\n<section>\n<h2>Poles</h2>",
            _table_html(
                "In continuous time, with 99 % intervals", ("pole", "real part", "imaginary part"), _pole_rows(self)
            ),
            "</section>\n<section>\n<h2>Figures</h2>",
            f'<div class="figures">\n{figures}\n</div>',
            "</section>\n<section>\n<h2>Candidate models</h2>",
            _table_html(
                "Errors on samples that the models were not fitted to, relative to their size",
                ("order", "method", "block rows", "refined", "error"),
                candidates,
            ),
            "</section>\n</main>",
            f"<footer><p>Made by ltinet {escape(self.version)}.</p></footer>",
        ]
        return html_page(f"Identified from {self.title}", "\n".join(parts))


def _pole_rows(page: ReportPage) -> list[tuple[str, str, str]]:
    if not page.uncertainties:
        upper = page.poles[page.poles.imag >= 0.0].tolist()
        return [(str(number), f"{pole.real:.5g}", f"±{pole.imag:.5g}") for number, pole in enumerate(upper, 1)]
    rows = []
    for number, it in enumerate(page.uncertainties, 1):
        width = NORMAL_QUANTILE_99 * it.deviation
        imaginary = f"±({it.pole.imag:.5g} ± {width.imag:.2g})" if it.is_pair else "0"
        doubt = "" if it.meeting is None else ", or two real ones" if it.is_pair else ", or one of a pair"
        rows.append((f"{number}{doubt}", f"{it.pole.real:.5g} ± {width.real:.2g}", imaginary))
    return rows


def _figure_html(entry: ReportFigure) -> str:
    figure = draw_offscreen(entry.draw)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    width, height = (_PIXELS_PER_INCH * np.asarray(figure.get_size_inches())).round().astype(int).tolist()
    kind = ' class="wide"' if width > _WIDE_PIXELS else ""
    return (
        f'<figure{kind}><img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
        f'alt="{escape(entry.caption)}"><figcaption>{escape(entry.caption)}</figcaption></figure>'
    )


def _table_html(caption: str, headings: Sequence[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table><caption>'
        f"{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
