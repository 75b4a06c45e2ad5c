"""What was identified as one page that needs nothing else: numbers, warnings and pictures are in it."""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.html_page import html_page
from ltinet.identification.confidence import DEVIATIONS_99
from ltinet.identification.evidence import Tried
from ltinet.identification.pole_regions import PoleConfidence
from ltinet.plotting.windowless import figure_of

_TRIED = 12  # models with the smallest errors
_DOTS_PER_INCH = 130
_PIXELS = 96.0  # of a page, per inch


class Picture(NamedTuple):
    """A drawing and what is written below it."""

    caption: str
    draw: Callable[[], Any]


class Page(NamedTuple):
    """All that is on the page."""

    title: str
    summary: str
    warnings: Sequence[str]
    outputs: Sequence[str]
    fits: Array
    poles: Complex
    confidences: Sequence[PoleConfidence]
    """Empty where it is not known."""
    tried: Sequence[Tried]
    pictures: Sequence[Picture]
    version: str

    def html(self) -> str:
        """The page."""
        return html_page(f"Identified from {self.title}", _body(self))


def _body(page: Page) -> str:
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


def _fits(page: Page) -> list[tuple[str, str]]:
    return [(name, f"{value:.2f} %") for name, value in zip(page.outputs, page.fits.tolist(), strict=True)]


def _poles(page: Page) -> list[tuple[str, str, str]]:
    if not page.confidences:
        upper = page.poles[page.poles.imag >= 0.0].tolist()
        return [(str(place + 1), f"{pole.real:.5g}", f"±{pole.imag:.5g}") for place, pole in enumerate(upper)]
    rows = []
    for place, own in enumerate(page.confidences):
        deviation = DEVIATIONS_99 * own.deviation
        imaginary = f"±({own.pole.imag:.5g} ± {deviation.imag:.2g})" if own.is_pair else "0"
        doubt = "" if own.meeting is None else ", or two real ones" if own.is_pair else ", or one of a pair"
        rows.append((f"{place + 1}{doubt}", f"{own.pole.real:.5g} ± {deviation.real:.2g}", imaginary))
    return rows


def _tried(page: Page) -> list[tuple[str, ...]]:
    best = sorted(page.tried, key=lambda one: one.error)[:_TRIED]
    return [
        (str(own.order), own.method, str(own.block_rows or "–"), "yes" if own.refined else "no", f"{own.error:.5g}")
        for own in best
    ]


def _figure(picture: Picture) -> str:
    figure = figure_of(picture.draw)
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
