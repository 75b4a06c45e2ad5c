"""What is wanted of the blocks, and what a way to choose them gives back."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.separate import Separation
from ltinet.errors import PartitionError


class ClusteringAlgorithm(Protocol):
    """Anything with scikit-learn's `fit_predict`: points in, one label per point out."""

    def fit_predict(self, X: NDArray[np.float64]) -> Any:
        """Label each row of X."""
        ...


@dataclass(frozen=True)
class BlockChoice:
    """Which blocks are wanted: the sparsest within a bound on the condition number, a number of them, or clusters."""

    max_condition: float
    n_blocks: int | None = None
    clustering: ClusteringAlgorithm | None = None
    called: str = "n_blocks"
    """What the user calls the number of blocks."""

    @property
    def is_free(self) -> bool:
        """Whether the blocks are free to follow the structure of the matrix."""
        return self.n_blocks is None and self.clustering is None


@dataclass(frozen=True)
class Found:
    """The separation that was chosen, the trade-off seen on the way, and remarks for the user."""

    separation: Separation
    tradeoff: dict[int, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def require_choice_of_units(balance: object) -> None:
    """Refuse what says neither that states are to be balanced, nor that they are not, nor that both be tried.

    Raises:
        PartitionError: it is none of True, False and None.
    """
    if balance is not None and not isinstance(balance, bool):
        raise PartitionError(f"balance is {balance!r}; give True, False, or None to try both")
