"""Imports point down one list of rooms, so that a reader can follow a system through the code in one direction."""

import ast
from pathlib import Path

import pytest

import ltinet

SOURCE = Path(ltinet.__file__).parent
ROOT = Path(__file__).parents[2]
# Highest first; rooms on one line do not import each other.
LEVELS = [
    {"__main__"},
    {"cli"},
    {"paper"},
    {"explorer"},
    {"nn"},
    {"ladders", "identifying", "reduced"},
    {"identified"},
    {"solver_tolerances", "loading", "networks"},
    {"reductions"},
    {"dynamic_network"},  # the façades: their methods are doors to the rooms below
    {"systems", "algebraic"},
    {"conversion", "learn"},
    {"second_order"},
    {"state_space"},
    {"construction", "responses", "identification", "reduction"},
    {"analysis", "sampling", "export"},
    {"solve"},
    {"network"},
    {"decompose"},
    {"signals", "model", "plotting", "bounds", "tables"},
    # the ground
    {"tolerances", "errors", "shown", "views", "arrays", "atomic", "listing", "once", "progress", "threads"}
    | {"recent", "exact_arithmetic"},
]
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
# Libraries that only some users have: imported inside the function that needs them, never when ltinet is imported.
OPTIONAL = {"control", "h5py", "joblib", "matplotlib", "onnx", "pandas", "pyarrow", "pymor", "sklearn", "slycot"}
# Rooms that are imported only when somebody goes to PyTorch, but for the door, which asks for it.
ON_TORCH = {"learn", "nn"}
FILES = sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_modules(nodes: list[ast.stmt] | ast.AST) -> list[str]:
    found = []
    for node in ast.walk(nodes) if isinstance(nodes, ast.AST) else nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.append(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    for module in imported_modules(ast.parse(path.read_text())):
        if module.startswith("ltinet.") and module.split(".")[1] != room:
            other = module.split(".")[1]
            assert LEVEL[room] < LEVEL[other], f"{room} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_optional_libraries_are_imported_only_when_called(path: Path) -> None:
    top_level = imported_modules(ast.parse(path.read_text()).body)
    unasked = OPTIONAL if room_of(path) in ON_TORCH and path.stem != "door" else OPTIONAL | {"torch", "triton"}
    assert not unasked & {module.split(".")[0] for module in top_level}


def test_every_room_has_its_place() -> None:
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms <= set(LEVEL)


def test_the_array_type_has_one_name_in_one_place() -> None:
    saying = [path for path in FILES if "\nArray = NDArray[np.float64]\n" in path.read_text()]
    assert saying == [SOURCE / "arrays.py"]


def test_no_pickle_is_ever_read() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text())
        assert not {"pickle", "marshal", "shelve", "dill"} & {name.split(".")[0] for name in imported_modules(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant)
                assert node.value.value is False


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_reach_into_nothing(path: Path) -> None:
    private = [
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]
    assert private == []
