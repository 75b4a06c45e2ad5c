"""Fit of a continuous-time system to a measured frequency response.

The fit chooses an order by cross-validation unless it is given, refines the best of several vector fits by variable
projection, and replaces unstable models on request: unstable poles are reflected in the imaginary axis and the model
is fitted again, and real poles near the origin become integrators where the data permit. Warnings name channels with
poor fits, an order at its limit, peaks between frequencies and poles far outside of the data.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array, Complex
from ltinet.errors import InvalidSignalError
from ltinet.identification.block_realization import (
    BlockRealization,
    DescentOptions,
    descend,
    fit_output_matrices,
    to_block_realization,
)
from ltinet.identification.frequency_data import FrequencyData, ScaledResponse, scale_response, validate_frequency_data
from ltinet.identification.frequency_order import (
    ROUNDING_FLOOR,
    TOLERATED_RATIO,
    OrderCandidate,
    best_start,
    choose_order,
)
from ltinet.identification.vector_fitting import compute_vector_fit

Stable = bool | Literal["auto"]
_MAX_AUTO_ORDER = 128  # states where no order is given: a descent of so many takes minutes
_FINAL_ROUNDS = 60  # time limit of the descent of the final model, which ends by its gain otherwise
_ORIGIN_RATIO = 0.1  # of the lowest frequency: a nearer real pole changes |H| by (p/ω)²/2 = 0.5 % of an integrator's
_POOR_ERROR = 0.2  # relative error of a channel that gives a warning; changes no result
# Ratio of a pole to the highest frequency, or of the lowest frequency to a pole, that gives a warning: in the measured
# range such a pole contributes a constant or a slope only.
_FAR_POLE_RATIO = 10.0


@dataclass(frozen=True, eq=False)
class FittedResponse:
    """System ẋ = A x + B u, y = C x + D u fitted to a frequency response."""

    model: BlockRealization
    """System in rad/s: real poles, pairs [[a, b], [c, a]], and poles that are nearly dependent together."""
    candidates: tuple[OrderCandidate, ...]
    """Orders that were compared, ascending; empty where one was given."""
    relative_errors: Array
    """Root mean square error of each channel over that of its data (over the largest one, if zero), `(p, m)`."""
    warnings: tuple[str, ...]
    measured: FrequencyData
    """Validated data."""
    weights: Array
    """Weights of the errors, as H."""

    def response(self, omega: ArrayLike) -> Complex:
        """Return H(jω) of the model, `(len(omega), p, m)`."""
        s = np.asarray(1j * np.asarray(omega, dtype=np.float64), dtype=np.complex128)
        return self.model.response(s)


def fit_response(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    order: int | range | None = None,
    stable: Stable = "auto",
    feedthrough: bool = True,
    weights: ArrayLike | None = None,
) -> FittedResponse:
    """Fit a system to a measured frequency response.

    `omega` has K frequencies in rad/s, not negative; `H` is `(K,)` for one input and output, else `(K, p, m)`. Errors
    are relative to the root mean square of their channel, or multiplied with `weights`, `(K,)` or as H. `order` None
    gives the smallest order that predicts every third frequency, held out, within 5 % of the best; a range restricts
    it, an integer fixes it.

    `stable="auto"` keeps unstable poles, with a warning, only where a stable model is more than 5 % worse; True
    reflects them and fits again, with a warning on the cost; False takes the best fit. Poles on the imaginary axis,
    integrators among them, count as stable.

    Vector fits with common poles are truncated to the order by Gramians over the measured range, so that a residue of
    rank r keeps r states, then refined by variable projection. Order 40 with 500 frequencies and 2 × 2 channels takes
    seconds. Raises InvalidSignalError where the data, the order or the weights are invalid.
    """
    measured = validate_frequency_data(omega, H, weights)
    if stable not in (True, False, "auto"):
        raise InvalidSignalError(f"stable is {stable!r}; it must be True, False or 'auto'")
    data = scale_response(measured.omega, measured.H, measured.weights, feedthrough=feedthrough)
    allowed = _allowed_orders(order, measured)
    candidates: tuple[OrderCandidate, ...] = ()
    if len(allowed) == 1:
        model = _fit_order(data, allowed[0], [])
    else:
        chosen, start, candidates = choose_order(data, allowed)
        model = _fit_order(data, chosen, [start])
    model = snap_integrators(model, data)
    model, cost = _apply_stability(model, data, stable)
    result = _unscale(model, data)
    # Root mean square errors of the channels, relative to the data.
    modeled = result.response(np.asarray(1j * measured.omega, dtype=np.complex128))
    errors = np.sqrt(np.mean(np.abs(modeled - measured.H) ** 2, axis=0))
    size = np.sqrt(np.mean(np.abs(measured.H) ** 2, axis=0))
    largest = float(size.max())
    errors = np.asarray(errors / np.where(size > 0.0, size, largest if largest > 0.0 else 1.0))
    warnings = (*cost, *fit_warnings(result.poles, measured.omega, errors, candidates=candidates, allowed=allowed))
    weights = data.weights / (data.rows * data.columns)
    return FittedResponse(result, candidates, errors, warnings, measured, weights)


def _allowed_orders(order: int | range | None, measured: FrequencyData) -> list[int]:
    """Return the orders to choose from, ascending."""
    K, p, m = measured.H.shape
    # Two thirds of the data are fitted, real and imaginary parts, by n (p + m) + p m unknowns.
    max_order = max(1, min((2 * (2 * K // 3) * p * m - p * m) // (2 * (p + m)), (2 * K // 3) - 1))
    if order is None:
        return list(range(min(max_order, _MAX_AUTO_ORDER) + 1))
    orders: list[int] = []
    if isinstance(order, range):
        orders = sorted(order)
    elif isinstance(order, (int, np.integer)) and not isinstance(order, bool):
        orders = [int(order)]
    if not orders or orders[0] < 0:
        raise InvalidSignalError(f"order is {order!r}; it must be None, an integer of at least 0, or a range of them")
    if orders[-1] > max_order:
        raise InvalidSignalError(
            f"order {orders[-1]} is more than {K} frequencies of {p} × {m} channels determine; give at most {max_order}, or "
            "measure more frequencies"
        )
    return orders


def _fit_order(data: ScaledResponse, order: int, starts: list[BlockRealization]) -> BlockRealization:
    """Return the best model of one order, from `starts` and vector fits with as many poles, fewer and more."""
    K, p, m = data.H.shape
    counts = {order, -(-order // min(p, m)), order + order // 2} if order else set()
    fits = [compute_vector_fit(data, count) for count in sorted(counts) if 0 < count <= (K - 1) // 2]
    if order == 0:
        starts = [BlockRealization(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), np.zeros((p, m)), ())]
    starts = [*starts, *(fit.truncation.of_order(order) for fit in fits)]
    start = best_start(starts, data)
    # A relative decrease g of the error of N values changes −2 log likelihood by 2 g N: stop when it gains 0.02.
    options = DescentOptions(rounds=_FINAL_ROUNDS, floor=ROUNDING_FLOOR, gain=min(1e-3, 1e-2 / data.H.size))
    model = descend(start, data, options)
    return to_block_realization(model.A, model.B, model.C, model.D)


def _apply_stability(
    model: BlockRealization, data: ScaledResponse, stable: Stable
) -> tuple[BlockRealization, tuple[str, ...]]:
    """Return the model, made stable as the option says, and a warning where this costs accuracy."""
    if stable is False or is_stable(model):
        return model, ()
    stabilized = stabilize(model, data)
    error, stable_error = (data.error(it.response(data.s)) for it in (model, stabilized))
    if stable_error <= max(TOLERATED_RATIO * error, ROUNDING_FLOOR):
        return stabilized, ()
    right = model.poles[model.poles.real > 0.0] * data.unit
    count = (
        f"{len(right)} of {model.n_states} poles in the right half plane, the fastest growth {right.real.max():.3g}/s"
    )
    if stable is True:
        return stabilized, (
            f"the best fit has {count}; stable=True reflected them, and the relative error grew from {error:.3g} to "
            f"{stable_error:.3g}",
        )
    return model, (
        f"the model is unstable: {count}; a stable one has the relative error {stable_error:.3g} instead of {error:.3g} "
        "(stable=True takes it)",
    )


def _unscale(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """Return the model in rad/s and in the units of the channels, with states scaled such that B and C balance."""
    root = np.sqrt(data.unit)
    B, C = root * model.B * data.columns, root * data.rows * model.C
    model = to_block_realization(data.unit * model.A, B, C, data.rows * model.D * data.columns)
    units = []
    for block in model.blocks():
        b, c = float(np.linalg.norm(model.B[block])), float(np.linalg.norm(model.C[:, block]))
        units.append(math.sqrt(b / c) if b > 0.0 and c > 0.0 else 1.0)
    sizes = np.repeat(np.array(units), np.array(model.sizes, dtype=np.intp))
    return BlockRealization(model.A, model.B / sizes[:, None], model.C * sizes, model.D, model.sizes)


# Stability.


def is_stable(model: BlockRealization) -> bool:
    """Return whether no pole has a positive real part."""
    return bool(np.all(model.poles.real <= 0.0))


def stabilize(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """Return the best stable model of the same order that a descent from reflected poles finds."""
    options = DescentOptions(rounds=_FINAL_ROUNDS, floor=ROUNDING_FLOOR, allowed=is_stable)
    return descend(_reflect_poles(model), data, options)


def snap_integrators(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """Move real poles near the origin into it, where this hardly changes the error."""
    nearest = float(np.min(np.abs(data.s[data.s != 0.0])))
    for block in model.blocks():
        pole = model.A[block[0], block[0]]
        if len(block) == 1 and 0.0 < abs(pole) < _ORIGIN_RATIO * nearest and not np.any(data.s == 0.0):
            A = model.A.copy()
            A[block[0], block[0]] = 0.0
            moved = fit_output_matrices(replace(model, A=A), data)
            error, moved_error = (data.error(it.response(data.s)) for it in (model, moved))
            if moved_error <= max(TOLERATED_RATIO * error, ROUNDING_FLOOR):
                model = moved
    return model


def _reflect_poles(model: BlockRealization) -> BlockRealization:
    """Return the model with unstable poles reflected in the imaginary axis, by the eigenvectors of A."""
    values, vectors = np.linalg.eig(model.A)
    reflected = -np.abs(values.real) + 1j * values.imag
    A = (vectors * reflected) @ np.linalg.inv(vectors)
    return to_block_realization(np.ascontiguousarray(A.real), model.B, model.C, model.D)


# Warnings.


def fit_warnings(
    poles: Complex, omega: Array, errors: Array, *, candidates: tuple[OrderCandidate, ...], allowed: list[int]
) -> tuple[str, ...]:
    """Return warnings on poor channels, an order at its limit, peaks between frequencies and poles far outside."""
    warnings = []
    poor = np.argwhere(errors > _POOR_ERROR)
    if len(poor):
        i, j = poor[0]
        warnings.append(
            f"{len(poor)} of {errors.size} channels are fitted badly: output {i} of input {j} to {errors[i, j]:.2g} of "
            "its size"
        )
    if candidates and len(poles) == allowed[-1] and candidates[-1].held_out > ROUNDING_FLOOR:
        warnings.append(f"order {len(poles)} is the largest that was allowed; a larger one may fit better")
    upper = poles[(poles.imag > omega[0]) & (poles.imag < omega[-1])]
    at = np.clip(np.searchsorted(omega, upper.imag), 1, len(omega) - 1)
    narrow = upper[np.abs(upper.real) < 0.25 * (omega[at] - omega[at - 1])]  # half width by a quarter of the step
    if narrow.size:
        warnings.append(
            f"{len(narrow)} resonances are narrower than the step between frequencies, the first at "
            f"{np.min(narrow.imag):.4g} rad/s: their heights are not in the data"
        )
    positive = omega[omega > 0.0]
    sizes = np.abs(poles)
    far = (sizes > _FAR_POLE_RATIO * positive.max()) | ((sizes > 0.0) & (sizes * _FAR_POLE_RATIO < positive.min()))
    if np.any(far):
        warnings.append(
            f"{int(np.count_nonzero(far))} poles lie a decade or more outside of the measured frequencies; "
            "the model is extrapolated there"
        )
    return tuple(warnings)
