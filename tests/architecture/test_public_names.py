"""Everything public says what it is: names in `__all__`, docstrings, annotations, few positional parameters."""

import ast
import inspect
import subprocess
import sys
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


def test_late_names_are_those_that_type_checkers_see() -> None:
    block = next(node for node in ast.parse((SOURCE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "typing.TYPE_CHECKING"
    seen = {name.name: node.module for node in block.body for name in node.names}
    assert seen == ltinet._LATE


def test_names_of_wings_come_when_they_are_used() -> None:
    program = """if True:
        import sys, ltinet
        assert dir(ltinet) == sorted([*ltinet.__all__, "__version__"]) and "ltinet.identifying" not in sys.modules
        assert callable(ltinet.identify) and "ltinet.identifying" in sys.modules and "identify" in vars(ltinet)
        from ltinet import *
        from ltinet import Reduced as same
        assert set(ltinet.__all__) <= set(globals()) and same is ltinet.reduced.Reduced
        try:
            ltinet.identfy
        except AttributeError as error:
            assert "has no attribute 'identfy'" in str(error)
        else:
            raise AssertionError("there is no such name")
    """
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603


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
