"""Hypothesis: the modules of the examples can be read as tutorials: short, and with public names only."""

import ast
from pathlib import Path

import pytest

import ltinet
from ltinet.paper.reproduce import EXAMPLES

FOLDER = Path(ltinet.__file__).parent / "paper"


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_takes_all_but_its_setting_from_the_public_names(example):
    tree = ast.parse((FOLDER / f"{example.replace('-', '_')}.py").read_text(encoding="utf-8"))
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert "ltinet" in imported
    assert all(name == "ltinet" or name.startswith("ltinet.paper.") for name in imported if name.startswith("ltinet"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ltinet"
    }
    assert used <= set(ltinet.__all__)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_fits_on_a_page(example):
    text = (FOLDER / f"{example.replace('-', '_')}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
