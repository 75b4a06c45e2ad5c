"""`python -m mutation PACKAGE`: draw faults in a package and list those that no test notices.

The first run records which test functions of the default tier cover which lines, in build/mutation/data. For each
mutant only these tests run, nearest first, in a copy of the sources, until one fails; a test that exceeds 30 seconds
fails. With `--tier all`, the slow tests in the same files follow if none has failed within the limit. A mutant on which
no test fails survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coverage import CoverageData

from mutation.mutants import Mutant, draw

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "build" / "mutation" / "data"
KILLED, KILLED_BY_SLOW, SURVIVED = "killed by the default tier", "killed by the slow tier", "survived"
# These tests run in other processes or read no results.
NOT_RECORDED = ("architecture", "bare_metal", "browser", "docs", "fuzz")


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__)
    parser.add_argument("package", nargs="+", help="folders or modules below src/ltinet, as in network or files.py")
    parser.add_argument("--count", type=int, default=40, help="mutants of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests of a tier for one mutant")
    parser.add_argument("--tier", choices=("default", "all"), default="default", help="all: slow tests for survivors")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if not DATA.exists():
        _record()
    compile_dir(ROOT / "src", quiet=1)
    covering = _covering_tests()
    covered = {path: set(lines) for path, lines in covering.items()}
    for package in arguments.package:
        root = ROOT / "src" / "ltinet" / package
        paths = [root] if root.suffix else sorted(root.rglob("*.py"))
        mutants = draw(paths, covered, count=arguments.count, seed=arguments.seed)
        with ThreadPoolExecutor(arguments.workers) as pool:
            outcomes = list(pool.map(lambda mutant: _judge(mutant, covering, arguments), mutants))
        counts = ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in (KILLED, KILLED_BY_SLOW, SURVIVED))
        print(f"{package}, seed {arguments.seed}: {len(mutants)} mutants, {counts}", flush=True)
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            if outcome != KILLED:
                print(f"  {outcome}: {str(mutant).removeprefix(str(ROOT) + '/')}", flush=True)
    return 0


def _record() -> None:
    """Run the default tier with coverage; every line gets the names of the test functions that execute it."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    settings = DATA.parent / "coveragerc"
    settings.write_text(
        "[run]\nsource_pkgs = ltinet\nparallel = true\npatch = subprocess\ndynamic_context = test_function\n"
        f"data_file = {DATA}\n", encoding="utf-8",
    )  # fmt: skip
    coverage = [sys.executable, "-m", "coverage"]
    tests = ["-m", "pytest", "-n", "auto", *(f"--ignore=tests/{folder}" for folder in NOT_RECORDED)]
    subprocess.run([*coverage, "run", f"--rcfile={settings}", *tests], cwd=ROOT, check=False)  # noqa: S603
    subprocess.run([*coverage, "combine", f"--rcfile={settings}", "--quiet"], cwd=ROOT, check=True)  # noqa: S603


def _covering_tests() -> dict[Path, dict[int, list[str]]]:
    """Map each module and line to the test functions that execute it, as `module.function`."""
    data = CoverageData(str(DATA))
    data.read()
    return {
        Path(name): {line: [own for own in contexts if own] for line, contexts in data.contexts_by_lineno(name).items()}
        for name in data.measured_files()
    }


def _judge(mutant: Mutant, covering: dict[Path, dict[int, list[str]]], arguments: argparse.Namespace) -> str:
    """Run the tests that cover the line of a mutant, the default tier before the slow one."""
    lines = covering[mutant.path]
    # A line that runs on import is covered by the first test only, but all tests of the module depend on it.
    contexts = {context for tests in lines.values() for context in tests} if mutant.on_import else lines[mutant.line]
    tests = _selected(mutant, contexts)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)  # with compiled modules, which keep their time stamps
        (source / mutant.path.relative_to(ROOT / "src")).write_text(mutant.source, encoding="utf-8")
        if _is_noticed(source, tests, limit=arguments.limit):
            return KILLED
        if arguments.tier == "all" and _is_noticed(source, files, limit=arguments.limit, options=["-m", "slow"]):
            return KILLED_BY_SLOW
    return SURVIVED


def _is_noticed(source: Path, tests: list[str], *, limit: float, options: Sequence[str] = ()) -> bool:
    """Run tests on a copy of the sources, the nearest twelve first; return True if one fails within `limit` seconds."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--timeout=30", *options]
    stop = time.monotonic() + limit
    for batch in filter(None, (tests[:12], tests[12:])):
        left = stop - time.monotonic()
        if left <= 0.0:
            return False
        try:
            run = subprocess.run(  # noqa: S603
                [*command, *batch],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                timeout=left,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        if b"ERROR: not found" in run.stderr:
            raise RuntimeError(f"tests have changed since their coverage was recorded: delete {DATA}")
        if run.returncode not in (0, 5):  # 5: no test is selected
            return True
    return False


def _selected(mutant: Mutant, contexts: Iterable[str]) -> list[str]:
    """Return the node ids of test functions, those in the folder or file named like the module or its package first.

    A context is the name of a module, without folders, and that of a function in it. Where Hypothesis has run the line,
    its own function is the context; then all of the nearest files with such tests are included.
    """
    files = {path.stem: path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")}
    near = {mutant.path.stem, mutant.path.parent.name}
    ids = defaultdict(set)
    for context in contexts:
        module, *function = context.split(".")
        if module == "hypothesis":
            generated = [
                path
                for path in files.values()
                if near & {*path.parts} and "hypothesis" in (ROOT / path).read_text(encoding="utf-8")
            ]
            for path in generated:
                ids[_distance(path, near), str(path)].add(str(path))
        elif module in files:
            path = files[module]
            ids[_distance(path, near), str(path)].add("::".join([str(path), *function]))
    return [test for key in sorted(ids) for test in sorted(ids[key])]


def _distance(path: Path, near: set[str]) -> int:
    return -len(near & {*path.parts, path.stem.removeprefix("test_")})


if __name__ == "__main__":
    sys.exit(main())
