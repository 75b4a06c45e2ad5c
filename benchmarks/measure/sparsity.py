"""Connections left within a condition budget: ltinet, control.bdschur with and without balancing, and K-means.

Every candidate is judged alike: orthonormal bases in each block, cond(T) measured in balanced coordinates or in those
as given, whichever is smaller, and couplings in the Schur form of each block that are more than rounding. The peers are
swept (over bdschur's condmax, over K-means' number of clusters) and the best form within the budget counts.
"""

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet
from benchmarks.support.settings import Settings
from benchmarks.support.systems import data_systems, named_systems
from benchmarks.support.table import Table

BUDGETS = (10.0, 100.0, 1e4)
CONDMAX = (3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5)
Matrix = NDArray[np.float64]
Outcome = tuple[int, float]


def measure(settings: Settings) -> list[Table]:
    """One row per system, one column per budget."""
    columns = {"system": "system", "n": "n", **{f"{budget:g}": f"κ ≤ {budget:g}" for budget in BUDGETS}}
    if missing := [library for library in ("control", "slycot", "sklearn") if find_spec(library) is None]:
        row: dict[str, Any] = {"system": f"not installed: {', '.join(missing)}"}
        return [Table("sparsity", "Sparsity", "Nothing to compare with.", columns, [row])]
    systems = {**data_systems(), **named_systems()}
    if settings.quick:
        systems = {name: system for name, system in systems.items() if system.n_states <= 30}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers warn about repeated eigenvalues and clusters; the table has the outcome
        rows = [_row(name, np.array(system.A)) for name, system in systems.items()]
    cells = [(row[f"ltinet {budget:g}"], row[f"peer {budget:g}"]) for row in rows for budget in BUDGETS]
    total, below = sum(theirs > 0 for _, theirs in cells), sum(ours < theirs for ours, theirs in cells)
    note = (
        "Neuron-to-neuron connections left at a bound κ on cond(T), fewer is sparser: "
        "**ltinet** / `control.bdschur` with slycot / the same after balancing / K-means as in the paper "
        f"(scikit-learn), each at its best within the bound, in balanced coordinates or in those as given. Strictly "
        f"fewer than the best peer in {below} cells of the {total} in which that has any."
    )
    return [Table("sparsity", "Sparsity", note, columns, rows)]


def _row(name: str, A: Matrix) -> dict[str, Any]:
    peers = [list(bdschur_forms(A, balanced=False)), list(bdschur_forms(A, balanced=True)), list(kmeans_forms(A))]
    row: dict[str, Any] = {"system": name, "n": len(A)}
    for budget in BUDGETS:
        ours = ltinet.block_diagonalize(A, max_condition=budget).n_connections
        theirs = [best_within(forms, budget) for forms in peers]
        row[f"{budget:g}"] = " / ".join([f"**{ours}**", *map(str, theirs)])
        row[f"ltinet {budget:g}"], row[f"peer {budget:g}"] = ours, min(theirs)
    return row


def best_within(forms: list[Outcome], budget: float) -> int:
    """Fewest connections among forms within the budget."""
    return min(connections for connections, condition in forms if condition <= budget)


def bdschur_forms(A: Matrix, *, balanced: bool) -> Iterator[Outcome]:
    """What SLICOT's mb03rd gives through python-control, over the condition number it is asked for."""
    import control

    scaled, (scaling, _) = linalg.matrix_balance(A, permute=False, separate=True)
    yield connections_in(A), 1.0
    for condmax in CONDMAX:
        try:
            _, T, sizes = control.bdschur(scaled if balanced else A, condmax=condmax)
        except RuntimeError:  # it found no form within its bound
            continue
        bases = np.split(T if balanced else T / scaling[:, None], np.cumsum(sizes)[:-1], axis=1)
        yield judge(scaled, bases)
        if not balanced:
            yield judge(A, [scaling[:, None] * basis for basis in bases])


def kmeans_forms(A: Matrix) -> Iterator[Outcome]:
    """The paper's way: K-means on (Re λ, |Im λ|) with 1, 2, … clusters, at most 60 of them tried."""
    from sklearn.cluster import KMeans

    scaled, _ = linalg.matrix_balance(A, permute=False, separate=True)
    values, vectors = np.linalg.eig(scaled)
    upper = values.imag >= 0
    values, vectors = values[upper], vectors[:, upper]
    points = np.column_stack([values.real, values.imag])
    for n_clusters in np.unique(np.linspace(1, len(points), 60).astype(int)):
        labels = KMeans(int(n_clusters), n_init=1, random_state=0).fit_predict(points)
        bases = [_real_span(values[labels == label], vectors[:, labels == label]) for label in np.unique(labels)]
        yield judge(scaled, bases)


def judge(A: NDArray[Any], bases: list[Matrix]) -> Outcome:
    """Connections of a block-diagonal form, and cond of the best-scaled T with the same blocks."""
    bases = [np.linalg.qr(basis)[0] for basis in bases]
    connections = sum(connections_in(Q.T @ A @ Q) for Q in bases)
    return connections, float(np.linalg.cond(np.hstack(bases)))


def connections_in(block: NDArray[Any]) -> int:
    """Couplings between the neurons of one block that are more than rounding, counted as ltinet counts its own."""
    return ltinet.block_diagonalize(block, n_blocks=1, balance=False).n_connections if len(block) > 1 else 0


def _real_span(values: NDArray[np.complex128], vectors: NDArray[np.complex128]) -> Matrix:
    pairs = values.imag > 0
    return np.linalg.qr(np.hstack([vectors.real, vectors[:, pairs].imag]))[0]
