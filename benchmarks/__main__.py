"""One command for all measurements: `python -m benchmarks [--quick] [--only NAME …] [--quote]`.

A full run writes benchmarks/results/*.json, figures beside them and benchmarks/RESULTS.md; a quick one shows that all
of it runs and writes to build/bench-quick, so that its numbers are never quoted.
"""

import argparse
import time
from importlib import import_module
from pathlib import Path

from benchmarks.support.environment import environment
from benchmarks.support.quotes import ROOT, quoting_files, with_quotes
from benchmarks.support.report import report
from benchmarks.support.settings import FULL, QUICK
from benchmarks.support.summary import summary
from benchmarks.support.table import read_all, write

MEASUREMENTS = (
    "simulation",
    "discrete",
    "solvers",
    "first_result",
    "irregular",
    "long_uneven",
    "default_threads",
    "streaming",
    "batch",
    "work_precision",
    "construction",
    "sparsity",
    "frequency",
    "identification",
    "long_identification",
    "scaling",
    "footprint",
    "import_time",
)


def main() -> None:
    """Measure, write tables and figures, or quote them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a minute, to see that everything runs")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, help="measure some and keep the rest")
    parser.add_argument("--report", action="store_true", help="measure nothing; write page and figures anew")
    parser.add_argument("--quote", action="store_true", help="measure nothing; write README and docs from the results")
    arguments = parser.parse_args()
    folder = ROOT / "build" / "bench-quick" / "results" if arguments.quick else ROOT / "benchmarks" / "results"
    if arguments.quote:
        quote(folder)
        return
    if not arguments.report:
        measure(arguments.only or MEASUREMENTS, folder, quick=arguments.quick)
    write_report(folder)


def measure(names: tuple[str, ...] | list[str], folder: Path, *, quick: bool) -> None:
    """Run measurements one after the other; each is on disk before the next begins."""
    settings = QUICK if quick else FULL
    for name in names:
        begin, busy = time.perf_counter(), time.process_time()
        print(f"{name} … ", end="", flush=True)
        for table in import_module(f"benchmarks.measure.{name}").measure(settings):
            write(table, folder, environment=environment(quick=quick))
        print(f"{time.perf_counter() - begin:.0f} s, of them {time.process_time() - busy:.0f} s at work", flush=True)


def write_report(folder: Path) -> None:
    """RESULTS.md beside the folder of results, and figures in it."""
    from benchmarks.support.figures import draw_all

    results = read_all(folder)
    page = folder.parent / "RESULTS.md"
    page.write_text(report(results, figures=Path(folder.name)), encoding="utf-8")
    draw_all({name: table for name, (table, _) in results.items()}, folder)
    print(f"wrote {page.relative_to(ROOT)}")


def quote(folder: Path) -> None:
    """Write README and docs anew between their marks."""
    tables = {name: table for name, (table, _) in read_all(folder).items()}
    tables["summary"] = summary(tables)
    for path in quoting_files():
        text = path.read_text(encoding="utf-8")
        path.write_text(with_quotes(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main()
