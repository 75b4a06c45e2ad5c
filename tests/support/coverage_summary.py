"""Print the coverage of lines and branches that `coverage combine` left, and the ten modules that miss most."""

import json
import sys
from pathlib import Path

from coverage import Coverage

SHOWN = 10


def main() -> None:
    """Write a table to stdout."""
    coverage = Coverage()
    coverage.load()
    report = Path(coverage.config.data_file).parent / "report.json"
    coverage.json_report(outfile=str(report))
    found = json.loads(report.read_text(encoding="utf-8"))
    print(f"{'module':<60} {'lines':>8} {'branches':>9} {'missed':>7}")
    worst = sorted(found["files"].items(), key=lambda item: _missed(item[1]["summary"]), reverse=True)[:SHOWN]
    for name, summary in [*((name, own["summary"]) for name, own in worst), ("in all", found["totals"])]:
        lines, branches = _shares(summary)
        print(f"{name[-60:]:<60} {lines:>7.1f}% {branches:>8.1f}% {_missed(summary):>7}")


def _missed(summary: dict[str, int]) -> int:
    return summary["missing_lines"] + summary["missing_branches"]


def _shares(summary: dict[str, int]) -> tuple[float, float]:
    lines = summary["covered_lines"] / max(summary["num_statements"], 1)
    branches = summary["covered_branches"] / summary["num_branches"] if summary["num_branches"] else 1.0
    return 100.0 * lines, 100.0 * branches


if __name__ == "__main__":
    sys.exit(main())
