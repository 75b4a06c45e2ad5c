"""Runs of exported C: many models compiled into one library, and the runs that they are compared with."""

import ctypes
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ltinet
from ball_oracle import respond
from ltinet.simulation.time_blocks import outputs_from_states

Array = NDArray[np.float64]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-ffp-contract=off")
AS_CXX = ("-x", "c++", "-std=c++17", *STRICT[1:])

_DRIVER = """
#include "{prefix}.h"
void {prefix}_run(int count, const {prefix}_real *u, {prefix}_real *y);
void {prefix}_run(int count, const {prefix}_real *u, {prefix}_real *y)
{{
    {prefix}_state state;
    int k;
    {prefix}_init(&state);
    for (k = 0; k < count; k++) {{
        {prefix}_step(&state, u + k * {upper}_INPUTS, y + k * {upper}_OUTPUTS);
    }}
}}
"""


def compilers() -> dict[str, list[str]]:
    """The compilers that are here, by name, as the beginning of a command."""
    found = {name: [name] for name in ("gcc", "clang") if shutil.which(name)}
    if not found and find_spec("ziglang") is not None:  # it first builds a C library, for minutes
        found["zig"] = [sys.executable, "-m", "ziglang", "cc"]
    return found


def any_compiler() -> list[str]:
    """One of them, the fastest first; without any the test is skipped."""
    found = compilers()
    if not found:
        pytest.skip("no C compiler is here: neither gcc nor clang nor the package ziglang")
    return next(iter(found.values()))


def compiled(command: Sequence[str], arguments: Iterable[object]) -> None:
    """Run a compiler; what it says is the message of a failure."""
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr[:4000]


@dataclass
class Library:
    """Models of one folder each, whose prefix is the name of the folder, compiled together."""

    loaded: ctypes.CDLL

    def run(self, prefix: str, u: Array, n_outputs: int, *, dtype: str = "double") -> Array:
        """Outputs `(T, p)` of a model for inputs `(T, m)`."""
        kind: Any = np.float64 if dtype == "double" else np.float32
        samples, y = np.ascontiguousarray(u, dtype=kind), np.zeros((len(u), n_outputs), dtype=kind)
        getattr(self.loaded, f"{prefix}_run")(len(u), *(ctypes.c_void_p(own.ctypes.data) for own in (samples, y)))
        return y.astype(np.float64)


def library_of(folders: Sequence[Path], place: Path) -> Library:
    """Compile exported models into one library."""
    sources = []
    for folder in folders:
        driver = place / f"run_{folder.name}.c"
        driver.write_text(_DRIVER.format(prefix=folder.name, upper=folder.name.upper()))
        sources += [driver, *(own for own in sorted(folder.glob("*.c")) if not own.stem.endswith("_test"))]
    target = place / f"models{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
    includes = [f"-I{folder}" for folder in folders]
    compiled(any_compiler(), [*STRICT, "-O0", "-fPIC", "-shared", *includes, "-o", target, *sources])
    return Library(ctypes.CDLL(str(target)))


@dataclass(frozen=True, eq=False)
class Run:
    """A network, a step, inputs and a start."""

    net: ltinet.DynamicNetwork
    dt: float
    hold: Any
    u: Array
    x0: Array | None

    @property
    def options(self) -> dict[str, Any]:
        """What exporters and steppers are told."""
        return {"dt": self.dt, "hold": self.hold, "x0": self.x0}

    def simulated(self) -> Array:
        """What simulate gives."""
        return self.net.simulate(
            self.u, self.dt * np.arange(len(self.u)), hold=self.hold, x0=self.x0, coordinates="blocks"
        ).y

    def stepped(self) -> Array:
        """What the stepper gives, sample by sample."""
        stepper = self.net.stepper(**self.options)
        return np.array([stepper.step(sample) for sample in self.u])


def share_of_peak(y: Array, reference: Array) -> float:
    """The largest difference over the peak of that output, of the worst output."""
    peak = np.abs(reference).max(axis=0, initial=0.0)
    off = np.abs(y - reference).max(axis=0, initial=0.0)
    return float(
        np.max(np.where(off == 0.0, 0.0, off / np.where(peak == 0.0, np.finfo(float).tiny, peak)), initial=0.0)
    )


def assert_same_run(y: Array, run: Run, *, name: str) -> None:
    """Twelve digits of the peak, or ten times what single steps in blocks are off; else the truth decides."""
    expected = run.simulated()
    off = share_of_peak(y, expected)
    if off <= 1e-12 or off <= 10.0 * share_of_peak(_in_single_steps(run), expected):
        return
    system, t = run.net.system, run.dt * np.arange(len(run.u))
    assert system is not None
    truth = respond(system.A, system.B, system.C, system.D, u=run.u, t=t, hold=run.hold, x0=run.x0).y.mid
    ours, theirs = share_of_peak(y, truth), share_of_peak(expected, truth)
    assert ours <= theirs, f"{name}: {off:.2e} from simulate, {ours:.2e} from the truth, simulate {theirs:.2e} from it"


def _in_single_steps(run: Run) -> Array:
    """Outputs of steps in block coordinates, one after the other, as exports take them."""
    prepared = run.net._context
    grid = prepared.grids.single(run.dt, linear=run.hold == "linear")
    start = prepared.system.packed_from_blocks(prepared.initial_state(run.x0, ()))
    return np.asarray(outputs_from_states(grid, start, run.u[None], threads=1)[0])


@cache
def _data_set(path: Path) -> ltinet.DynamicNetwork:
    extra = {"C": np.eye(28)} if path.stem == "helicopter_v73" else {}
    return ltinet.construct(ltinet.load_system(path, **extra))


def data_set_runs(data_dir: Path, names: Iterable[str], *, n_steps: int) -> dict[str, Run]:
    """Both holds, from rest and from x0, of each system; the step is a power of two, so that times are exact."""
    runs = {}
    for place, name in enumerate(names):
        net = _data_set(data_dir / f"{name}.mat")
        rng = np.random.default_rng(place)
        fastest = np.abs(net.poles()).max()
        dt = float(2.0 ** np.round(np.log2(0.3 / fastest)))
        grows = max(0.0, float(net.poles().real.max())) * dt * n_steps
        u = rng.standard_normal((n_steps if grows < 200.0 else int(n_steps * 200.0 / grows), net.n_inputs))
        for hold in ("zero", "linear"):
            for x0 in (None, rng.standard_normal(net.n_states)):
                runs[f"{name}_{hold}_{'rest' if x0 is None else 'x0'}"] = Run(net, dt, hold, u, x0)
    return runs


@cache
def _hostile(name: str) -> ltinet.DynamicNetwork:
    from hostile.draw import draw

    case = draw(name)
    return ltinet.construct(ltinet.StateSpace(case.A, case.B, case.C, case.D, case.E))


def hostile_runs(numbers: Iterable[int], *, n_steps: int) -> dict[str, Run]:
    """Systems of the hostile families in turn; those that grow run as long as they were drawn for."""
    from hostile.draw import draw
    from hostile.families import FAMILIES

    runs = {}
    for number in numbers:
        family = list(FAMILIES)[number % len(FAMILIES)]
        case = draw(f"18/{family}/{number}")
        net = _hostile(case.name)
        dt = float(2.0 ** np.round(np.log2((case.t[-1] - case.t[0]) / (len(case.t) - 1))))
        grows = max(0.0, float(net.poles().real.max(initial=0.0))) * dt
        count = n_steps if grows * n_steps < 40.0 else max(2, int(40.0 / grows))
        x0 = None if case.x0 is None else case.x0.reshape(-1, len(case.A))[0]
        u = np.random.default_rng(number).standard_normal((count, net.n_inputs))
        runs[f"{family}_{number}"] = Run(net, dt, case.hold, u, x0)
    return runs
