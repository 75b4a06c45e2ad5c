"""Docstrings of public objects are complete, and text is free of words that the style guide replaces."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ltinet

ROOT = Path(__file__).parents[2]
SOURCE = Path(ltinet.__file__).parent
# Parameters documented, in order and without others; returns and yields documented; a summary that is a sentence.
CHECKS = {"GL08", "PR01", "PR02", "PR03", "RT01", "SS02", "SS05", "YD01"}
# Constructed by the library only, with a docstring for each field; and a protocol, whose signature is *args.
NOT_CALLED = {"ltinet.LiftedField", "ltinet.ReductionResult", "ltinet.Signal"}
REPLACED = re.compile(r"\b([Nn]obody|[Ss]omebody|[Ww]hoever|told|exceeds all numbers)\b|\bis none\b")


def public_objects() -> Iterator[str]:
    """Yield dotted names of public objects and of the methods that their classes define."""
    nn = pytest.importorskip("ltinet.nn")
    for module in (ltinet, nn):
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}"
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    is_method = inspect.isfunction(function) or isinstance(function, classmethod | staticmethod)
                    if is_method and not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}"


def test_public_docstrings_are_complete() -> None:
    validate = pytest.importorskip("numpydoc.validate").validate
    missing = {
        name: [
            f"{code} {message}"
            for code, message in validate(name)["errors"]
            if code in CHECKS - ({"PR01"} if name in NOT_CALLED else set())
        ]
        for name in public_objects()
    }
    assert {name: errors for name, errors in missing.items() if errors} == {}


def test_docstrings_do_not_begin_with_a_question_word() -> None:
    offending = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if re.match(r"(What|How|Who)\b", text):
                    offending.append(f"{path.relative_to(SOURCE)}: {text.splitlines()[0]}")
    assert offending == []


def test_replaced_words_are_not_used() -> None:
    texts = [
        *SOURCE.rglob("*.py"),
        *SOURCE.rglob("*.js"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("*/*.md"),
    ]
    texts += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    offending = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts
        if "_generated" not in path.parts and "_build" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if REPLACED.search(line)
    ]
    assert offending == []


def test_no_module_repeats_a_name_of_its_family() -> None:
    """Subpackages of a package share no module names, except `export` for the formats of files."""
    for package in (path for path in SOURCE.iterdir() if path.is_dir()):
        names = [path.stem for path in package.rglob("*.py") if path.stem not in ("__init__", "export")]
        assert len(names) == len(set(names)), package.name
