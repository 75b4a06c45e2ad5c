"""A frequency response as evidence: how certain a model of it is, and what it says of this response and of others.

Noise of an instrument is a share of the response, a floor, or both; nobody tells. So the covariance takes the residuals
of every frequency for themselves, (JᵀJ)⁻¹ Jᵀ diag(r²) J (JᵀJ)⁻¹ (White 1980), which holds for any of these. A peak that
few frequencies show is followed by the model, and its residuals are smaller than the noise by the share 1 − h that the
hat matrix leaves of them: they are divided by it (MacKinnon and White 1985).
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.confidence import response_gradient
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.evidence import Compared
from ltinet.identification.from_frequency.checked import Measured, checked
from ltinet.identification.from_frequency.fitted import FittedResponse
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.parameters import MOST_PARAMETERS, Parameters
from ltinet.identification.residual_tests import ResidualTests
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS

_LEAST_LEFT = 0.01  # of the noise in a residual: what a model follows altogether tells nothing of its noise
_CLEAN = 1e-11  # of a channel: errors below are rounding, which no covariance describes


@final
@dataclass(frozen=True, eq=False)
class ResponseEvidence:
    """A model of continuous time with the response that it was found in."""

    model: FittedResponse
    modes: ModalModel | None
    """None where they cannot be told apart."""
    feedthrough: bool

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters; None where they are too many, or some of them move no response."""
        if self.modes is None:
            return None
        measured, weights = self.model.measured, self.model.weights
        parameters = Parameters(self.modes, self.feedthrough, "none", 0)
        left = ((measured.H - self.model.response(measured.omega)) * weights).ravel()
        residuals = np.concatenate([left.real, left.imag])
        n = len(parameters)
        if not 0 < n <= MOST_PARAMETERS or len(residuals) <= n or np.abs(residuals).max() <= _CLEAN:
            return None
        _, gradient = response_gradient(parameters, measured.omega, dt=None)
        J = (gradient * weights[..., None]).reshape(-1, n)
        R, meat = _folded(np.vstack([J.real, J.imag]), residuals)
        if R is None:
            return None
        inverse = linalg.solve_triangular(R, np.eye(n), check_finite=False)
        matrix = inverse @ meat @ inverse.T
        return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), np.ones_like(self.model.D))

    def doubts(self) -> tuple[str, ...]:
        """None: what frequencies tell was told when the model was found."""
        return ()

    def fit(self, first: Any, second: Any) -> Array:
        """100 (1 − ‖H − Ĥ‖/‖H − mean‖) % of every output over all inputs and frequencies."""
        own = self._given(first, second)
        H, modelled = own.H, self.model.response(own.omega)
        spread = np.linalg.norm(H - H.mean(axis=0), axis=(0, 2))
        size = np.where(spread > 0.0, spread, np.maximum(np.linalg.norm(H, axis=(0, 2)), np.finfo(float).tiny))
        return np.asarray(100.0 * (1.0 - np.linalg.norm(H - modelled, axis=(0, 2)) / size))

    def residuals(self, first: Any, second: Any) -> ResidualTests:  # noqa: ARG002 - as the protocol has it
        """Refused: correlations over time are those of records."""
        raise InvalidSignalError(
            "this system was found in a frequency response, which has no residuals over time; "
            "found.plot.compare(omega, H) shows measured and modelled responses"
        )

    def compared(self, first: Any, second: Any) -> tuple[Compared, ...]:
        """H `(K, p, m)` as measured and as the model has it."""
        own = self._given(first, second)
        return (Compared(own.omega, own.H, self.model.response(own.omega)),)

    def _given(self, omega: Any, H: Any) -> Measured:
        if omega is None and H is None:
            return self.model.measured
        own = checked(omega, H, None, fewest=1)
        if own.H.shape[1:] != self.model.D.shape:
            outputs, inputs = self.model.D.shape
            raise InvalidSignalError(
                f"H has {own.H.shape[1]} outputs and {own.H.shape[2]} inputs; the model has {outputs} and {inputs}"
            )
        return own


def _folded(J: Matrix, residuals: Array) -> tuple[Matrix | None, Matrix]:
    """R of J = QR, None where it is singular, and Qᵀ diag(r²/(1 − h)²) Q."""
    Q, R = linalg.qr(J, mode="economic", check_finite=False)
    if not np.all(np.abs(R.diagonal()) > len(R) * EPS * np.linalg.norm(R, axis=0)):
        return None, np.zeros((0, 0))
    left = np.maximum(1.0 - (Q**2).sum(axis=1), _LEAST_LEFT)
    return np.asarray(R), np.asarray((Q.T * (residuals / left) ** 2) @ Q)
