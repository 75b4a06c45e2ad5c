"""T as something that multiplies: diagonal scaling times an orthogonal transform, or parts of such side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array


class Rotation(Protocol):
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
class Rotated:
    """T = diag(scaling) Q diag(lengths)⁻¹; ones where these are None."""

    rotation: Rotation
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
class SideBySide:
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
class Unmoved:
    """Q = 1."""

    def forward(self, x: Array) -> Array:
        """As it is."""
        return np.array(x)

    def backward(self, z: Array) -> Array:
        """As it is."""
        return np.array(z)


@final
@dataclass(frozen=True, eq=False)
class Vectors:
    """Q as an array of orthonormal columns."""

    Q: Array

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        return self.Q.T @ x

    def backward(self, z: Array) -> Array:
        """Q z."""
        return self.Q @ z
