"""Numbers that tell whether a newcomer finds the way; `make house` prints them.

Lengths are lines from the first to the last, docstrings and comments included. Typed means all parameters and the
return; public names are modules, and classes, functions and members without an underscore in front.
"""

import ast
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ltinet"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class House:
    """What was measured of all files below a folder."""

    file_lengths: dict[str, int]
    function_lengths: dict[str, int]
    untyped: tuple[str, ...]
    n_public: int
    undocumented: tuple[str, ...]
    files_in: dict[str, int]
    """Files directly in each room, without `__init__`."""

    @property
    def documented(self) -> float:
        """Share of public names with a docstring."""
        return 1.0 - len(self.undocumented) / max(self.n_public, 1)

    @property
    def typed(self) -> float:
        """Share of functions with all their types."""
        return 1.0 - len(self.untyped) / max(len(self.function_lengths), 1)

    def __str__(self) -> str:
        files, functions = list(self.file_lengths.values()), list(self.function_lengths.values())
        longest_file = max(self.file_lengths, key=self.file_lengths.__getitem__)
        longest_function = max(self.function_lengths, key=self.function_lengths.__getitem__)
        rows = [
            ("files", f"{len(files)}, directly in solve/ {self.files_in['solve']}"),
            ("lines of a file", f"median {statistics.median(files):g}, longest {max(files)} ({longest_file})"),
            (
                "lines of a function",
                f"90 % up to {percentile(functions, 0.9)}, longest {max(functions)} ({longest_function})",
            ),
            ("functions typed", f"{self.typed:.1%}"),
            ("public docstrings", f"{self.documented:.1%} of {self.n_public}"),
        ]
        return "\n".join(f"{label:<21}{value}" for label, value in rows)


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest of the values that at least this share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def survey(source: Path = SOURCE) -> House:
    """Measure every Python file below a folder."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    untyped: list[str] = []
    public: dict[str, bool] = {}
    for path in sorted(source.rglob("*.py")):
        name, text = str(path.relative_to(source)), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        files[name] = len(text.splitlines())
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                place = f"{name}:{node.lineno} {node.name}"
                functions[place] = (node.end_lineno or node.lineno) - node.lineno + 1
                if not _is_typed(node):
                    untyped.append(place)
        public |= {f"{name} {what}": ast.get_docstring(node) is not None for what, node in _public(tree)}
    undocumented = tuple(what for what, has_docstring in public.items() if not has_docstring)
    return House(files, functions, tuple(untyped), len(public), undocumented, _files_in_rooms(source))


def _is_typed(function: _Function) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    stars = [star for star in (arguments.vararg, arguments.kwarg) if star is not None]
    given = [argument for argument in (*named, *stars) if argument.arg not in ("self", "cls")]
    return function.returns is not None and all(argument.annotation is not None for argument in given)


def _public(tree: ast.Module) -> Iterator[tuple[str, ast.Module | ast.ClassDef | _Function]]:
    yield "(module)", tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef | _Function) and not node.name.startswith("_"):
            yield node.name, node
            for member in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(member, ast.ClassDef | _Function) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member


def _files_in_rooms(source: Path) -> dict[str, int]:
    rooms = [folder for folder in sorted(source.iterdir()) if (folder / "__init__.py").exists()]
    return {room.name: sum(path.name != "__init__.py" for path in room.glob("*.py")) for room in rooms}


if __name__ == "__main__":
    print(survey())
