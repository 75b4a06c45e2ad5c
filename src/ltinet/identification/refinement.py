"""Output-error refinement: all parameters moved until the simulated outputs come as close as they can.

Gauss-Newton steps within a trust region (Levenberg and Marquardt, MINPACK through SciPy). Residuals and derivatives are
compressed by the same rotation (`sequences`), which changes no length and no angle, so that a step costs as much for a
million samples as for a thousand once the sequences are there.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Start, Trend, squared_errors
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.parameters import MOST_PARAMETERS, Parameters
from ltinet.identification.record import Record
from ltinet.identification.sequences import Sequences, compressed_sequences

_STEPS = 60
_SMALL_CHANGE = 1e-10  # relative, of the parameters and of the error: nobody measures more digits
_LARGEST_GROWTH = 200.0  # exponent of what a mode may grow by over a record
_FAR = 1e100  # the residual of what is not looked at


class _Point(NamedTuple):
    theta: Array
    residuals: Array
    derivatives: Array


def refined(
    linear: Linear, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> Linear | None:
    """The model after refinement, None where it came no closer or has too many parameters."""
    problem = _Problem(Parameters(linear.model, feedthrough, trend, len(records)), records, scale)
    if len(problem.parameters) > MOST_PARAMETERS:
        return None
    theta = problem.parameters.packed(linear.model, linear.starts)
    n_rows = problem.residuals(theta).size
    if n_rows < len(theta):
        return None
    from scipy import optimize  # here, because few calls need it and it takes its time

    found = optimize.least_squares(
        problem.residuals,
        theta,
        jac=problem.derivatives,
        method="lm",
        x_scale="jac",
        max_nfev=_STEPS,
        xtol=_SMALL_CHANGE,
        ftol=_SMALL_CHANGE,
        gtol=1e-12,
    )
    model, starts = problem.parameters.unpacked(found.x)
    if not np.all(np.isfinite(found.x)) or found.cost >= 0.5 * float(
        problem.residuals(theta) @ problem.residuals(theta)
    ):
        return None
    return problem.judged(_with_pairs_above(model), _starts_above(model, starts))


class _Problem:
    def __init__(self, parameters: Parameters, records: tuple[Record, ...], scale: Array) -> None:
        self.parameters, self._records, self._scale = parameters, records, scale
        self._last: _Point | None = None

    def residuals(self, theta: Array) -> Array:
        return self._at(theta).residuals

    def derivatives(self, theta: Array) -> Array:
        return self._at(theta).derivatives

    def judged(self, model: ModalModel, starts: tuple[Start, ...]) -> Linear:
        found = [compressed_sequences(model, own) for own in self._records]
        errors = [squared_errors(own, model, start) for own, start in zip(found, starts, strict=True)]
        return Linear(model, starts, np.sum(errors, axis=0))

    def _at(self, theta: Array) -> _Point:
        if self._last is None or not np.array_equal(self._last.theta, theta):
            self._last = self._computed(theta.copy())
        return self._last

    def _computed(self, theta: Array) -> _Point:
        model, starts = self.parameters.unpacked(theta)
        longest = max(len(own) for own in self._records)
        if self._last is not None and np.log(np.abs(model.poles).max(initial=0.0)) * longest > _LARGEST_GROWTH:
            return _Point(theta, np.full_like(self._last.residuals, _FAR), self._last.derivatives)
        residuals, derivatives = [], []
        for number, (record, start) in enumerate(zip(self._records, starts, strict=True)):
            own = self._sequences(model, record, start)
            residuals.append((self.parameters.residuals(own, model, start) / self._scale[:, None]).ravel())
            columns = self.parameters.derivatives(own, model, start, record=number) / self._scale[:, None, None]
            derivatives.append(columns.reshape(-1, columns.shape[-1]))
        return _Point(theta, np.concatenate(residuals), np.vstack(derivatives))

    def _sequences(self, model: ModalModel, record: Record, start: Start) -> Sequences:
        return compressed_sequences(model, record, self.parameters.drive(model, start))


def _with_pairs_above(model: ModalModel) -> ModalModel:
    """Pairs told by their pole above the real axis, where a step went below it."""
    below = model.poles.imag < 0.0
    return ModalModel(
        np.where(below, model.poles.conj(), model.poles),
        model.is_pair,
        np.where(below, model.C.conj(), model.C),
        np.where(below[:, None], model.B.conj(), model.B),
        model.D,
        linear=model.linear,
    )


def _starts_above(model: ModalModel, starts: tuple[Start, ...]) -> tuple[Start, ...]:
    below = model.poles.imag < 0.0
    return tuple(Start(np.where(below, own.states.conj(), own.states), own.trends) for own in starts)
