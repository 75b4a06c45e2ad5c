"""How certain the parameters of a model are: (JᵀJ)⁻¹ JᵀΣJ (JᵀJ)⁻¹ with the Σ that the residuals show.

J are the derivatives of the simulated outputs by the parameters, outputs in units of their residuals, as the refinement
weights them. The usual (JᵀJ)⁻¹ holds for white residuals alone: under noise that lasts its regions are too small. Here
every output has an autoregressive model of its residuals, e = w / a(q), with innovations w that outputs share, so that
Σ = L (W ⊗ I) Lᵀ with L the filters 1/a: JᵀΣJ takes one run of the derivatives through the filters, backwards in time.

That is the covariance of the closest model. One that a subspace method gave and that no refinement moved stands beside
it, by (JᵀJ)⁻¹Jᵀe to first order: this step counts as a deviation of its own.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Trend
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.parameters import MOST_PARAMETERS, Parameters
from ltinet.identification.record import Record, n_samples
from ltinet.identification.sensitivities import Part, Sensitivities, residual_parts
from ltinet.identification.whitening import autoregression
from ltinet.model.matrices import Matrix
from ltinet.threads import one_blas_thread
from ltinet.tolerances import EPS


@dataclass(frozen=True, eq=False)
class ParameterCovariance:
    """The covariance of the parameters of a model `(n_shared, n_shared)`, in the order of `parameters`."""

    parameters: Parameters
    matrix: Matrix
    gain: Matrix
    """Units of outputs by units of inputs `(p, m)`, where parameters are told in units of the records."""

    @property
    def model(self) -> ModalModel:
        """The model whose parameters they are."""
        return self.parameters.like


def parameter_covariance(
    linear: Linear, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend
) -> ParameterCovariance | None:
    """The covariance of all parameters that belong to the model and not to a record.

    None where they are too many, more than the samples say, or where some of them move no output.
    """
    parameters = Parameters(linear.model, feedthrough, trend, len(records))
    n_values = n_samples(records) * linear.model.n_outputs
    if len(parameters) > MOST_PARAMETERS or n_values <= len(parameters):
        return None
    parts = residual_parts(linear, records)
    residuals = [own.residuals for own in parts]
    n_seen = sum(len(own) for own in residuals)
    scale = np.sqrt(sum((own**2).sum(axis=0) for own in residuals) / n_seen)
    if not np.all(scale > 0.0):
        return None
    slopes = Sensitivities(parameters, parts, scale)
    with one_blas_thread():
        R, side = slopes.triangle()
        n_local = len(parameters) - parameters.n_shared
        seen = R[n_local:, n_local:]
        size = np.linalg.norm(R[:, n_local:], axis=0)
        if not np.all(np.abs(seen.diagonal()) > len(R) * EPS * size):
            return None
        middle = _middle(slopes, parts, scale, R)[n_local:, n_local:]
        inverse = linalg.solve_triangular(seen, np.eye(len(seen)), check_finite=False)
        step = inverse @ side[n_local:]
    lost = n_values / (n_values - len(parameters))  # residuals are smaller than the noise by what was fitted
    matrix = (n_seen / n_samples(records)) * (lost * inverse @ middle @ inverse.T + np.outer(step, step))
    ones = np.ones_like(linear.model.D)
    return ParameterCovariance(parameters, np.asarray(0.5 * (matrix + matrix.T)), ones)


def _middle(slopes: Sensitivities, parts: list[Part], scale: Array, R: Matrix) -> Matrix:
    """QᵀΣQ, outputs in units of their residuals."""
    from scipy.signal import lfilter  # here, because it takes longer to import than the rest

    filters, W = innovations([own.residuals / scale for own in parts])
    total = np.zeros_like(R)
    for number in range(len(parts)):
        memory = [np.zeros((len(own) - 1, len(R))) for own in filters]
        for columns in slopes.backwards(number):
            shape = columns.shape
            Q = linalg.solve_triangular(R, columns.reshape(-1, len(R)).T, trans="T", check_finite=False).T
            turned = np.ascontiguousarray(Q).reshape(shape)[:, ::-1]
            for output, own in enumerate(filters):
                if len(own) > 1:
                    turned[output], memory[output] = lfilter([1.0], own, turned[output], axis=0, zi=memory[output])
            mixed = np.einsum("oq,qtk->otk", W, turned)
            total += turned.reshape(-1, len(R)).T @ mixed.reshape(-1, len(R))
    return total


def innovations(residuals: list[Array]) -> tuple[list[Array], Matrix]:
    """For every output the filter that whitens its residuals `(q, p)`; and the covariance of what is then left."""
    p = residuals[0].shape[1]
    filters = [autoregression([own[:, [output]] for own in residuals]) for output in range(p)]
    longest = max(map(len, filters))
    total, count = np.zeros((p, p)), 0
    for own in residuals:
        n = len(own) - longest + 1
        if n > 0:
            left = np.stack([np.convolve(own[:, j], filters[j])[longest - 1 : len(own)] for j in range(p)])
            total += left @ left.T
            count += n
    return filters, total / max(count, 1)
