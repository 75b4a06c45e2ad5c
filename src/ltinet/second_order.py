"""Mechanical models M q'' + D q' + K q = B u, y = C q: the class `SecondOrder`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.other_names import missing_attribute
from ltinet._util.progress import Progress
from ltinet._util.text import format_count, format_rows
from ltinet.analysis.frequency_response import apply_delays, evaluation_points, second_order_response
from ltinet.analysis.responses import Channel, Times
from ltinet.large_systems import PreparedSystem
from ltinet.plotting.plots import SystemPlots
from ltinet.signals.sampled import Hold
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.systems.dof_selection import Dofs, count_rows, edge_matrix, validate_dofs
from ltinet.systems.matrices import Matrix, MatrixLike, describe_sparse, shallow_copy
from ltinet.systems.second_order_matrices import SecondOrderMatrices, SquareMatrix
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SecondOrder:
    """Mechanical model M q'' + D q' + K q = B u, y = C q: masses, dampers and springs, dense or sparse.

    If one of M, D and K is sparse, all are stored as sparse matrices. `ltinet.reduce` preserves the structure: each
    mode that it keeps becomes one second-order neuron. `as_state_space`, `construct` and `reduce` accept the model;
    all other analyses use the first-order form, `to_state_space()`.

    Parameters
    ----------
    M : array_like or sparse matrix, shape (n, n)
        Mass matrix.
    D : array_like or sparse matrix, shape (n, n)
        Damping matrix. Reduction errors of large models are certified for Rayleigh damping, `alpha * M + beta * K`.
    K : array_like or sparse matrix, shape (n, n)
        Stiffness matrix.
    B : array_like, shape (n, m) or (n,), optional
        Input matrix; a 1-D array is a single input. Omitted if `inputs` are given.
    C : array_like, shape (p, n) or (n,), optional
        Output matrix on positions; a 1-D array is a single output. Omitted if `outputs` are given.
    inputs : sequence of int, optional
        Degrees of freedom, counted from 0, each of which has a unit force as input, instead of B.
    outputs : sequence of int, optional
        Degrees of freedom whose positions are the outputs, instead of C.
    input_delay, output_delay, u0, y0, hold, sample_time
        Delays, operating point, hold and sample time, as for `StateSpace`.

    Raises
    ------
    InvalidSystemError
        If a matrix is complex, not finite or of the wrong shape, or a delay is negative.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> K = np.array([[2.0, -1.0], [-1.0, 1.0]])
    >>> model = ltinet.SecondOrder(M=np.eye(2), D=0.1 * K, K=K, B=[0.0, 1.0], C=[1.0, 0.0])
    >>> model.n_states
    4
    >>> ltinet.construct(model).n_second_order
    2
    """

    matrices: SecondOrderMatrices
    """Validated matrices, as the functions behind the public API take them."""
    signal_settings: SignalSettings
    """Delays, operating point, hold and sample time."""

    def __init__(  # noqa: PLR0913
        self,
        M: MatrixLike,
        D: MatrixLike,
        K: MatrixLike,
        B: MatrixLike | None = None,
        C: MatrixLike | None = None,
        *,
        inputs: Dofs = None,
        outputs: Dofs = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        n = count_rows(M)
        input_dofs = None if inputs is None else validate_dofs(inputs, n, "inputs")
        output_dofs = None if outputs is None else validate_dofs(outputs, n, "outputs")
        B = edge_matrix(B, input_dofs, n, kind="inputs")
        C = edge_matrix(C, output_dofs, n, kind="outputs")
        matrices = SecondOrderMatrices(M, D, K, B, C)
        settings = SignalSettings.of(
            n_inputs=int(matrices.B.shape[1]), n_outputs=len(matrices.C), input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        object.__setattr__(self, "matrices", matrices)
        object.__setattr__(self, "signal_settings", settings)

    @classmethod
    def of(cls, matrices: SecondOrderMatrices, *, settings: SignalSettings = NO_SETTINGS) -> "SecondOrder":
        """Create a model from validated matrices.

        Parameters
        ----------
        matrices : SecondOrderMatrices
            Matrices that were validated already.
        settings : SignalSettings, optional
            Delays, operating point, hold and sample time.

        Returns
        -------
        SecondOrder
            Model that shares the matrices.
        """
        model = cls.__new__(cls)
        object.__setattr__(model, "matrices", matrices)
        settings = settings.validate_for(n_inputs=int(matrices.B.shape[1]), n_outputs=len(matrices.C))
        object.__setattr__(model, "signal_settings", settings)
        return model

    def with_signal_settings(self, **changes: Any) -> "SecondOrder":
        """Return the same model with other delays, operating point, hold or sample time.

        Parameters
        ----------
        **changes
            Settings to replace, as for `StateSpace.with_signal_settings`.

        Returns
        -------
        SecondOrder
            Model with the new settings.

        Raises
        ------
        InvalidSystemError
            If a setting is unknown or a value is not valid.
        """
        settings = self.signal_settings.with_changes(changes, n_inputs=self.n_inputs, n_outputs=self.n_outputs)
        return SecondOrder.of(self.matrices, settings=settings)

    @property
    def M(self) -> SquareMatrix:
        """Mass matrix, n×n."""
        return _public_matrix(self.matrices.M)

    @property
    def D(self) -> SquareMatrix:
        """Damping matrix, n×n."""
        return _public_matrix(self.matrices.D)

    @property
    def K(self) -> SquareMatrix:
        """Stiffness matrix, n×n."""
        return _public_matrix(self.matrices.K)

    @property
    def B(self) -> Matrix:
        """Input matrix, n×m."""
        return self.matrices.B

    @property
    def C(self) -> Matrix:
        """Output matrix on positions, p×n."""
        return self.matrices.C

    @property
    def n_positions(self) -> int:
        """Number of positions n, the length of q."""
        return self.matrices.n_positions

    @property
    def n_states(self) -> int:
        """Number of states of the first-order form, 2n."""
        return 2 * self.n_positions

    @property
    def n_inputs(self) -> int:
        """Number of inputs m."""
        return int(self.B.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return len(self.C)

    def to_state_space(self) -> StateSpace:
        """Convert to first order: E x' = A x + B u with x = (q, q') and E = diag(I, M).

        Returns
        -------
        StateSpace
            System with 2n states, sparse if M, D and K are.
        """
        return self._first_order

    @cached_property
    def _first_order(self) -> StateSpace:
        def reducer(options: Any, *, callback: Any) -> Any:
            from ltinet.reduction.mechanical_reduction import reduce_model  # imported here because few models are large

            return reduce_model(self.matrices, options, method=None, callback=callback)

        matrices = self.matrices.first_order
        return StateSpace.of(
            matrices, prepared=PreparedSystem(matrices, reducer=reducer), settings=self.signal_settings
        )

    def frequency_response(self, omega: ArrayLike, *, progress: Progress = None) -> NDArray[np.complex128]:
        """Compute the frequency response H(jω) = C (K − ω² M + jω D)⁻¹ B.

        Each frequency takes one factorization. Delays are included as exact factors e^{−jωτ}.

        Parameters
        ----------
        omega : array_like
            Angular frequencies in radians per unit of time.
        progress : bool or callable, optional
            Progress, as for `reduce`.

        Returns
        -------
        ndarray of complex, shape (len(omega), n_outputs, n_inputs)
            Frequency response.
        """
        H = second_order_response(self.matrices, evaluation_points(omega, None).imag, progress)
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
        progress: Progress = None,
    ) -> Solution:
        """Simulate the model.

        A sparse model of more than 1,500 positions is reduced to its modes first, as `StateSpace.simulate` describes.

        Parameters
        ----------
        u, t
            Input and times, as for `StateSpace.simulate`.
        x0 : array_like, shape (2n,), optional
            Positions and velocities (q, q') at t[0]; zero by default.
        hold, tolerance
            Hold and error tolerance, as for `StateSpace.simulate`.
        progress : bool or callable, optional
            Progress of large models, as for `reduce`.

        Returns
        -------
        Solution
            Outputs at the times t.
        """
        return self._first_order.simulate(u, t, x0=x0, hold=hold, tolerance=tolerance, progress=progress)

    def step_response(
        self, t: Times = None, *, input: Channel = None, output: Channel = None, progress: Progress = None
    ) -> Solution:
        """Compute the step response: outputs for a unit step of an input at t = 0, from rest.

        That of a sparse model of more than 1,500 positions is computed by its reduction to modes, whose error
        `error_bound` includes where it is proven.

        Parameters
        ----------
        t, input, output, progress
            As for `StateSpace.step_response`.

        Returns
        -------
        Solution
            Response with the same shape as that of `StateSpace.step_response`.
        """
        return self._first_order.step_response(t, input=input, output=output, progress=progress)

    @property
    def plot(self) -> SystemPlots:
        """Plots of the model: `model.plot.bode()`, `.step()`, …, of its reduction if it is large; needs matplotlib."""
        return self._first_order.plot

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

    def __getstate__(self) -> dict[str, Any]:
        # The first-order form and its reduction are computed again for copies.
        return {"matrices": self.matrices, "signal_settings": self.signal_settings}

    def __dir__(self) -> list[str]:
        return dir_without(self, "matrices", "of")

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name, system="model.to_state_space()")

    def __repr__(self) -> str:
        sizes = f"n_positions={self.n_positions}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs}"
        return f"SecondOrder({sizes}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        return format_rows("second-order system", self._rows())

    def _repr_html_(self) -> str:
        return html_properties("second-order system", self._rows())


def _public_matrix(matrix: SquareMatrix) -> SquareMatrix:
    """Return a matrix that users may modify without effect on the model: sparse ones as shallow copies."""
    return matrix if isinstance(matrix, np.ndarray) else shallow_copy(matrix)


def _describe_matrix(matrix: SquareMatrix) -> str:
    if isinstance(matrix, np.ndarray):
        return f"array ({'symmetric' if np.array_equal(matrix, matrix.T) else 'not symmetric'})"
    return describe_sparse(matrix)
