"""Public names: listed in `__all__`, documented, with few positional parameters. `make lint` checks types."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import ltinet

SOURCE = Path(ltinet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
PUBLIC = [getattr(ltinet, name) for name in ltinet.__all__]
# Positional parameters of functions whose order MATLAB and python-control users type from memory.
CONVENTIONAL = {
    "feedback": ["P", "C", "sign"],
    "pid": ["kp", "ki", "kd", "tf", "dt"],
    "ss": ["A", "B", "C", "D", "dt"],
    "tf": ["num", "den", "dt"],
    "zpk": ["zeros", "poles", "gain", "dt"],
}


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


def test_modules_and_public_definitions_have_docstrings() -> None:
    undocumented = []
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        undocumented += [
            f"{path.relative_to(SOURCE)}: {getattr(node, 'name', 'module')}"
            for node in (tree, *public_definitions(tree))
            if not ast.get_docstring(node)
        ]
    assert undocumented == []


def test_late_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "typing.TYPE_CHECKING"
    seen = {name.name: node.module for node in block.body for name in node.names}
    assert seen == ltinet._LAZY_IMPORTS


def test_names_of_wings_come_when_they_are_used() -> None:
    program = """if True:
        import sys, ltinet
        assert dir(ltinet) == sorted([*ltinet.__all__, "__version__"]) and "ltinet.identification.api" not in sys.modules
        assert callable(ltinet.identify) and "ltinet.identification.api" in sys.modules and "identify" in vars(ltinet)
        from ltinet import *
        from ltinet import ReductionResult as same
        assert set(ltinet.__all__) <= set(globals()) and same is ltinet.reduction.api.ReductionResult
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


def test_public_functions_take_at_most_two_positional_parameters() -> None:
    offending = []
    for function in filter(inspect.isfunction, PUBLIC):
        parameters = inspect.signature(function).parameters.values()
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if len(positional) > 2 and CONVENTIONAL.get(function.__name__) != positional:
            offending.append(function.__name__)
    assert offending == []


def test_errors_descend_from_one_base() -> None:
    errors = [thing for thing in PUBLIC if inspect.isclass(thing) and issubclass(thing, Exception)]
    assert len(errors) > 5
    assert [error for error in errors if not issubclass(error, ltinet.LtinetError)] == []


def test_no_catch_all_modules() -> None:
    assert [path for path in FILES if path.stem in {"utils", "util", "helpers", "common", "misc"}] == []
