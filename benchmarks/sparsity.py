"""Connections left within a condition budget: ltinet, control.bdschur with and without balancing, and K-means.

Every candidate is judged alike: orthonormal bases in each block, cond(T) measured in balanced coordinates,
neuron-to-neuron connections Σ n_l (n_l − 1)/2. The peers are swept (over bdschur's condmax, over K-means' number of
clusters) and the best form within the budget counts.

    python -m benchmarks.sparsity
"""

import warnings
from collections.abc import Iterator
from typing import Any

import control
import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.cluster import KMeans

import ltinet
from benchmarks.systems import data_systems, named_systems

BUDGETS = (10.0, 100.0, 1e4)
CONDMAX = (3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5)
Matrix = NDArray[np.float64]
Outcome = tuple[int, float]


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")  # peers warn about repeated eigenvalues and clusters; the table shows the outcome
    print("ltinet / bdschur / bdschur after balancing / K-means\n")
    print("| system | n | " + " | ".join(f"κ ≤ {budget:g}" for budget in BUDGETS) + " |")
    print("|---|---|" + "---|" * len(BUDGETS))
    below = total = 0
    for name, system in {**data_systems(), **named_systems()}.items():
        A = np.array(system.A)
        peers = [list(bdschur_forms(A, balanced=False)), list(bdschur_forms(A, balanced=True)), list(kmeans_forms(A))]
        cells = []
        for budget in BUDGETS:
            ours = ltinet.block_diagonalize(A, max_condition=budget).n_connections
            theirs = [best_within(forms, budget) for forms in peers]
            total += min(theirs) > 0
            below += ours < min(theirs)
            cells.append(" / ".join(str(count) for count in (f"**{ours}**", *theirs)))
        print(f"| {name} | {len(A)} | " + " | ".join(cells) + " |", flush=True)
    print("\nconvection_diffusion: its zero eigenvalues share one block, as in the paper, with no coupling inside it")
    print(f"strictly fewer than the best peer in {below} cells of the {total} in which that has any")


def best_within(forms: list[Outcome], budget: float) -> int:
    """Fewest connections among forms within the budget."""
    return min(connections for connections, condition in forms if condition <= budget)


def bdschur_forms(A: Matrix, *, balanced: bool) -> Iterator[Outcome]:
    """What SLICOT's mb03rd gives through python-control, over the condition number it is asked for."""
    scaled, (scaling, _) = linalg.matrix_balance(A, permute=False, separate=True)
    yield _neurons_to_connections([_n_neurons(A)]), 1.0
    for condmax in CONDMAX:
        try:
            _, T, sizes = control.bdschur(scaled if balanced else A, condmax=condmax)
        except RuntimeError:  # it found no form within its bound
            continue
        yield judge(scaled, T if balanced else T / scaling[:, None], np.cumsum(sizes)[:-1])


def kmeans_forms(A: Matrix) -> Iterator[Outcome]:
    """The paper's way: K-means on (Re λ, |Im λ|) with 1, 2, … clusters, at most 60 of them tried."""
    scaled, _ = linalg.matrix_balance(A, permute=False, separate=True)
    values, vectors = np.linalg.eig(scaled)
    upper = values.imag >= 0
    values, vectors = values[upper], vectors[:, upper]
    points = np.column_stack([values.real, values.imag])
    for n_clusters in np.unique(np.linspace(1, len(points), 60).astype(int)):
        labels = KMeans(int(n_clusters), n_init=1, random_state=0).fit_predict(points)
        bases = [_real_span(values[labels == label], vectors[:, labels == label]) for label in np.unique(labels)]
        sizes = [int(np.sum(labels == label)) for label in np.unique(labels)]
        yield _neurons_to_connections(sizes), float(np.linalg.cond(np.hstack(bases)))


def judge(A: NDArray[Any], T: NDArray[Any], splits: NDArray[np.int_]) -> Outcome:
    """Connections of a block-diagonal form, and cond of the best-scaled T with the same blocks."""
    bases = [np.linalg.qr(columns)[0] for columns in np.split(T, splits, axis=1)]
    neurons = [_n_neurons(Q.T @ A @ Q) for Q in bases]
    return _neurons_to_connections(neurons), float(np.linalg.cond(np.hstack(bases)))


def _n_neurons(A: NDArray[Any]) -> int:
    return int(np.sum(np.linalg.eigvals(A).imag >= 0))


def _neurons_to_connections(neurons: list[int]) -> int:
    return sum(count * (count - 1) // 2 for count in neurons)


def _real_span(values: NDArray[np.complex128], vectors: NDArray[np.complex128]) -> Matrix:
    pairs = values.imag > 0
    return np.linalg.qr(np.hstack([vectors.real, vectors[:, pairs].imag]))[0]


if __name__ == "__main__":
    main()
