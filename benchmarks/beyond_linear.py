"""Models with products beside LSODA with knots honoured, one exponential per step, SciPy's solvers and diffrax.

    python -m benchmarks.beyond_linear [--rounds 3] [--quick] [--output FILE]

All times are wall times of one process, in one run, the best of some rounds, with losses included. Every method runs with a
series of tolerances; the time is that of the first that reaches the target error of 1e-6 of the largest value, against
this library's collocation with a tolerance of 1e-11 (zero hold: exponentials of SciPy). LSODA runs from knot to knot on the
dense equations, with a banded Jacobian where the model has one. diffrax is used if it is installed.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.integrate import solve_ivp

import ltinet

Array = NDArray[np.float64]
TARGET = 1e-6
_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
_SLOWEST = 120.0  # seconds for one run; slower ones are not repeated


class Row(NamedTuple):
    """Time and error of one method on one problem."""

    problem: str
    method: str
    seconds: float
    error: float
    note: str = ""


class Case(NamedTuple):
    """Model, its dense right-hand side for other solvers, and the half-bandwidths of its Jacobian."""

    name: str
    model: Any
    duration: float
    inputs: int
    bands: tuple[int, int] | None


def cases(*, quick: bool) -> list[Case]:
    """Return the three problems of the sampled inputs: Burgers 100, LPV 20 and heat 100."""
    n = 30 if quick else 100
    side = 5 if quick else 10
    return [
        Case(f"Burgers {n}", ltinet.named_system("burgers", n_states=n), 4.0, 1, (1, 1)),
        Case("LPV 20", lpv_chain(), 20.0, 1, None),
        Case(f"heat {side**2}", ltinet.named_system("boundary_heat", points=side), 1.0, 3, (side, side)),
    ]


def lpv_chain(n: int = 10) -> Any:
    """Return ten masses whose odd springs and whose dampers are scheduled."""

    def chain(gaps: Any) -> Any:
        return np.diag(gaps) + np.diag(np.append(gaps[1:], 0.0)) - np.diag(gaps[1:], 1) - np.diag(gaps[1:], -1)

    zero, identity, ones = np.zeros((n, n)), np.eye(n), np.ones(n)
    A = np.block([[zero, identity], [-chain(4.0 * ones), -chain(0.1 * ones)]])
    springs = np.block([[zero, zero], [-chain(2.0 * (np.arange(n) % 2)), zero]])
    dampers = np.block([[zero, zero], [zero, -chain(0.08 * ones)]])
    return ltinet.LPV(A, np.eye(2 * n, 1, -n), np.eye(2 * n), A_p=[springs, dampers])


def random_walks(n_samples: int, channels: int, seed: int = 1) -> Array:
    """Return samples of random walks within [−1, 1] that begin at zero."""
    walks = np.cumsum(np.random.default_rng(seed).normal(size=(n_samples, channels)), axis=0)
    walks /= np.abs(walks).max(axis=0)
    walks[0] = 0.0
    return np.asarray(walks)


def signals_of(case: Case, n_samples: int) -> tuple[Array, Array | None]:
    """Return inputs and scheduling signals of a case."""
    walks = random_walks(n_samples, max(case.inputs, 3))
    if case.model.n_scheduling:
        return walks[:, 2:3], walks[:, :2]
    scale = np.array([3.0, 3.0, 1.0]) if case.inputs == 3 else np.ones(1)
    return np.abs(walks[:, : case.inputs]) * scale if case.inputs == 1 else walks * scale, None


# Peers


def dense_equations(model: Any) -> tuple[Callable[[Array, Array], Array], Callable[[Array, Array], Array]]:
    """Return f(x, w) and its Jacobian by dense matrices, as someone writes them by hand; w = (u, p)."""
    A, B, m = np.array(model.A), np.array(model.B), model.n_inputs
    S: Any
    J: Any
    K: Any
    factors = [N.toarray() for N in (*model.terms.N, *model.terms.A_p)]
    offset = 0 if model.terms.N else m
    used = [(offset + k, M) for k, M in enumerate(factors) if np.any(M)]
    H = model.terms.H
    S, J, K = H if H is not None else (None, None, None)

    def f(x: Array, w: Array) -> Array:
        y = A @ x + B @ w[:m]
        for k, M in used:
            y += w[k] * (M @ x)
        return y if S is None else y + S @ ((J @ x) * (K @ x))

    def jacobian(x: Array, w: Array) -> Array:
        result = A.copy()
        for k, M in used:
            result += w[k] * M
        if S is not None:
            result += (S @ (J.multiply((K @ x)[:, None]) + K.multiply((J @ x)[:, None]))).toarray()
        return result

    return f, jacobian


def lsoda(case: Case, t: Array, w: Array, x0: Array, *, rtol: float, scale: float) -> Array:
    """Return states at the samples by LSODA from knot to knot, linear hold."""
    f, _ = dense_equations(case.model)
    bands = {} if case.bands is None else {"lband": case.bands[0], "uband": case.bands[1]}
    x, states = x0, [x0]
    for k, (start, stop) in enumerate(pairwise(t.tolist())):
        first, slope = w[k], (w[k + 1] - w[k]) / (stop - start)

        def rate(time: float, x: Array, first: Array = first, slope: Array = slope, start: float = start) -> Array:
            return f(x, first + slope * (time - start))

        solve: Any = solve_ivp
        x = solve(rate, (start, stop), x, method="LSODA", rtol=rtol, atol=1e-2 * rtol * scale, **bands).y[:, -1]
        states.append(x)
    return np.array(states)


def lsoda_smooth(case: Case, t: Array, w: Callable[[float], Array], *, method: str, rtol: float, scale: float) -> Array:
    """Return states at the times t for a smooth input by a solver of SciPy in one piece."""
    f, jacobian = dense_equations(case.model)
    options: dict[str, Any] = {}
    if method == "LSODA" and case.bands is not None:
        options = {"lband": case.bands[0], "uband": case.bands[1]}
    elif method in ("Radau", "BDF"):
        options = {"jac": lambda time, x: jacobian(x, w(time))}
    x0 = np.zeros(case.model.n_states)
    solve: Any = solve_ivp
    result = solve(
        lambda time, x: f(x, w(time)),
        (t[0], t[-1]),
        x0,
        method=method,
        t_eval=t,
        rtol=rtol,
        atol=1e-2 * rtol * scale,
        **options,
    )
    return np.asarray(result.y.T)


def first_accurate(problem: str, method: str, run: Callable[[float], Array], reference: Array, rounds: int) -> Row:
    """Return the time of the largest tolerance that reaches the target error."""
    scale, note = float(np.abs(reference).max()), ""
    for tolerance in _TOLERANCES:
        start = time.perf_counter()
        result = run(tolerance)
        seconds = time.perf_counter() - start
        error = float(np.abs(result - reference).max()) / scale
        note = f"tolerance {tolerance:g}"
        if error <= TARGET:
            for _ in range(rounds - 1 if seconds < _SLOWEST else 0):
                start = time.perf_counter()
                run(tolerance)
                seconds = min(seconds, time.perf_counter() - start)
            return Row(problem, method, seconds, error, note)
        if seconds > _SLOWEST:
            break
    return Row(problem, method, seconds, error, f"{note}, target not reached")


# Tables


def sampled(*, quick: bool, rounds: int) -> Iterator[Row]:
    """Sampled inputs with linear hold: 1,000 samples."""
    n_samples = 101 if quick else 1001
    for case in cases(quick=quick):
        u, p = signals_of(case, n_samples)
        t = np.linspace(0.0, case.duration, n_samples)
        net = ltinet.construct(case.model)
        reference = net.simulate(u, t, p=p, tol=1e-11).states
        scale = float(np.abs(reference).max())
        w = u if p is None else np.hstack([u, p])
        problem = f"{case.name}, {n_samples - 1} samples, linear hold"

        def ours(tol: float, net: Any = net, u: Array = u, t: Array = t, p: Array | None = p) -> Array:
            return np.asarray(net.simulate(u, t, p=p, tol=tol).states)

        def peer(tol: float, case: Case = case, t: Array = t, w: Array = w, scale: float = scale) -> Array:
            return lsoda(case, t, w, np.zeros(case.model.n_states), rtol=tol, scale=scale)

        yield first_accurate(problem, "ltinet", ours, reference, rounds)
        yield first_accurate(problem, "LSODA", peer, reference, 1)


def smooth_values(case: Case) -> Callable[[float], Array]:
    """Return the smooth input of a case as a function of one time."""
    if case.model.n_scheduling:
        return lambda t: np.array([np.sin(1.3 * t), np.sin(0.7 * t), np.sin(2.1 * t + 1.0)])
    if case.inputs == 1:
        return lambda t: np.array([np.sin(2.0 * np.pi * t) ** 2])
    return lambda t: np.array([-5.0 * np.sin(4.0 * np.pi * t) ** 2, -3.0 * np.cos(6.0 * t) ** 2 + 1.5, np.sin(3.0 * t)])


def split_signals(w: Callable[[float], Array], m: int, n_scheduling: int) -> tuple[Any, Any]:
    """Return the first m values of a function of time as input, the others as scheduling signals."""
    inputs = ltinet.FunctionSignal(lambda t: w(t)[:m], n_inputs=m)
    return inputs, ltinet.FunctionSignal(lambda t: w(t)[m:], n_inputs=n_scheduling) if n_scheduling else None


def smooth(*, quick: bool, rounds: int) -> Iterator[Row]:
    """Smooth inputs: beside the solvers of SciPy."""
    for case in cases(quick=quick):
        t, w, m = np.linspace(0.0, case.duration, 101), smooth_values(case), case.model.n_inputs
        net = ltinet.construct(case.model)
        u, p = split_signals(w, m, case.model.n_scheduling)
        reference = net.simulate(u, t, p=p, tol=1e-11).states
        scale = float(np.abs(reference).max())

        def ours(tol: float, net: Any = net, u: Any = u, t: Array = t, p: Any = p) -> Array:
            return np.asarray(net.simulate(u, t, p=p, tol=tol).states)

        yield first_accurate(f"{case.name}, smooth", "ltinet", ours, reference, rounds)
        for method in ("LSODA", "DOP853", "Radau", "BDF"):

            def peer(
                tol: float, case: Case = case, t: Array = t, w: Any = w, method: str = method, scale: float = scale
            ) -> Array:
                return lsoda_smooth(case, t, w, method=method, rtol=tol, scale=scale)

            yield first_accurate(f"{case.name}, smooth", method, peer, reference, 1)


def ensembles(*, quick: bool) -> Iterator[Row]:
    """Ensembles of 64 inputs of 50 samples, per member, beside a loop over LSODA on four members."""
    members = 8 if quick else 64
    for case in cases(quick=quick)[::2]:
        t = np.linspace(0.0, case.duration, 51)
        u = np.stack([signals_of(case, 51)[0] * (1.0 - 0.5 * k / members) for k in range(members)])
        net = ltinet.construct(case.model)
        reference = net.simulate(u, t, tol=1e-11).states
        scale = float(np.abs(reference).max())

        def ours(tol: float, net: Any = net, u: Array = u, t: Array = t) -> Array:
            return np.asarray(net.simulate(u, t, tol=tol).states)

        row = first_accurate("", "", ours, reference, 2)
        problem = f"{case.name}, ensemble of {members}, per member"
        yield Row(problem, "ltinet", row.seconds / members, row.error, row.note)
        some = range(0, members, members // 4)

        def peer(
            tol: float, case: Case = case, t: Array = t, u: Array = u, some: Any = some, scale: float = scale
        ) -> Array:
            x0 = np.zeros(case.model.n_states)
            return np.stack([lsoda(case, t, u[k], x0, rtol=tol, scale=scale) for k in some])

        row = first_accurate("", "", peer, reference[list(some)], 1)
        yield Row(problem, "LSODA", row.seconds / len(some), row.error, row.note)


def zero_hold(*, quick: bool, rounds: int) -> Iterator[Row]:
    """Held signals of 16 levels: beside one exponential of SciPy for each step."""
    model, rng = lpv_chain(), np.random.default_rng(0)
    n_steps = 200 if quick else 2000
    t = np.linspace(0.0, 20.0, n_steps + 1)
    w = rng.uniform(-1.0, 1.0, (16, 3))[rng.integers(0, 16, n_steps + 1)]
    net, seconds, states = ltinet.construct(model), np.inf, np.zeros(0)
    for _ in range(rounds):
        start = time.perf_counter()
        states = net.simulate(w[:, :1], t, p=w[:, 1:], hold="zero").states
        seconds = min(seconds, time.perf_counter() - start)
    start = time.perf_counter()
    n, h, x, expected = model.n_states, t[1], np.zeros(model.n_states), [np.zeros(model.n_states)]
    A, B, A_p = np.array(model.A), np.array(model.B), [M.toarray() for M in model.A_p]
    for level in w[:-1]:
        M = np.zeros((n + 1, n + 1))
        M[:n, :n], M[:n, n] = A + level[1] * A_p[0] + level[2] * A_p[1], B @ level[:1]
        x = (linalg.expm(h * M) @ np.append(x, 1.0))[:n]
        expected.append(x)
    peer_seconds = time.perf_counter() - start
    error = float(np.abs(states - np.array(expected)).max() / np.abs(states).max())
    problem = f"LPV 20, {n_steps} steps, zero hold, 16 levels"
    yield Row(problem, "ltinet", seconds, error, "exact steps")
    yield Row(problem, "expm per step", peer_seconds, 0.0, "the reference")


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table with the ratio to ltinet."""
    lines = ["| problem | method | time | error | ratio | |", "|---|---|---|---|---|---|"]
    base = {row.problem: row.seconds for row in rows if row.method == "ltinet"}
    for row in rows:
        ratio = row.seconds / base[row.problem]
        lines.append(
            f"| {row.problem} | {row.method} | {1e3 * row.seconds:.1f} ms | {row.error:.1e} | {ratio:.1f} | {row.note} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run all tables and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small models and few samples")
    parser.add_argument("--output", type=Path, help="file for the table")
    options = parser.parse_args()
    rows: list[Row] = []
    for part in (
        zero_hold(quick=options.quick, rounds=options.rounds),
        sampled(quick=options.quick, rounds=options.rounds),
        ensembles(quick=options.quick),
        smooth(quick=options.quick, rounds=options.rounds),
    ):
        for row in part:
            rows.append(row)
            print(
                f"{row.problem}: {row.method} {1e3 * row.seconds:.1f} ms, error {row.error:.1e}, {row.note}", flush=True
            )
    text = table(rows)
    if find_spec("diffrax") is None:
        text += "\ndiffrax is not installed and was left out.\n"
    print(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
