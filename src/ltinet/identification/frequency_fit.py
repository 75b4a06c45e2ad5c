"""Fit of a continuous-time system to a measured frequency response.

The fit chooses an order by cross-validation unless it is given, refines the best of several vector fits by variable
projection, and replaces unstable models on request: unstable poles are reflected in the imaginary axis and the model
is fitted again, and real poles near the origin become integrators where the data permit. Warnings name channels with
poor fits, an order at its limit, peaks between frequencies and poles far outside of the data.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array, Complex
from ltinet.errors import InvalidSignalError
from ltinet.identification.block_realization import (
    BlockRealization,
    fit_output_matrices,
    fit_residues,
    to_block_realization,
)
from ltinet.identification.frequency_data import FrequencyData, ScaledResponse, scale_response, validate_frequency_data
from ltinet.identification.frequency_order import ROUNDING_FLOOR, OrderCandidate, best_start, choose_order
from ltinet.identification.variable_projection import DescentOptions, descend
from ltinet.identification.vector_fitting import balance_over_band, compute_vector_fit, initial_poles, relocate_poles

# MERGED ltinet.identification.frequency_fit
# What is found of a measured frequency response, with the evidence for it.


@dataclass(frozen=True, eq=False)
class FittedResponse:
    """ẋ = A x + B u, y = C x + D u whose frequency response is near the measured one."""

    A: Array
    """Real, with diagonal blocks: single poles, pairs [[a, b], [c, a]], and what cannot be told apart together."""
    B: Array
    C: Array
    D: Array
    block_sizes: tuple[int, ...]
    poles: Complex
    """Eigenvalues of A, rad/s, block after block."""
    candidates: tuple[OrderCandidate, ...]
    """Orders that were compared, ascending; empty where one was asked for."""
    relative_errors: Array
    """Of each channel, (p, m): root mean square of the error over that of the data (the largest, if it is zero)."""
    warnings: tuple[str, ...]
    measured: FrequencyData
    """The response that was given, checked."""
    weights: Array
    """What errors were multiplied with where they were compared, as H."""

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.A)

    def response(self, omega: ArrayLike) -> Complex:
        """H(jω) of the model, (len(omega), p, m)."""
        s = np.asarray(1j * np.asarray(omega, dtype=np.float64), dtype=np.complex128)
        return BlockRealization(self.A, self.B, self.C, self.D, self.block_sizes).response(s)


# MERGED ltinet.identification.frequency_fit
# What somebody should know before trusting a fitted response, in sentences.

_POOR_ERROR = 0.2  # relative error of a channel that nobody would call a fit
_FAR_POLE_RATIO = (
    10.0  # times the highest frequency, or below the lowest: a pole there is felt as a constant or a slope at most
)


def fit_warnings(
    poles: Complex, omega: Array, errors: Array, *, candidates: tuple[OrderCandidate, ...], allowed: list[int]
) -> tuple[str, ...]:
    """Channels that are not fitted, an order at its limit, peaks between frequencies and poles far outside of them."""
    told = []
    poor = np.argwhere(errors > _POOR_ERROR)
    if len(poor):
        i, j = poor[0]
        told.append(
            f"{len(poor)} of {errors.size} channels are fitted badly: output {i} of input {j} to {errors[i, j]:.2g} of "
            "its size"
        )
    if candidates and len(poles) == allowed[-1] and candidates[-1].held_out > ROUNDING_FLOOR:
        told.append(f"order {len(poles)} is the largest that was allowed; a larger one may fit better")
    narrow = _peaks_between(poles, omega)
    if narrow.size:
        told.append(
            f"{len(narrow)} resonances are narrower than the step between frequencies, the first at "
            f"{np.min(narrow.imag):.4g} rad/s: their heights are not in the data"
        )
    positive = omega[omega > 0.0]
    sizes = np.abs(poles)
    far = (sizes > _FAR_POLE_RATIO * positive.max()) | ((sizes > 0.0) & (sizes * _FAR_POLE_RATIO < positive.min()))
    if np.any(far):
        told.append(
            f"{int(np.count_nonzero(far))} poles lie a decade or more outside of the measured frequencies; "
            "what the model does there is extrapolated"
        )
    return tuple(told)


def _peaks_between(poles: Complex, omega: Array) -> Complex:
    """Pairs whose half width is less than a quarter of the step between the frequencies around them."""
    upper = poles[(poles.imag > omega[0]) & (poles.imag < omega[-1])]
    at = np.clip(np.searchsorted(omega, upper.imag), 1, len(omega) - 1)
    return np.asarray(upper[np.abs(upper.real) < 0.25 * (omega[at] - omega[at - 1])])


# MERGED ltinet.identification.frequency_fit
# Models without poles in the right half plane: reflected, and fitted again as well as that allows.

_AT_ORIGIN = 0.1  # of the lowest frequency: nearer to zero a real pole may be an integrator for all that data say
_AS_GOOD = 1.01  # of the error: what an integrator in its place may cost


def is_stable(model: BlockRealization) -> bool:
    """No pole has a positive real part."""
    return bool(np.all(model.poles.real <= 0.0))


def stabilize(model: BlockRealization, data: ScaledResponse, *, feedthrough: bool, rounds: int) -> BlockRealization:
    """The best stable model of the same order that is found from reflected poles and from a stable vector fit."""
    starts = [_reflect_poles(model)]
    if model.n_states <= len(data.s) // 2:
        poles = relocate_poles(data, initial_poles(data.s, model.n_states), feedthrough=feedthrough, stable=True)
        full = balance_over_band(fit_residues(data, poles, feedthrough=feedthrough), data.s)
        starts.append(_reflect_poles(full.of_order(model.n_states)))
    how = DescentOptions(feedthrough=feedthrough, rounds=rounds, floor=ROUNDING_FLOOR, allowed=is_stable)
    return descend(best_start(starts, data, feedthrough=feedthrough), data, how)


def snap_integrators(model: BlockRealization, data: ScaledResponse, *, feedthrough: bool) -> BlockRealization:
    """The model with real poles near the origin moved into it, where the data do not object."""
    nearest = float(np.min(np.abs(data.s[data.s != 0.0])))
    for block in model.blocks():
        pole = model.A[block[0], block[0]]
        if len(block) == 1 and 0.0 < abs(pole) < _AT_ORIGIN * nearest and not np.any(data.s == 0.0):
            A = model.A.copy()
            A[block[0], block[0]] = 0.0
            moved = fit_output_matrices(
                BlockRealization(A, model.B, model.C, model.D, model.sizes), data, feedthrough=feedthrough
            )
            errors = [data.error(own.response(data.s)) for own in (model, moved)]
            if errors[1] <= max(_AS_GOOD * errors[0], ROUNDING_FLOOR):
                model = moved
    return model


def _reflect_poles(model: BlockRealization) -> BlockRealization:
    """Every block whose poles are unstable with these reflected in the imaginary axis, by its Schur form."""
    if is_stable(model):
        return model
    values, vectors = np.linalg.eig(model.A)
    reflected = -np.abs(values.real) + 1j * values.imag
    A = (vectors * reflected) @ np.linalg.inv(vectors)
    return to_block_realization(np.ascontiguousarray(A.real), model.B, model.C, model.D)


# MERGED ltinet.identification.frequency_fit
# The way from a measured frequency response to a continuous-time system, from the door to the result.

Stable = bool | Literal["auto"]
_MAX_AUTO_ORDER = 128  # states that are tried without being asked for
_FINAL_ROUNDS = 60  # downhill, of the final model
_STABLE_ERROR_RATIO = 1.05  # error of a stable model over that of an unstable one, as orders are compared


def fit_response(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    order: int | range | None = None,
    stable: Stable = "auto",
    feedthrough: bool = True,
    weights: ArrayLike | None = None,
) -> FittedResponse:
    """Find the system whose frequency response is nearest to a measured one.

    `omega` has K frequencies in rad/s, 0 and above; `H` is (K,) for one input and output, else (K, outputs, inputs).
    Errors are compared after division by the root mean square of their channel, or times `weights` where given, (K,) or
    as H: 1/|H| for noise that is a share of the response. Without an `order` the smallest one is taken that predicts
    every third frequency, held out, within 5 % of the best; a range restricts it, a number is obeyed.

    `stable="auto"` keeps unstable poles, with a warning, only where a stable model is more than 5 % worse; True
    reflects them and fits again, and says what it cost; False takes what fits best. Poles on the axis, integrators
    among them, count as stable.

    Vector fits with common poles are truncated to the order asked for by Gramians over the measured range, so that a
    residue of rank r keeps r states, then refined by variable projection. Seconds for order 40, 500 frequencies, 2 × 2.

    Raises:
        InvalidSignalError: the data, the order or the weights cannot be used; the message says why.
    """
    measured = validate_frequency_data(omega, H, weights)
    if stable not in (True, False, "auto"):
        raise InvalidSignalError(f"stable is {stable!r}; give True, False or 'auto'")
    data = scale_response(measured.omega, measured.H, measured.weights)
    allowed = _allowed_orders(order, measured)
    candidates: tuple[OrderCandidate, ...] = ()
    if len(allowed) == 1:
        model = _fit_order(data, allowed[0], [], feedthrough=feedthrough)
    else:
        chosen, start, candidates = choose_order(data, allowed, feedthrough=feedthrough)
        model = _fit_order(data, chosen, [start], feedthrough=feedthrough)
    model = snap_integrators(model, data, feedthrough=feedthrough)
    model, cost = _apply_stability(model, data, stable, feedthrough=feedthrough)
    result = _in_units(model, data)
    errors = _relative_errors(result, measured)
    told = (*cost, *fit_warnings(result.poles, measured.omega, errors, candidates=candidates, allowed=allowed))
    weights = data.weights / (data.rows * data.columns)
    return FittedResponse(
        result.A, result.B, result.C, result.D, result.sizes, result.poles, candidates, errors, told, measured, weights
    )


def _allowed_orders(order: int | range | None, measured: FrequencyData) -> list[int]:
    K, p, m = measured.H.shape
    # Two thirds of the data are fitted, real and imaginary parts; n (p + m) + p m numbers are unknown.
    most = max(1, min((2 * (2 * K // 3) * p * m - p * m) // (2 * (p + m)), (2 * K // 3) - 1))
    if order is None:
        return list(range(min(most, _MAX_AUTO_ORDER) + 1))
    wanted: list[int] = []
    if isinstance(order, range):
        wanted = sorted(order)
    elif isinstance(order, (int, np.integer)) and not isinstance(order, bool):
        wanted = [int(order)]
    if not wanted or wanted[0] < 0:
        raise InvalidSignalError(f"order is {order!r}; give None, a whole number of 0 and above, or a range of them")
    if wanted[-1] > most:
        raise InvalidSignalError(
            f"order {wanted[-1]} is more than {K} frequencies of {p} × {m} channels can tell; give {most} at most, or "
            "measure more frequencies"
        )
    return wanted


def _fit_order(
    data: ScaledResponse, order: int, starts: list[BlockRealization], *, feedthrough: bool
) -> BlockRealization:
    """The best model of one order that is found from vector fits with as many poles, fewer and more."""
    K, p, m = data.H.shape
    counts = {order, -(-order // min(p, m)), order + order // 2} if order else set()
    fits = [
        compute_vector_fit(data, count, feedthrough=feedthrough)
        for count in sorted(counts)
        if 0 < count <= (K - 1) // 2
    ]
    if order == 0:
        starts = [BlockRealization(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), np.zeros((p, m)), ())]
    starts = [*starts, *(own.truncation.of_order(order) for own in fits)]
    start = best_start(starts, data, feedthrough=feedthrough)
    # A share g less of the error is 2 g numbers standard deviations squared: 0.01 of one is left to go at most.
    how = DescentOptions(
        feedthrough=feedthrough, rounds=_FINAL_ROUNDS, floor=ROUNDING_FLOOR, gain=min(1e-3, 1e-2 / data.H.size)
    )
    found = descend(start, data, how)
    return to_block_realization(found.A, found.B, found.C, found.D)


def _apply_stability(
    model: BlockRealization, data: ScaledResponse, stable: Stable, *, feedthrough: bool
) -> tuple[BlockRealization, tuple[str, ...]]:
    """The model as the user wants it: stable or not, and what is to be told about that."""
    if stable is False or is_stable(model):
        return model, ()
    other = stabilize(model, data, feedthrough=feedthrough, rounds=_FINAL_ROUNDS)
    error, worth = (data.error(own.response(data.s)) for own in (model, other))
    if worth <= max(_STABLE_ERROR_RATIO * error, ROUNDING_FLOOR):
        return other, ()
    right = model.poles[model.poles.real > 0.0] * data.unit
    many = (
        f"{len(right)} of {model.n_states} poles in the right half plane, the fastest growth {right.real.max():.3g}/s"
    )
    if stable is True:
        return other, (
            f"the data ask for {many}; stable=True reflected them, and the relative error grew from {error:.3g} to "
            f"{worth:.3g}",
        )
    return model, (
        f"the model is unstable: {many}; a stable one has the relative error {worth:.3g} instead of {error:.3g} "
        "(stable=True takes it)",
    )


def _in_units(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """The model in rad/s and in the units of the channels, states in units in which B and C are of one size."""
    root = np.sqrt(data.unit)
    B, C = root * model.B * data.columns, root * data.rows * model.C
    found = to_block_realization(data.unit * model.A, B, C, data.rows * model.D * data.columns)
    units = [_balance(found.B[block], found.C[:, block]) for block in found.blocks()]
    sizes = np.repeat(np.array(units), np.array(found.sizes, dtype=np.intp))
    return BlockRealization(found.A, found.B / sizes[:, None], found.C * sizes, found.D, found.sizes)


def _balance(B: Array, C: Array) -> float:
    """Unit of a block's states in which its inputs and outputs have one size; 1 where it has none of either."""
    into, out = float(np.linalg.norm(B)), float(np.linalg.norm(C))
    return math.sqrt(into / out) if into > 0.0 and out > 0.0 else 1.0


def _relative_errors(model: BlockRealization, measured: FrequencyData) -> Array:
    wrong = np.sqrt(
        np.mean(np.abs(model.response(np.asarray(1j * measured.omega, dtype=np.complex128)) - measured.H) ** 2, axis=0)
    )
    size = np.sqrt(np.mean(np.abs(measured.H) ** 2, axis=0))
    largest = float(size.max())
    return np.asarray(wrong / np.where(size > 0.0, size, largest if largest > 0.0 else 1.0))
