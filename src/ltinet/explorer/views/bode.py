"""Gain and phase of system and network, and how far apart they are."""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.explorer.subject import Subject
from ltinet.explorer.views.numbers import Plain, curve


def bode_view(subject: Subject, answer: NDArray[np.complex128], *, input: int, output: int) -> Plain:
    """|H| and the phase in degrees between one input and one output; `answer` is `net.frequency_response`."""
    system, network = subject.response[:, output, input], answer[:, output, input]
    return {
        "omega": curve(subject.frequencies),
        "system": curve(np.abs(system)),
        "network": curve(np.abs(network)),
        "difference": curve(np.abs(system - network)),
        "system_phase": curve(_phase(system)),
        "network_phase": curve(_phase(network)),
    }


def _phase(values: NDArray[np.complex128]) -> Array:
    return np.asarray(np.degrees(np.unwrap(np.angle(values))))
