"""A peer: something that takes the same case and gives the same outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from benchmarks.support.cases import Case

Run = Callable[[], NDArray[np.float64]]


@dataclass(frozen=True)
class Peer:
    """`prepare(case, tolerance)` does what need not be repeated; calling its result gives outputs `(T, p)`."""

    name: str
    package: str
    prepare: Callable[[Case, float], Run]
    tolerance: float = 0.0
    """rtol = atol of adaptive solvers."""
    n_steps: int | None = None
    """Steps that a slow peer runs; its time is scaled to all of them, since every step costs it the same."""

    for_stiff: bool = False
    """An implicit method, which its documentation advises for stiff systems only."""

    @property
    def is_installed(self) -> bool:
        """Whether the library is there."""
        return find_spec(self.package) is not None
