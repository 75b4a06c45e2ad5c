"""Compilation of the shared library of an FMU.

The compiler is the one that the user names, or one that is found by name or as the `ziglang` package; platforms are
named as in FMI 3.0.
"""

import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError, MissingDependencyError

_COMPILER_FLAGS = ("-std=c99", "-O2", "-shared", "-fvisibility=hidden", "-ffp-contract=off")
_COMPILER_NAMES = ("cc", "gcc", "clang")
# Platforms by their folders in FMI 3.0; the names of FMI 2.0, where it has one, and the targets of zig.
_FMI2_PLATFORMS = {"x86_64-linux": "linux64", "x86_64-windows": "win64", "x86_64-darwin": "darwin64"}
_TARGETS = {
    "x86_64-linux": "x86_64-linux-gnu",
    "aarch64-linux": "aarch64-linux-gnu",
    "x86_64-windows": "x86_64-windows-gnu",
    "x86_64-darwin": "x86_64-macos",
    "aarch64-darwin": "aarch64-macos",
}
_LIBRARY_SUFFIXES = {"linux": ".so", "windows": ".dll", "darwin": ".dylib"}


def current_platform() -> str:
    """Return the platform of this process as FMI 3.0 names it: "x86_64-linux"."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = "windows" if sys.platform.startswith("win") else "darwin" if sys.platform == "darwin" else "linux"
    return f"{machine}-{system}"


def find_compiler(compiler: str | Sequence[str] | None) -> list[str]:
    """Return the command of the named compiler, or of an installed one; raise `MissingDependencyError` without one."""
    zig = [sys.executable, "-m", "ziglang", "cc"]
    if compiler is None:
        installed = next(filter(shutil.which, _COMPILER_NAMES), None)
        if installed is not None:
            return [installed]
        if find_spec("ziglang") is not None:
            return zig
        raise MissingDependencyError(
            'no C compiler was found; install gcc, clang or ziglang (pip install "ltinet[fmu]"), or name one with '
            'compiler="…"'
        )
    command = [compiler] if isinstance(compiler, str) else list(compiler)
    if command == ["zig"] and find_spec("ziglang") is not None:
        return zig
    if not command or not shutil.which(command[0]):
        raise MissingDependencyError(
            f"the compiler {sanitize(repr(compiler))} was not found; name another, or omit it to use any that is installed"
        )
    return command


def validate_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    """Return the platforms to compile for, this one by default; raise `FileFormatError` for an unknown one."""
    if platforms is None:
        return (current_platform(),)
    for name in platforms:
        if name not in _TARGETS:
            raise FileFormatError(f"platform {sanitize(repr(name))} is unknown; choose from {', '.join(_TARGETS)}")
    return tuple(platforms)


def compile_libraries(
    sources: Mapping[str, str], command: Sequence[str], *, platforms: Sequence[str], identifier: str, old_names: bool
) -> dict[str, bytes]:
    """Return the library of each platform by its path in the archive; raise `FileFormatError` if the compiler fails."""
    libraries = {}
    with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
        directory = Path(folder)
        for name, text in sources.items():
            (directory / name).write_text(text, encoding="utf-8")
        for target in platforms:
            library = directory / f"{identifier}{_LIBRARY_SUFFIXES[target.rpartition('-')[2]]}"
            _compile(command, directory, sources, library, target=target)
            platform_name = _FMI2_PLATFORMS.get(target, target) if old_names else target
            libraries[f"binaries/{platform_name}/{library.name}"] = library.read_bytes()
    return libraries


def _compile(
    command: Sequence[str], directory: Path, sources: Mapping[str, str], library: Path, *, target: str
) -> None:
    system = target.rpartition("-")[2]
    flags = [*_COMPILER_FLAGS, *([] if system == "windows" else ["-fPIC"])]
    if target != current_platform():
        flags += ["-target", _TARGETS[target]]
    inputs = [name for name in sources if name.endswith(".c")]
    ending = [] if system == "windows" else ["-lm"]
    arguments = [*command, *flags, "-o", library.name, *inputs, *ending]
    result = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode or not library.exists():
        line = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip()[:200])
        raise FileFormatError(
            f"{sanitize(' '.join(command))} cannot compile the FMU for {target} ({sanitize(line, longest=200)}); choose "
            'another compiler, such as "zig" for other platforms'
        )
