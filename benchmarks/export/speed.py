"""Time of one step in C: exported, dense by rows and by columns, and modal code written by hand.

All are compiled with the same flags and measured by turns, in processor time, the least of many rounds.
"""

import subprocess
import tempfile
from pathlib import Path

import ltinet

HERE = Path(__file__).parent
FLAGS = ("-std=c99", "-O3", "-ffp-contract=off")
VARIANTS = {
    "exported": ("exported.c",),
    "dense by rows": ("dense.c", "-DBY_ROWS"),
    "dense by columns": ("dense.c",),
    "modal by hand": ("modal.c",),
    "modal, tuned": ("modal.c", "-DTUNED"),
}
DT = 0.01


def nanoseconds(net: ltinet.DynamicNetwork, *, compiler: str = "gcc", turns: int = 3) -> dict[str, float]:
    """Per step, of every variant."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        net.export_c(model, DT)
        commands = {name: _built(net, model, *own, compiler=compiler) for name, own in VARIANTS.items()}
        found = {name: [_measured(path)] for name, path in commands.items()}
        for _ in range(turns - 1):
            for name, path in commands.items():
                found[name].append(_measured(path))
    return {name: min(own) for name, own in found.items()}


def ratios(times: dict[str, float]) -> tuple[float, float]:
    """How many times faster than the faster dense step, and how many times the time of the faster modal code."""
    dense = min(times["dense by rows"], times["dense by columns"])
    modal = min(times["modal by hand"], times["modal, tuned"])
    return dense / times["exported"], times["exported"] / modal


def _built(net: ltinet.DynamicNetwork, model: Path, source: str, *flags: str, compiler: str) -> Path:
    target = model.parent / f"{source.removesuffix('.c')}{len(flags)}"
    n = net.n_states
    counts = {"STATES": n, "INPUTS": net.n_inputs, "OUTPUTS": net.n_outputs, "STEPS": max(2000, 4_000_000 // n**2)}
    sizes = [f"-DMEASURED_{name}={count}" for name, count in counts.items()]
    exported = [str(model / "model.c"), f"-I{model}"] if source == "exported.c" else []
    files = [str(HERE / "clock.c"), str(HERE / source), *exported]
    command = [compiler, *FLAGS, *sizes, *flags, f"-I{HERE}", "-o", str(target), *files]
    subprocess.run(command, check=True)  # noqa: S603 - a compiler, on files of ours
    return target


def _measured(program: Path) -> float:
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)  # noqa: S603 - built above
    return float(done.stdout.split()[0])
