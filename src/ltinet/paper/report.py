"""One page that needs nothing else: styles and pictures are in it, scripts and network are not."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ltinet.html_page import html_page
from ltinet.paper.number import Number, Verdict, plain
from ltinet.paper.run import Run
from ltinet.paper.section import Section, Table

TITLE = "Systematic construction of continuous-time neural networks for linear dynamical systems"
MARKS = {
    Verdict.REPRODUCED: "✓",
    Verdict.BETTER: "▲",
    Verdict.MISSED: "✗",
    Verdict.DESCRIBED: "✓",
    Verdict.CONTRADICTED: "✗",
    Verdict.BESIDE: "·",
    Verdict.UNEXPECTED: "✗",
}
_WIDE = 8.0  # inches: wider pictures have a row of the page for themselves
_PIXELS = 96.0  # of a page, per inch


@dataclass(frozen=True)
class DrawnPicture:
    """A picture as PNG file, and its size."""

    path: Path
    inches_wide: float
    inches_high: float


def report_page(sections: Sequence[Section], *, run: Run, drawn: Mapping[str, DrawnPicture]) -> str:
    """The whole page; `drawn` has a picture for every "example_name" of the sections."""
    body = "\n".join([_header(sections, run), _contents(sections), *(_section(own, drawn) for own in sections)])
    return html_page("The paper, reproduced", f"{body}\n</main>\n{_footer(run)}")


def _header(sections: Sequence[Section], run: Run) -> str:
    counts = Counter(number.verdict for section in sections for number in section.numbers)
    tiles = "".join(
        f'<li class="{_class(verdict)}"><b>{counts[verdict]}</b>{MARKS[verdict]} {escape(verdict)}</li>'
        for verdict in Verdict
        if counts[verdict] or verdict is not Verdict.UNEXPECTED
    )
    quick = f'<p class="note"><b>A quick run.</b> {escape(run.quick_note)}</p>' if run.quick else ""
    return (
        "<header>\n<h1>The paper, reproduced</h1>\n"
        f'<p class="lead">The numerical section of “{TITLE}” (C. Datar, A. Datar, F. Dietrich, W. Schilders, 2024) and '
        "its appendix, computed anew.</p>\n"
        "<p>A linear system ẋ = Ax + Bu, y = Cx + Du becomes a network of neurons that each solve an ordinary "
        "differential equation of first or second order. Nothing is trained: A is brought to block-diagonal form, and "
        "every block becomes a horizontal layer. The tables put each number of the paper beside the one found here. "
        "Verdicts are computed from the bounds in the column before. Only numbers that the paper prints can be "
        "reproduced; what it says in words is as described or not, and all others stand for comparison. Some numbers "
        "move with rounding: below those stands between what they came out as with other kernels of BLAS.</p>\n"
        f'{quick}<ul class="counts">{tiles}</ul>\n</header>\n<main>'
    )


def _contents(sections: Sequence[Section]) -> str:
    lines = "".join(f'<li><a href="#{own.name}">{own.label} {escape(own.title)}</a></li>' for own in sections)
    return f'<nav aria-label="Sections"><ul>{lines}</ul></nav>'


def _section(section: Section, drawn: Mapping[str, DrawnPicture]) -> str:
    text = "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs)
    tables = "\n".join(_table(table) for table in section.tables)
    figures = "\n".join(
        _figure(drawn[f"{section.name}_{picture.name}"], alt=picture.text, caption=picture.caption)
        for picture in section.pictures
    )
    return (
        f'<section id="{section.name}">\n<h2>{section.label} {escape(section.title)}</h2>\n{text}\n'
        f"<h3>Numbers</h3>\n{_numbers(section)}\n{tables}\n"
        f'<h3>Figures</h3>\n<div class="figures">\n{figures}\n</div>\n</section>'
    )


def _numbers(section: Section) -> str:
    headings = "".join(f'<th scope="col">{name}</th>' for name in ("number", "paper", "here", "expected", "verdict"))
    rows = "\n".join(_row(number) for number in section.numbers)
    return (
        f'<div class="scroll numbers" tabindex="0" role="region" aria-label="Numbers of Example {section.label}">'
        f"<table><thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(number: Number) -> str:
    paper = number.paper if isinstance(number.paper, str) else plain(number.paper)
    note = f"<small>{escape(number.note)}</small>" if number.note else ""
    verdict = number.verdict
    return (
        f'<tr><th scope="row">{escape(number.meaning)}{note}</th>{_value("paper", paper)}'
        f"{_value('here', plain(number.here), below=band_text(number.band))}{_value('expected', number.bounds)}"
        f'<td class="verdict {_class(verdict)}">{MARKS[verdict]} {escape(verdict)}</td></tr>'
    )


def band_text(band: Sequence[float] | None) -> str:
    """The band of a number that moves with rounding, in words."""
    return "" if band is None else f"{plain(band[0])} to {plain(band[1])}"


def _value(label: str, text: str, *, below: str = "") -> str:
    more = f"<small>{escape(below)}</small>" if below else ""
    return f'<td class="value" data-label="{label}">{escape(text)}{more}</td>'


def _table(table: Table) -> str:
    headings = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.headings)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell if isinstance(cell, str) else plain(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}"><table>'
        f"<caption>{escape(table.caption)}</caption><thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}\n</tbody>"
        "</table></div>"
    )


def _figure(picture: DrawnPicture, *, alt: str, caption: str) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    size = f'width="{picture.inches_wide * _PIXELS:.0f}" height="{picture.inches_high * _PIXELS:.0f}"'
    image = f'<img src="data:image/png;base64,{data}" {size} alt="{escape(alt)}">'
    words = f"<figcaption>{escape(caption)}</figcaption>"
    if picture.inches_wide <= _WIDE:
        return f"<figure>{image}{words}</figure>"
    return f'<figure class="wide"><div class="scroll" tabindex="0">{image}</div>{words}</figure>'


def _footer(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    seeds = ", ".join(f"{name}: {seed}" for name, seed in run.seeds.items()) or "nothing is random"
    return (
        f"<footer>\n<p>Made by <code>{escape(run.command)}</code> with {escape(versions)}, and the rounding of BLAS "
        f"kernel {escape(run.kernel)}.</p>\n"
        f"<p>Seeds: {escape(seeds)}. All solvers are DOP853 with rtol = atol = {plain(run.tolerance)}. The figures lie "
        "beside this page in <code>figures</code> as PNG and SVG, all numbers in <code>results.json</code>.</p>\n"
        "</footer>"
    )


def _class(verdict: Verdict) -> str:
    return verdict.replace(" ", "-")
