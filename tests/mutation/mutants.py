"""Faults drawn at random in Python source: one changed expression or statement each.

The kinds are those of mutation testing (DeMillo, Lipton & Sayward 1978): a comparison flipped, a sign changed, a
constant nudged, a branch dropped, a statement deleted.
"""

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
KINDS = ("comparison", "sign", "constant", "branch", "deletion")


@dataclass(frozen=True)
class Mutant:
    """One fault: `source` is the text of the module with it; `on_import` if the line is outside of functions."""

    path: Path
    line: int
    kind: str
    before: str
    after: str
    source: str
    on_import: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.before} → {self.after}"


def draw(paths: list[Path], covered: dict[Path, set[int]], *, count: int, seed: int) -> list[Mutant]:
    """Draw `count` mutants of covered lines, kinds in turn and sites of a kind with equal probability."""
    rng = random.Random(seed)  # noqa: S311
    sites: dict[str, list[tuple[Path, int]]] = {kind: [] for kind in KINDS}
    for path in paths:
        for number, (kind, node, _) in enumerate(_sites(ast.parse(path.read_text(encoding="utf-8")))):
            if node.lineno in covered.get(path, set()):
                sites[kind].append((path, number))
    for places in sites.values():
        rng.shuffle(places)
    mutants: list[Mutant] = []
    while len(mutants) < count and any(sites.values()):
        for kind in KINDS:
            if sites[kind] and len(mutants) < count:
                mutants.append(_mutant(*sites[kind].pop()))
    return mutants


def _mutant(path: Path, number: int) -> Mutant:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    kind, node, replacement = list(_sites(tree))[number]
    before, after = ast.get_source_segment(text, node) or "", ast.unparse(replacement)
    lines = text.encode().splitlines(keepends=True)  # columns of the syntax tree count bytes
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    if isinstance(node, ast.expr):
        after = f"({after})"
    elif isinstance(replacement, ast.If):  # a statement of several lines: indented like the first
        after = after.replace("\n", "\n" + " " * node.col_offset)
    source = b"".join([*lines[:first], head, after.encode(), tail, *lines[last + 1 :]]).decode()
    bodies = [
        range(own.body[0].lineno, (own.end_lineno or own.lineno) + 1)
        for own in ast.walk(tree)
        if isinstance(own, ast.FunctionDef)
    ]
    on_import = not any(node.lineno in body for body in bodies)
    before, after = (" ".join(part.split())[:80] for part in (before, after))
    return Mutant(path, node.lineno, kind, before, after, source, on_import)


def _sites(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Give all (kind, node, replacement) of a module in a fixed order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            flipped = COMPARISONS[type(node.ops[0])]()
            yield "comparison", node, ast.Compare(node.left, [flipped], node.comparators)
        elif isinstance(node, ast.BinOp) and type(node.op) in SIGNS and not _is_text_or_type(node):
            yield "sign", node, ast.BinOp(node.left, SIGNS[type(node.op)](), node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield "sign", node, node.operand
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield "constant", node, ast.Constant(_nudged(node.value))
        elif isinstance(node, ast.If) and not _guards_types(node):
            yield "branch", node, ast.If(ast.Constant(False), node.body, node.orelse)
        elif isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) and not _is_declaration(node):
            yield "deletion", node, ast.Pass()


def _nudged(value: float) -> float:
    return value + 1 if isinstance(value, int) else 1.5 * value if value else 1.0


def _is_text_or_type(node: ast.BinOp) -> bool:
    """Texts that are joined, and types."""
    return any(isinstance(part, ast.JoinedStr | ast.Constant) and not isinstance(getattr(part, "value", 0), int | float)
               for part in (node.left, node.right))  # fmt: skip


def _guards_types(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _is_declaration(node: ast.stmt) -> bool:
    """Docstrings and names of a module's public parts."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
