"""Mechanical models M q'' + D q' + K q = B u, y = C q: the class `SecondOrder`."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.display import dir_without, html_properties
from ltinet._util.text import format_count, format_rows
from ltinet.analysis.frequency_response import apply_delays, evaluation_points, second_order_response
from ltinet.signals.sampled import Hold
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix, MatrixLike, is_symmetric, shallow_copy
from ltinet.systems.second_order_matrices import SecondOrderMatrices, SquareMatrix
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings

# MERGED ltinet.second_order
# Mechanical models as their users meet them: `SecondOrder(M, D, K, B, C)`.


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SecondOrder:
    """A real mechanical model M q'' + D q' + K q = B u, y = C q: masses, dampers and springs, arrays or sparse.

    If one of M, D and K is sparse, all are kept so. `ltinet.reduce` keeps the structure: every mode that it keeps is
    one second-order neuron. Everything else goes through the first-order form, `to_state_space`, and `as_state_space`,
    `construct` and `reduce` take the model as it is.

    Args:
        M: the masses, n×n.
        D: the dampings, n×n; `alpha * M + beta * K` is Rayleigh damping, for which large models are certified.
        K: the stiffnesses, n×n.
        B: where inputs push, n×m; a 1-D array is a single input.
        C: which positions outputs see, p×n; a 1-D array is a single output.
        input_delay, output_delay, u0, y0, hold, sample_time: as for `StateSpace`; `to_state_space`, `construct` and
            `reduce` carry them.

    Raises:
        InvalidSystemError: a matrix is complex, not finite or of the wrong shape, or a delay is negative.
    """

    matrices: SecondOrderMatrices
    """All of them together, as the rooms below take them."""
    signal_settings: SignalSettings
    """Delays, operating point, hold and sample time."""

    def __init__(  # noqa: PLR0913
        self,
        M: MatrixLike,
        D: MatrixLike,
        K: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        *,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        matrices = SecondOrderMatrices(M, D, K, B, C)
        settings = SignalSettings.of(
            n_inputs=int(matrices.B.shape[1]), n_outputs=len(matrices.C), input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "signal_settings", settings)

    @classmethod
    def of(cls, matrices: SecondOrderMatrices, *, settings: SignalSettings = NO_SETTINGS) -> "SecondOrder":
        """Return the model of matrices that were checked already."""
        model = cls.__new__(cls)
        object.__setattr__(model, "matrices", matrices)
        fitting = settings.validate_for(n_inputs=int(matrices.B.shape[1]), n_outputs=len(matrices.C))
        object.__setattr__(model, "signal_settings", fitting)
        return model

    def with_signal_settings(self, **changes: Any) -> "SecondOrder":
        """Return the same model with other delays, operating point, hold or sample time.

        The parameters are those of `StateSpace.with_signal_settings`.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        return SecondOrder.of(self.matrices, settings=settings)

    @property
    def M(self) -> SquareMatrix:
        """The masses, n×n."""
        return _public_matrix(self.matrices.M)

    @property
    def D(self) -> SquareMatrix:
        """The dampings, n×n."""
        return _public_matrix(self.matrices.D)

    @property
    def K(self) -> SquareMatrix:
        """The stiffnesses, n×n."""
        return _public_matrix(self.matrices.K)

    @property
    def B(self) -> Matrix:
        """Where inputs push, n×m."""
        return self.matrices.B

    @property
    def C(self) -> Matrix:
        """Which positions outputs see, p×n."""
        return self.matrices.C

    @property
    def n_positions(self) -> int:
        """The number of entries of q, n."""
        return self.matrices.n_positions

    @property
    def n_states(self) -> int:
        """States of the first-order form, 2n."""
        return 2 * self.n_positions

    @property
    def n_inputs(self) -> int:
        """The number of inputs, m."""
        return int(self.B.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of outputs, p."""
        return len(self.C)

    def to_state_space(self) -> StateSpace:
        """E x' = A x + B u with x = (q, q') and E = diag(I, M): 2n states, sparse where M, D and K are."""
        return StateSpace.of(self.matrices.first_order, settings=self.signal_settings)

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(jω) = C (K − ω² M + jω D)⁻¹ B, (len(omega), p, m), by a factorisation for each frequency.

        Delays are exact factors e^{−jωτ}.
        """
        H = second_order_response(self.matrices, evaluation_points(omega, None).imag)
        if not self.signal_settings.has_delays:
            return H
        return apply_delays(H, omega, self.signal_settings.total_delay(self.n_outputs, self.n_inputs))

    def simulate(
        self,
        u: Any,
        t: ArrayLike,
        *,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        tolerance: float | None = None,
    ) -> Solution:
        """Outputs y at the times t; see `StateSpace.simulate`. x0 is (q, q') at t[0], 2n numbers."""
        return self.to_state_space().simulate(u, t, x0=x0, hold=hold, tolerance=tolerance)

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("ends", f"{format_count(self.n_inputs, 'input')} → {format_count(self.n_outputs, 'output')}"),
            ("positions", f"{self.n_positions}, so {self.n_states} states"),
            *((name, _describe_matrix(getattr(self.matrices, name))) for name in "MDK"),
            *self.signal_settings.rows,
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecondOrder):
            return NotImplemented
        return self.signal_settings == other.signal_settings and self.matrices.equals(other.matrices)

    def __hash__(self) -> int:
        return hash((self.n_positions, self.B.tobytes(), self.C.tobytes()))

    def __dir__(self) -> list[str]:
        return dir_without(self, "matrices", "of")

    def __repr__(self) -> str:
        sizes = f"n_positions={self.n_positions}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs}"
        return f"SecondOrder({sizes}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        return format_rows("second-order system", self._rows())

    def _repr_html_(self) -> str:
        return html_properties("second-order system", self._rows())


def _public_matrix(matrix: SquareMatrix) -> SquareMatrix:
    return matrix if isinstance(matrix, np.ndarray) else shallow_copy(matrix)


def _describe_matrix(matrix: SquareMatrix) -> str:
    if isinstance(matrix, np.ndarray):
        return f"array ({'symmetric' if np.array_equal(matrix, matrix.T) else 'not symmetric'})"
    return f"sparse with {matrix.nnz} non-zeros ({'symmetric' if is_symmetric(matrix) else 'not symmetric'})"
