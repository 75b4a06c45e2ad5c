"""Imports between modules of the package have one direction, and optional libraries are imported only when needed.

The package is a tree. In every folder of it the direct children, modules and packages alike, must import one another
without cycles; for the top level the order is written down below. An import counts wherever it stands, inside
functions and under `TYPE_CHECKING` too, and so does the name of a module in a string, as `import_module` and
`resources.files` take it: each of them makes a reader of one module depend on the other.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import ltinet

SOURCE = Path(ltinet.__file__).parent
ROOT = Path(__file__).parents[2]
# Highest first; those on one line do not import each other.
LEVELS = [
    {"__main__"},
    {"cli"},
    {"paper"},
    {"__init__"},  # what users import
    {"explorer"},
    {"nn", "identification.api"},
    {"identification.result", "reduction.api"},
    {"constructors"},
    {"interconnection"},
    {"construction"},
    {"files", "loop_analysis", "tradeoff", "solver_tolerances", "reduction.dispatch"},
    {"nonlinear"},  # models with products and their networks
    {"dynamic_network", "conversion", "reduction.discrete_reduction"},
    {"second_order", "torch"},
    {"state_space"},
    {"interconnection.operators", "large_systems"},
    {"network_builder", "identification", "analysis", "export"},
    {"simulation", "reduction"},
    {"network"},
    {"blockdiag", "io"},
    {"error_bounds", "plotting", "signals", "systems", "tables"},
    {"_util", "_version", "errors"},
]
LEVEL = {child: level for level, children in enumerate(LEVELS) for child in children}
# Libraries that only some users have: imported inside the function that needs them, never when ltinet is imported.
OPTIONAL = {"control", "h5py", "joblib", "matplotlib", "onnx", "pandas", "pyarrow", "pymor", "sklearn", "slycot"}
TORCH = {"torch", "triton"}
BUILT_ON_TORCH = {"torch", "nn"}  # may import it at the top of their modules

Module = tuple[str, ...]
"""A module by its place below `ltinet`: `("simulation", "modal")`, `("solve", "__init__")`."""


def module_of(path: Path) -> Module:
    return path.relative_to(SOURCE).with_suffix("").parts


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@cache
def syntax_tree(module: Module) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def relevant_nodes(module: Module) -> list[ast.AST]:
    """All nodes of the kinds that a test here looks at; walking the trees takes most of the time of this file."""
    kinds = (ast.Import, ast.ImportFrom, ast.Constant, ast.keyword, ast.Assign, ast.AnnAssign, ast.AugAssign)
    return [node for node in ast.walk(syntax_tree(module)) if isinstance(node, kinds)]


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names in import statements; of `from a import b` both `a` and `a.b`, whichever is a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_named(name: str) -> Module | None:
    """The module of the package with a dotted name, or that defines it; None for names of other libraries."""
    first, *parts = name.split(".")
    if first != "ltinet":
        return None
    candidates = (tuple(parts), (*parts, "__init__"), tuple(parts[:-1]), (*parts[:-1], "__init__"))
    return next((candidate for candidate in candidates if candidate in MODULES), None)


def strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """String constants that are dotted names below `ltinet`."""
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    for value in values:
        if isinstance(value, str) and value.startswith("ltinet.") and re.fullmatch(r"ltinet(\.\w+)+", value):
            yield value


@cache
def imported_modules(module: Module) -> set[Module]:
    """Modules of the package that a module imports anywhere, or names in a string."""
    nodes = relevant_nodes(module)
    named = {module_named(name) for name in (*imported_names(nodes), *strings(nodes))}
    return {other for other in named if other is not None} - {module}


Edges = Mapping[str, Mapping[str, list[str]]]
"""From importing child to imported child, each with the modules behind it."""


@cache
def edges_in_packages() -> dict[Module, Edges]:
    """For each package, the imports between its direct children; an import belongs where the two paths part."""
    packages: dict[Module, defaultdict[str, defaultdict[str, list[str]]]] = {}
    for module in MODULES:
        for other in imported_modules(module):
            depth = next(i for i, (ours, theirs) in enumerate(zip(module, other, strict=False)) if ours != theirs)
            edges = packages.setdefault(module[:depth], defaultdict(lambda: defaultdict(list)))
            edges[module[depth]][other[depth]].append(f"{'.'.join(module)} imports {'.'.join(other)}")
    return packages


def node(module: Module) -> str:
    """The name in `LEVELS` that a module belongs to: the public API inside a package, or a child of `ltinet`."""
    public_api = ".".join(module[:2])
    return public_api if public_api in LEVEL else module[0]


def cycle_in(edges: Edges) -> list[str]:
    """The imports along one cycle; empty where there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        imported_first = error.args[1]  # each child is imported by the next one
        return [edges[ours][theirs][0] for theirs, ours in pairwise(imported_first)]
    return []


def test_top_level_imports_follow_the_order() -> None:
    upward = [
        f"{'.'.join(module)} imports {'.'.join(other)}"
        for module in MODULES
        for other in imported_modules(module)
        if node(module) != node(other) and LEVEL[node(module)] >= LEVEL[node(other)]
    ]
    assert not upward, "\n".join(upward)


def test_no_package_has_cycles() -> None:
    cycles = [cycle_in(edges) for package, edges in edges_in_packages().items() if package]
    assert not any(cycles), "\n".join(", ".join(cycle) for cycle in cycles if cycle)


def test_every_kind_of_import_is_seen() -> None:
    def modules(text: str) -> set[Module | None]:
        nodes = list(ast.walk(ast.parse(text)))
        return {module_named(name) for name in (*imported_names(nodes), *strings(nodes))}

    assert modules("import ltinet") == modules("from ltinet import load") == {("__init__",)}
    assert modules("def f():\n    import ltinet as package") == {("__init__",)}
    assert (
        modules("import ltinet.simulation.modal")
        == modules("from ltinet.simulation import modal")
        == {("simulation", "modal")}
    )
    assert modules("from ltinet.simulation.modal import ModalSystem") == {("simulation", "modal")}
    assert modules("if TYPE_CHECKING:\n    from ltinet.plotting import show") == {("plotting", "__init__")}
    assert modules("import_module('ltinet.reduction.api')") == {("reduction", "api")}
    assert modules("import numpy") == {None}


def test_a_cycle_is_reported_by_its_imports() -> None:
    edges = {"a": {"b": ["a.x imports b"]}, "b": {"c": ["b imports c"]}, "c": {"a": ["c imports a.y"]}, "d": {"a": []}}
    assert sorted(cycle_in(edges)) == ["a.x imports b", "b imports c", "c imports a.y"]


def test_no_module_sets_attributes_of_what_it_imports() -> None:
    """Such an assignment is an import in the other direction, which no tool sees."""
    offending = []
    for module in MODULES:
        nodes = relevant_nodes(module)
        imported = {
            alias.asname or alias.name.split(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        for node in nodes:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            offending += [
                f"{'.'.join(module)}: {ast.unparse(target)}"
                for target in targets
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
                if target.value.id in imported
            ]
    assert offending == []


def libraries_imported_at_once(module: Module) -> set[str]:
    return {name.split(".")[0] for name in imported_names(syntax_tree(module).body)}


def test_optional_libraries_are_imported_only_when_called() -> None:
    offending = {}
    for module in MODULES:
        unexpected = OPTIONAL if module[0] in BUILT_ON_TORCH else OPTIONAL | TORCH
        if found := unexpected & libraries_imported_at_once(module):
            offending[".".join(module)] = found
    assert offending == {}


def test_importing_the_package_imports_no_module_built_on_torch() -> None:
    reached, waiting = set(), [("__init__",)]
    while waiting:
        module = waiting.pop()
        reached.add(module)
        imported = {module_named(name) for name in imported_names(syntax_tree(module).body)}
        waiting += [other for other in imported if other is not None and other not in reached]
    assert len(reached) > 100
    assert {".".join(module) for module in reached if libraries_imported_at_once(module) & TORCH} == set()


def test_every_top_level_module_has_its_place() -> None:
    assert {node(module) for module in MODULES} == set(LEVEL)


def test_the_array_type_has_one_name_in_one_place() -> None:
    defining = [
        module for module in MODULES if "\nArray = NDArray[np.float64]\n" in MODULES[module].read_text(encoding="utf-8")
    ]
    assert defining == [("_util", "floating_point")]


def test_no_pickle_is_ever_read() -> None:
    offending = []
    for module in MODULES:
        nodes = relevant_nodes(module)
        if {"pickle", "marshal", "shelve", "dill"} & {name.split(".")[0] for name in imported_names(nodes)}:
            offending.append(".".join(module))
        allowed = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "allow_pickle"]
        offending += [f"{'.'.join(module)}:{value.lineno}" for value in allowed if ast.unparse(value) != "False"]
    assert offending == []


def test_benchmarks_use_no_private_attributes() -> None:
    offending = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
        for path in sorted((ROOT / "benchmarks").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]
    assert offending == []
