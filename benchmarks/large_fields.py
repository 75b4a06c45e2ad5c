"""Responses and fields of a large heat plate: `python -m benchmarks.large_fields [--edge 224]`.

The plate of 224 × 224 points has 50,176 unknowns. Printed are the seconds that pass, without and with the reduction that
the first response takes, and when progress was first shown. Fields are compared with the exact solution by sine transforms,
in which the plate is diagonal, for twenty random inputs: noise, steps and smooth ones.
"""

import argparse
import contextlib
import io
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
from numpy.typing import NDArray
from scipy import fft

import ltinet

Array = NDArray[np.float64]
N_STEPS = 100_000
N_INPUTS = 20
ORACLE_STEPS = 100  # of the comparison with the exact solution
ORACLE = 1e-12  # its relative error: rounding of sums over thousands of sines


def main() -> None:
    """Print seconds of each response, and errors of fields as shares of their bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_fields", description=__doc__)
    parser.add_argument("--edge", type=int, default=224, help="points along an edge of the plate")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="of the reduction whose field is lifted")
    arguments = parser.parse_args()
    n = arguments.edge**2
    print(f"heat plate of {n:,} unknowns, 2 inputs, 2 outputs")
    responses(n, arguments.tolerance)
    fields(n, arguments.tolerance)


def responses(n: int, tolerance: float) -> None:
    """Time each response of a plate of which nothing is known yet, and then again."""
    system = ltinet.named_system("heat_plate", n=n)
    t = np.linspace(0.0, 2.0, N_STEPS + 1)
    u = np.random.default_rng(0).standard_normal((len(t), 2))
    edge = round(n**0.5)
    dofs = [0, (edge // 2) * (edge + 1), n - 1]

    def field(progress: Any) -> None:
        red = ltinet.reduce(system, tolerance=tolerance, progress=progress)
        print(f"    {red.order} states; proven relative error {red.error_bound / red.gain:.1e}")  # type: ignore[operator]
        red.lift(red.net.simulate(u, t, hold="zero"), dofs, progress=progress)

    runs: dict[str, Callable[[ltinet.StateSpace], object]] = {
        "Bode plot": lambda fresh: fresh.plot.bode(),
        "step response": lambda fresh: fresh.step_response(progress=True).y,
        f"simulation, {N_STEPS:,} steps": lambda fresh: fresh.simulate(u, t, hold="zero", progress=True).y,
    }
    print(f"{'':44} {'first, s':>9} {'again, s':>9} {'progress after, s':>18}")
    for name, run in runs.items():
        fresh = ltinet.StateSpace(system.sparse.A, system.sparse.B, system.C)  # type: ignore[union-attr]
        first, shown = timed(lambda fresh=fresh, run=run: run(fresh))  # type: ignore[misc]
        again, _ = timed(lambda fresh=fresh, run=run: run(fresh))  # type: ignore[misc]
        print(f"{name:44} {first:9.2f} {again:9.2f} {shown:>18}", flush=True)
    first, shown = timed(lambda: field(True))
    print(f"{f'reduction, field at 3 dofs, {N_STEPS:,} steps':44} {first:9.2f} {'':9} {shown:>18}", flush=True)


class Terminal(io.StringIO):
    """Error stream that passes for a terminal and notes when the first character arrives."""

    first: float | None = None

    def isatty(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Note the time of the first text."""
        self.first = time.perf_counter() if self.first is None else self.first
        return super().write(text)


def timed(run: Callable[[], object]) -> tuple[float, str]:
    """Return the seconds that a run takes, and those until progress was shown on a terminal."""
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal):
        start = time.perf_counter()
        run()
        seconds = time.perf_counter() - start
    return seconds, "–" if terminal.first is None else f"{terminal.first - start:.2f}"


def random_inputs(t: Array, n_channels: int, seed: int) -> dict[str, Array]:
    """Return held inputs `(20, T, n_channels)`, by kind: 7 of white noise, 7 of random steps, 6 smooth ones."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((7, len(t), n_channels))
    times = rng.uniform(t[0], t[-1], (7, 1, n_channels, 4))
    steps = ((t[:, None, None] >= times) * rng.standard_normal((7, 1, n_channels, 4))).sum(-1)
    frequencies, phases = rng.uniform(1.0, 20.0, (2, 6, 1, n_channels, 3))
    amplitudes = rng.standard_normal((6, 1, n_channels, 3)) * np.sin(0.5 * np.pi * t / t[-1])[:, None, None] ** 2
    smooth = (amplitudes * np.sin(frequencies * t[:, None, None] + phases)).sum(-1)
    return {"noise": noise, "steps": steps, "smooth": smooth}


def fields(n: int, tolerance: float) -> None:
    """Print the largest error of lifted fields as a share of its bound, and the bound as a share of the field."""
    system = ltinet.named_system("heat_plate", n=n)
    red = ltinet.reduce(system, tolerance=tolerance)
    edge = round(n**0.5)
    B = transform(system.sparse.B.T, edge)  # type: ignore[union-attr]
    sines = 4.0 * (edge + 1) ** 2 * np.sin(0.5 * np.pi * np.arange(1, edge + 1) / (edge + 1)) ** 2
    rates = np.add.outer(sines, sines)
    t = np.linspace(0.0, 0.1, ORACLE_STEPS + 1)
    decay, gain = np.exp(-rates * t[1]), -np.expm1(-rates * t[1]) / rates
    print(f"lifted fields, {ORACLE_STEPS} steps: the worst of all times, points and inputs")
    print(
        f"{'inputs':10} {'energy error/bound':>20} {'point error/bound':>20} {'bound/field':>14} {'point bound/field':>20}"
    )
    for kind, u in random_inputs(t, 2, seed=5).items():
        field = red.lift(red.net.simulate(u, t, hold="zero"))
        assert field.error_bound is not None  # A is symmetric
        transformed = np.zeros((len(u), edge, edge))
        shares = np.zeros(4)
        largest = np.zeros(len(u))
        for step in range(ORACLE_STEPS):
            transformed = decay * transformed + gain * np.einsum("bm,mij->bij", u[:, step], B)
            x = transform(transformed, edge)
            error, bound = x - field.x[:, step + 1], field.energy_error[:, step + 1]
            noise = ORACLE * np.abs(x).max()
            largest = np.maximum(largest, np.linalg.norm(x, axis=1))
            shares[0] = max(shares[0], largest_share(np.linalg.norm(error, axis=1) - edge * noise, bound))
            shares[1] = max(shares[1], largest_share(np.abs(error) - noise, field.error_bound[:, step + 1]))
        shares[2] = (field.energy_error.max(axis=1) / largest).max()
        shares[3] = (field.error_bound.max(axis=(1, 2)) / np.abs(field.x).max(axis=(1, 2))).max()
        print(
            f"{f'{len(u)} {kind}':10} {shares[0]:20.2e} {shares[1]:20.2e} {shares[2]:14.1e} {shares[3]:20.1e}",
            flush=True,
        )


def transform(values: Array, edge: int) -> Array:
    """Return the orthonormal sine transform of fields `(B, n)` or its inverse of `(B, edge, edge)`, whichever is given."""
    transformed: Array = fft.dstn(values.reshape(-1, edge, edge), type=1, norm="ortho", axes=(1, 2))
    return transformed if values.ndim == 2 else transformed.reshape(len(values), -1)


def largest_share(errors: Array, bounds: Array) -> float:
    """Return the largest error/bound; errors that are not positive are rounding errors of the oracle."""
    exceeding = errors > 0.0
    with np.errstate(divide="ignore"):
        return float(np.max(errors[exceeding] / bounds[exceeding], initial=0.0))


if __name__ == "__main__":
    main()
