"""The way from a measured frequency response to a continuous-time system, from the door to the result."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.from_frequency.checked import Measured, checked
from ltinet.identification.from_frequency.data import ScaledResponse, scaled
from ltinet.identification.from_frequency.descent import Downhill, descended
from ltinet.identification.from_frequency.fitted import FittedResponse
from ltinet.identification.from_frequency.orders import FLOOR, TriedOrder, best_start, choose_order
from ltinet.identification.from_frequency.parents import parent
from ltinet.identification.from_frequency.realisation import Realisation, in_blocks
from ltinet.identification.from_frequency.remarks import remarks
from ltinet.identification.from_frequency.stability import is_stable, stabilised, with_integrators

Stable = bool | Literal["auto"]
_MOST = 128  # states that are tried without being asked for
_ROUNDS = 60  # downhill, of the final model
_COSTS_NOTHING = 1.05  # error of a stable model over that of an unstable one, as orders are compared


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
    measured = checked(omega, H, weights)
    if stable not in (True, False, "auto"):
        raise InvalidSignalError(f"stable is {stable!r}; give True, False or 'auto'")
    data = scaled(measured.omega, measured.H, measured.weights)
    allowed = _orders(order, measured)
    tried: tuple[TriedOrder, ...] = ()
    if len(allowed) == 1:
        model = _of_order(data, allowed[0], [], feedthrough=feedthrough)
    else:
        chosen, start, tried = choose_order(data, allowed, feedthrough=feedthrough)
        model = _of_order(data, chosen, [start], feedthrough=feedthrough)
    model = with_integrators(model, data, feedthrough=feedthrough)
    model, cost = _settled(model, data, stable, feedthrough=feedthrough)
    result = _in_units(model, data)
    errors = _relative_errors(result, measured)
    told = (*cost, *remarks(result.poles, measured.omega, errors, tried=tried, allowed=allowed))
    weights = data.weights / (data.rows * data.columns)
    return FittedResponse(
        result.A, result.B, result.C, result.D, result.sizes, result.poles, tried, errors, told, measured, weights
    )


def _orders(order: int | range | None, measured: Measured) -> list[int]:
    K, p, m = measured.H.shape
    # Two thirds of the data are fitted, real and imaginary parts; n (p + m) + p m numbers are unknown.
    most = max(1, min((2 * (2 * K // 3) * p * m - p * m) // (2 * (p + m)), (2 * K // 3) - 1))
    if order is None:
        return list(range(min(most, _MOST) + 1))
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


def _of_order(data: ScaledResponse, order: int, starts: list[Realisation], *, feedthrough: bool) -> Realisation:
    """The best model of one order that is found from vector fits with as many poles, fewer and more."""
    K, p, m = data.H.shape
    counts = {order, -(-order // min(p, m)), order + order // 2} if order else set()
    fits = [parent(data, count, feedthrough=feedthrough) for count in sorted(counts) if 0 < count <= (K - 1) // 2]
    if order == 0:
        starts = [Realisation(np.zeros((0, 0)), np.zeros((0, m)), np.zeros((p, 0)), np.zeros((p, m)), ())]
    starts = [*starts, *(own.truncation.of_order(order) for own in fits)]
    start = best_start(starts, data, feedthrough=feedthrough)
    # A share g less of the error is 2 g numbers standard deviations squared: 0.01 of one is left to go at most.
    how = Downhill(feedthrough=feedthrough, rounds=_ROUNDS, floor=FLOOR, gain=min(1e-3, 1e-2 / data.H.size))
    found = descended(start, data, how)
    return in_blocks(found.A, found.B, found.C, found.D)


def _settled(
    model: Realisation, data: ScaledResponse, stable: Stable, *, feedthrough: bool
) -> tuple[Realisation, tuple[str, ...]]:
    """The model as the user wants it: stable or not, and what is to be told about that."""
    if stable is False or is_stable(model):
        return model, ()
    other = stabilised(model, data, feedthrough=feedthrough, rounds=_ROUNDS)
    error, worth = (data.error(own.response(data.s)) for own in (model, other))
    if worth <= max(_COSTS_NOTHING * error, FLOOR):
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


def _in_units(model: Realisation, data: ScaledResponse) -> Realisation:
    """The model in rad/s and in the units of the channels, states in units in which B and C are of one size."""
    root = np.sqrt(data.unit)
    B, C = root * model.B * data.columns, root * data.rows * model.C
    found = in_blocks(data.unit * model.A, B, C, data.rows * model.D * data.columns)
    units = [_balance(found.B[block], found.C[:, block]) for block in found.blocks()]
    sizes = np.repeat(np.array(units), np.array(found.sizes, dtype=np.intp))
    return Realisation(found.A, found.B / sizes[:, None], found.C * sizes, found.D, found.sizes)


def _balance(B: Array, C: Array) -> float:
    """Unit of a block's states in which its inputs and outputs have one size; 1 where it has none of either."""
    into, out = float(np.linalg.norm(B)), float(np.linalg.norm(C))
    return math.sqrt(into / out) if into > 0.0 and out > 0.0 else 1.0


def _relative_errors(model: Realisation, measured: Measured) -> Array:
    wrong = np.sqrt(
        np.mean(np.abs(model.response(np.asarray(1j * measured.omega, dtype=np.complex128)) - measured.H) ** 2, axis=0)
    )
    size = np.sqrt(np.mean(np.abs(measured.H) ** 2, axis=0))
    largest = float(size.max())
    return np.asarray(wrong / np.where(size > 0.0, size, largest if largest > 0.0 else 1.0))
