"""Where rounding takes exported C in many steps: against ball arithmetic, which takes powers of the period instead.

Under an input of period 8 and a zero hold, x after 8 j steps is the last column of M^j with M = [[P⁸, g], [0, 1]], g
what a period adds: a few products of matrices of balls, whatever j is. The truth is that of the system's own matrices.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb_mat, ctx
from numpy.typing import NDArray

import ltinet

Array = NDArray[np.float64]
HERE = Path(__file__).parent
PERIOD = 8
_BITS = 512
_KINDS: dict[str, Any] = {"double": np.float64, "float": np.float32}


def systems() -> dict[str, tuple[ltinet.StateSpace, float]]:
    """Stable ones, lightly damped and stiff, and an integrator beside a slow mode; each with its time step."""
    return {
        "mass_spring_damper": (ltinet.named_system("mass_spring_damper", n_masses=5), 0.05),
        "heat_rod": (ltinet.named_system("heat_rod", n_states=20), 1e-3),
        "integrator": (ltinet.StateSpace(np.diag([0.0, -1e-4]), np.ones((2, 1)), np.eye(2)), 2.0**-7),
    }


def drift(system: ltinet.StateSpace, dt: float, *, dtype: Any, n_steps: int) -> tuple[Array, Array, Array]:
    """The largest error of each output over the last period, its bound for 1e8 steps, and its size."""
    u = _period(system.n_inputs, balanced=bool((system.poles() == 0.0).any()))
    found, bound = _in_c(ltinet.construct(system), dt, dtype, u, n_steps)
    truth = _true(system, dt, u, n_steps)
    return np.abs(found - truth).max(axis=0), bound, np.abs(truth).max(axis=0)


def _period(n_inputs: int, *, balanced: bool) -> Array:
    """Eight samples up to 1 that any precision holds, with a mean of zero where an integrator is to stay."""
    drawn = np.round(64.0 * np.random.default_rng(1).uniform(-1.0, 1.0, (PERIOD // 2, n_inputs))) / 64.0
    return np.concatenate([drawn, -drawn if balanced else drawn**2])


def _in_c(net: ltinet.DynamicNetwork, dt: float, dtype: Any, u: Array, n_steps: int) -> tuple[Array, Array]:
    """Outputs of the last period, and their bounds."""
    with tempfile.TemporaryDirectory() as folder:
        model, library = Path(folder) / "model", Path(folder) / "model.so"
        exported = net.export_c(model, dt, dtype=dtype)
        command = ["gcc", "-std=c99", "-O3", "-ffp-contract=off", "-shared", "-fPIC", f"-I{model}", "-o", str(library)]
        sources = [str(HERE / "many_steps.c"), str(model / "model.c")]
        subprocess.run([*command, *sources], check=True)  # noqa: S603 - a compiler, on files of ours
        y = np.zeros((PERIOD, net.n_outputs), dtype=_KINDS[dtype])
        samples = np.ascontiguousarray(u, dtype=_KINDS[dtype])
        pointers = [ctypes.c_void_p(own.ctypes.data) for own in (samples, y)]
        ctypes.CDLL(str(library)).many_steps(ctypes.c_long(n_steps), *pointers)
    return y.astype(np.float64), np.array(exported.error_bound)


def _true(system: ltinet.StateSpace, dt: float, u: Array, n_steps: int) -> Array:
    """Outputs of the last period."""
    if n_steps % PERIOD:
        raise ValueError(f"{n_steps} steps are no whole number of periods of {PERIOD}")
    with ctx.workprec(_BITS):
        n, m = system.B.shape
        whole = np.zeros((n + m, n + m))
        whole[:n, :n], whole[:n, n:] = system.A, system.B
        step = (_balls(whole) * arb_mat([[dt]])[0, 0]).exp()
        P = arb_mat([[step[i, j] for j in range(n)] for i in range(n)])
        G = arb_mat([[step[i, n + j] for j in range(m)] for i in range(n)])
        pushes = [G * _balls(sample[:, None]) for sample in u]
        x = _column(_power(_one_period(P, pushes), n_steps // PERIOD - 1), n)
        outputs = []
        for sample, push in zip(u, pushes, strict=True):
            y = _balls(system.C) * x + _balls(system.D) * _balls(sample[:, None])
            outputs.append([float(y[i, 0].mid()) for i in range(len(system.C))])
            x = P * x + push
    return np.array(outputs)


def _one_period(P: Any, pushes: list[Any]) -> Any:
    """[[P⁸, g], [0, 1]]."""
    n = P.nrows()
    once, added = _balls(np.eye(n)), _balls(np.zeros((n, 1)))
    for push in pushes:
        once, added = P * once, P * added + push
    rows = [[*(once[i, j] for j in range(n)), added[i, 0]] for i in range(n)]
    return arb_mat([*rows, [0] * n + [1]])


def _power(M: Any, count: int) -> Any:
    result = _balls(np.eye(M.nrows()))
    while count:
        if count & 1:
            result = result * M
        M, count = M * M, count >> 1
    return result


def _column(M: Any, n: int) -> Any:
    return arb_mat([[M[i, n]] for i in range(n)])


def _balls(values: Array) -> Any:
    return arb_mat([[float(value) for value in row] for row in values])
