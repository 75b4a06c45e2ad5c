"""Output files of a reproduction: `report.html`, `results.json` and figures.

The page is self-contained, without scripts or network access. It states the command, the versions of all libraries and
the BLAS kernel. The keys of `results.json` do not change from run to run. The output folder is validated before the
computation begins, and every file is written atomically.
"""

import base64
import io
import json
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

import ltinet
from ltinet._util.atomic_files import write_file_atomically
from ltinet._util.display import html_page
from ltinet.errors import FileFormatError
from ltinet.paper.comparison import ComparedNumber, Verdict, format_number
from ltinet.plotting import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORTED_LIBRARIES = ("numpy", "scipy", "scikit-learn", "matplotlib", "joblib")


@dataclass(frozen=True)
class FigureRecipe:
    """A figure that is drawn on request."""

    name: str
    """Name of its files, with the example in front."""
    caption: str
    text: str
    """Alternative text for screen readers."""
    draw: Callable[[], "Figure"]


@dataclass(frozen=True)
class ReportTable:
    """A table of values without verdicts."""

    name: str
    caption: str
    headings: tuple[str, ...]
    rows: Sequence[Sequence[float | str]]


@dataclass(frozen=True)
class ReportSection:
    """Section of the report for one example; `label` is the number of its section in the paper."""

    name: str
    label: str
    title: str
    paragraphs: tuple[str, ...]
    numbers: tuple[ComparedNumber, ...]
    pictures: tuple[FigureRecipe, ...]
    tables: tuple[ReportTable, ...] = ()


@dataclass(frozen=True)
class RunInfo:
    """Command, settings, versions and BLAS kernel of a run, as the report and `results.json` state them."""

    command: str
    quick: bool
    quick_note: str
    """Differences between a quick and a full run; empty for a full one."""
    tolerance: float
    seeds: Mapping[str, int]
    versions: Mapping[str, str]
    kernel: str
    """BLAS kernel, which determines the rounding of sums."""


def installed_versions() -> dict[str, str]:
    """Return the versions of all libraries that affect the numbers."""
    return {
        "ltinet": ltinet.__version__,
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in REPORTED_LIBRARIES},
    }


def blas_kernel() -> str:
    """Return the BLAS kernels of NumPy and SciPy, or the names of the libraries if they do not report kernels."""
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    kernels = dict.fromkeys(library.get("architecture") or library["internal_api"] for library in libraries)
    return " and ".join(kernels) or "unknown"


TITLE = "Systematic construction of continuous-time neural networks for linear dynamical systems"
VERDICT_MARKS = {
    Verdict.REPRODUCED: "✓",
    Verdict.BETTER: "▲",
    Verdict.MISSED: "✗",
    Verdict.DESCRIBED: "✓",
    Verdict.CONTRADICTED: "✗",
    Verdict.FOR_COMPARISON: "·",
    Verdict.UNEXPECTED: "✗",
}
_WIDE_FIGURE_INCHES = 8.0  # figures that are wider take the whole width of the page
_PIXELS_PER_INCH = 96.0  # CSS pixels


@dataclass(frozen=True)
class SavedFigure:
    """A figure as PNG file, and its size."""

    path: Path
    inches_wide: float
    inches_high: float


def report_page(sections: Sequence[ReportSection], *, run: RunInfo, figures: Mapping[str, SavedFigure]) -> str:
    """Return the report in HTML; `figures` has a figure for each "example_name" of the sections."""
    parts = [_header(sections, run), _contents(sections), *(_section(section, figures) for section in sections)]
    body = "\n".join(parts)
    return html_page("The paper, reproduced", f"{body}\n</main>\n{_footer(run)}")


def _header(sections: Sequence[ReportSection], run: RunInfo) -> str:
    counts = Counter(number.verdict for section in sections for number in section.numbers)
    tiles = "".join(
        f'<li class="{_css_class(verdict)}"><b>{counts[verdict]}</b>{VERDICT_MARKS[verdict]} {escape(verdict)}</li>'
        for verdict in Verdict
        if counts[verdict] or verdict is not Verdict.UNEXPECTED
    )
    quick = f'<p class="note"><b>A quick run.</b> {escape(run.quick_note)}</p>' if run.quick else ""
    return (
        "<header>\n<h1>The paper, reproduced</h1>\n"
        f'<p class="lead">The numerical section of “{TITLE}” (C. Datar, A. Datar, F. Dietrich, W. Schilders, 2024) and '
        "its appendix, recomputed.</p>\n"
        "<p>A linear system ẋ = Ax + Bu, y = Cx + Du becomes a network of neurons that each solve an ordinary "
        "differential equation of first or second order. Nothing is trained: A is brought to block-diagonal form, and "
        "every block becomes a horizontal layer. The tables compare each number of the paper with the computed one. "
        "Verdicts follow from the limits in the column before. Only numbers that the paper prints can be "
        "reproduced; statements in words are as described or not, and all other numbers are for comparison. Some "
        "numbers depend on rounding: their smallest and largest values with other BLAS kernels stand below.</p>\n"
        f'{quick}<ul class="counts">{tiles}</ul>\n</header>\n<main>'
    )


def _contents(sections: Sequence[ReportSection]) -> str:
    links = [f'<li><a href="#{section.name}">{section.label} {escape(section.title)}</a></li>' for section in sections]
    return f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>'


def _section(section: ReportSection, figures: Mapping[str, SavedFigure]) -> str:
    text = "\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs)
    headings, label = ("number", "paper", "here", "expected", "verdict"), f"Numbers of Example {section.label}"
    numbers = _html_table(headings, map(_number_row, section.numbers), label=label, classes="scroll numbers")
    tables = "\n".join(_table(table) for table in section.tables)
    saved = [(figures[f"{section.name}_{picture.name}"], picture) for picture in section.pictures]
    figure_elements = "\n".join(_figure(file, alt=picture.text, caption=picture.caption) for file, picture in saved)
    return (
        f'<section id="{section.name}">\n<h2>{section.label} {escape(section.title)}</h2>\n{text}\n'
        f"<h3>Numbers</h3>\n{numbers}\n{tables}\n"
        f'<h3>Figures</h3>\n<div class="figures">\n{figure_elements}\n</div>\n</section>'
    )


def _html_table(
    headings: Sequence[str], rows: Iterable[str], *, label: str, classes: str = "scroll", caption: str = ""
) -> str:
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    lines = "\n".join(rows)
    return (
        f'<div class="{classes}" tabindex="0" role="region" aria-label="{escape(label)}"><table>{caption}'
        f"<thead><tr>{cells}</tr></thead>\n<tbody>\n{lines}\n</tbody></table></div>"
    )


def _number_row(number: ComparedNumber) -> str:
    paper = number.paper if isinstance(number.paper, str) else format_number(number.paper)
    note = f"<small>{escape(number.note)}</small>" if number.note else ""
    verdict, band = number.verdict, format_band(number.band)
    return (
        f'<tr><th scope="row">{escape(number.meaning)}{note}</th>{_value("paper", paper)}'
        f"{_value('here', format_number(number.here), below=band)}{_value('expected', number.bounds)}"
        f'<td class="verdict {_css_class(verdict)}">{VERDICT_MARKS[verdict]} {escape(verdict)}</td></tr>'
    )


def format_band(band: Sequence[float] | None) -> str:
    """Format the smallest and largest value of a number that depends on rounding."""
    return "" if band is None else f"{format_number(band[0])} to {format_number(band[1])}"


def _value(label: str, text: str, *, below: str = "") -> str:
    more = f"<small>{escape(below)}</small>" if below else ""
    return f'<td class="value" data-label="{label}">{escape(text)}{more}</td>'


def _table(table: ReportTable) -> str:
    texts = [[cell if isinstance(cell, str) else format_number(cell) for cell in row] for row in table.rows]
    rows = ("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in texts)
    caption = f"<caption>{escape(table.caption)}</caption>"
    return _html_table(table.headings, rows, label=table.caption, caption=caption)


def _figure(picture: SavedFigure, *, alt: str, caption: str) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode("ascii")
    size = f'width="{picture.inches_wide * _PIXELS_PER_INCH:.0f}" height="{picture.inches_high * _PIXELS_PER_INCH:.0f}"'
    image = f'<img src="data:image/png;base64,{data}" {size} alt="{escape(alt)}">'
    words = f"<figcaption>{escape(caption)}</figcaption>"
    if picture.inches_wide <= _WIDE_FIGURE_INCHES:
        return f"<figure>{image}{words}</figure>"
    return f'<figure class="wide"><div class="scroll" tabindex="0">{image}</div>{words}</figure>'


def _footer(run: RunInfo) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    seeds = ", ".join(f"{name}: {seed}" for name, seed in run.seeds.items()) or "none"
    return (
        f"<footer>\n<p>Made by <code>{escape(run.command)}</code> with {escape(versions)}, and BLAS kernel "
        f"{escape(run.kernel)}.</p>\n"
        f"<p>Seeds: {escape(seeds)}. All solvers are DOP853 with rtol = atol = {format_number(run.tolerance)}. The figures lie "
        "beside this page in <code>figures</code> as PNG and SVG, all numbers in <code>results.json</code>.</p>\n"
        "</footer>"
    )


def _css_class(verdict: Verdict) -> str:
    return verdict.replace(" ", "-")


def results_text(sections: Sequence[ReportSection], *, run: RunInfo, seconds: Mapping[str, float]) -> str:
    """Return `results.json` as text; `seconds` are the computing times of the examples."""
    contents = {
        "run": asdict(run),
        "examples": {
            section.name: {**_example_results(section), "seconds": seconds[section.name]} for section in sections
        },
    }
    return json.dumps(contents, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _example_results(section: ReportSection) -> dict[str, Any]:
    return {
        "section": section.label,
        "title": section.title,
        "numbers": {
            number.key.split(".", 1)[1]: {
                "meaning": number.meaning,
                "paper": number.paper,
                "here": number.here,
                "expected": number.bounds,
                "verdict": str(number.verdict),
                "note": number.note,
                "band": number.band,
            }
            for number in section.numbers
        },
        "tables": {
            table.name: [dict(zip(table.headings, row, strict=True)) for row in table.rows] for table in section.tables
        },
        "figures": {picture.name: f"figures/{section.name}_{picture.name}" for picture in section.pictures},
    }


_DOTS_PER_INCH = 160  # resolution of PNG figures


@dataclass(frozen=True)
class OutputFolder:
    """Writable output folder with a folder `figures`; files of other runs in it are left alone."""

    path: Path

    @classmethod
    def ready(cls, path: Path) -> "OutputFolder":
        """Create the folder and `figures` in it; raise FileFormatError if they are not writable."""
        try:
            (path / "figures").mkdir(parents=True, exist_ok=True)
            for folder in (path, path / "figures"):
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as error:
            raise FileFormatError(
                f"{path} cannot be written to: {error.strerror}; give another folder to write to"
            ) from error
        return cls(path)

    def save_picture(self, picture: FigureRecipe, *, example: str, as_svg: bool) -> SavedFigure:
        """Draw a figure and write it as PNG and, in as much time again, as SVG."""
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        with matplotlib.rc_context({"figure.dpi": _DOTS_PER_INCH}):
            figure = picture.draw()
        canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
        png = self.path / "figures" / f"{example}_{picture.name}.png"
        content = io.BytesIO()
        canvas.print_png(content)  # `savefig` would draw everything twice
        _write_file(png, content.getvalue())
        if as_svg:
            figure.set_layout_engine("none")  # keep the layout; computing it again takes a second
            save_figure(figure, png.with_suffix(".svg"))
        width, height = figure.get_size_inches()
        return SavedFigure(png, inches_wide=float(width), inches_high=float(height))

    def write(self, name: str, text: str) -> Path:
        """Write a text file and return its path."""
        path = self.path / name
        _write_file(path, text.encode())
        return path


def _write_file(path: Path, content: bytes) -> None:
    try:
        write_file_atomically(path, content)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written: {error.strerror}") from error
