"""T as an operator: what it does to B, C and states, without an array of n² numbers."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.decompose.structures.basis import Basis
from ltinet.decompose.turns import Turns
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix, read_only
from ltinet.model.sparse_pencil import LARGEST_FILLED_IN

_PROBES = 4


@final
@dataclass(frozen=True, eq=False)
class Operator:
    """x = T z, the blocks of a basis in another order, the planes of some pairs turned."""

    basis: Basis
    order: NDArray[np.intp]
    condition: float
    """cond₂(T)."""
    turns: Turns | None = None

    @property
    def T(self) -> Matrix:
        """T as an array.

        Raises:
            InvalidSystemError: there are too many states for that.
        """
        self._require_few()
        return read_only(self.states_of(np.eye(len(self.order))))

    @property
    def T_inv(self) -> Matrix:
        """T⁻¹ as an array.

        Raises:
            InvalidSystemError: there are too many states for that.
        """
        self._require_few()
        return read_only(self.to_blocks(np.eye(len(self.order))))

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B."""
        rows = self.basis.to_blocks(B)[self.order]
        return rows if self.turns is None else self.turns.of_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T."""
        columns = self.basis.from_blocks(C)[:, self.order]
        return columns if self.turns is None else self.turns.of_columns(columns)

    def states_of(self, z: Array) -> Array:
        """T times columns."""
        modes = np.array(z)
        if self.turns is not None:
            modes[self.turns.at] = np.einsum("kij,kj...->ki...", self.turns.planes, z[self.turns.at])
        placed = np.empty_like(modes)
        placed[self.order] = modes
        return self.basis.states_of(placed)

    def turned(self, turns: Turns) -> "Operator":
        """The same with the planes of some pairs turned, once."""
        return replace(self, turns=turns)

    def prepared_for(self, _: int) -> "Operator":
        """As it is: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "TransformSizes":
        """The sizes of the terms of sums, as far as transforms have any."""
        return TransformSizes(self)

    def _require_few(self) -> None:
        n = len(self.order)
        if n > LARGEST_FILLED_IN:
            raise InvalidSystemError(
                f"T of {n} states is kept as an operator and not made an array of {n}×{n} numbers; "
                "form.transformation.to_blocks(B) is T⁻¹B, .from_blocks(C) is C T and .states_of(z) is T z"
            )


@final
@dataclass(frozen=True, eq=False)
class TransformSizes:
    """What an entry of T⁻¹B is known relative to: an orthogonal transform rounds by eps log₂ n ‖b‖ in all, spread."""

    operator: Operator

    def to_blocks(self, sizes: Matrix) -> Matrix:
        """For |B|, n×m."""
        return np.broadcast_to(self._spread(sizes, axis=0), sizes.shape)

    def from_blocks(self, sizes: Matrix) -> Matrix:
        """For |C|, p×n."""
        return np.broadcast_to(self._spread(sizes, axis=1), sizes.shape)

    def _spread(self, sizes: Matrix, *, axis: int) -> Array:
        n = len(self.operator.order)
        norms = np.linalg.norm(sizes, axis=axis, keepdims=True)
        return np.asarray(norms * (self.operator.condition * np.log2(n + 2.0) / np.sqrt(n)))


def probed_residual(A: Any, T: Any, A_bd: Any) -> float:
    """The largest ‖(A T − T A_bd) z‖ / (‖A‖₁ ‖T z‖) of some random z: what the decomposition leaves."""
    z = np.random.default_rng(7).choice([-1.0, 1.0], size=(len(A_bd), _PROBES))
    x = T.states_of(z)
    left = A @ x - T.states_of(A_bd.times(z))
    size = float(abs(A).sum(axis=0).max()) if A.nnz else 0.0
    scale = size * np.linalg.norm(x, axis=0)
    return float(np.max(np.linalg.norm(left, axis=0) / np.where(scale > 0.0, scale, 1.0)))
