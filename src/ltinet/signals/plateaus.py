"""An input that excites slow and fast states alike, for trials of which of two computations is right."""

import numpy as np

from ltinet.signals.sampled import Hold, SampledSignal

_FEW = 254  # steps


def plateaus(step: float, n_inputs: int, hold: Hold, *, n_steps: int = _FEW) -> SampledSignal:
    """Inputs of size one that change their signs after 1, 2, 4, … samples, for so many steps."""
    lengths = 2 ** np.arange((n_steps + 1).bit_length())
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(lengths), n_inputs))
    u = np.repeat(signs, lengths, axis=0)[: n_steps + 1]
    return SampledSignal(step * np.arange(len(u), dtype=np.float64), u, hold=hold)
