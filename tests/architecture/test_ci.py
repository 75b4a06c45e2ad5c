"""The workflow and the commit hooks run targets and tools of this project, on all processors and systems promised."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_command_is_a_target_of_the_makefile() -> None:
    commands = re.findall(r"- run: (.+)", WORKFLOW)
    assert {"make lint", "make test", "make test-all", "make test-oldest", "make wheel-check"} <= set(commands)
    for command in commands:
        target = command.removeprefix("make ")
        assert re.search(rf"^{re.escape(target)}:", MAKEFILE, re.MULTILINE), command


def test_both_kinds_of_processors_are_there() -> None:
    assert re.search(r"machine: \[ubuntu-[\d.]+, ubuntu-[\d.]+-arm\]", WORKFLOW)


def test_macos_and_windows_are_there() -> None:
    assert "machine: [macos-latest, windows-latest]" in WORKFLOW


def test_every_python_that_is_promised_runs_the_slow_tier() -> None:
    promised = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(promised) >= 3
    tested = re.search(r"python: \[(.*)\]", WORKFLOW.split("make test-all")[0])
    assert tested is not None
    assert re.findall(r"3\.\d+", tested[1]) == promised


def test_the_oldest_python_is_the_one_that_is_promised() -> None:
    promised = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert promised is not None
    assert f'"{promised[1]}"' in WORKFLOW


def test_a_commit_runs_what_lint_runs() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    for tool in re.findall(r"\$\(BIN\)/(\w+)", MAKEFILE.split("\nlint:")[1].split("\n\n")[0]):
        assert f".venv/bin/{tool}" in hooks
