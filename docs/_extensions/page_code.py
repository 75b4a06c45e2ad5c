"""The code of a page: found in its fences and run in order, for the tests and for the pictures that a page shows.

A page is one program. Its `python` blocks share a namespace and a folder, and its `console` blocks are commands in that
folder, each line after `$`. What they print stands below: in a `text` block after Python, between the commands in a
console. Blocks of any other kind, `sh` for example, are shown only. A comment `% needs NAME, NAME` above a block says
that it runs only where these libraries or programs are installed.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
_FENCE = re.compile(
    r"(?:^% needs (?P<needs>[\w, -]+)\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fence of a page, and what the page says that it prints (None where it says nothing)."""

    page: Path
    line: int
    kind: str
    text: str
    needs: str | None
    shown: str | None

    @property
    def can_run(self) -> bool:
        """Whether the libraries and the programs that it needs are here."""
        needs = [] if self.needs is None else self.needs.split(", ")
        return all(shutil.which(name) is not None or _is_installed(name) for name in needs)


def _is_installed(library: str) -> bool:
    return library.isidentifier() and find_spec(library) is not None


def read_blocks(page: Path) -> list[Block]:
    """Everything that runs on a page, in its order; each command of a console on its own."""
    source = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(source))
    blocks: list[Block] = []
    for fence, after in zip_longest(fences, fences[1:]):
        first = source.count("\n", 0, fence.start("text")) + 1
        if fence["kind"] == "python":
            follows = after is not None and after["kind"] == "text" and not source[fence.end() : after.start()].strip()
            shown = after["text"] if after is not None and follows else None
            blocks.append(Block(page, first, "python", fence["text"], fence["needs"], shown))
        elif fence["kind"] == "console":
            blocks.extend(
                Block(page, first + offset, "console", command, fence["needs"], shown)
                for offset, command, shown in _commands(fence["text"])
            )
    return blocks


def run_page(page: Path, folder: Path) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in a folder, one after the other; gives each with what it printed."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in read_blocks(page):
        if block.can_run:
            yield block, run_block(block, namespace, folder=folder)


def run_block(block: Block, namespace: dict[str, Any], *, folder: Path) -> str:
    """Run one block and return what it printed; a command that ends with an exit code other than 0 is an error."""
    if block.kind == "console":
        return _run_command(block.text, folder)
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")  # tracebacks show lines of the page
    with chdir(folder), redirect_stdout(printed):
        exec(code, namespace)  # noqa: S102 - the pages are ours
    return printed.getvalue()


def _commands(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, command and expected output of each command of a console."""
    lines = text.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield start, lines[start][2:].strip(), "".join(lines[start + 1 : stop])


def _run_command(command: str, folder: Path) -> str:
    """Run a command line as a shell would, with the ltinet of this interpreter."""
    programs = folder / ".programs"
    program = programs / "ltinet"
    if not program.exists():
        programs.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ltinet "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(  # noqa: S602
        command, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command} ended with exit code {done.returncode}: {done.stderr}")
    return done.stdout
