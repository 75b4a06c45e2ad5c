"""Gain and phase of system and network, and how far apart they are."""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.explorer.subject import Subject
from ltinet.explorer.views.numbers import Plain, curve


def bode_view(subject: Subject, answer: NDArray[np.complex128], *, input: int, output: int) -> Plain:
    """|H| and the phase in degrees between one input and one output; `answer` is `net.frequency_response`.

    The answer of a large sparse system is not computed: what is proven of the reduction bounds the difference.
    """
    network = answer[:, output, input]
    late = float(subject.system.input_delay[input] + subject.system.output_delay[output])
    delay = subject.frequencies * late
    shown = {
        "omega": curve(subject.frequencies),
        "network": curve(np.abs(network)),
        "network_phase": curve(_phase(network, delay)),
    }
    if subject.response is None:
        bound = None if subject.reduction is None else subject.reduction.error_bound
        most = np.full(len(network), np.nan if bound is None else bound)
        return {**shown, "system": None, "system_phase": None, "difference": curve(most)}
    system = subject.response[:, output, input]
    return {
        **shown,
        "system": curve(np.abs(system)),
        "system_phase": curve(_phase(system, delay)),
        "difference": curve(np.abs(system - network)),
    }


def _phase(values: NDArray[np.complex128], delay: Array) -> Array:
    """The phase in degrees, made continuous without the angles of the delay, which are then taken off."""
    return np.asarray(np.degrees(np.unwrap(np.angle(values * np.exp(1j * delay))) - delay))
