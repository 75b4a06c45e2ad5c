"""The residuals of a model over records: those it was found in, or others."""

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Trend, all_outputs, fitted_start
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.record import Record
from ltinet.identification.residual_tests import ResidualTests, examined
from ltinet.identification.sensitivities import residual_parts
from ltinet.identification.sequences import sequences

_CLEAN = 1e-8  # of the outputs: residuals below are what arithmetic leaves over, about which there is nothing to say


def residuals_of(model: ModalModel, records: tuple[Record, ...], trend: Trend) -> ResidualTests:
    """The tests of a model on records whose starts and trends are fitted."""
    residuals = []
    for own in records:
        start, _ = fitted_start(model, own, trend=trend, scale=np.ones(model.n_outputs))
        found = sequences(model, own)
        residuals.append(found.outputs - all_outputs(found, model, start))
    return examined(residuals, [own.u for own in records])


def fits_of(model: ModalModel, records: tuple[Record, ...]) -> Array:
    """100 (1 − ‖y − ŷ‖/‖y − mean‖) % of every output, with starts fitted as `record_fit` does."""
    errors = sum(fitted_start(model, own, trend="none", scale=deviations(own))[1] for own in records)
    spread = sum(((own.y - own.y.mean(axis=0)) ** 2).sum(axis=0) for own in records)
    return np.asarray(100.0 * (1.0 - np.sqrt(errors / spread)))


def deviations(record: Record) -> Array:
    """Return ‖y − mean‖ of every output, in units of which starts are fitted; 1 where an output does not change."""
    found = np.linalg.norm(record.y - record.y.mean(axis=0), axis=0)
    return np.where(found > 0.0, found, 1.0)


def feedback_warning(linear: Linear, records: tuple[Record, ...]) -> tuple[str, ...]:
    """A warning, or none, where the inputs of the records follow what the model leaves over."""
    parts = residual_parts(linear, records)
    residuals = [own.residuals for own in parts]
    size = np.concatenate([own.y[: len(e)] for own, e in zip(records, residuals, strict=True)]).std(axis=0)
    shown = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0)) > _CLEAN * size
    if not shown.any():
        return ()
    tests = examined(
        [np.where(shown, own, 0.0) for own in residuals],
        [own.u[: len(e)] for own, e in zip(records, residuals, strict=True)],
    )
    return (tests.feedback,) if tests.feedback else ()
