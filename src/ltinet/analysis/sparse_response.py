"""H(s) of a sparse model: one sparse factorisation of s E − A for each s, nothing filled in."""

from typing import Any

import numpy as np
from scipy import sparse

from ltinet.arrays import Array, Complex
from ltinet.errors import InvalidSystemError
from ltinet.model.memory import told_if_short
from ltinet.model.sparse_factors import SingularError, SparseFactors, has_symmetric_pattern
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.model.system_matrices import SystemMatrices
from ltinet.once import cached_property
from ltinet.tolerances import EPS


class SparseResolvent:
    """C (s E − A)⁻¹ B + D of a sparse model."""

    def __init__(self, system: SystemMatrices, pencil: SparsePencil) -> None:
        self.system, self.pencil = system, pencil

    @cached_property
    def _E(self) -> Any:
        return sparse.eye_array(self.pencil.n_states, format="csr") if self.pencil.mass is None else self.pencil.mass

    @cached_property
    def _is_symmetric(self) -> bool:
        return has_symmetric_pattern(self.pencil.state, self.pencil.mass)

    def at(self, s: Complex) -> Complex:
        """H(s), (len(s), p, m); complex(inf, nan) in every entry where s is a pole."""
        H = np.empty((len(s), *self.system.D.shape), dtype=np.complex128)
        with told_if_short(self.pencil.n_states, self.pencil.n_nonzeros):
            for index, place in enumerate(s.tolist()):
                try:
                    H[index] = self._gain(self._factors(place))
                except SingularError:
                    H[index] = complex(np.inf, np.nan)
        return H

    def at_rest(self) -> Array:
        """H(0), in discrete time H(1): real numbers.

        Raises:
            InvalidSystemError: there is an integrator, which only a filled-in matrix tells more about.
        """
        try:
            factors = self._factors(0.0 if self.system.dt is None else 1.0)
            if factors.condition() * EPS * self.system.n_states >= 1.0:
                raise SingularError
            return np.asarray(self._gain(factors), dtype=np.float64)
        except SingularError:
            raise InvalidSystemError(
                "A is singular to working precision, so that the gain at rest is infinite or not known: the model has "
                "integrators; system.frequency_response(omega) tells the gain at any frequency but zero"
            ) from None

    def _factors(self, s: complex | float) -> SparseFactors:
        return SparseFactors(s * self._E - self.pencil.state, has_symmetric_pattern=self._is_symmetric)

    def _gain(self, factors: SparseFactors) -> Any:
        """D + C M⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
        system, B = self.system, self.pencil.B
        if system.n_inputs <= system.n_outputs:
            return system.D + system.C @ factors.solve(B)
        return system.D + factors.solve(system.C.T, transposed=True).T @ B
