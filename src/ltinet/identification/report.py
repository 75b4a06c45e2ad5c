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
_MAX_GAINS_SHOWN = 6
_N_CANDIDATES_SHOWN = 12  # those with the smallest errors
_DOTS_PER_INCH = 130  # of the images
_PIXELS_PER_INCH = 96.0  # of the page, as CSS defines them
_WIDE_PIXELS = 700  # figures that are wider take the whole width of the page


def format_delays(
    delays: Sequence[int], ranges: Sequence[tuple[int, int]], dt: float | None, time_unit: str | None
) -> str:
    """Return delays in samples and in units of time, with the range of those that are not distinguishable."""
    parts = []
    for j, samples in enumerate(delays):
        time = "" if dt is None else f" ({samples * dt:.5g}{f' {time_unit}' if time_unit else ''})"
        text = f"{samples} samples{time}"
        if j < len(ranges) and ranges[j][0] < ranges[j][1]:
            text += f", {ranges[j][0]} to {ranges[j][1]} not distinguishable"
        parts.append(text)
    return "; ".join(parts)


def format_gains(gains: Array, widths: Array | None, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """Return a line for each gain `(p, m)` at frequency 0, with its 99 % interval where it is known; none without gains."""
    lines = []
    for i, output in enumerate(outputs[: len(gains)]):
        for j, source in enumerate(inputs):
            width = "" if widths is None else f" [±{widths[i, j]:.2g}]"
            names = "" if gains.size == 1 else f"  {source} to {output}"
            lines.append(f"{gains[i, j]:.5g}{width}{names}")
    if len(lines) > _MAX_GAINS_SHOWN:
        return [*lines[:_MAX_GAINS_SHOWN], f"… {len(lines) - _MAX_GAINS_SHOWN} more"]
    return lines


def format_poles(poles: Complex, uncertainties: Sequence[PoleUncertainty], time_unit: str | None = None) -> list[str]:
    """Return one line for each real pole and each pair, the slowest first, with the number of those left out."""
    entries = []
    for it in sorted(uncertainties, key=lambda it: abs(it.pole)):
        doubt = "" if it.meeting is None else "  or two real poles" if it.is_pair else "  or one of a pair"
        entries.append(_format_pole(it.pole, NORMAL_QUANTILE_99 * it.deviation, time_unit) + doubt)
    upper = sorted(poles[poles.imag >= 0.0].tolist(), key=abs)
    entries = entries or [_format_pole(complex(pole), None, time_unit) for pole in upper]
    lines = [f"  pole               {entry}" for entry in entries[:_MAX_POLES_SHOWN]]
    if len(entries) > _MAX_POLES_SHOWN:
        lines.append(f"  …                  {len(entries) - _MAX_POLES_SHOWN} more")
    if uncertainties:
        lines.append("                     (± 99 % confidence interval)")
    return lines


def _format_pole(pole: complex, width: complex | None, time_unit: str | None) -> str:
    real, imaginary = f"{pole.real:.4g}", f" ± {pole.imag:.4g}j" if pole.imag else ""
    unit = f" 1/{time_unit}" if time_unit else ""
    constant = f"  {_time_constant(pole, time_unit)}" if _time_constant(pole, time_unit) else ""
    if width is None:
        return real + imaginary + unit + constant
    return f"{real} [±{width.real:.2g}]" + (f"{imaginary} [±{width.imag:.2g}]" if imaginary else "") + unit + constant


def _time_constant(pole: complex, time_unit: str | None) -> str:
    """Return the time constant of a stable real pole, else the natural frequency and damping of a pair."""
    after = f" {time_unit}" if time_unit else ""
    if pole.imag:
        size = abs(pole)
        return f"ω {size:.4g}{f' rad/{time_unit}' if time_unit else ''}, ζ {-pole.real / size:.3g}"
    return f"τ {-1.0 / pole.real:.4g}{after}" if pole.real < 0.0 else ""


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
    gains: Sequence[str]
    time_unit: str | None

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
                f"In continuous time{f', in 1/{self.time_unit}' if self.time_unit else ''}, with 99 % intervals",
                ("pole", "real part", "imaginary part", "time constant, or frequency and damping"),
                _pole_rows(self),
            ),
            *(
                [_table_html("Gain at frequency 0, with 99 % intervals", ("gain",), [(it,) for it in self.gains])]
                if self.gains
                else []
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


def _pole_rows(page: ReportPage) -> list[tuple[str, ...]]:
    if not page.uncertainties:
        upper = page.poles[page.poles.imag >= 0.0].tolist()
        return [
            (str(number), f"{pole.real:.5g}", f"±{pole.imag:.5g}", _time_constant(pole, page.time_unit))
            for number, pole in enumerate(upper, 1)
        ]
    rows: list[tuple[str, ...]] = []
    for number, it in enumerate(page.uncertainties, 1):
        width = NORMAL_QUANTILE_99 * it.deviation
        imaginary = f"±({it.pole.imag:.5g} ± {width.imag:.2g})" if it.is_pair else "0"
        doubt = "" if it.meeting is None else ", or two real ones" if it.is_pair else ", or one of a pair"
        real = f"{it.pole.real:.5g} ± {width.real:.2g}"
        rows.append((f"{number}{doubt}", real, imaginary, _time_constant(it.pole, page.time_unit)))
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
