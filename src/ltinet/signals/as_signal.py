"""Whatever a user passes as u becomes a signal here, or an error: nothing is guessed."""

from typing import Any, TypeAlias

import numpy as np

from ltinet.errors import InvalidSignalError
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import TimeAxis

Signal: TypeAlias = SampledSignal | FunctionSignal
"""An input: right-continuous, with value, value before a jump, derivative, and all knots where it is not smooth."""


def as_signal(u: Any, axis: TimeAxis, *, n_inputs: int, hold: Hold) -> Signal:
    """Samples at the given times, a function of time, a signal as it is, or None for no input at all."""
    t = axis.t
    if u is None:
        return SampledSignal(axis, np.zeros((len(t), n_inputs)), hold=hold)
    if isinstance(u, (SampledSignal, FunctionSignal)):
        signal = u
    elif callable(u):
        signal = FunctionSignal(u, n_inputs=n_inputs)
    else:
        signal = SampledSignal(axis, u, hold=hold)
    if signal.n_inputs != n_inputs:
        shape = "" if isinstance(u, (SampledSignal, FunctionSignal)) or callable(u) else f" (shape {np.shape(u)})"
        raise InvalidSignalError(
            f"u has {signal.n_inputs} channels{shape} but the network has {n_inputs} inputs; its last axis must have "
            "one entry per input"
        )
    if t[0] < signal.start or t[-1] > signal.stop:
        raise InvalidSignalError(
            f"times from {t[0]:g} to {t[-1]:g} were asked for, but u is known only from {signal.start:g} to "
            f"{signal.stop:g}"
        )
    return signal
