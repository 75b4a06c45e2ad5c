"""Thresholds that several rooms share, derived from machine precision and norms, each with its reason.

One that a single file needs stands at the head of that file, as relative and with its reason as these.
"""

import math

import numpy as np

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)
DUST = 1e-150  # powers of a step below it are zeros in the exact engine, and bounds count them


def rounding(size: int, scale: float = 1.0) -> float:
    """What a backward stable O(size³) computation may leave behind on a matrix of norm `scale`: 10·size·eps·scale."""
    return 10.0 * max(size, 1) * EPS * scale


def sum_rounding(n_terms: int) -> float:
    """What rounding leaves in sums of products, relative to the sum of their sizes: 10·√n·eps.

    The bound for one sum of n products is n·eps; errors of both signs grow as √n (Higham & Mary 2019). Ten such sums,
    one after the other, have room.
    """
    return 10.0 * math.sqrt(max(n_terms, 1)) * EPS
