"""One neuron, m ξ̈ + c ξ̇ + k ξ = w u (Definition 1), as a user reads it."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ltinet.network.equation import NeuronEquation, equation_of

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Neuron:
    """A first-order neuron (m = 0, a real eigenvalue) or a second-order one (a complex pair).

    Its input is u, u̇ and the outputs of the neurons after it in the layer: w = [e | v | −k_ij −c_ij for each of those].
    Two neurons are equal when their place and all their numbers are.
    """

    index: int
    """Place in the layer, counted from zero."""
    m: float
    c: float
    k: float
    e: Vector
    """Weights of u."""
    v: Vector
    """Weights of u̇; zero for first-order neurons of a constructed network."""
    stiffness_couplings: Vector
    """k_ij for j = index + 1, …: how ξ_j enters, with a minus sign on the right-hand side."""
    damping_couplings: Vector
    """c_ij for j = index + 1, …: how ξ̇_j enters."""

    def __post_init__(self) -> None:
        for name in ("e", "v", "stiffness_couplings", "damping_couplings"):
            vector = np.asarray(getattr(self, name), dtype=np.float64)
            if vector.flags.writeable:  # rows of a layer are read-only already and need no copy
                vector = vector.copy()
                vector.setflags(write=False)
            object.__setattr__(self, name, vector)

    @property
    def order(self) -> Literal[1, 2]:
        """Order of the differential equation."""
        return 1 if self.m == 0.0 else 2

    @property
    def w(self) -> Vector:
        """All weights in the paper's order, [e | v | −k_{i,i+1} −c_{i,i+1} | … ]."""
        couplings = np.column_stack([-self.stiffness_couplings, -self.damping_couplings]).ravel()
        return np.concatenate([self.e, self.v, couplings])

    @property
    def poles(self) -> tuple[complex, ...]:
        """Roots of m s² + c s + k, without cancellation; one for a first-order neuron; `net.poles()` has all."""
        if self.order == 1:
            return (complex(0.0 - self.k / self.c),)  # 0 − 0 is +0: an integrator's pole prints as 0
        half, product = -0.5 * self.c / self.m, self.k / self.m
        discriminant = half * half - product
        if discriminant < 0.0:
            root = complex(half, np.sqrt(-discriminant))
            return root, root.conjugate()
        larger = half + np.copysign(np.sqrt(discriminant), half)
        return (complex(larger), complex(product / larger)) if larger != 0.0 else (0j, 0j)

    @property
    def equation(self) -> NeuronEquation:
        """The differential equation as text, LaTeX in a notebook; neurons of the layer and inputs count from 1."""
        return equation_of(
            self.index,
            (self.k, self.c, self.m),
            (self.e.tolist(), self.v.tolist()),
            (self.stiffness_couplings.tolist(), self.damping_couplings.tolist()),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Neuron):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(astuple(self), astuple(other), strict=True))

    def __hash__(self) -> int:
        return hash((self.index, self.m, self.c, self.k))

    def __reduce__(self) -> tuple[Callable[..., "Neuron"], tuple[Any, ...]]:
        # Through the door again: NumPy unpickles arrays writeable.
        return Neuron, astuple(self)
