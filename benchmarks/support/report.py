"""RESULTS.md: what was measured where, what it shows, and every table with its figure."""

from pathlib import Path
from typing import Any

from benchmarks.support.markdown import render
from benchmarks.support.summary import summary
from benchmarks.support.table import Table

ORDER = (
    "simulation",
    "solvers",
    "first_result",
    "irregular",
    "long_uneven",
    "default_threads",
    "streaming",
    "batch",
    "beyond_linear",
    "beyond_linear_accuracy",
    "work_precision",
    "construction",
    "bdschur",
    "sparsity",
    "frequency",
    "identification",
    "scaling_n",
    "scaling_t",
    "scaling_batch",
    "scaling_m",
    "scaling_coupled",
    "memory",
    "import_time",
)
FIGURES = {
    "simulation": "simulation",
    "work_precision": "work_precision",
    "construction": "construction",
    "scaling_n": "scaling",
    "memory": "memory",
}


def report(results: dict[str, tuple[Table, dict[str, Any]]], *, figures: Path) -> str:
    """The whole page; `figures` is the folder of figures, as seen from the page."""
    tables = {name: table for name, (table, _) in results.items()}
    parts = [
        "# Results",
        "Written by `make bench`; do not edit. Times are wall-clock, ratios are taken between calls that take turns in "
        "one process, and shown as median (smallest … largest) over repetitions.",
        *_warning(results),
        _environments(results),
        _section(summary(tables)),
    ]
    for name in ORDER:
        if name in tables:
            parts.append(_section(tables[name]))
            if name in FIGURES:
                parts.append(f"![{tables[name].title}]({(figures / FIGURES[name]).as_posix()}.png)")
    return "\n\n".join(parts) + "\n"


def _warning(results: dict[str, tuple[Table, dict[str, Any]]]) -> list[str]:
    """A quick run shows that everything runs, and nothing else."""
    quick = any(environment["mode"] == "quick" for _, environment in results.values())
    return ["**A quick run: less work, few repetitions. Its figures prove nothing.**"] if quick else []


def _section(table: Table) -> str:
    return f"## {table.title}\n\n{table.note}\n\n{render(table)}"


def _environments(results: dict[str, tuple[Table, dict[str, Any]]]) -> str:
    """One line per machine and set of versions; which tables, where there is more than one."""
    lines: dict[str, list[str]] = {}
    for name, (_, environment) in results.items():
        lines.setdefault(_line(environment), []).append(name)
    if len(lines) == 1:
        return next(iter(lines))
    return "\n".join(f"- {', '.join(names)}: {line}" for line, names in lines.items())


def _line(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in environment["versions"].items())
    return (
        f"{environment['processor']}, {environment['cores']} cores, {environment['system']}; BLAS: "
        f"{environment['blas']}; {versions}; {environment['mode']} run."
    )
