"""An input that excites slow and fast states alike, for trials of which of two computations is right."""

import numpy as np

from ltinet.signals.sampled import Hold, SampledSignal

FEW = 8  # plateaus, of 1, 2, 4, … samples


def plateaus(step: float, n_inputs: int, hold: Hold, *, count: int = FEW) -> SampledSignal:
    """Inputs of size one that change their signs after 1, 2, 4, … samples, so many times."""
    lengths = 2 ** np.arange(count)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(count, n_inputs))
    u = np.repeat(signs, lengths, axis=0)
    return SampledSignal(step * np.arange(len(u), dtype=np.float64), u, hold=hold)
