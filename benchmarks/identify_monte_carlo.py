"""Systems drawn at random, identified: `python -m benchmarks.identify_monte_carlo [--count 200] [--seed 15]`.

Stable systems of order 2 to 8 with 1 to 3 inputs and outputs, modes with |λ| from 0.2 to 0.98, normal B and C, no
direct path, 2,000 samples, 20 and 40 dB, white noise and AR(1) with 0.95 in turn. How much of a system can be seen is
judged by δ = √N · the smallest Hankel value with outputs in units of their noise: a state with a small one is below the
noise, and no method can find it.

Printed are how often the order is right (δ ≥ 10), how often a true pole lies in its 99 % region and the delay is found
(order given, δ ≥ 30), and fits to outputs without noise, beside SLICOT's where ctrlsys is installed.
"""

import argparse
import functools
import importlib.util
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, signal

import ltinet
from benchmarks.peers.subspace import Model, slicot

Array = NDArray[np.float64]
N_SAMPLES = 2000
SEEN, CERTAIN = 10.0, 30.0  # δ from which on the order, and poles and delays, are counted
_MOST_DELAY = 5
_SEED = 15


@dataclass(frozen=True, eq=False)
class Draw:
    """One system with its record."""

    A: Array
    u: Array
    clean: Array
    y: Array
    coloured: bool
    decibels: int
    visibility: float
    """δ."""
    delays: tuple[int, ...]

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.A)

    def delayed(self) -> tuple[Array, Array]:
        """Inputs as they would be measured before their delays, and outputs."""
        longest = max(self.delays)
        end = len(self.u) - longest
        return np.stack([self.u[d : end + d, j] for j, d in enumerate(self.delays)], axis=1), self.y[:end]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one draw."""

    draw: int
    coloured: bool
    decibels: int
    visibility: float
    order: int
    found_order: int | None
    contained: tuple[bool, ...]
    """For each true pole, of pairs both, whether its region holds it; empty where the draw does not count."""
    refined: bool
    fit: float
    slicot_fit: float | None
    delay_right: bool | None


def drawn(number: int, *, seed: int = _SEED) -> Draw:
    """The system of this number: the same on every machine."""
    rng = np.random.default_rng([seed, number])
    n, (m, p) = int(rng.integers(2, 9)), (int(own) for own in rng.integers(1, 4, 2))
    decibels, coloured = (20, 40)[number % 2], bool(number // 2 % 2)
    A = modes(rng, n)
    B, C, u = rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((N_SAMPLES, m))
    clean = simulated(A, B, C, np.zeros((p, m)), u)
    noise = rng.standard_normal((N_SAMPLES + 200, p))
    noise = signal.lfilter([1.0], [1.0, -0.95], noise, axis=0)[200:] if coloured else noise[200:]
    noise *= clean.std(axis=0) / noise.std(axis=0) * 10.0 ** (-decibels / 20.0)
    seen = C / noise.std(axis=0)[:, None]
    gramians = linalg.solve_discrete_lyapunov(A, B @ B.T) @ linalg.solve_discrete_lyapunov(A.T, seen.T @ seen)
    hankel = np.sqrt(np.maximum(np.linalg.eigvals(gramians).real, 0.0))
    delays = tuple(int(own) for own in rng.integers(0, _MOST_DELAY + 1, m))
    visibility = float(np.sqrt(N_SAMPLES) * hankel.min())
    return Draw(A, u, clean, clean + noise, coloured, decibels, visibility, delays)


def modes(rng: np.random.Generator, n: int) -> Array:
    """A stable A of order n with modes 0.2 ≤ |λ| ≤ 0.98, pairs as rotations."""
    n_pairs = int(rng.integers(0, n // 2 + 1))
    blocks = []
    for _ in range(n_pairs):
        size, angle = rng.uniform(0.2, 0.98), rng.uniform(0.05, np.pi - 0.05)
        re, im = size * np.cos(angle), size * np.sin(angle)
        blocks.append(np.array([[re, -im], [im, re]]))
    blocks += [np.array([[value]]) for value in rng.uniform(0.2, 0.98, n - 2 * n_pairs)]
    return np.asarray(linalg.block_diag(*blocks))


def simulated(A: Array, B: Array, C: Array, D: Array, u: Array, x0: Array | None = None) -> Array:
    """Outputs sample by sample, as the difference equation says."""
    x = np.zeros(len(A)) if x0 is None else x0
    y = np.empty((len(u), len(C)))
    for k, now in enumerate(u):
        y[k] = C @ x + D @ now
        x = A @ x + B @ now
    return y


def outcome(number: int, *, seed: int = _SEED, with_order: bool = True) -> Outcome:
    """One draw, identified with the order given, with none, and with delays."""
    own = drawn(number, seed=seed)
    found = ltinet.identify(own.u, own.y, dt=1.0, order=own.order, delay=0)
    contained: tuple[bool, ...] = ()
    delay_right = None
    if own.visibility >= CERTAIN:
        contained = regions_hold(found.pole_uncertainty(), np.linalg.eigvals(own.A).astype(np.complex128))
        u, y = own.delayed()
        delay_right = ltinet.identify(u, y, dt=1.0, order=own.order, refine=False).delay == own.delays
    chosen = ltinet.identify(own.u, own.y, dt=1.0).order if with_order and own.visibility >= SEEN else None
    slicot = _slicot_fit(own)
    return Outcome(
        number,
        own.coloured,
        own.decibels,
        own.visibility,
        own.order,
        chosen,
        contained,
        found.refined,
        float(found.fit(own.u, own.clean).mean()),
        slicot,
        delay_right,
    )


def regions_hold(confidences: Sequence[ltinet.PoleUncertainty], sampled: NDArray[np.complex128]) -> tuple[bool, ...]:
    """Whether each true pole lies in the region of the pole that belongs to it in the closest assignment of all."""
    both = [*confidences, *(own for own in confidences if own.is_pair)]
    found = np.array([own.pole for own in confidences] + [own.pole.conjugate() for own in confidences if own.is_pair])
    true = np.log(sampled)
    rows, columns = optimize.linear_sum_assignment(np.abs(np.exp(true)[:, None] - np.exp(found)))
    held = np.zeros(len(true), dtype=bool)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        held[row] = both[column].contains(complex(true[row]))
    return tuple(bool(own) for own in held)


def _slicot_fit(own: Draw) -> float | None:
    """MOESP of SLICOT with 15 block rows, on records without their means."""
    if importlib.util.find_spec("ctrlsys") is None:
        return None
    means = own.u.mean(axis=0), own.y.mean(axis=0)
    found = slicot(own.u - means[0], own.y - means[1], own.order, 15)
    return clean_fit(found, own.u - means[0], own.clean - means[1])


def clean_fit(model: Model, u: Array, clean: Array) -> float:
    """Mean of 100 (1 − ‖y − ŷ‖/‖y − mean‖) % over outputs without noise, states at the first sample fitted."""
    A, B, C, D = model
    free = np.stack([simulated(A, B, C, D, np.zeros_like(u), x0).ravel() for x0 in np.eye(len(A))], axis=1)
    left = (clean - simulated(A, B, C, D, u)).ravel()
    left -= free @ np.linalg.lstsq(free, left, rcond=None)[0]
    spread = np.linalg.norm(clean - clean.mean(axis=0), axis=0)
    return float(100.0 * (1.0 - np.linalg.norm(left.reshape(clean.shape), axis=0) / spread).mean())


def _share(values: Sequence[bool]) -> str:
    return f"{100.0 * np.mean(values):5.1f} % of {len(values)}" if values else "none drawn"


def summary_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The figures, line by line."""
    chosen = [own for own in outcomes if own.found_order is not None]
    lines = [f"order right, δ ≥ {SEEN:g}                {_share([own.found_order == own.order for own in chosen])}"]
    wrong = [f"{own.draw}: {own.found_order} for {own.order}" for own in chosen if own.found_order != own.order]
    if wrong:
        lines.append(f"  draws with another order        {', '.join(wrong)}")
    for coloured, decibels in itertools.product((False, True), (20, 40)):
        held = [h for o in outcomes if (o.coloured, o.decibels) == (coloured, decibels) for h in o.contained]
        lines.append(f"poles in their 99 % regions       {_share(held)}, {_noise(coloured)}, {decibels} dB")
    for coloured in (False, True):
        held = [h for own in outcomes if own.coloured == coloured for h in own.contained]
        lines.append(f"  together                        {_share(held)}, {_noise(coloured)}")
    for decibels in (20, 40):
        those = [own for own in outcomes if own.decibels == decibels]
        line = f"median fit to the clean output    {np.median([own.fit for own in those]):.3f} % at {decibels} dB"
        peer = [own.slicot_fit for own in those if own.slicot_fit is not None]
        lines.append(line + (f", SLICOT {np.median(peer):.3f} %" if peer else ", ctrlsys is not installed"))
    delays = [own.delay_right for own in outcomes if own.delay_right is not None]
    lines.append(f"delays of all inputs, δ ≥ {CERTAIN:g}       {_share(delays)}")
    return [*lines, f"refined                           {_share([own.refined for own in outcomes])}"]


def _noise(coloured: bool) -> str:
    return "AR(1) noise" if coloured else "white noise"


def main() -> None:
    """Draw, identify, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identify_monte_carlo", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="systems")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--order-given", action="store_true", help="leave out the choice of the order, most of the time"
    )
    parser.add_argument("--seed", type=int, default=_SEED, help="another one draws other systems")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    one = functools.partial(outcome, seed=arguments.seed, with_order=not arguments.order_given)
    with ProcessPoolExecutor(arguments.workers) as pool:
        outcomes = list(pool.map(one, range(arguments.count), chunksize=1))
    print("\n".join(summary_lines(outcomes)))
    print(f"{arguments.count} systems in {time.perf_counter() - begin:.0f} s, seed {arguments.seed}")


if __name__ == "__main__":
    main()
