"""Whatever a user passes as u becomes a signal here, or an error: nothing is guessed."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ltinet.errors import InvalidSignalError
from ltinet.shown import count_of
from ltinet.signals.function import FunctionSignal
from ltinet.signals.polynomial import PolynomialSignal
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis


def _is_piecewise_polynomial(u: Any) -> bool:
    """Whether it is SciPy's; whoever holds one has imported that part of SciPy, which takes its time."""
    interpolate = sys.modules.get("scipy.interpolate")
    return interpolate is not None and isinstance(u, interpolate.PPoly)


# Objects that are recognised, and what they become; the first that fits is taken.
KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, int], Signal]], ...] = (
    (_is_piecewise_polynomial, lambda u, _: PolynomialSignal.of(u)),
    (callable, lambda u, n_inputs: FunctionSignal(u, n_inputs=n_inputs)),
)


_ARRAYS = (np.ndarray, list)
_NAMES = sorted(name for kind in Signal.__mro__ for name in vars(kind) if not name.startswith("_"))


def as_signal(u: Any, axis: TimeAxis, *, n_inputs: int, hold: Hold) -> Signal:
    """Samples at the given times, a function of time, a signal as it is, or None for no input at all."""
    t = axis.t
    if u is None:
        return SampledSignal(axis, np.zeros((len(t), n_inputs)), hold=hold)
    signal = _recognised(u, axis, n_inputs=n_inputs, hold=hold)
    if signal.n_inputs != n_inputs:
        shape = f" (shape {np.shape(u)})" if isinstance(signal, SampledSignal) and signal is not u else ""
        raise InvalidSignalError(
            f"u has {count_of(signal.n_inputs, 'channel')}{shape} but the network has {count_of(n_inputs, 'input')}; "
            "its last axis must have one entry per input"
        )
    at_these_times = getattr(signal, "axis", None) is axis
    if not at_these_times and (t[0] < signal.start or t[-1] > signal.stop):
        raise InvalidSignalError(
            f"times from {t[0]:g} to {t[-1]:g} were asked for, but u is known only from {signal.start:g} to "
            f"{signal.stop:g}"
        )
    return signal


def _recognised(u: Any, axis: TimeAxis, *, n_inputs: int, hold: Hold) -> Signal:
    """The signal that u is or becomes."""
    # To ask an object for all names of a signal takes longer than a short run: arrays are not asked.
    if not isinstance(u, _ARRAYS):
        if isinstance(u, Signal):
            return u
        for fits, make in KINDS:
            if fits(u):
                return make(u, n_inputs)
        if hasattr(u, "value") and hasattr(u, "n_inputs"):
            missing = [name for name in _NAMES if not hasattr(u, name)]
            raise InvalidSignalError(f"u is a {type(u).__name__}; to be a signal it lacks {', '.join(missing)}")
    return SampledSignal(axis, u, hold=hold)
