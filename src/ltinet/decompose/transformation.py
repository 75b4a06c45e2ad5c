"""Between the user's states x and those of the blocks z: x = T z, kept in factors until someone looks at T itself.

A network needs T⁻¹B and C T only, which for a few inputs and outputs are thin products with the factors. T and T⁻¹
multiplied out would cost as much as all else that follows the Schur form.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.operator import Operator
from ltinet.decompose.turns import Turns
from ltinet.model.matrices import Matrix, read_only
from ltinet.once import cached_property


@final
@dataclass(frozen=True, eq=False)
class Product:
    """T and T⁻¹ as they are, row by row in memory; both are read-only from now on."""

    T: Matrix
    T_inv: Matrix

    def __post_init__(self) -> None:
        # Row by row, as files hold them: of columns BLAS adds in another order, which changes the last bit of products.
        for name in ("T", "T_inv"):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(getattr(self, name))))

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B."""
        return self.T_inv @ B

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T."""
        return C @ self.T

    def turned(self, turns: Turns) -> "Product":
        """The same with the planes of some pairs turned."""
        return Product(turns.of_columns(self.T), turns.of_rows(self.T_inv))

    def prepared_for(self, _: int) -> "Product":
        """As it is: there is no cheaper way to multiply."""
        return self

    @property
    def magnitudes(self) -> "Product":
        """Every entry by its size: eps times `magnitudes.to_blocks(|B|)` is what rounding leaves in `to_blocks(B)`."""
        return Product(np.abs(self.T), np.abs(self.T_inv))

    def __reduce__(self) -> tuple[Callable[..., "Product"], tuple[Any, ...]]:
        return Product, (self.T, self.T_inv)  # through the door again: NumPy unpickles arrays writeable


@final
@dataclass(frozen=True, eq=False)
class Factors:
    """T = diag(scaling) · Z · basis, its columns in another order, then turned; Z orthogonal, scaling powers of two."""

    scaling: NDArray[np.float64]
    Z: Matrix
    basis: Matrix
    inverse: Matrix
    """The inverse of the basis."""
    order: NDArray[np.intp]
    turns: Turns | None = None

    @cached_property
    def T(self) -> Matrix:
        """The factors multiplied out."""
        T = self.scaling[:, None] * (self.Z @ self.basis[:, self.order])
        return read_only(np.ascontiguousarray(T if self.turns is None else self.turns.of_columns(T)))

    @cached_property
    def T_inv(self) -> Matrix:
        """The factors of the inverse multiplied out."""
        T_inv = (self.inverse[self.order] @ self.Z.T) / self.scaling
        return read_only(np.ascontiguousarray(T_inv if self.turns is None else self.turns.of_rows(T_inv)))

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B, from right to left."""
        rows = (self.inverse @ (self.Z.T @ (B / self.scaling[:, None])))[self.order]
        return rows if self.turns is None else self.turns.of_rows(rows)

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T, from left to right."""
        columns = ((C * self.scaling) @ self.Z @ self.basis)[:, self.order]
        return columns if self.turns is None else self.turns.of_columns(columns)

    def turned(self, turns: Turns) -> "Transformation":
        """The same with the planes of some pairs turned."""
        if self.turns is not None:
            return Product(self.T, self.T_inv).turned(turns)
        return replace(self, turns=turns)

    def prepared_for(self, n_vectors: int) -> "Transformation":
        """The cheaper form for multiplying that many vectors twice: from the order of T on, that is T itself."""
        return self if n_vectors < len(self.Z) else Product(self.T, self.T_inv)

    @property
    def magnitudes(self) -> "Transformation":
        """Every entry of every factor by its size, as those are what is multiplied."""
        Z, basis, inverse = np.abs(self.Z), np.abs(self.basis), np.abs(self.inverse)
        return Factors(self.scaling, Z, basis, inverse, self.order, self.turns and self.turns.magnitudes)

    def __reduce__(self) -> tuple[Callable[..., Product], tuple[Any, ...]]:
        return Product, (self.T, self.T_inv)


Transformation: TypeAlias = Factors | Product | Operator
"""x = T z, in factors, multiplied out, or as something that multiplies."""
