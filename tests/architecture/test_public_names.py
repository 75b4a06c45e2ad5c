"""Everything public says what it is: names in `__all__`, docstrings, annotations, few positional parameters."""

import ast
import inspect
from pathlib import Path

import pytest

import ltinet

SOURCE = Path(ltinet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = [getattr(ltinet, name) for name in ltinet.__all__]


def public_definitions(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
    members = [
        member
        for node in found
        if isinstance(node, ast.ClassDef)
        for member in node.body
        if isinstance(member, kinds) and not member.name.startswith("_")
    ]
    return found + members


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_and_public_definitions_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a module says why it exists"
    for node in public_definitions(tree):
        assert ast.get_docstring(node), f"{node.name} has no docstring"


def test_all_lists_exactly_what_the_package_imports() -> None:
    imported = {
        name for name, value in vars(ltinet).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert imported == set(ltinet.__all__)


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_public_functions_take_at_most_two_positional_parameters(thing: object) -> None:
    if not inspect.isfunction(thing):
        return
    parameters = inspect.signature(thing).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert len(positional) <= 2


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_errors_descend_from_one_base(thing: object) -> None:
    if inspect.isclass(thing) and issubclass(thing, Exception):
        assert issubclass(thing, ltinet.LtinetError)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_catch_all_modules(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "common", "misc"}
