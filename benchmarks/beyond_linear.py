"""Models with products beside LSODA with knots honoured, one exponential per step, SciPy's solvers and diffrax.

    python -m benchmarks.beyond_linear [--only held sampled ensembles smooth accuracy] [--cases TEXT] [--methods TEXT] [--quick]

All times are wall times of one process on one thread, losses included. Every method runs with a series of tolerances; its
time is the best of five runs (fewer if they take long) with the largest tolerance whose error is at most 1e-6 of the
largest state. Errors are relative to DOP853 with rtol = 1e-13, restarted at every sample; Radau with rtol = 1e-12 checks
this reference. Solvers of SciPy run on the equations as written by hand, LSODA with a banded Jacobian where it has one, and
with sampled inputs from knot to knot. diffrax is compiled before its time is taken, and clips its steps at knots.
References are kept in build/beyond_linear; `--references` computes these only. Rows replace those of an earlier run in
benchmarks/results/beyond_linear.json, of which `python -m benchmarks --report` writes RESULTS.md.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.integrate import solve_ivp

import ltinet
from benchmarks.support.environment import environment
from benchmarks.support.quotes import ROOT
from benchmarks.support.table import Table, read_all, write

Array = NDArray[np.float64]
Signals = Callable[[Any], Any]
TARGET = 1e-6
_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
_SLOWEST = 20.0  # seconds of a run, after which no smaller tolerance is tried
_ROUNDS = 5
_REPEATED = 2.0  # seconds of all runs of a method together, after which it is not repeated
_CHECKED = 20  # intervals of a reference that Radau checks; all of them would take minutes
_METHODS = ("reference", "ltinet", "expm", "LSODA", "Radau", "BDF", "DOP853", "diffrax")
_SOLVERS = ("LSODA", "Radau", "BDF", "DOP853")


class Case(NamedTuple):
    """Model, its smooth inputs w = (u, p) as a function of one time, and the half-bandwidths of its Jacobian."""

    name: str
    model: Any
    duration: float
    w: Signals
    bands: tuple[int, int] | None = None
    x0: Array | None = None
    w_jax: Signals | None = None
    """The same inputs in `jax.numpy`."""

    @property
    def start(self) -> Array:
        """Initial state."""
        return np.zeros(self.model.n_states) if self.x0 is None else self.x0


# Problems


def lpv_chain(n: int = 10) -> Any:
    """Return ten masses whose odd springs and whose dampers are scheduled."""

    def chain(gaps: Any) -> Any:
        return np.diag(gaps) + np.diag(np.append(gaps[1:], 0.0)) - np.diag(gaps[1:], 1) - np.diag(gaps[1:], -1)

    zero, identity, ones = np.zeros((n, n)), np.eye(n), np.ones(n)
    A = np.block([[zero, identity], [-chain(4.0 * ones), -chain(0.1 * ones)]])
    springs = np.block([[zero, zero], [-chain(2.0 * (np.arange(n) % 2)), zero]])
    dampers = np.block([[zero, zero], [zero, -chain(0.08 * ones)]])
    return ltinet.LPV(A, np.eye(2 * n, 1, -n), np.eye(2 * n), A_p=[springs, dampers])


def fokker_planck(n: int = 100) -> tuple[Any, Array]:
    """Return the density of a particle in a potential with two wells, tilted by the input, and its initial state."""
    h = 12.0 / n
    x, edges = -6.0 + h * (np.arange(n) + 0.5), -6.0 + h * np.arange(1, n)
    D = (np.eye(n - 1, n, 1) - np.eye(n - 1, n)) / h
    mean = (np.eye(n - 1, n, 1) + np.eye(n - 1, n)) / 2.0
    slope = (3.0 * edges**5 - 60.0 * edges**3 + 398.0 * edges + 28.0) / 200.0
    A = -D.T @ (D + slope[:, None] * mean)
    N = -D.T @ (np.cos(np.pi * edges / 12.0)[:, None] * mean)
    density = np.exp(-2.0 * (x - 2.0) ** 2)
    model = ltinet.Bilinear(A, np.zeros((n, 1)), np.eye(n), N=[N])
    return model, density / (h * density.sum())


def robertson() -> Any:
    """Return the three reactions of Robertson, with rates 0.04, 1e4 and 3e7."""
    S = np.array([[1e4, 0.0], [-1e4, -3e7], [0.0, 3e7]])
    J, K = np.array([[0.0, 1.0, 0.0]] * 2), np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    A = np.array([[-0.04, 0.0, 0.0], [0.04, 0.0, 0.0], [0.0, 0.0, 0.0]])
    return ltinet.QuadraticBilinear(A, np.zeros((3, 1)), np.eye(3), H=(S, J, K))


def cases(*, quick: bool) -> dict[str, Case]:
    """Return the ten problems by their names."""
    scale = 5 if quick else 1

    def smooth(*functions: Any) -> dict[str, Any]:
        """Return the signals in NumPy and in JAX."""

        def w(t: Any) -> Any:
            return np.array([function(np, t) for function in functions])

        def w_jax(t: Any) -> Any:
            import jax.numpy as jnp

            return jnp.array([function(jnp, t) for function in functions])

        return {"w": w, "w_jax": w_jax}

    def pulses(np: Any, t: Any) -> Any:
        return np.sin(2.0 * np.pi * t) ** 2

    heat = smooth(
        lambda np, t: -5.0 * np.sin(4.0 * np.pi * t) ** 2,
        lambda np, t: -3.0 * np.cos(6.0 * t) ** 2 + 1.5,
        lambda np, t: np.sin(3.0 * t),
    )
    chain = smooth(lambda np, t: np.sin(1.3 * t), lambda np, t: np.sin(0.7 * t), lambda np, t: np.sin(2.1 * t + 1.0))
    density, start = fokker_planck(100 // scale)
    named = ltinet.named_system
    listed = [
        Case("Burgers 100", named("burgers", n_states=100 // scale), 4.0, bands=(1, 1), **smooth(pulses)),
        Case("LPV 20", lpv_chain(), 20.0, **chain),
        Case("heat 100", named("boundary_heat", points=10 // scale), 1.0, bands=(10 // scale,) * 2, **heat),
        Case(
            "Burgers 100, ν = 0.01",
            named("burgers", n_states=100 // scale, viscosity=0.01),
            4.0,
            bands=(1, 1),
            **smooth(pulses),
        ),
        Case("Burgers 400", named("burgers", n_states=400 // scale), 4.0, bands=(1, 1), **smooth(pulses)),
        Case("heat 900", named("boundary_heat", points=30 // scale), 1.0, bands=(30 // scale,) * 2, **heat),
        Case(
            "Fokker–Planck 100",
            density,
            10.0,
            bands=(1, 1),
            x0=start,
            **smooth(lambda np, t: 3.0 * np.sin(t) + 1.5 * np.sin(3.3 * t)),
        ),
        Case(
            "diode ladder 100",
            named("diode_ladder", nodes=50 // scale),
            10.0,
            **smooth(lambda np, t: 0.5 * (1.0 + np.cos(0.2 * np.pi * t))),
        ),
        Case(
            "FitzHugh–Nagumo 150",
            named("fitzhugh_nagumo", points=50 // scale),
            4.0,
            **smooth(lambda np, t: 5e4 * t**3 * np.exp(-15.0 * t), lambda _, t: 1.0 + 0.0 * t),
        ),
        Case("Robertson 3", robertson(), 40.0, x0=np.array([1.0, 0.0, 0.0]), **smooth(lambda _, t: 0.0 * t)),
    ]
    return {case.name: case for case in listed}


_SAMPLED = ("Burgers 100", "LPV 20", "heat 100")
_ENSEMBLES = ("Burgers 100", "heat 100")


def random_walks(n_samples: int, channels: int, seed: int = 1) -> Array:
    """Return samples of random walks within [−1, 1] that begin at zero."""
    walks = np.cumsum(np.random.default_rng(seed).normal(size=(n_samples, channels)), axis=0)
    walks /= np.abs(walks).max(axis=0)
    walks[0] = 0.0
    return np.asarray(walks)


def samples_of(case: Case, n_samples: int) -> Array:
    """Return samples of (u, p)."""
    walks = random_walks(n_samples, 3)
    if case.model.n_scheduling:
        return walks[:, [2, 0, 1]]
    return np.abs(walks[:, :1]) if case.model.n_inputs == 1 else walks * [3.0, 3.0, 1.0]


# References and peers


class Equations:
    """x' of a model for w = (u, p) and its Jacobian as written by hand, with dense matrices up to 150 states."""

    def __init__(self, model: Any) -> None:
        self.m, self.is_dense, self.is_quadratic = model.n_inputs, model.n_states <= 150, model.terms.H is not None

        def stored(matrix: Any) -> Any:
            return matrix.toarray() if self.is_dense else matrix

        matrices: Any = [None] * self.m + list(model.terms.A_p) if model.n_scheduling else model.terms.N
        self.A, self.B = stored(sparse.csr_array(model.A)), np.array(model.B)
        self.factors = [(k, stored(M)) for k, M in enumerate(matrices) if M is not None and M.nnz]
        if self.is_quadratic:
            self.S, self.J, self.K = model.terms.H
            self.dense_products = [part.toarray() for part in model.terms.H]

    def __call__(self, x: Array, w: Array) -> Array:
        """Return x'."""
        y = self.A @ x + self.B @ w[: self.m]
        for k, M in self.factors:
            y += w[k] * (M @ x)
        return np.asarray(y + self.S @ ((self.J @ x) * (self.K @ x)) if self.is_quadratic else y)

    def jacobian(self, x: Array, w: Array) -> Any:
        """Return the Jacobian, dense or sparse."""
        result: Any = sum((w[k] * M for k, M in self.factors), self.A)
        if self.is_quadratic and self.is_dense:
            S, J, K = self.dense_products
            result = result + S @ ((K @ x)[:, None] * J + (J @ x)[:, None] * K)
        elif self.is_quadratic:
            diagonal: Any = sparse.diags_array
            result = result + self.S @ (diagonal(self.K @ x) @ self.J + diagonal(self.J @ x) @ self.K)
        return result if self.is_dense else result.tocsc()


def between_samples(t: Array, samples: Array) -> Iterator[tuple[float, float, Signals]]:
    """Yield both ends of each interval with its input, a straight line."""
    for k, (start, stop) in enumerate(pairwise(t.tolist())):
        yield start, stop, partial(straight_line, start, samples[k], (samples[k + 1] - samples[k]) / (stop - start))


def straight_line(start: float, first: Array, slope: Array, time: float) -> Array:
    """Return first + slope (time − start)."""
    return first + slope * (time - start)


def step_by_step(case: Case, pieces: Any, *, method: str, rtol: float, scale: float) -> Array:
    """Return states at the ends of all pieces (start, stop, w), with the solver restarted for each of them."""
    f, x = Equations(case.model), case.start
    solve: Any = solve_ivp
    states = [x]
    for start, stop, w in pieces:
        options = solver_options(case, f, w, method)
        run = solve(
            lambda time, x, w=w: f(x, w(time)),
            (start, stop),
            x,
            method=method,
            rtol=rtol,
            atol=1e-2 * rtol * scale,
            **options,
        )
        x = run.y[:, -1]
        states.append(x)
    return np.array(states)


def solver_options(case: Case, f: Equations, w: Signals, method: str) -> dict[str, Any]:
    """Return the Jacobian for implicit methods, and the bands for LSODA."""
    if method == "LSODA" and case.bands is not None:
        return {"lband": case.bands[0], "uband": case.bands[1]}
    if method == "LSODA":  # all of these have at most 150 states
        return {"jac": lambda time, x: f.jacobian(x, w(time))}
    return {"jac": lambda time, x: f.jacobian(x, w(time))} if method in ("Radau", "BDF") else {}


def in_one_piece(case: Case, t: Array, *, method: str, rtol: float, scale: float) -> Array:
    """Return states at the times t for the smooth input."""
    f, w = Equations(case.model), case.w
    solve: Any = solve_ivp
    options = solver_options(case, f, w, method)
    run = solve(
        lambda time, x: f(x, w(time)),
        (t[0], t[-1]),
        case.start,
        method=method,
        t_eval=t,
        rtol=rtol,
        atol=1e-2 * rtol * scale,
        **options,
    )
    return np.asarray(run.y.T)


def reference(case: Case, pieces: Callable[[], Any], name: str) -> tuple[Array, float]:
    """Return states by DOP853, and the distance of the first ones from Radau relative to the largest; kept in a file."""
    path = ROOT / "build" / "beyond_linear" / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rough = step_by_step(case, pieces(), method="LSODA", rtol=1e-6, scale=1.0)
        scale = float(np.abs(rough).max())
        x = step_by_step(case, pieces(), method="DOP853", rtol=1e-13, scale=scale)
        other = step_by_step(case, islice(pieces(), _CHECKED), method="Radau", rtol=1e-12, scale=scale)
        np.savez(path, x=x, distance=np.abs(x[: len(other)] - other).max() / scale)
    with np.load(path) as file:
        return file["x"], float(file["distance"])


def diffrax_run(case: Case, t: Array, samples: Array | None, *, solver: str = "Tsit5") -> Callable[[float, float], Any]:
    """Return a function of tolerance and scale whose calls run diffrax, compiled; samples `(members, T, k)` are vmapped."""
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    f, times, x0 = Equations(case.model), jnp.asarray(t), jnp.asarray(case.start)

    def as_array(matrix: Any) -> Any:
        return jnp.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)

    A, B, factors = as_array(f.A), as_array(f.B), [(k, as_array(M)) for k, M in f.factors]
    S, J, K = map(jnp.asarray, f.dense_products) if f.is_quadratic else (None, None, None)

    def rate(x: Any, w: Any) -> Any:
        y = A @ x + B @ w[: f.m]
        for k, M in factors:
            y = y + w[k] * (M @ x)
        return y if S is None else y + S @ ((J @ x) * (K @ x))

    def prepare(tolerance: float, scale: float) -> Callable[[], Array]:
        def solve(values: Any) -> Any:
            control: Any = case.w_jax if samples is None else diffrax.LinearInterpolation(times, values).evaluate
            controller: Any = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance * scale)
            if samples is not None:
                controller = diffrax.ClipStepSizeController(controller, step_ts=times)
            return diffrax.diffeqsolve(
                diffrax.ODETerm(lambda time, x, _: rate(x, control(time))),
                getattr(diffrax, solver)(),
                times[0],
                times[-1],
                None,
                x0,
                saveat=diffrax.SaveAt(ts=times),
                stepsize_controller=controller,
                max_steps=None,
                adjoint=diffrax.ForwardMode(),
            ).ys

        is_batch = samples is not None and samples.ndim == 3
        compiled = jax.jit(jax.vmap(solve) if is_batch else solve)
        values = jnp.zeros(()) if samples is None else jnp.asarray(samples)
        compiled(values).block_until_ready()
        return lambda: np.asarray(compiled(values).block_until_ready())

    return prepare


# Measurements


class Measurement(NamedTuple):
    """One method on one problem: `prepare` returns for a tolerance the function whose calls are timed."""

    problem: str
    method: str
    prepare: Callable[[float], Callable[[], Array]]
    expected: Array
    members: int = 1
    note: str = ""

    def row(self) -> dict[str, Any]:
        """Return a row with the time of the largest tolerance that reaches the target error."""
        scale, row = float(np.abs(self.expected).max()), dict[str, Any](problem=self.problem, method=self.method)
        for tolerance in _TOLERANCES:
            run = self.prepare(tolerance)
            start = time.perf_counter()
            result = run()
            best = total = time.perf_counter() - start
            error = float(np.abs(result - self.expected).max()) / scale
            is_accurate = error <= TARGET
            for _ in range(_ROUNDS - 1 if is_accurate else 0):
                if total > _REPEATED:
                    break
                start = time.perf_counter()
                run()
                seconds = time.perf_counter() - start
                best, total = min(best, seconds), total + seconds
            note = self.note or f"tolerance {tolerance:g}" + ("" if is_accurate else ", target not reached")
            row |= {"ms": 1e3 * best / self.members, "error": error, "note": note}
            if is_accurate or best > _SLOWEST:
                break
        return row


def signals_of(case: Case) -> tuple[Any, Any]:
    """Return the smooth inputs and scheduling signals."""
    m, count = case.model.n_inputs, case.model.n_scheduling
    u = ltinet.FunctionSignal(lambda time: case.w(time)[:m], n_inputs=m)
    return u, ltinet.FunctionSignal(lambda time: case.w(time)[m:], n_inputs=count) if count else None


def ours(case: Case, net: Any, t: Array, samples: Array | None) -> Callable[[float], Callable[[], Array]]:
    """Return the runs of the library for a tolerance."""
    if samples is None:
        u, p = signals_of(case)
    else:
        m = case.model.n_inputs
        u, p = samples[..., :m], samples[..., m:] if case.model.n_scheduling else None
    return lambda tol: lambda: np.asarray(net.simulate(u, t, p=p, x0=case.x0, tol=tol).states)


def sampled(case: Case, *, quick: bool) -> Iterator[Any]:
    """Yield rows for 1,000 samples, linear between them."""
    n_samples = 101 if quick else 1001
    t, samples = np.linspace(0.0, case.duration, n_samples), samples_of(case, n_samples)
    expected, distance = reference(case, lambda: between_samples(t, samples), f"sampled {case.name} {n_samples}")
    scale, problem = float(np.abs(expected).max()), f"{case.name}, {n_samples - 1} samples, linear hold"
    yield {"problem": problem, "method": "reference", "error": distance}
    net = ltinet.construct(case.model)
    yield Measurement(problem, "ltinet", ours(case, net, t, samples), expected)

    def lsoda(tol: float) -> Callable[[], Array]:
        return lambda: step_by_step(case, between_samples(t, samples), method="LSODA", rtol=tol, scale=scale)

    yield Measurement(problem, "LSODA", lsoda, expected)
    solve = diffrax_run(case, t, samples)
    yield Measurement(problem, "diffrax Tsit5", lambda tol: solve(tol, scale), expected)


def ensembles(case: Case, *, quick: bool) -> Iterator[Any]:
    """Yield rows for 64 inputs of 50 samples, per member, beside a loop over LSODA on four members."""
    members, some = (8, 4) if quick else (64, 4)
    t = np.linspace(0.0, case.duration, 51)
    factors = 1.0 - 0.5 * np.arange(members)[:, None, None] / members
    samples = samples_of(case, 51) * factors
    chosen = range(0, members, members // some)
    results = [
        reference(case, lambda k=k: between_samples(t, samples[k]), f"ensemble {case.name} {members} {k}")  # type: ignore[misc]
        for k in chosen
    ]
    expected = np.stack([x for x, _ in results])
    scale, problem = float(np.abs(expected).max()), f"{case.name}, ensemble of {members}, per member"
    yield {"problem": problem, "method": "reference", "error": max(distance for _, distance in results)}
    chosen_of = list(chosen)
    net = ltinet.construct(case.model)

    def timed_all(prepare: Callable[[float], Callable[[], Array]]) -> Callable[[float], Callable[[], Any]]:
        def runs(tol: float) -> Callable[[], Any]:
            run = prepare(tol)
            return lambda: run()[chosen_of]

        return runs

    yield Measurement(problem, "ltinet", timed_all(ours(case, net, t, samples)), expected, members=members)

    def lsoda(tol: float) -> Callable[[], Array]:
        options = {"method": "LSODA", "rtol": tol, "scale": scale}
        return lambda: np.stack([step_by_step(case, between_samples(t, samples[k]), **options) for k in chosen])  # type: ignore[arg-type]

    yield Measurement(problem, "LSODA, one by one", lsoda, expected, members=some)
    solve = diffrax_run(case, t, samples)
    vmapped = timed_all(lambda tol: solve(tol, scale))
    yield Measurement(problem, "diffrax Tsit5, vmapped", vmapped, expected, members=members)


def smooth(case: Case, *, quick: bool) -> Iterator[Any]:
    """Yield rows for smooth inputs beside the solvers of SciPy and diffrax."""
    t = np.linspace(0.0, case.duration, 101)
    name = f"smooth {case.name}{' quick' if quick else ''}"
    expected, distance = reference(case, lambda: ((a, b, case.w) for a, b in pairwise(t.tolist())), name)
    scale, problem = float(np.abs(expected).max()), f"{case.name}, smooth"
    yield {"problem": problem, "method": "reference", "error": distance}
    net = ltinet.construct(case.model)
    yield Measurement(problem, "ltinet", ours(case, net, t, None), expected)
    for method in _SOLVERS:

        def scipy_solver(tol: float, method: str = method) -> Callable[[], Array]:
            return lambda: in_one_piece(case, t, method=method, rtol=tol, scale=scale)

        yield Measurement(problem, method, scipy_solver, expected)
    solver = "Kvaerno5" if case.name.startswith("Robertson") else "Tsit5"
    solve = diffrax_run(case, t, None, solver=solver)
    yield Measurement(problem, f"diffrax {solver}", lambda tol: solve(tol, scale), expected)


def held(case: Case, *, quick: bool) -> Iterator[Any]:
    """Yield rows for held signals of 16 levels, beside one exponential of SciPy for each step."""
    model, rng, n_steps = case.model, np.random.default_rng(0), 200 if quick else 2000
    t = np.linspace(0.0, 20.0, n_steps + 1)
    w = rng.uniform(-1.0, 1.0, (16, 3))[rng.integers(0, 16, n_steps + 1)]
    net, h, n = ltinet.construct(model), t[1], model.n_states
    A, B, A_p = np.array(model.A), np.array(model.B), [M.toarray() for M in model.A_p]

    def run_ours() -> Array:
        return np.asarray(net.simulate(w[:, :1], t, p=w[:, 1:], hold="zero").states)

    def exponentials() -> Array:
        x, states = np.zeros(n), [np.zeros(n)]
        for level in w[:-1]:
            M = np.zeros((n + 1, n + 1))
            M[:n, :n], M[:n, n] = A + level[1] * A_p[0] + level[2] * A_p[1], B @ level[:1]
            x = (linalg.expm(h * M) @ np.append(x, 1.0))[:n]
            states.append(x)
        return np.array(states)

    problem, expected = f"{case.name}, {n_steps} steps, zero hold, 16 levels", exponentials()
    yield Measurement(problem, "ltinet", lambda _: run_ours, expected, note="exact steps")
    yield Measurement(problem, "expm per step", lambda _: exponentials, expected, note="the reference")


def accuracy(case: Case, *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the largest error of an output relative to its peak for three tolerances, with smooth inputs, and its estimate.

    Outputs whose peak is below 1e-3 of the largest one are left out: the library does not resolve them separately.
    """
    t = np.linspace(0.0, case.duration, 101)
    name = f"smooth {case.name}{' quick' if quick else ''}"
    expected, _ = reference(case, lambda: ((a, b, case.w) for a, b in pairwise(t.tolist())), name)
    y = expected @ np.array(case.model.C).T
    peak = np.abs(y).max(axis=0)
    kept = peak >= 1e-3 * peak.max()
    net = ltinet.construct(case.model)
    for tol in (1e-4, 1e-6, 1e-8):
        u, p = signals_of(case)
        solution = net.simulate(u, t, p=p, x0=case.x0, tol=tol)
        error = np.abs(solution.y - y).max(axis=0)
        worst = int(np.argmax(np.where(kept, error / peak, 0.0)))
        yield {
            "problem": case.name,
            "method": solution.stats["method"],
            "tol": tol,
            "error": float(error[worst] / peak[worst]),
            "over_tol": float(error[worst] / peak[worst] / tol),
            "estimate": float(np.atleast_1d(solution.error_estimate)[worst] / error[worst]),
        }


PARTS: dict[str, tuple[Callable[..., Iterator[Any]], tuple[str, ...] | None]] = {
    "held": (held, ("LPV 20",)),
    "sampled": (sampled, _SAMPLED),
    "ensembles": (ensembles, _ENSEMBLES),
    "smooth": (smooth, None),
    "accuracy": (accuracy, None),
}
NOTE = (
    "Written by `python -m benchmarks.beyond_linear`, one thread, on two cores with other work: ratios vary by half between "
    "runs. Every time is that of the largest tolerance whose error is "
    "at most 1e-6 of the largest state; ratios are relative to ltinet, and below 1 the other method is faster. LSODA runs from "
    "knot to knot of sampled inputs, with a banded Jacobian for Burgers and heat; diffrax is compiled beforehand. Errors are "
    "those against DOP853 with rtol = 1e-13, restarted at all samples; the row “reference” has its distance from Radau."
)


ACCURACY_NOTE = (
    "Written by `python -m benchmarks.beyond_linear --only accuracy`: the largest error of an output relative to its peak, of "
    "smooth inputs at 101 times, against DOP853 with rtol = 1e-13, restarted at all of them."
)


def with_ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the time of each method relative to ours on the same problem."""
    base = {row["problem"]: row["ms"] for row in rows if row["method"] == "ltinet" and "ms" in row}
    return [row | ({"ratio": row["ms"] / base[row["problem"]]} if "ms" in row else {}) for row in rows]


def main() -> None:
    """Run the chosen parts, print their rows, and replace these rows in the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--cases", default="", help="run the cases whose names contain this text")
    parser.add_argument("--methods", default="", help="run the methods whose names contain this text")
    parser.add_argument("--quick", action="store_true", help="small models and few samples; nothing is written")
    parser.add_argument("--references", action="store_true", help="compute the references only")
    options = parser.parse_args()
    folder, rows = ROOT / "benchmarks" / "results", []
    for part in options.only:
        measure, names = PARTS[part]
        for name, case in cases(quick=options.quick).items():
            if options.cases not in name or (names is not None and name not in names):
                continue
            for item in measure(case, quick=options.quick):
                if isinstance(item, Measurement) and options.methods not in item.method:
                    continue
                row = item.row() if isinstance(item, Measurement) else item
                print(
                    ", ".join(f"{value:.3g}" if isinstance(value, float) else value for value in row.values()),
                    flush=True,
                )
                rows.append(row)
                if options.references:
                    break
    if options.quick or options.references:
        return
    update_results(folder, rows)


TABLES = {
    "beyond_linear": ("Models with products", NOTE, {
        "problem": "problem", "method": "method", "ms": "time, ms", "ratio": "time / ltinet", "error": "error", "note": "",
    }),
    "beyond_linear_accuracy": ("Accuracy of models with products", ACCURACY_NOTE, {
        "problem": "problem", "tol": "tol", "method": "method", "error": "error", "over_tol": "error / tol",
        "estimate": "error_estimate / error",
    }),
}  # fmt: skip


def update_results(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Replace the rows of the same problems and methods in the tables of results."""
    order = {name: index for index, name in enumerate((" steps,", " samples,", " ensemble ", " smooth"))}
    names = list(cases(quick=True))

    def identity(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["problem"], row.get("tol", row["method"])

    def place(row: dict[str, Any]) -> tuple[int, int, int]:
        kind = min((index for text, index in order.items() if text in row["problem"]), default=0)
        method = next((index for index, name in enumerate(_METHODS) if row["method"].startswith(name)), 0)
        return (
            kind,
            max(index for index, name in enumerate(names) if f"{row['problem']},".startswith(f"{name},")),
            method,
        )

    for name, (title, note, columns) in TABLES.items():
        measured = [row for row in rows if ("tol" in row) == (name == "beyond_linear_accuracy")]
        if measured:
            known = read_all(folder).get(name)
            new = {identity(row) for row in measured}
            kept = [] if known is None else [row for row in known[0].rows if identity(row) not in new]
            table = Table(name, title, note, columns, sorted(with_ratios([*kept, *measured]), key=place))
            write(table, folder, environment=environment(quick=False))


if __name__ == "__main__":
    main()
