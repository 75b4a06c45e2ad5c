"""Hypothesis: widths of convolutions equal `scipy.fft.next_fast_len`, without importing scipy.fft."""

import numpy as np
from scipy import fft

from ltinet.simulation.convolution import convolution_width


def test_widths_are_the_fast_ones() -> None:
    drawn = np.random.default_rng(5).integers(1, 10**9, 2000).tolist()
    for n_times in [*range(1, 3000), *drawn]:
        assert convolution_width(n_times) == fft.next_fast_len(-(-n_times // 2), real=True)
