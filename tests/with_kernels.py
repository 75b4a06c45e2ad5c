"""Run pytest once with each kernel of OpenBLAS that this processor can execute: `python tests/with_kernels.py ARGS`.

Each kernel rounds in its own way, so that a test which passes with all of them does not hang on luck. OpenBLAS takes a
kernel from OPENBLAS_CORETYPE and ignores a name that it does not know in silence; a process therefore asks both
libraries, NumPy's and SciPy's, what they run, and a kernel that one of them does not have is named and left out. A
kernel that the processor cannot execute would end in SIGILL, and is not tried.
"""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# Names, and what /proc/cpuinfo must list for the processor to execute them.
KERNELS = {
    "x86_64": {
        "Prescott": {"pni"},
        "Sandybridge": {"avx"},
        "Haswell": {"avx2", "fma"},
        "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
    },
    "aarch64": {
        "ARMV8": {"asimd"},
        "CORTEXA57": {"asimd"},
        "NEOVERSEN1": {"asimd", "asimddp", "asimdhp", "atomics"},
    },
}
# What a library calls a kernel where that is not its name.
ALIASES = {"prescott": {"prescott", "katmai"}}
PROBE = """
import numpy, scipy.linalg, threadpoolctl
for found in threadpoolctl.threadpool_info():
    if found["user_api"] == "blas":
        print(found["internal_api"], found.get("architecture") or "unknown")
"""


class Turn(NamedTuple):
    """What became of one kernel."""

    kernel: str
    passed: bool
    line: str


def main(arguments: list[str]) -> int:
    """Run pytest with every kernel; 0 if all that were run passed."""
    kernels = KERNELS.get({"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine()), {})
    if not kernels:
        print(f"no kernels are known for {platform.machine()}: run with its own one only")
    turns = [run(kernel, needs, arguments) for kernel, needs in kernels.items()] or [run_pytest("", arguments)]
    print("\n" + "\n".join(f"{turn.kernel or 'its own':12} {turn.line}" for turn in turns))
    return 0 if all(turn.passed for turn in turns) else 1


def run(kernel: str, needs: set[str], arguments: list[str]) -> Turn:
    """One kernel: asked for, looked at, and tested with if it is there."""
    missing = sorted(needs - processor_flags())
    if missing:
        return Turn(kernel, True, f"skipped: the processor has no {', '.join(missing)}")
    known = ALIASES.get(kernel.lower(), {kernel.lower()})
    libraries = blas_libraries(kernel)
    others = [f"{name} {own}" for name, own in libraries if name != "openblas" or own.lower() not in known]
    if others or not libraries:
        return Turn(
            kernel, True, f"skipped: NumPy and SciPy run {' and '.join(others) or 'no BLAS that is known'} instead"
        )
    return run_pytest(kernel, arguments)


def run_pytest(kernel: str, arguments: list[str]) -> Turn:
    """All tests of one kernel; the last line that pytest prints sums them up."""
    print(f"\n{kernel or 'its own kernel'}", flush=True)
    begin, last = time.monotonic(), ""
    command = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment(kernel), stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return Turn(kernel, process.returncode == 0, f"{last} ({time.monotonic() - begin:.0f} s in all)")


def blas_libraries(kernel: str) -> list[tuple[str, str]]:
    """Names and kernels of all BLAS libraries of a process that asks for a kernel."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROBE], env=environment(kernel), capture_output=True, text=True, check=True, timeout=100
    )
    return [(name, architecture) for name, architecture in map(str.split, done.stdout.splitlines())]


def environment(kernel: str) -> dict[str, str]:
    """Of a process with that kernel."""
    return {**os.environ, "OPENBLAS_CORETYPE": kernel} if kernel else dict(os.environ)


def processor_flags() -> set[str]:
    """What the processor can do, as Linux lists it; nothing where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return {
        flag for line in lines if line.lower().startswith(("flags", "features")) for flag in line.split(":")[1].split()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
