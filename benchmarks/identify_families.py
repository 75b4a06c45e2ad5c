"""Four families of systems drawn at random, identified: `python -m benchmarks.identify_families [--count 40] [--seed 49]`.

"slow": slow processes with 2 or 3 inputs and outputs of unequal scales, inputs that are held, disturbances that drift.
"loop": integrating or slightly unstable plants, stabilized by an observer with state feedback.
"short": 5 to 20 output values per parameter. "coloured": coloured noise at 0 to 10 dB.

Judged is the fit to the output without noise on a fresh input, from rest; in the family "loop" the fit of predictions 10
steps ahead on a fresh record. Peers get records without their means and the true order: nfoursid with 10 block rows
(5 for short records), and SLICOT (ctrlsys) with 15 (6). Every system is drawn from (seed, family, number).
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, signal

import ltinet
from benchmarks.identify_monte_carlo import modes, regions_hold, simulated
from benchmarks.peers.subspace import slicot

Array = NDArray[np.float64]
HORIZON = 10
_TOLERATED = 3.0  # points that the chosen order may lose against the true one
_WORSE = 2.0  # points below a peer that are counted


@dataclass(frozen=True, eq=False)
class Case:
    """One system with its record, and fresh samples on which models of it are judged."""

    A: Array
    u: Array
    y: Array
    fresh_u: Array
    fresh_y: Array
    """Outputs without noise; in a closed loop measured outputs."""
    in_loop: bool
    block_rows: tuple[int, int]
    """Of nfoursid and SLICOT."""


def _held(rng: np.random.Generator, n: int, m: int, samples: int) -> Array:
    """Random levels that are held for a number of samples."""
    return np.repeat(rng.standard_normal((-(-n // samples), m)), samples, axis=0)[:n]


def _noise(rng: np.random.Generator, clean: Array, poles: list[float], decibels: float) -> Array:
    """Noise with these poles, each output at the same ratio."""
    noise = rng.standard_normal((len(clean) + 500, clean.shape[1]))
    noise = signal.lfilter([1.0], np.poly(poles), noise, axis=0)[500:]
    return np.asarray(noise * clean.std(axis=0) / noise.std(axis=0) * 10.0 ** (-decibels / 20.0))


def slow(rng: np.random.Generator) -> Case:
    """A slow process with drifts."""
    n, c, N = int(rng.integers(3, 7)), int(rng.integers(2, 4)), 1500
    A = np.diag(np.exp(-1.0 / np.exp(rng.uniform(np.log(5.0), np.log(100.0), n))))
    B, C, D = rng.standard_normal((n, c)), rng.standard_normal((c, n)), np.zeros((c, c))
    B *= (1.0 - A.diagonal())[:, None]
    C *= 10.0 ** rng.uniform(-2.0, 2.0, (c, 1))
    u, fresh = _held(rng, N, c, 20), _held(rng, N, c, 20)
    clean = simulated(A, B, C, D, u)
    y = clean + _noise(rng, clean, [0.998, 0.9], rng.uniform(5.0, 15.0)) + _noise(rng, clean, [], 30.0)
    return Case(A, u, y, fresh, simulated(A, B, C, D, fresh), False, (10, 15))


def loop(rng: np.random.Generator) -> Case:
    """An integrating or slightly unstable plant in a loop."""
    n, N = int(rng.integers(2, 4)), 1000
    first = 1.0 if rng.uniform() < 0.5 else float(rng.uniform(1.0, 1.03))
    A = np.diag([first, *rng.uniform(0.5, 0.9, n - 1)])
    B, C, K = rng.uniform(0.5, 1.5, (n, 1)), rng.uniform(0.5, 1.5, (1, n)), 0.3 * rng.uniform(0.0, 1.0, (n, 1))
    P = linalg.solve_discrete_are(A, B, np.eye(n), 10.0 * np.eye(1))
    F = np.linalg.solve(10.0 * np.eye(1) + B.T @ P @ B, B.T @ P @ A)
    P = linalg.solve_discrete_are(A.T, C.T, K @ K.T, np.eye(1), s=K)
    K = (A @ P @ C.T + K) / (1.0 + C @ P @ C.T)  # the steady Kalman gain, with which the noise is in innovations form
    records = []
    for _ in range(2):
        r, e = _held(rng, N, 1, 5), 0.1 * rng.standard_normal((N, 1))
        u, y, x, observed = np.empty((N, 1)), np.empty((N, 1)), np.zeros(n), np.zeros(n)
        for k in range(N):
            u[k], y[k] = r[k] - F @ observed, C @ x + e[k]
            observed = A @ observed + B @ u[k] + K @ (y[k] - C @ observed)
            x = A @ x + B @ u[k] + K @ e[k]
        records += [u, y]
    u, y, fresh_u, fresh_y = records
    return Case(A, u, y, fresh_u, fresh_y, True, (10, 15))


def short(rng: np.random.Generator) -> Case:
    """A short record."""
    n, m, p = int(rng.integers(2, 6)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    N = max(60, round(rng.uniform(5.0, 20.0) * n * (m + p) / p))
    A = modes(rng, n)
    B, C, D = rng.standard_normal((n, m)), rng.standard_normal((p, n)), np.zeros((p, m))
    u, fresh = rng.standard_normal((N, m)), rng.standard_normal((1000, m))
    clean = simulated(A, B, C, D, u)
    y = clean + _noise(rng, clean, [0.9] if rng.uniform() < 0.5 else [], 20.0)
    return Case(A, u, y, fresh, simulated(A, B, C, D, fresh), False, (5, 6))


def coloured(rng: np.random.Generator) -> Case:
    """Coloured noise of up to the size of the signal."""
    n, m, p, N = int(rng.integers(2, 7)), int(rng.integers(1, 3)), int(rng.integers(1, 3)), 2000
    A = modes(rng, n)
    B, C, D = rng.standard_normal((n, m)), rng.standard_normal((p, n)), np.zeros((p, m))
    u, fresh = rng.standard_normal((N, m)), rng.standard_normal((1000, m))
    clean = simulated(A, B, C, D, u)
    y = clean + _noise(rng, clean, [0.95, 0.5], rng.uniform(0.0, 10.0))
    return Case(A, u, y, fresh, simulated(A, B, C, D, fresh), False, (10, 15))


FAMILIES: dict[str, Callable[[np.random.Generator], Case]] = {
    "slow": slow, "loop": loop, "short": short, "coloured": coloured,
}  # fmt: skip


def drawn(family: str, number: int, *, seed: int) -> Case:
    """Return the case of this family and number, the same on every machine."""
    return FAMILIES[family](np.random.default_rng([seed, list(FAMILIES).index(family), number]))


# Judgement.


def _fit(measured: Array, modelled: Array) -> float:
    """Return the mean of 100 (1 − ‖y − ŷ‖/‖y − mean‖) % over outputs, at least −100 %."""
    with np.errstate(all="ignore"):
        left = np.linalg.norm(measured - modelled, axis=0) / np.linalg.norm(measured - measured.mean(axis=0), axis=0)
        fits = 100.0 * (1.0 - np.where(np.isfinite(left), left, np.inf))
    return float(np.maximum(fits, -100.0).mean())


def _ltinet_fit(case: Case, result: ltinet.IdentificationResult) -> float:
    if case.in_loop:
        return _fit(case.fresh_y, result.predict(case.fresh_u, case.fresh_y, horizon=HORIZON))
    model = result.discrete
    delayed = np.stack(
        [np.roll(u, d) * (np.arange(len(u)) >= d) for u, d in zip(case.fresh_u.T, result.delay, strict=True)], axis=1
    )
    return _fit(case.fresh_y, simulated(model.A, model.B, model.C, model.D, delayed))


def _peer_fit(case: Case, model: tuple[Array, ...], means: tuple[Array, Array]) -> float:
    A, B, C, D, K = model
    if not case.in_loop:
        return _fit(case.fresh_y, simulated(A, B, C, D, case.fresh_u))
    u, y = case.fresh_u - means[0], case.fresh_y - means[1]
    return _fit(y, predicted(A, B, C, D, K, u, y))


def predicted(A: Array, B: Array, C: Array, D: Array, K: Array, u: Array, y: Array) -> Array:
    """Return predictions HORIZON samples ahead, from inputs until then and outputs before."""
    x, outputs = np.zeros(len(A)), np.empty_like(y)
    with np.errstate(all="ignore"):
        for k in range(len(u) - HORIZON + 1):
            ahead = x
            for j in range(k, k + HORIZON - 1):
                if k == 0:
                    outputs[j] = C @ ahead + D @ u[j]
                ahead = A @ ahead + B @ u[j]
            outputs[k + HORIZON - 1] = C @ ahead + D @ u[k + HORIZON - 1]
            x = A @ x + B @ u[k] + K @ (y[k] - C @ x - D @ u[k])
    return outputs


def _nfoursid(u: Array, y: Array, order: int, block_rows: int, in_loop: bool) -> tuple[Array, ...]:  # noqa: ARG001
    import pandas
    from nfoursid.nfoursid import NFourSID

    inputs, outputs = [f"u{j}" for j in range(u.shape[1])], [f"y{i}" for i in range(y.shape[1])]
    table = pandas.DataFrame(np.hstack([u, y]), columns=[*inputs, *outputs])
    method = NFourSID(table, output_columns=outputs, input_columns=inputs, num_block_rows=block_rows)
    method.subspace_identification()
    found, noise = method.system_identification(rank=order)
    p = y.shape[1]
    R, S, Q = noise[:p, :p], noise[p:, :p], noise[p:, p:]
    P = linalg.solve_discrete_are(found.a.T, found.c.T, Q, R, s=S)
    K = np.linalg.solve((R + found.c @ P @ found.c.T).T, (found.a @ P @ found.c.T + S).T).T
    return found.a, found.b, found.c, found.d, K


def _slicot(u: Array, y: Array, order: int, block_rows: int, in_loop: bool) -> tuple[Array, ...]:
    """MOESP, in loops with B, D and K from the data matrices, else with B and D from simulated outputs."""
    m, p = u.shape[1], y.shape[1]
    if not in_loop:
        return *slicot(u, y, order, block_rows), np.zeros((order, p))
    import ctrlsys

    def copies() -> tuple[Array, Array]:  # the library writes into what it is given
        return np.asfortranarray(u.copy()), np.asfortranarray(y.copy())

    r = ctrlsys.ib01ad("M", "C", "N", "O", "N", "N", block_rows, m, p, *copies(), 0.0, -1.0)[1]
    A, C, B, D, _, _, _, K, *_ = ctrlsys.ib01bd("C", "A", "K", block_rows, order, m, p, len(u), r.copy(order="F"), 0.0)
    return A, B, C, D, K


PEERS: dict[str, tuple[str, Callable[..., tuple[Array, ...]]]] = {
    "nfoursid": ("nfoursid", _nfoursid), "SLICOT": ("ctrlsys", _slicot),
}  # fmt: skip


def outcome(family: str, number: int, seed: int, with_peers: bool, with_order: bool) -> dict[str, Any]:
    """Identify one case with the order given and chosen, and by the peers; fits by name, orders and seconds."""
    case = drawn(family, number, seed=seed)
    n = len(case.A)
    row: dict[str, Any] = {"number": number, "order": n}
    begin = time.perf_counter()
    result = ltinet.identify(case.u, case.y, dt=1.0, order=n, delay=0)
    row |= {"given": _ltinet_fit(case, result), "seconds": time.perf_counter() - begin, "method": result.method}
    if case.in_loop:
        try:
            row["held"] = regions_hold(result.pole_uncertainty(), np.linalg.eigvals(case.A).astype(complex))
        except ltinet.InvalidSignalError:
            row["held"] = (False,) * n
    if with_order:
        begin = time.perf_counter()
        result = ltinet.identify(case.u, case.y, dt=1.0)
        row |= {"chosen": _ltinet_fit(case, result), "chosen order": result.order}
        row["chosen seconds"] = time.perf_counter() - begin
    means = case.u.mean(axis=0), case.y.mean(axis=0)
    for (name, (library, identify)), rows in zip(PEERS.items(), case.block_rows, strict=True):
        if with_peers and importlib.util.find_spec(library) is not None:
            try:
                model = identify(case.u - means[0], case.y - means[1], n, rows, case.in_loop)
                row[name] = _peer_fit(case, model, means)
            except (ValueError, RuntimeError, linalg.LinAlgError):
                row[name] = -100.0
    return row


def summary_lines(family: str, rows: list[dict[str, Any]]) -> list[str]:
    """The figures of one family, line by line."""
    given = np.array([row["given"] for row in rows])
    seconds = np.median([row["seconds"] for row in rows])
    lines = [f"{family}: order given, median fit {np.median(given):.2f} %, mean {given.mean():.2f} %, {seconds:.1f} s"]
    for name in PEERS:
        if name in rows[0]:
            difference = given - np.array([row[name] for row in rows])
            worse = 100.0 * np.mean(difference < -_WORSE)
            lines.append(
                f"  less {name:9s} median {np.median(difference):6.2f}, below by more than {_WORSE:g}: {worse:.0f} %"
            )
    if "chosen" in rows[0]:
        chosen = np.array([row["chosen"] for row in rows])
        lost, right = given - chosen, np.mean([row["order"] == row["chosen order"] for row in rows])
        lines.append(
            f"  order chosen: median {np.median(chosen):.2f} %, mean {chosen.mean():.2f} %, "
            f"{np.median([row['chosen seconds'] for row in rows]):.1f} s, right {100.0 * right:.0f} %, "
            f"loses at most {_TOLERATED:g}: {100.0 * np.mean(lost <= _TOLERATED):.0f} %"
        )
        worst = sorted(rows, key=lambda row: row["chosen"] - row["given"])[:4]
        texts = [
            f"{it['number']}: {it['chosen order']} for {it['order']} {it['chosen'] - it['given']:.1f}" for it in worst
        ]
        lines.append(f"    largest losses: {', '.join(texts)}")
    held = [inside for row in rows for inside in row.get("held", ())]
    if held:
        lines.append(f"  poles in their 99 % regions: {100.0 * np.mean(held):.1f} % of {len(held)}")
    return lines


def main() -> None:
    """Draw, identify, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identify_families", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="systems of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first system")
    parser.add_argument("--seed", type=int, default=49, help="another one draws other systems")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--order-given", action="store_true", help="leave out the choice of the order")
    parser.add_argument("--without-peers", action="store_true", help="leave out the peers")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.workers) as pool:
        for family in arguments.families:
            calls = [
                (family, number, arguments.seed, not arguments.without_peers, not arguments.order_given)
                for number in range(arguments.first, arguments.first + arguments.count)
            ]
            rows = list(pool.map(outcome, *zip(*calls, strict=True), chunksize=1))
            print("\n".join(summary_lines(family, rows)), flush=True)
    print(f"seed {arguments.seed}, numbers {arguments.first} to {arguments.first + arguments.count - 1}")


if __name__ == "__main__":
    main()
