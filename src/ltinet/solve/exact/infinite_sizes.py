"""Sizes that may exceed all numbers where they are bounded from above: an infinite bound says so."""

import numpy as np

from ltinet.arrays import Array

QUIETLY = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def weighted(sizes: Array, weights: Array) -> Array:
    """Sizes · |weights|ᵀ, in which nothing seen of anything is nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sizes @ weights.T) if np.isfinite(sizes).all() else _careful_product(sizes, weights)


def _careful_product(sizes: Array, weights: Array) -> Array:
    return np.asarray(np.where(weights == 0.0, 0.0, sizes[:, None, :] * weights).sum(axis=-1))


def ratio(values: Array, by: Array) -> Array:
    """A quotient in which nothing over nothing is nothing."""
    return np.divide(values, by, out=np.zeros_like(values), where=values > 0.0)


def or_infinite(values: Array) -> Array:
    """What is no number because it was too large on the way is infinite."""
    return np.where(np.isnan(values), np.inf, values)
