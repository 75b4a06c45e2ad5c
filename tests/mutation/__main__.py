"""`python -m mutation PACKAGE`: draw faults in a package and list those that no test notices.

The first run records which test functions cover which lines, in build/mutation/data. For each mutant only these tests
run, nearest first, in a copy of the sources, until one fails; running out of time counts as noticed. A mutant whose
tests pass, or do not end within the limit without a failure, survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

from mutation.mutants import Mutant, draw

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "mutation" / "data"
KILLED, SURVIVED, TIME_OUT = "killed", "survived", "no failure in time"


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("package", nargs="+", help="folders or modules below src/ltinet, as in network or files.py")
    parser.add_argument("--count", type=int, default=40, help="mutants of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests for one mutant")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", nargs="*", default=["tests/unit"], help="tests whose coverage is recorded")
    arguments = parser.parse_args()
    if not DATA.exists():
        _record(arguments.tests)
    covering = _covering_tests()
    covered = {path: set(lines) for path, lines in covering.items()}
    for package in arguments.package:
        root = ROOT / "src" / "ltinet" / package
        paths = [root] if root.suffix else sorted(root.rglob("*.py"))
        mutants = draw(paths, covered, count=arguments.count, seed=arguments.seed)
        with ThreadPoolExecutor(arguments.workers) as pool:
            outcomes = list(pool.map(lambda mutant: _judge(mutant, covering, arguments.limit), mutants))
        killed = outcomes.count(KILLED)
        print(f"{package}, seed {arguments.seed}: {len(mutants)} mutants, {killed} killed", flush=True)
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            if outcome != KILLED:
                print(f"  {outcome}: {str(mutant).removeprefix(str(ROOT) + '/')}", flush=True)
    return 0


def _record(tests: list[str]) -> None:
    """Run tests with coverage; every line gets the names of the test functions that execute it."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    settings = DATA.parent / "coveragerc"
    settings.write_text(
        "[run]\nsource_pkgs = ltinet\nparallel = true\npatch = subprocess\ndynamic_context = test_function\n"
        f"data_file = {DATA}\n", encoding="utf-8",
    )  # fmt: skip
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run(  # noqa: S603
        [*coverage, "run", f"--rcfile={settings}", "-m", "pytest", "-n", "auto", *tests], cwd=ROOT, check=False
    )
    subprocess.run([*coverage, "combine", f"--rcfile={settings}", "--quiet"], cwd=ROOT, check=True)  # noqa: S603


def _covering_tests() -> dict[Path, dict[int, list[str]]]:
    """Map each module and line to the test functions that execute it, as `module.function`."""
    data = CoverageData(str(DATA))
    data.read()
    return {
        Path(name): {line: [own for own in contexts if own] for line, contexts in data.contexts_by_lineno(name).items()}
        for name in data.measured_files()
    }


def _judge(mutant: Mutant, covering: dict[Path, dict[int, list[str]]], limit: float) -> str:
    """Run the tests that cover the line of a mutant."""
    tests = _selected(mutant, covering[mutant.path][mutant.line])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / mutant.path.relative_to(ROOT / "src")).write_text(mutant.source, encoding="utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        stop = time.monotonic() + limit
        for first in range(0, len(tests), 8):  # a few at a time: the nearest usually notice
            options = ["-x", "-p", "no:cacheprovider", "--timeout=30"]
            command = [sys.executable, "-m", "pytest", *options, *tests[first : first + 8]]
            left = stop - time.monotonic()
            if left <= 0.0:
                return TIME_OUT
            try:
                run = subprocess.run(  # noqa: S603
                    command, cwd=ROOT, env=environment, capture_output=True, timeout=left, check=False
                )
            except subprocess.TimeoutExpired:
                return TIME_OUT
            if run.returncode not in (0, 5):
                return KILLED
    return SURVIVED


def _selected(mutant: Mutant, contexts: list[str]) -> list[str]:
    """Return the node ids of test functions, those named like the module or its package first, then by breadth."""
    near = {mutant.path.stem, mutant.path.parent.name}
    ids = defaultdict(list)
    for context in contexts:
        parts = context.split(".")
        for length in range(len(parts) - 1, 0, -1):
            path = Path("tests", *parts[1:length] if parts[0] == "tests" else parts[:length]).with_suffix(".py")
            if (ROOT / path).is_file():
                ids[str(path)].append("::".join([str(path), *parts[length:]]))
                break
    ordered = sorted(
        ids,
        key=lambda path: (
            -len(near & {*Path(path).with_suffix("").parts[1:], Path(path).stem.removeprefix("test_")}),
            path,
        ),
    )
    return [node for path in ordered for node in sorted(set(ids[path]))]


if __name__ == "__main__":
    sys.exit(main())
