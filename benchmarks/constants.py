"""Experiments that chose constants: `python -m benchmarks.constants [NAME …]`.

A constant that decides a result has a derivation beside it, or an experiment here. Each experiment gives the constant
several values, counts wrong decisions or measures errors with each on the same random systems of a printed seed, and
prints a table, with a star at the value in use. A value is well chosen if the figures are as good on both sides of it:
no system of the family depends on where exactly the constant lies.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.analysis import dc_gain, zeros
from ltinet.blockdiag import frontier, partition, repeated_eigenvalues, tradeoff_forms
from ltinet.blockdiag.schur import real_schur
from ltinet.blockdiag.separation import separate_neurons
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.network.realization import modal_blocks
from ltinet.systems.system_matrices import SystemMatrices

Array = NDArray[np.float64]
Random = np.random.Generator
SEED = 46


class Experiment(NamedTuple):
    """Values of a constant, and figures of random systems for the value that is set."""

    modules: str
    """Modules that use the constant, separated by spaces."""
    values: Sequence[Any]
    measure: Callable[[], dict[str, float]]


# Random systems


def orthogonal(n: int, rng: Random) -> Array:
    """Return a random orthogonal matrix."""
    return np.asarray(np.linalg.qr(rng.standard_normal((n, n)))[0])


def similarity(n: int, rng: Random, *, condition: float) -> Array:
    """Return a random matrix with a condition number."""
    sizes = np.geomspace(1.0, condition, n) if n > 1 else np.ones(n)
    return np.asarray(orthogonal(n, rng) * sizes @ orthogonal(n, rng))


def stable_matrix(n: int, rng: Random) -> Array:
    """Return a random matrix with eigenvalues left of −0.1."""
    A = rng.standard_normal((n, n))
    return np.asarray(A - (np.linalg.eigvals(A).real.max() + rng.uniform(0.1, 1.0)) * np.eye(n))


# Invariant zeros


def system_with_zeros(rng: Random) -> tuple[SystemMatrices, NDArray[np.complex128]]:
    """Return a square system and its zeros, from the normal form of Isidori in random coordinates.

    Each input drives a chain of 1 to 5 integrators that ends in an output, with feedback from all states; the zeros are
    the eigenvalues of what remains where all outputs are held at zero.
    """
    n_zeros, m = int(rng.integers(0, 6)), int(rng.integers(1, 4))
    lengths = rng.integers(1, 6, size=m)
    first = n_zeros + np.concatenate([[0], np.cumsum(lengths)[:-1]])
    last, n = first + lengths - 1, n_zeros + int(lengths.sum())
    A, B, C = np.zeros((n, n)), np.zeros((n, m)), np.zeros((m, n))
    inner = 3.0 * rng.standard_normal((n_zeros, n_zeros))
    A[:n_zeros, :n_zeros], A[:n_zeros, first] = inner, rng.standard_normal((n_zeros, m))
    for start, stop in zip(first, last, strict=True):
        A[np.arange(start, stop), np.arange(start, stop) + 1] = 1.0
    A[last] = rng.standard_normal((m, n))
    B[last, np.arange(m)] = C[np.arange(m), first] = 1.0
    T = similarity(n, rng, condition=10.0)
    inputs, outputs = (similarity(m, rng, condition=10.0 ** rng.uniform(0.0, 6.0)) for _ in range(2))
    values = np.linalg.eigvals(inner).astype(np.complex128)
    return SystemMatrices(np.linalg.solve(T, A @ T), np.linalg.solve(T, B) @ inputs, outputs @ C @ T), values


def measure_zeros() -> dict[str, float]:
    """Count systems whose number of finite zeros is wrong, and measure the errors of the others."""
    rng, wrong, errors = np.random.default_rng(SEED), 0, [0.0]
    for _ in range(500):
        system, exact = system_with_zeros(rng)
        found = zeros.invariant_zeros(system)
        if len(found) != len(exact):
            wrong += 1
        elif len(exact):
            errors.append(float(np.abs(found[:, None] - exact).min(axis=0).max() / max(1.0, np.abs(exact).max())))
    return {"wrong zeros of 500": wrong, "99 % of their errors below": float(np.quantile(errors, 0.99))}


# DC gain with integrators


def system_with_integrators(rng: Random) -> tuple[SystemMatrices, NDArray[np.bool_]]:
    """Return a system with chains of integrators in random coordinates, and which of its gains are infinite."""
    chains = rng.integers(1, 4, size=int(rng.integers(1, 3)))
    n_rest = int(rng.integers(1, 8))
    N = linalg.block_diag(*(np.diag(np.ones(length - 1), 1) for length in chains))
    n, m = len(N), 3
    A = linalg.block_diag(N, stable_matrix(n_rest, rng))
    # Few nonzero entries, so that integrators are hidden from many pairs of an input and an output.
    B = np.vstack([rng.integers(-2, 3, (n, m)) * (rng.random((n, m)) < 0.3), rng.standard_normal((n_rest, m))])
    C = np.hstack([rng.integers(-2, 3, (m, n)) * (rng.random((m, n)) < 0.3), rng.standard_normal((m, n_rest))])
    powers = [C[:, :n] @ np.linalg.matrix_power(N, k) @ B[:n] for k in range(n)]
    infinite = np.any([power != 0.0 for power in powers], axis=0)
    T = similarity(len(A), rng, condition=30.0)
    return SystemMatrices(np.linalg.solve(T, A @ T), np.linalg.solve(T, B), C @ T), infinite


def measure_dc_gain() -> dict[str, float]:
    """Count gains that should be finite and are not, and the other way round."""
    rng, counts = np.random.default_rng(SEED), np.zeros(3)
    for _ in range(500):
        system, infinite = system_with_integrators(rng)
        gain = dc_gain.dc_gain(system)
        counts += [(np.isinf(gain) & ~infinite).sum(), (np.isfinite(gain) & infinite).sum(), np.isnan(gain).sum()]
    return {"gains wrongly infinite": counts[0], "wrongly finite": counts[1], "unknown": counts[2]}


# Identification


class Plant(NamedTuple):
    """Plant in discrete time with a record of it."""

    u: Array
    y: Array
    response: Array
    """Impulse response, 20 samples."""
    is_stable: bool


@cache
def plants(count: int, *, in_loop: bool) -> list[Plant]:
    """Return random plants: stable ones driven by noise; or plants in a loop that stabilizes them, half of them unstable.

    The noise of the outputs is 0.3 to 30 % of them.
    """
    rng = np.random.default_rng(SEED)
    result: list[Plant] = []
    while len(result) < count:
        is_stable = not in_loop or len(result) % 2 == 0
        n_pairs, n_real = int(rng.integers(0, 3)), int(rng.integers(1, 3))
        radii, angles = rng.uniform(0.5, 0.98, n_pairs), rng.uniform(0.05, 2.0, n_pairs)
        pairs = [
            r * np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for r, a in zip(radii, angles, strict=True)
        ]
        A = linalg.block_diag(*pairs, np.diag(rng.uniform(-0.5, 0.98, n_real)))
        if not is_stable:
            A *= rng.uniform(1.01, 1.05) / np.abs(np.linalg.eigvals(A)).max()
        n = len(A)
        B, C = rng.standard_normal((n, 1)), rng.standard_normal((1, n))
        K: Array = np.zeros((1, n))
        if in_loop:
            P = linalg.solve_discrete_are(A, B, np.eye(n), np.eye(1))
            K = np.asarray(np.linalg.solve(np.eye(1) + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)
        x, u, y = np.zeros(n), rng.standard_normal(200), np.zeros(200)
        for k in range(len(u)):
            u[k] -= float(K[0] @ x)
            y[k] = C[0] @ x
            x = A @ x + B[:, 0] * u[k]
        y += 10.0 ** rng.uniform(-2.5, -0.5) * y.std() * rng.standard_normal(len(y))
        result.append(Plant(u, y, impulse_response(A, B, C), is_stable))
    return result


def impulse_response(A: Array, B: Array, C: Array) -> Array:
    """Return the first 20 samples C A^k B, k = 0, 1, …."""
    result, x = np.zeros(20), B[:, 0]
    for k in range(len(result)):
        result[k] = C[0] @ x
        x = A @ x
    return result


def identify(plant: Plant, u: Array | None = None, **options: Any) -> tuple[float, bool]:
    """Return the relative error of the identified impulse response, at most one, and whether the model is stable."""
    found = ltinet.identify(plant.u if u is None else u, plant.y, dt=1.0, delay=0, **options).discrete
    error = impulse_response(found.A, found.B, found.C) - plant.response
    is_stable = bool(np.abs(np.linalg.eigvals(found.A)).max() <= 1.0)
    return min(1.0, float(np.linalg.norm(error) / np.linalg.norm(plant.response))), is_stable


def measure_stability() -> dict[str, float]:
    """Count plants in a loop that are identified as unstable or stable and are not."""
    loops = plants(16, in_loop=True)
    found = [identify(plant, order=(2, 4), refine=False) for plant in loops]
    pairs = list(zip(loops, found, strict=True))
    return {
        "wrongly unstable, of 8": sum(plant.is_stable and not stable for plant, (_, stable) in pairs),
        "wrongly stable, of 8": sum(not plant.is_stable and stable for plant, (_, stable) in pairs),
        "median error": float(np.median([error for error, _ in found])),
    }


def measure_block_rows() -> dict[str, float]:
    """Measure errors of impulse responses."""
    errors = [identify(plant, order=(2, 4), refine=False)[0] for plant in plants(8, in_loop=False)]
    return {"median error": float(np.median(errors)), "mean error": float(np.mean(errors))}


def measure_gaps() -> dict[str, float]:
    """Measure errors of impulse responses where gaps leave a run of 60 samples and others of 5 to 25."""
    rng, errors = np.random.default_rng(SEED), []
    for plant in plants(8, in_loop=False):
        u, first = plant.u.copy(), 60
        while first < len(u):
            u[first] = np.nan
            first += int(rng.integers(6, 27))
        errors.append(identify(plant, u, order=2, refine=False)[0])
    return {"median error": float(np.median(errors)), "mean error": float(np.mean(errors))}


# Inputs between samples


def measure_variation() -> dict[str, float]:
    """Measure what samples miss of the variation, the largest value and the slope of sines: the least valid constant."""
    ratios = []
    for per_period in np.linspace(3.0, 12.0, 181):
        for phase in np.linspace(0.0, 2.0 * np.pi, 100):
            values = np.sin(2.0 * np.pi * np.arange(12 * 60 + 1) / per_period + phase)
            changes = np.abs(np.diff(values))
            periods = (len(values) - 1) / per_period
            ratios.append(
                [
                    4.0 * periods / (changes.sum() + abs(values[0])),
                    1.0 / np.abs(values).max(),
                    2.0 * np.pi / per_period / changes.max(),
                ]
            )
    names = ("variation", "largest value", "slope")
    largest = np.max(ratios, axis=0)
    return {name: float(value) for name, value in zip(names, largest, strict=True)}


# Repeated eigenvalues


def rotated_eigenvalues(rng: Random, leading: Array) -> Array:
    """Return a matrix with a leading block and separated eigenvalues, in coordinates of a condition number up to 10."""
    n = int(rng.integers(6, 20))
    middle = np.diag(np.concatenate([leading.diagonal(), -rng.uniform(2.0, 20.0, n - len(leading))]))
    middle[: len(leading), : len(leading)] = leading
    T = similarity(n, rng, condition=10.0 ** rng.uniform(0.0, 1.0))
    return np.asarray(np.linalg.solve(T, middle @ T))


def measure_noise_pairs() -> dict[str, float]:
    """Count double eigenvalues and integrators that rounding hides, and pairs and small eigenvalues that are removed."""
    rng, missed, wrong = np.random.default_rng(SEED), 0, 0
    for index in range(800):
        small = 10.0 ** rng.uniform(-10.0, -2.0)
        leading = [
            np.array([[-1.0, 1.0], [0.0, -1.0]]),  # a chain of two, which rounding makes a pair half of the time
            np.zeros((1, 1)),
            np.array([[-1.0, 1.0], [-small, -1.0]]),
            np.array([[-small]]),
        ][index % 4]
        A = rotated_eigenvalues(rng, leading)
        schur = repeated_eigenvalues.remove_noise(real_schur(A), A)
        kept = len(schur.pairs) == 1 if index % 2 == 0 else bool((schur.eigenvalues != 0.0).all())
        missed, wrong = missed + (index % 4 < 2 and kept), wrong + (index % 4 >= 2 and not kept)
    return {"missed, of 400": missed, "wrong, of 400": wrong}


def measure_repeated() -> dict[str, float]:
    """Count semisimple eigenvalues that are not recognized, and weakly defective ones that are taken for semisimple."""
    rng, missed, wrong = np.random.default_rng(SEED), 0, 0
    for index in range(600):
        n_equal = int(rng.integers(2, 5))
        leading = -np.eye(n_equal)
        leading[0, 1] = 10.0 ** rng.uniform(-10.0, 0.0) if index % 2 else 0.0
        A = rotated_eigenvalues(rng, leading)
        schur = repeated_eigenvalues.remove_noise(real_schur(A), A)
        schur = repeated_eigenvalues.group_repeated_eigenvalues(schur, A)
        near = np.abs(schur.R.diagonal() + 1.0) < 0.5
        block = schur.R[np.ix_(near, near)]
        is_semisimple = bool((block == block[0, 0] * np.eye(len(block))).all())
        missed, wrong = missed + (index % 2 == 0 and not is_semisimple), wrong + (index % 2 == 1 and is_semisimple)
    return {"missed, of 300": missed, "wrong, of 300": wrong}


# Searches for partitions


@cache
def matrices(count: int) -> list[Array]:
    """Return matrices whose eigenvectors are ill conditioned: random, and with clusters of eigenvalues."""
    rng, result = np.random.default_rng(SEED), []
    for index in range(count):
        n = int(rng.integers(12, 40))
        if index % 2:
            values = -np.repeat(rng.uniform(1.0, 9.0, n // 4 + 1), 4)[:n] * (1.0 + 0.05 * rng.standard_normal(n))
            A = np.diag(values) + np.triu(rng.standard_normal((n, n)), 1)
        else:
            A = rng.standard_normal((n, n)) - 2.0 * np.eye(n)
        Q = orthogonal(n, rng)
        result.append(Q @ A @ Q.T)
    return result


LIMITS = (3.0, 10.0, 100.0, 1e3)


def measure_frontier() -> dict[str, float]:
    """Measure connections of the frontiers within some limits on cond(T), relative to those of one block."""
    shares = []
    for A in matrices(8):
        atoms = separate_neurons(real_schur(A)).atoms
        found = frontier.search_frontier(atoms, limit=LIMITS[-1])
        total = atoms.connections((tuple(range(len(atoms.neurons))),))
        for limit in LIMITS:
            index = int(np.searchsorted(found.conditions, limit, side="right")) - 1
            shares.append(found.connections[index] / total)
    return {"mean share of connections": float(np.mean(shares))}


def measure_partition() -> dict[str, float]:
    """Measure connections within some limits on cond(T), relative to those of one block."""
    shares = []
    for A in matrices(8):
        atoms = separate_neurons(real_schur(A)).atoms
        total = atoms.connections((tuple(range(len(atoms.neurons))),))
        for limit in LIMITS:
            meter = partition.ConditionMeter(atoms, limit, evaluations_left=1)
            if meter.fits(atoms.singletons):
                continue
            shares.append(atoms.connections(partition.sparsest_partition(atoms, max_condition=limit)[0]) / total)
    return {"mean share of connections": float(np.mean(shares))}


def measure_relaxation() -> dict[str, float]:
    """Count searches that give up although they would find fewer connections than asked for."""
    wrong = 0
    for A in matrices(8):
        atoms = separate_neurons(real_schur(A)).atoms
        for limit in LIMITS:
            meter = partition.ConditionMeter(atoms, limit, evaluations_left=1)
            if meter.fits(atoms.singletons):
                continue
            found = atoms.connections(partition.sparsest_partition(atoms, max_condition=limit)[0])
            try:
                partition.sparsest_partition(atoms, max_condition=limit, fewer_than=found + 1)
            except partition.NotSparserError:
                wrong += 1
    return {"wrong": wrong}


def measure_tradeoff() -> dict[str, float]:
    """Measure the mean of log₁₀ cond(T) over numbers of connections of the trade-off curve of hard matrices."""
    rng, conditions = np.random.default_rng(SEED), []
    for _ in range(6):
        n = int(rng.integers(8, 16))
        values = -np.repeat(rng.uniform(1.0, 9.0, n), 3)[:n] * (
            1.0 + 10.0 ** rng.uniform(-9.0, -2.0) * rng.standard_normal(n)
        )
        Q = orthogonal(n, rng)
        A = Q @ (np.diag(values) + np.triu(rng.standard_normal((n, n)), 1)) @ Q.T
        forms = tradeoff_forms.compute_tradeoff_forms(A, balance=False)
        most = n * (n - 1) // 2
        for connections in np.linspace(0, most, 30):
            best = [form.condition for form in forms if form.n_connections <= connections]
            conditions.append(np.log10(min(best, default=1.0 / EPS)))
    return {"mean log10 cond(T)": float(np.mean(conditions))}


# Networks


def measure_critical_damping() -> dict[str, float]:
    """Measure errors of an impulse response of nearly critical pairs, through the map to block coordinates."""
    rng, errors = np.random.default_rng(SEED), []
    for _ in range(300):
        a, gap = -rng.uniform(0.5, 2.0), 10.0 ** rng.uniform(-12.0, 0.0) * rng.choice([-1.0, 1.0])
        layer = HorizontalLayer(M=[[1.0]], C=[[-2.0 * a]], K=[[a * a * (1.0 + gap)]], E=[[1.0]], V=[[0.0]])
        blocks = modal_blocks(Network([layer], [np.array([[1.0, 0.0]])], np.zeros((1, 1))))
        system, t = blocks.system, np.linspace(0.0, 5.0, 20)
        computed = np.array([(system.C @ linalg.expm(system.A * time) @ system.B)[0, 0] for time in t])
        root = np.sqrt(complex(-a * a * gap))
        exact = np.exp(a * t) * np.real(t * np.sinc(1j * root * t / np.pi))
        errors.append(np.abs(computed - exact).max() / np.abs(exact).max())
    return {"largest error, eps": max(errors) / EPS, "median error, eps": float(np.median(errors)) / EPS}


def measure_sensitivity() -> dict[str, float]:
    """Count weights of modes that no input reaches and that are kept, and weights of 1e-8 that are dropped.

    Half of the modes are in clusters, whose vectors rotate towards each other. T has a condition number up to 10.
    """
    rng, kept, dropped, total = np.random.default_rng(SEED), 0, 0, 0
    for _ in range(300):
        n = int(rng.integers(6, 16))
        values = -rng.uniform(1.0, 10.0, n)
        values[1 : n // 2] = values[0] * (1.0 + 10.0 ** rng.uniform(-4.0, 0.0) * rng.standard_normal(n // 2 - 1))
        kinds = rng.integers(0, 3, n)  # hidden, weak, usual
        weights = np.choose(kinds, [0.0, 1e-8, 1.0]) * rng.choice([-1.0, 1.0], n)
        T = similarity(n, rng, condition=10.0 ** rng.uniform(0.0, 1.0))
        A, B = np.linalg.solve(T, values[:, None] * T), np.linalg.solve(T, weights[:, None])
        net = ltinet.construct((A, B, np.ones((1, n))), n_layers=n)
        computed = np.array([layer.E.item() for layer in net.layers if layer.E.size == 1])
        found = np.array([(layer.K / layer.C).item() for layer in net.layers if layer.E.size == 1])
        if len(found) < n:
            continue
        order = np.abs(-found[:, None] - values).argmin(axis=0)
        kept += int(((computed[order] != 0.0) & (kinds == 0)).sum())
        dropped += int(((computed[order] == 0.0) & (kinds == 1)).sum())
        total += int((kinds == 0).sum())
    return {f"kept, of {total}": kept, "dropped": dropped}


EXPERIMENTS: dict[str, Experiment] = {
    "RANK_CHAIN_GROWTH": Experiment(
        "analysis.zeros analysis.dc_gain",
        (0.1, 1.0, 30.0, 1e3, 3e4, 1e6, 1e8),
        lambda: measure_zeros() | measure_dc_gain(),
    ),
    "_UNSTABLE_ERROR_RATIO": Experiment(
        "identification.estimation", (0.0, 0.1, 0.25, 0.5, 0.75, 1.0), measure_stability
    ),
    "_SUFFICIENT_ERROR": Experiment("identification.estimation", (0.0, 0.005, 0.02, 0.1, 0.3), measure_stability),
    "_CANDIDATE_BLOCK_ROWS": Experiment(
        "identification.estimation", ((10,), (15,), (25,), (6, 10, 15), (10, 15, 25), (10, 25, 40)), measure_block_rows
    ),
    "MIN_SAMPLES": Experiment("identification.records", (5, 10, 20, 30), measure_gaps),
    "_VARIATION_MARGIN": Experiment("simulation.delays", (2.0,), measure_variation),
    "_ENTRY_ROUNDING": Experiment(
        "blockdiag.repeated_eigenvalues", tuple(k * EPS for k in (0.1, 1.0, 10.0, 100.0, 1e4)), measure_noise_pairs
    ),
    "_SWAP_AMPLIFICATION": Experiment(
        "blockdiag.repeated_eigenvalues", (0.01, 0.1, 1.0, 10.0, 100.0, 1e4), measure_repeated
    ),
    "_MAX_SECOND_ORDER_FRACTION": Experiment(
        "blockdiag.repeated_eigenvalues", (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.5), measure_repeated
    ),
    "_PRICE_RATIO": Experiment("blockdiag.frontier", (1.1, 1.3, 2.0, 10.0), measure_frontier),
    "_MOVES_PER_PARTITION": Experiment("blockdiag.frontier", (1, 3, 10, 30), measure_frontier),
    "_PROMISE_CUTOFF": Experiment("blockdiag.frontier", (0.0, 0.3, 0.7, 2.0), measure_frontier),
    "_MAX_EVALUATIONS": Experiment("blockdiag.frontier", (0, 60, 250, 1000), measure_frontier),
    "_PATIENCE": Experiment("blockdiag.frontier", (5, 15, 30, 100), measure_frontier),
    "_START_SLACK": Experiment("blockdiag.frontier", (1.0, 1.3, 2.0), measure_frontier),
    "MERGE_POWERS": Experiment(
        "blockdiag.partition", ((1.0,), (1.5,), (0.5,), (2.0,), (1.0, 1.5), (1.0, 1.5, 0.5, 2.0)), measure_partition
    ),
    "_MAX_RELAXATION": Experiment("blockdiag.partition", (1, 2, 3, 10), measure_relaxation),
    "_CONDITION_LIMITS": Experiment(
        "blockdiag.tradeoff_forms",
        ((1e13,), (1e6, 1e13), (1e4, 1e6, 1e9, 1e13), (1e3, 1e4, 1e5, 1e6, 1e9, 1e13)),
        measure_tradeoff,
    ),
    "_CLUSTER_TOLERANCE": Experiment("blockdiag.tradeoff_forms", (0.0, 1e-8, 1e-6, 1e-4, 1.0), measure_tradeoff),
    "MAX_AMPLIFICATION": Experiment(
        "network.realization", (1.0, 10.0, 100.0, 1e4, 1e8, 1e12), measure_critical_damping
    ),
    "_MAX_SENSITIVITY": Experiment("network.block_system", (1.0, 10.0, 100.0, 1e3, 1e5, 1e7), measure_sensitivity),
}


def main() -> None:
    """Run experiments and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *EXPERIMENTS], metavar="NAME", help=", ".join(EXPERIMENTS))
    names = parser.parse_args().names or list(EXPERIMENTS)
    print(f"seed {SEED}")
    for name in names:
        print_table(name, EXPERIMENTS[name])


def print_table(name: str, experiment: Experiment) -> None:
    """Set a constant to each value, and print the figures."""
    modules = [import_module(f"ltinet.{module}") for module in experiment.modules.split()]
    in_use = getattr(modules[0], name)
    print(f"\n{name} of {experiment.modules}", flush=True)
    for value in experiment.values:
        for module in modules:
            setattr(module, name, value)
        began = time.perf_counter()
        figures = experiment.measure()
        figures["seconds"] = time.perf_counter() - began
        shown = ", ".join(f"{key} {figure:.4g}" for key, figure in figures.items())
        print(f"{'*' if value == in_use else ' '} {value!s:>24}: {shown}", flush=True)
    for module in modules:
        setattr(module, name, in_use)


if __name__ == "__main__":
    main()
