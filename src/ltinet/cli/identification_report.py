"""What was identified as one page that needs nothing else: numbers, warnings and pictures are in it."""

import base64
import io
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

import ltinet
from ltinet.cli.pictures import drawn
from ltinet.identified import Identified
from ltinet.shown import count_of
from ltinet.tables.table import Table

_COMPARED = 2000  # rows at the end of the record: more are a blur
_TRIED = 12  # models with the smallest errors
_DOTS_PER_INCH = 130
_PIXELS = 96.0  # of a page, per inch
_DEVIATIONS = 2.5758293035489004  # 99 % of a normal number


class _Picture(NamedTuple):
    caption: str
    draw: Callable[[], Any]


def report_page(found: Identified, u: Table, y: Table, *, title: str) -> str:
    """The whole page; u and y are the records that the system was found in, and `title` their name."""
    style = resources.files("ltinet.paper").joinpath("report.css").read_text(encoding="utf-8")
    figures = "\n".join(_figure(picture) for picture in _pictures(found, u, y))
    body = "\n".join(
        [
            f"<header>\n<h1>A system identified from {escape(title)}</h1>",
            f'<p class="lead">{escape(_summary(found, len(u.t)))}</p>',
            *(f'<p class="note"><b>Warning.</b> {escape(text)}</p>' for text in found.warnings),
            "</header>\n<main>\n<section>\n<h2>How well it fits</h2>",
            _table("Simulated outputs, states fitted at the first sample only", ("output", "fit"), _fits(found)),
            "</section>\n<section>\n<h2>Poles</h2>",
            _table("In continuous time, ± what holds 99 %", ("pole", "real part", "imaginary part"), _poles(found)),
            "</section>\n<section>\n<h2>Pictures</h2>",
            f'<div class="figures">\n{figures}\n</div>',
            "</section>\n<section>\n<h2>What was tried</h2>",
            _table(
                "Errors on samples that these models had not seen, relative to the outputs", _HEADINGS, _tried(found)
            ),
            "</section>\n</main>",
            f"<footer><p>Made by ltinet {escape(ltinet.__version__)}.</p></footer>",
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>Identified from {escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n"
        "</html>\n"
    )


_HEADINGS = ("order", "method", "block rows", "refined", "error")


def _summary(found: Identified, n_samples: int) -> str:
    delays = f", delays of {', '.join(map(str, found.delay))} samples" if any(found.delay) else ""
    return (
        f"Order {found.order}, {count_of(found.system.n_inputs, 'input')} and "
        f"{count_of(found.system.n_outputs, 'output')}, from {count_of(n_samples, 'sample')} at steps of {found.dt:g} "
        f"({found.hold} hold{delays}); found by {found.method} with {found.block_rows} block rows"
        f"{', refined by output error' if found.refined else ''}."
    )


def _fits(found: Identified) -> Iterator[tuple[str, str]]:
    for name, value in zip(found.system.output_names, found.fits.tolist(), strict=True):
        yield name, f"{value:.2f} %"


def _poles(found: Identified) -> Iterator[tuple[str, str, str]]:
    known = () if found.covariance is None else found.pole_confidence()
    if not known:
        values = found.poles()
        for place, pole in enumerate(values[values.imag >= 0.0].tolist()):
            yield str(place + 1), f"{pole.real:.5g}", f"{pole.imag:.5g}"
    for place, own in enumerate(known):
        deviation = _DEVIATIONS * own.deviation
        imaginary = f"±({own.pole.imag:.5g} ± {deviation.imag:.2g})" if own.is_pair else "0"
        yield str(place + 1), f"{own.pole.real:.5g} ± {deviation.real:.2g}", imaginary


def _tried(found: Identified) -> Iterator[tuple[str, ...]]:
    for own in sorted(found.tried, key=lambda one: one.error)[:_TRIED]:
        yield str(own.order), own.method, str(own.block_rows), "yes" if own.refined else "no", f"{own.error:.5g}"


def _pictures(found: Identified, u: Table, y: Table) -> Iterator[_Picture]:
    plots = found.plot
    part = slice(max(0, len(u.t) - _COMPARED), None)
    which = f"the last {_COMPARED} samples" if len(u.t) > _COMPARED else "the record"
    yield _Picture(f"Measured and simulated outputs, {which}.", lambda: plots.compare(u.values[part], y.values[part]))
    yield _Picture(
        "Correlations of what the model leaves over. After an input at positive lags: something is missed; at negative "
        "lags: a closed loop.",
        lambda: plots.residuals(u.values, y.values),
    )
    yield _Picture("What speaks for the order.", plots.orders)
    yield _Picture("Poles, and regions that hold the true ones at 99 %.", plots.poles)
    if found.covariance is not None:
        yield _Picture("The frequency response, and bands that hold the true one at 99 %.", plots.bode)


def _figure(picture: _Picture) -> str:
    figure = drawn(picture.draw)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    wide, high = (_PIXELS * np.asarray(figure.get_size_inches())).round().astype(int).tolist()
    kind = ' class="wide"' if wide > 700 else ""
    return (
        f'<figure{kind}><img src="data:image/png;base64,{data}" width="{wide}" height="{high}" '
        f'alt="{escape(picture.caption)}"><figcaption>{escape(picture.caption)}</figcaption></figure>'
    )


def _table(caption: str, headings: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table><caption>'
        f"{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )
