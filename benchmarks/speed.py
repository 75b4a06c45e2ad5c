"""Time of the decomposition as ratios in one run: against one Schur form, against eigh, and against control.bdschur.

Each ratio is taken between neighbouring calls and repeated; the median and the range are shown.

    python -m benchmarks.speed
"""

import time
import warnings
from collections.abc import Callable

import control
import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_info

import ltinet
from benchmarks.systems import data_systems


def main() -> None:
    """Print the three tables."""
    warnings.simplefilter("ignore")
    threads = {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}
    print(
        f"BLAS threads {threads}; ratio = time of block_diagonalize / time of the peer, median (smallest … largest)\n"
    )
    random = np.random.default_rng(0)
    print("| random dense, max_condition = 1e4 | / scipy.linalg.schur |\n|---|---|")
    for n in (100, 200, 400, 800):
        A = random.standard_normal((n, n))
        row(f"n = {n}", lambda A=A: ltinet.block_diagonalize(A), lambda A=A: linalg.schur(A, output="real"))  # type: ignore[misc]
    S = random.standard_normal((400, 400))
    print("\n| symmetric | / scipy.linalg.eigh |\n|---|---|")
    row("n = 400", lambda: ltinet.block_diagonalize(S + S.T), lambda: linalg.eigh(S + S.T))
    print("\n| data set, budget | / control.bdschur |\n|---|---|")
    for name, system in data_systems().items():
        for budget in (10.0, 100.0, 1e4) if system.n_states >= 48 else ():
            A = np.array(system.A)
            row(
                f"{name} (n = {len(A)}), κ ≤ {budget:g}",
                lambda A=A, budget=budget: ltinet.block_diagonalize(A, max_condition=budget),  # type: ignore[misc]
                lambda A=A, budget=budget: control.bdschur(A, condmax=budget),  # type: ignore[misc]
            )


def row(label: str, ours: Callable[[], object], peer: Callable[[], object]) -> None:
    """Measure one ratio and print its row."""
    ratios = paired_ratios(ours, peer)
    print(f"| {label} | {np.median(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f}) |", flush=True)


def paired_ratios(ours: Callable[[], object], peer: Callable[[], object]) -> list[float]:
    """Ratios of the times of two calls made one after the other, for about a second, at least five times."""
    ours(), peer()
    ratios: list[float] = []
    begin = time.perf_counter()
    while len(ratios) < 5 or (time.perf_counter() - begin < 1.0 and len(ratios) < 300):
        ratios.append(seconds(ours) / seconds(peer))
    return ratios


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
