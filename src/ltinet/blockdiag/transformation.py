"""State transformations x = T z, stored as factors, as arrays or as fast transforms.

A network needs only T⁻¹B and C T, which are thin products for few inputs and outputs. `FactoredTransformation` keeps
T = diag(scaling) · Z · basis and multiplies T out on first access, which costs as much as all other steps after the
Schur form. `DenseTransformation` holds T and T⁻¹ as arrays. `ImplicitTransformation` applies structured bases such as
T = diag(scaling) Q diag(lengths)⁻¹ with an orthogonal transform Q, without an n × n array. `PlaneRotations` rotates the
planes of complex pairs, columns of T and rows of T⁻¹.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, make_read_only
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

# MERGED ltinet.blockdiag.transformation
# Turns of the planes of pairs: what they do to T and to T⁻¹.

MatrixStack: TypeAlias = NDArray[np.float64]
"""A stack of matrices, one for each pair."""

_ROWS_PER_CHUNK = 256  # turned at a time, so that temporary copies stay small
_CANCELLATION = 4.0 * EPS  # of two terms: each is rounded, and so are the cosine and the sine in it


@final
@dataclass(frozen=True)
class PlaneRotations:
    """Orthogonal 2×2 matrices, and the two columns of T that each of them turns: `(k, 2, 2)` and `(k, 2)`."""

    planes: MatrixStack
    at: NDArray[np.intp]

    def of_columns(self, matrix: Matrix) -> Matrix:
        """Replace the columns [p, q] of each pair by [p, q] · turn; entries that cancel to rounding are zero."""
        turned = np.array(matrix)
        for start in range(0, len(matrix), _ROWS_PER_CHUNK):
            rows = slice(start, start + _ROWS_PER_CHUNK)
            p, q = matrix[rows, self.at[:, 0]], matrix[rows, self.at[:, 1]]
            for side in (0, 1):
                from_p, from_q = p * self.planes[:, 0, side], q * self.planes[:, 1, side]
                total = from_p + from_q
                total[np.abs(total) <= _CANCELLATION * (np.abs(from_p) + np.abs(from_q))] = 0.0
                turned[rows, self.at[:, side]] = total
        return turned

    def of_rows(self, matrix: Matrix) -> Matrix:
        """What turned columns of T do to the rows of T⁻¹: the transpose of the turn from the left."""
        return self.of_columns(matrix.T).T

    @property
    def magnitudes(self) -> "PlaneRotations":
        """The same with every entry by its size."""
        return PlaneRotations(np.abs(self.planes), self.at)


# MERGED ltinet.blockdiag.transformation
# T as something that multiplies: diagonal scaling times an orthogonal transform, or parts of such side by side.


class OrthogonalTransform(Protocol):
    """An orthogonal Q, n×n."""

    def forward(self, x: Array) -> Array:
        """Qᵀ times columns."""
        ...

    def backward(self, z: Array) -> Array:
        """Q times columns."""
        ...


class Basis(Protocol):
    """A regular T, n×n."""

    def to_blocks(self, B: Array) -> Array:
        """T⁻¹ B."""
        ...

    def from_blocks(self, C: Array) -> Array:
        """C T."""
        ...

    def states_of(self, z: Array) -> Array:
        """T times columns."""
        ...


@final
@dataclass(frozen=True, eq=False)
class ScaledOrthogonalBasis:
    """T = diag(scaling) Q diag(lengths)⁻¹; ones where these are None."""

    rotation: OrthogonalTransform
    scaling: Array | None = None
    lengths: Array | None = None

    def to_blocks(self, B: Array) -> Array:
        """T⁻¹ B = diag(lengths) Qᵀ diag(scaling)⁻¹ B."""
        z = self.rotation.forward(B if self.scaling is None else B / self.scaling[:, None])
        return z if self.lengths is None else self.lengths[:, None] * z

    def from_blocks(self, C: Array) -> Array:
        """C T, by Qᵀ times the transpose."""
        columns = self.rotation.forward((C if self.scaling is None else C * self.scaling).T).T
        return columns if self.lengths is None else columns / self.lengths

    def states_of(self, z: Array) -> Array:
        """T z."""
        x = self.rotation.backward(z if self.lengths is None else z / self.lengths[:, None])
        return x if self.scaling is None else self.scaling[:, None] * x


@final
@dataclass(frozen=True, eq=False)
class BlockwiseBasis:
    """Parts that are not connected: which states each of them has, and its own T."""

    parts: Sequence[tuple[NDArray[np.intp], Basis]]

    def to_blocks(self, B: Array) -> Array:
        """Part after part."""
        return np.concatenate([basis.to_blocks(B[states]) for states, basis in self.parts])

    def from_blocks(self, C: Array) -> Array:
        """Part beside part."""
        return np.concatenate([basis.from_blocks(C[:, states]) for states, basis in self.parts], axis=1)

    def states_of(self, z: Array) -> Array:
        """Every part at its own states."""
        x, start = np.empty_like(z), 0
        for states, basis in self.parts:
            x[states] = basis.states_of(z[start : start + len(states)])
            start += len(states)
        return x


@final
@dataclass(frozen=True, eq=False)
class IdentityTransform:
    """Q = 1."""

    def forward(self, x: Array) -> Array:
        """As it is."""
        return np.array(x)

    def backward(self, z: Array) -> Array:
        """As it is."""
        return np.array(z)


@final
@dataclass(frozen=True, eq=False)
class DenseOrthogonalTransform:
    """Q as an array of orthonormal columns."""

    Q: Array

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        return self.Q.T @ x

    def backward(self, z: Array) -> Array:
        """Q z."""
        return self.Q @ z


# MERGED ltinet.blockdiag.transformation
# T as an operator: what it does to B, C and states, without an array of n² numbers.

_N_PROBE_VECTORS = 4


@final
@dataclass(frozen=True, eq=False)
class ImplicitTransformation:
    """x = T z, the blocks of a basis in another order, the planes of some pairs turned."""

    basis: Basis
    order: NDArray[np.intp]
    condition: float
    """cond₂(T)."""
    turns: PlaneRotations | None = None

    @property
    def T(self) -> Matrix:
        """T as an array.

        Raises:
            InvalidSystemError: there are too many states for that.
        """
        self._require_few()
        return make_read_only(self.states_of(np.eye(len(self.order))))

    @property
    def T_inv(self) -> Matrix:
        """T⁻¹ as an array.

        Raises:
            InvalidSystemError: there are too many states for that.
        """
        self._require_few()
        return make_read_only(self.to_blocks(np.eye(len(self.order))))

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

    def turned(self, turns: PlaneRotations) -> "ImplicitTransformation":
        """The same with the planes of some pairs turned, once."""
        return replace(self, turns=turns)

    def prepared_for(self, _: int) -> "ImplicitTransformation":
        """As it is: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "TransformMagnitudes":
        """The sizes of the terms of sums, as far as transforms have any."""
        return TransformMagnitudes(self)

    def _require_few(self) -> None:
        n = len(self.order)
        if n > MAX_DENSE_STATES:
            raise InvalidSystemError(
                f"T of {n} states is kept as an operator and not made an array of {n}×{n} numbers; "
                "form.transformation.to_blocks(B) is T⁻¹B, .from_blocks(C) is C T and .states_of(z) is T z"
            )


@final
@dataclass(frozen=True, eq=False)
class TransformMagnitudes:
    """What an entry of T⁻¹B is known relative to: an orthogonal transform rounds by eps log₂ n ‖b‖ in all, spread."""

    operator: ImplicitTransformation

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


def estimate_residual(A: Any, T: Any, A_bd: Any) -> float:
    """The largest ‖(A T − T A_bd) z‖ / (‖A‖₁ ‖T z‖) of some random z: what the decomposition leaves."""
    z = np.random.default_rng(7).choice([-1.0, 1.0], size=(len(A_bd), _N_PROBE_VECTORS))
    x = T.states_of(z)
    left = A @ x - T.states_of(A_bd.times(z))
    size = float(abs(A).sum(axis=0).max()) if A.nnz else 0.0
    scale = size * np.linalg.norm(x, axis=0)
    return float(np.max(np.linalg.norm(left, axis=0) / np.where(scale > 0.0, scale, 1.0)))


# MERGED ltinet.blockdiag.transformation
# Between the user's states x and those of the blocks z: x = T z, kept in factors until someone looks at T itself.
#
# A network needs T⁻¹B and C T only, which for a few inputs and outputs are thin products with the factors. T and T⁻¹
# multiplied out would cost as much as all else that follows the Schur form.


@final
@dataclass(frozen=True, eq=False)
class DenseTransformation:
    """T and T⁻¹ as they are, row by row in memory; both are read-only from now on."""

    T: Matrix
    T_inv: Matrix

    def __post_init__(self) -> None:
        # Row by row, as files hold them: of columns BLAS adds in another order, which changes the last bit of products.
        for name in ("T", "T_inv"):
            object.__setattr__(self, name, make_read_only(np.ascontiguousarray(getattr(self, name))))

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B."""
        return self.T_inv @ B

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T."""
        return C @ self.T

    def turned(self, turns: PlaneRotations) -> "DenseTransformation":
        """The same with the planes of some pairs turned."""
        return DenseTransformation(turns.of_columns(self.T), turns.of_rows(self.T_inv))

    def prepared_for(self, _: int) -> "DenseTransformation":
        """As it is: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "DenseTransformation":
        """Every entry by its size: eps times `magnitudes.to_blocks(|B|)` is what rounding leaves in `to_blocks(B)`."""
        return DenseTransformation(np.abs(self.T), np.abs(self.T_inv))

    def __reduce__(self) -> tuple[Callable[..., "DenseTransformation"], tuple[Any, ...]]:
        return DenseTransformation, (self.T, self.T_inv)  # through the door again: NumPy unpickles arrays writeable


@final
@dataclass(frozen=True, eq=False)
class FactoredTransformation:
    """T = diag(scaling) · Z · basis, its columns in another order, then turned; Z orthogonal, scaling powers of two."""

    scaling: NDArray[np.float64]
    Z: Matrix
    basis: Matrix
    inverse: Matrix
    """The inverse of the basis."""
    order: NDArray[np.intp]
    turns: PlaneRotations | None = None

    @cached_property
    def T(self) -> Matrix:
        """The factors multiplied out."""
        T = self.scaling[:, None] * (self.Z @ self.basis[:, self.order])
        return make_read_only(np.ascontiguousarray(T if self.turns is None else self.turns.of_columns(T)))

    @cached_property
    def T_inv(self) -> Matrix:
        """The factors of the inverse multiplied out."""
        T_inv = (self.inverse[self.order] @ self.Z.T) / self.scaling
        return make_read_only(np.ascontiguousarray(T_inv if self.turns is None else self.turns.of_rows(T_inv)))

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B, from right to left."""
        rows = (self.inverse @ (self.Z.T @ (B / self.scaling[:, None])))[self.order]
        return rows if self.turns is None else self.turns.of_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T, from left to right."""
        columns = ((C * self.scaling) @ self.Z @ self.basis)[:, self.order]
        return columns if self.turns is None else self.turns.of_columns(columns)

    def turned(self, turns: PlaneRotations) -> "Transformation":
        """The same with the planes of some pairs turned."""
        if self.turns is not None:
            return DenseTransformation(self.T, self.T_inv).turned(turns)
        return replace(self, turns=turns)

    def prepared_for(self, n_vectors: int) -> "Transformation":
        """The cheaper form for multiplying that many vectors twice: from the order of T on, that is T itself."""
        return self if n_vectors < len(self.Z) else DenseTransformation(self.T, self.T_inv)

    @property
    def magnitudes(self) -> "Transformation":
        """Every entry of every factor by its size, as those are what is multiplied."""
        Z, basis, inverse = np.abs(self.Z), np.abs(self.basis), np.abs(self.inverse)
        return FactoredTransformation(self.scaling, Z, basis, inverse, self.order, self.turns and self.turns.magnitudes)

    def __reduce__(self) -> tuple[Callable[..., DenseTransformation], tuple[Any, ...]]:
        return DenseTransformation, (self.T, self.T_inv)


Transformation: TypeAlias = FactoredTransformation | DenseTransformation | ImplicitTransformation
"""x = T z, in factors, multiplied out, or as something that multiplies."""
