"""State transformations x = T z, stored as factors, as arrays or as fast transforms.

A network needs only T⁻¹B and C T, which are thin products for few inputs and outputs. `FactoredTransformation` keeps
T = diag(scaling) · Z · basis and multiplies T out on first access, which costs as much as all other steps after the
Schur form. `DenseTransformation` holds T and T⁻¹ as arrays, `JoinedTransformation` those of two connected systems.
`ImplicitTransformation` applies structured bases such as T = diag(scaling) Q diag(lengths)⁻¹ with an orthogonal
transform Q, without an n × n array. `PlaneRotations` rotates the planes of complex pairs, columns of T and rows of T⁻¹.
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

# Rotation of the planes of pairs

MatrixStack: TypeAlias = NDArray[np.float64]
"""A stack of matrices, one for each pair."""

# Rounding error of a sum of two products, relative to their magnitudes: each product is rounded, as are the cosine and
# the sine in it.
_CANCELLATION = 4.0 * EPS


@final
@dataclass(frozen=True)
class PlaneRotations:
    """Orthogonal 2×2 matrices `(k, 2, 2)`, and the two columns of T `(k, 2)` that each of them rotates."""

    planes: MatrixStack
    at: NDArray[np.intp]

    def rotate_columns(self, matrix: Matrix) -> Matrix:
        """Replace the columns [p, q] of each pair by [p, q] · rotation; entries that cancel to rounding become zero."""
        rotated, p, q = np.array(matrix), matrix[:, self.at[:, 0]], matrix[:, self.at[:, 1]]
        for side in (0, 1):
            from_p, from_q = p * self.planes[:, 0, side], q * self.planes[:, 1, side]
            total = from_p + from_q
            total[np.abs(total) <= _CANCELLATION * (np.abs(from_p) + np.abs(from_q))] = 0.0
            rotated[:, self.at[:, side]] = total
        return rotated

    def rotate_rows(self, matrix: Matrix) -> Matrix:
        """Apply the rotations to the rows of T⁻¹: the transposed rotation from the left."""
        return self.rotate_columns(matrix.T).T

    @property
    def magnitudes(self) -> "PlaneRotations":
        """Rotations with the absolute value of every entry, for rounding bounds."""
        return PlaneRotations(np.abs(self.planes), self.at)


# Bases as operators: a scaling times an orthogonal transform, or components with such bases


class OrthogonalTransform(Protocol):
    """Orthogonal matrix Q, n×n, as an operator."""

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x for columns x."""

    def backward(self, z: Array) -> Array:
        """Return Q z for columns z."""


class Basis(Protocol):
    """Nonsingular matrix T, n×n, as an operator."""

    def to_blocks(self, B: Array) -> Array:
        """Return T⁻¹ B."""

    def from_blocks(self, C: Array) -> Array:
        """Return C T."""

    def states_of(self, z: Array) -> Array:
        """Return T z for columns z."""


@final
@dataclass(frozen=True, eq=False)
class ScaledOrthogonalBasis:
    """Basis T = diag(scaling) Q diag(lengths)⁻¹; None stands for ones."""

    rotation: OrthogonalTransform
    scaling: Array | None = None
    lengths: Array | None = None

    def to_blocks(self, B: Array) -> Array:
        """Return T⁻¹ B = diag(lengths) Qᵀ diag(scaling)⁻¹ B."""
        z = self.rotation.forward(B if self.scaling is None else B / self.scaling[:, None])
        return z if self.lengths is None else self.lengths[:, None] * z

    def from_blocks(self, C: Array) -> Array:
        """Return C T, by Qᵀ times the transpose."""
        columns = self.rotation.forward((C if self.scaling is None else C * self.scaling).T).T
        return columns if self.lengths is None else columns / self.lengths

    def states_of(self, z: Array) -> Array:
        """Return T z."""
        x = self.rotation.backward(z if self.lengths is None else z / self.lengths[:, None])
        return x if self.scaling is None else self.scaling[:, None] * x


@final
@dataclass(frozen=True, eq=False)
class BlockwiseBasis:
    """Basis of several components without connections: the states of each component, and its basis."""

    parts: Sequence[tuple[NDArray[np.intp], Basis]]

    def to_blocks(self, B: Array) -> Array:
        """Return T⁻¹ B."""
        return np.concatenate([basis.to_blocks(B[states]) for states, basis in self.parts])

    def from_blocks(self, C: Array) -> Array:
        """Return C T."""
        return np.concatenate([basis.from_blocks(C[:, states]) for states, basis in self.parts], axis=1)

    def states_of(self, z: Array) -> Array:
        """Return T z for columns z."""
        x, start = np.empty_like(z), 0
        for states, basis in self.parts:
            x[states] = basis.states_of(z[start : start + len(states)])
            start += len(states)
        return x


@final
@dataclass(frozen=True, eq=False)
class IdentityTransform:
    """Identity, Q = I."""

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x for columns x."""
        return np.array(x)

    def backward(self, z: Array) -> Array:
        """Return Q z for columns z."""
        return np.array(z)


@final
@dataclass(frozen=True, eq=False)
class DenseOrthogonalTransform:
    """Orthogonal matrix as an array."""

    Q: Array

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x for columns x."""
        return self.Q.T @ x

    def backward(self, z: Array) -> Array:
        """Return Q z for columns z."""
        return self.Q @ z


_N_PROBE_VECTORS = 4  # random vectors of the residual estimate


@final
@dataclass(frozen=True, eq=False)
class ImplicitTransformation:
    """Transformation x = T z by an operator: a basis with its states in another order, and rotated planes of pairs."""

    basis: Basis
    order: NDArray[np.intp]
    condition: float
    """Upper bound on cond₂(T)."""
    rotations: PlaneRotations | None = None

    @property
    def T(self) -> Matrix:
        """T as an array; raises InvalidSystemError for more states than dense arrays may have."""
        self._require_few()
        return make_read_only(self.states_of(np.eye(len(self.order))))

    @property
    def T_inv(self) -> Matrix:
        """T⁻¹ as an array; raises InvalidSystemError for more states than dense arrays may have."""
        self._require_few()
        return make_read_only(self.to_blocks(np.eye(len(self.order))))

    def to_blocks(self, B: Matrix) -> Matrix:
        """Return T⁻¹ B."""
        rows = self.basis.to_blocks(B)[self.order]
        return rows if self.rotations is None else self.rotations.rotate_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """Return C T."""
        columns = self.basis.from_blocks(C)[:, self.order]
        return columns if self.rotations is None else self.rotations.rotate_columns(columns)

    def states_of(self, z: Array) -> Array:
        """Return T z for columns z."""
        modes = np.array(z)
        if self.rotations is not None:
            modes[self.rotations.at] = np.einsum("kij,kj...->ki...", self.rotations.planes, z[self.rotations.at])
        placed = np.empty_like(modes)
        placed[self.order] = modes
        return self.basis.states_of(placed)

    def rotated(self, rotations: PlaneRotations) -> "ImplicitTransformation":
        """Return the transformation with the planes of some pairs rotated; only once."""
        return replace(self, rotations=rotations)

    def prepared_for(self, _: int) -> "ImplicitTransformation":
        """Return the transformation itself: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "TransformMagnitudes":
        """Magnitudes of the terms that entries of T⁻¹B and C T are sums of."""
        return TransformMagnitudes(self)

    def _require_few(self) -> None:
        """Raise InvalidSystemError if T is too large for an array."""
        n = len(self.order)
        if n > MAX_DENSE_STATES:
            raise InvalidSystemError(
                f"T of {n} states is an operator and too large for an array of {n}×{n} numbers; "
                "form.transformation.to_blocks(B) is T⁻¹B, .from_blocks(C) is C T and .states_of(z) is T z"
            )


@final
@dataclass(frozen=True, eq=False)
class TransformMagnitudes:
    """Magnitudes relative to which entries of T⁻¹B and C T are known.

    An orthogonal transform of b has a rounding error of norm eps log₂ n ‖b‖, which is assumed to be spread evenly.
    """

    operator: ImplicitTransformation

    def to_blocks(self, sizes: Matrix) -> Matrix:
        """Return magnitudes for T⁻¹B from |B|, n×m."""
        return np.broadcast_to(self._spread(sizes, axis=0), sizes.shape)

    def from_blocks(self, sizes: Matrix) -> Matrix:
        """Return magnitudes for C T from |C|, p×n."""
        return np.broadcast_to(self._spread(sizes, axis=1), sizes.shape)

    def _spread(self, sizes: Matrix, *, axis: int) -> Array:
        n = len(self.operator.order)
        norms = np.linalg.norm(sizes, axis=axis, keepdims=True)
        return np.asarray(norms * (self.operator.condition * np.log2(n + 2.0) / np.sqrt(n)))


def estimate_residual(A: Any, T: Any, A_bd: Any) -> float:
    """Return the largest ‖(A T − T A_bd) z‖ / (‖A‖₁ ‖T z‖) for a few random z."""
    z = np.random.default_rng(7).choice([-1.0, 1.0], size=(len(A_bd), _N_PROBE_VECTORS))
    x = T.states_of(z)
    difference = A @ x - T.states_of(A_bd.times(z))
    size = float(abs(A).sum(axis=0).max()) if A.nnz else 0.0
    scale = size * np.linalg.norm(x, axis=0)
    return float(np.max(np.linalg.norm(difference, axis=0) / np.where(scale > 0.0, scale, 1.0)))


@final
@dataclass(frozen=True, eq=False)
class DenseTransformation:
    """Transformation with T and T⁻¹ as read-only arrays in row-major order."""

    T: Matrix
    T_inv: Matrix

    def __post_init__(self) -> None:
        # Row-major as in files: BLAS sums column-major products in another order, which changes their last bit.
        for name in ("T", "T_inv"):
            object.__setattr__(self, name, make_read_only(np.ascontiguousarray(getattr(self, name))))

    def to_blocks(self, B: Matrix) -> Matrix:
        """Return T⁻¹ B."""
        return self.T_inv @ B

    def from_blocks(self, C: Matrix) -> Matrix:
        """Return C T."""
        return C @ self.T

    def states_of(self, z: Array) -> Array:
        """Return T z."""
        return self.T @ z

    def rotated(self, rotations: PlaneRotations) -> "DenseTransformation":
        """Return the transformation with the planes of some pairs rotated."""
        return DenseTransformation(rotations.rotate_columns(self.T), rotations.rotate_rows(self.T_inv))

    def prepared_for(self, _: int) -> "DenseTransformation":
        """Return the transformation itself: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "DenseTransformation":
        """Absolute values: eps times `magnitudes.to_blocks(|B|)` bounds the rounding errors of `to_blocks(B)`."""
        return DenseTransformation(np.abs(self.T), np.abs(self.T_inv))

    def __reduce__(self) -> tuple[Callable[..., "DenseTransformation"], tuple[Any, ...]]:
        return DenseTransformation, (self.T, self.T_inv)  # by the constructor: NumPy unpickles arrays as writeable


@final
@dataclass(frozen=True, eq=False)
class FactoredTransformation:
    """Transformation T = diag(scaling) · Z · basis, with its columns in another order and planes of pairs rotated.

    Z is orthogonal, scaling consists of powers of two. T and T⁻¹ are multiplied out on first access.
    """

    scaling: NDArray[np.float64]
    Z: Matrix
    basis: Matrix
    inverse: Matrix
    """Inverse of the basis."""
    order: NDArray[np.intp]
    rotations: PlaneRotations | None = None

    @cached_property
    def T(self) -> Matrix:
        """Product of the factors."""
        T = self.scaling[:, None] * (self.Z @ self.basis[:, self.order])
        return make_read_only(np.ascontiguousarray(T if self.rotations is None else self.rotations.rotate_columns(T)))

    @cached_property
    def T_inv(self) -> Matrix:
        """Product of the factors of the inverse."""
        T_inv = (self.inverse[self.order] @ self.Z.T) / self.scaling
        return make_read_only(
            np.ascontiguousarray(T_inv if self.rotations is None else self.rotations.rotate_rows(T_inv))
        )

    def to_blocks(self, B: Matrix) -> Matrix:
        """Return T⁻¹ B, from right to left."""
        rows = (self.inverse @ (self.Z.T @ (B / self.scaling[:, None])))[self.order]
        return rows if self.rotations is None else self.rotations.rotate_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """Return C T, from left to right."""
        columns = ((C * self.scaling) @ self.Z @ self.basis)[:, self.order]
        return columns if self.rotations is None else self.rotations.rotate_columns(columns)

    def states_of(self, z: Array) -> Array:
        """Return T z."""
        return self.T @ z

    def rotated(self, rotations: PlaneRotations) -> "Transformation":
        """Return the transformation with the planes of some pairs rotated."""
        if self.rotations is not None:
            return DenseTransformation(self.T, self.T_inv).rotated(rotations)
        return replace(self, rotations=rotations)

    def prepared_for(self, n_vectors: int) -> "Transformation":
        """Return the better form for two products with so many vectors: from the order of T on, T and T⁻¹ as arrays.

        They are cheaper then, and a product with a unit vector is an entry of T, without the rounding of a sum.
        """
        return self if n_vectors < len(self.Z) else DenseTransformation(self.T, self.T_inv)

    @property
    def magnitudes(self) -> "Transformation":
        """Absolute values of every factor, as the factors are multiplied one by one."""
        Z, basis, inverse = np.abs(self.Z), np.abs(self.basis), np.abs(self.inverse)
        return FactoredTransformation(
            self.scaling, Z, basis, inverse, self.order, self.rotations and self.rotations.magnitudes
        )

    def __reduce__(self) -> tuple[Callable[..., DenseTransformation], tuple[Any, ...]]:
        return DenseTransformation, (self.T, self.T_inv)


@final
@dataclass(frozen=True, eq=False)
class JoinedTransformation:
    """Transformation T = [[T₁, 0], [T₂ Y, T₂]] · diag(factors) of two systems, its columns in another order.

    T⁻¹ = diag(factors)⁻¹ [[T₁⁻¹, 0], [−Y T₁⁻¹, T₂⁻¹]]. Products use the factors of both parts; T and T⁻¹ are multiplied
    out on first access.
    """

    first: "Transformation"
    second: "Transformation"
    coupling: Matrix
    """Y; zero for systems in parallel."""
    factors: NDArray[np.float64]
    order: NDArray[np.intp]
    rotations: PlaneRotations | None = None
    sign: float = -1.0
    """Sign of Y in T⁻¹; 1 for magnitudes, which are all added."""

    @cached_property
    def T(self) -> Matrix:
        """T as an array."""
        n = self.coupling.shape[1]
        T = np.zeros((len(self.order), len(self.order)))
        T[:n, :n], T[n:, n:] = self.first.T, self.second.T
        T[n:, :n] = self.second.T @ self.coupling
        T = (T * self.factors)[:, self.order]
        return make_read_only(np.ascontiguousarray(T if self.rotations is None else self.rotations.rotate_columns(T)))

    @cached_property
    def T_inv(self) -> Matrix:
        """T⁻¹ as an array."""
        n = self.coupling.shape[1]
        T_inv = np.zeros((len(self.order), len(self.order)))
        T_inv[:n, :n], T_inv[n:, n:] = self.first.T_inv, self.second.T_inv
        T_inv[n:, :n] = self.sign * (self.coupling @ self.first.T_inv)
        T_inv = (T_inv / self.factors[:, None])[self.order]
        return make_read_only(
            np.ascontiguousarray(T_inv if self.rotations is None else self.rotations.rotate_rows(T_inv))
        )

    def to_blocks(self, B: Matrix) -> Matrix:
        """Return T⁻¹ B."""
        n = self.coupling.shape[1]
        z = self.first.to_blocks(B[:n])
        rows = np.vstack([z, self.second.to_blocks(B[n:]) + self.sign * (self.coupling @ z)])
        rows = (rows / self.factors[:, None])[self.order]
        return rows if self.rotations is None else self.rotations.rotate_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """Return C T."""
        n = self.coupling.shape[1]
        late = self.second.from_blocks(C[:, n:])
        columns = np.hstack([self.first.from_blocks(C[:, :n]) + late @ self.coupling, late])
        columns = (columns * self.factors)[:, self.order]
        return columns if self.rotations is None else self.rotations.rotate_columns(columns)

    def states_of(self, z: Array) -> Array:
        """Return T z."""
        return self.T @ z

    def rotated(self, rotations: PlaneRotations) -> "Transformation":
        """Return the transformation with the planes of some pairs rotated."""
        if self.rotations is not None:
            return DenseTransformation(self.T, self.T_inv).rotated(rotations)
        return replace(self, rotations=rotations)

    def prepared_for(self, _: int) -> "JoinedTransformation":
        """Return the transformation itself, whose parts prepare their own products."""
        return self

    @property
    def magnitudes(self) -> "Transformation":
        """Absolute values of every factor, as the factors are multiplied one by one."""
        parts = self.first.magnitudes, self.second.magnitudes
        rotations = self.rotations and self.rotations.magnitudes
        return JoinedTransformation(*parts, np.abs(self.coupling), self.factors, self.order, rotations, sign=1.0)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Callable[..., DenseTransformation], tuple[Any, ...]]:
        return DenseTransformation, (self.T, self.T_inv)


Transformation: TypeAlias = FactoredTransformation | DenseTransformation | ImplicitTransformation | JoinedTransformation
"""Transformation x = T z, in factors, as arrays, or as an operator."""
