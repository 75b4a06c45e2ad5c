"""Imports of the paper's examples: public names of `ltinet` only, and loaded by `ltinet reproduce` only."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ltinet
from ltinet.paper.reproduce import EXAMPLES

SOURCE = Path(ltinet.__file__).parent


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_uses_public_names_of_ltinet(example):
    tree = ast.parse((SOURCE / "paper" / f"{example.replace('-', '_')}.py").read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ltinet"
    }
    assert used
    assert used <= set(ltinet.__all__)


def test_only_the_command_imports_the_examples():
    importers = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            if any(f"{name}.".startswith("ltinet.paper.") for name in names):
                importers.add(path.relative_to(SOURCE).parts)
    assert {parts for parts in importers if parts[0] != "paper"} == {("cli", "reproduce.py")}


@pytest.mark.parametrize("module", ["ltinet", "ltinet.cli.app"])
def test_examples_are_not_imported_with_the_library(module):
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith('ltinet.paper')])"
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"
