"""Residuals to full accuracy: what is left of A X − X F when all leading digits cancel.

In double precision the residual of a good decomposition is rounding of the products more than of the decomposition.
Matrices are cut into slices of so few bits that products of slices are exact, whatever the order of summation, and BLAS
can form them (Ozaki, Ogita, Oishi & Rump 2012). Slices of a row share their bits: of an entry that is 1e-30 of its
neighbours, which in other units would be as large as they, none is left. Of few states every product is therefore
formed by itself; of many, both matrices are brought to units in which the rows of the right one are of one size.
"""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.exact_arithmetic import exact_product, exact_sum

_FEW = 32  # states: of more, slices take less time than single products
_SLICES = 4
_DOUBLE_BITS = 53


def commutator(A: Array, X: Array, F: Array) -> Array:
    """A X − X F, right to many more digits than the products have in double precision; about 20 products."""
    return _sum([*product_terms(A, X), *(-term for term in product_terms(X, F))], A.shape)


def descriptor_commutator(A: Array, E: Array, X: Array, F: Array) -> Array:
    """A X − E X F, likewise: E X is kept as a double and what rounding took from it."""
    terms = product_terms(E, X)
    rounded = _sum(terms, A.shape)
    lost = _sum([*terms, -rounded], A.shape)
    products = [*product_terms(A, X), *(-term for term in product_terms(rounded, F)), -(lost @ F)]
    return _sum(products, A.shape)


def descriptor_difference(given: Array, E: Array, X: Array, right: Array) -> Array:
    """Given − E X right, likewise."""
    terms = product_terms(E, X)
    rounded = _sum(terms, X.shape)
    lost = _sum([*terms, -rounded], X.shape)
    products = [given, *(-term for term in product_terms(rounded, right)), -(lost @ right)]
    return _sum(products, given.shape)


def difference(given: Array, left: Array, right: Array) -> Array:
    """Given − left @ right, likewise."""
    return _sum([given, *(-term for term in product_terms(left, right))], given.shape)


def product_terms(left: Array, right: Array) -> list[Array]:
    """Matrices that sum to left @ right, right to about 30 digits in whatever units the states between them are."""
    if left.shape[1] <= _FEW:
        return _one_by_one(left, right)
    units = _sizes_of_rows(right)
    return exact_terms(left * units, right / units[:, None])


def _one_by_one(left: Array, right: Array) -> list[Array]:
    """The product and what rounding took from it, entry by entry: all terms summed in pairs."""
    with np.errstate(over="ignore", invalid="ignore"):
        products, off = exact_product(left.T[:, :, None], right[:, None, :])
        lost = off.sum(axis=0)
        while half := len(products) // 2:
            sums, off = exact_sum(products[:half], products[half : 2 * half])
            products, lost = np.concatenate([sums, products[2 * half :]]), lost + off.sum(axis=0)
    return [products.sum(axis=0), lost]


def _sizes_of_rows(matrix: Array) -> Array:
    """The size of each row `(n,)` beside those of its columns, as a power of two, which costs no digit."""
    size = np.abs(matrix)
    largest = np.max(size, axis=0, initial=0.0)
    shares = np.max(size / np.where(largest > 0.0, largest, 1.0), axis=1, initial=0.0)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(shares > 0.0, shares, 1.0))[1]))


def _sum(terms: list[Array], shape: tuple[int, ...]) -> Array:
    """Compensated summation."""
    return two_part_sum(terms, shape)[0]


def two_part_sum(terms: list[Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The sum of some matrices and what rounding took from it (Neumaier 1974)."""
    total, lost = np.zeros(shape), np.zeros(shape)
    for term in terms:
        after = total + term
        lost += np.where(np.abs(total) >= np.abs(term), (total - after) + term, (term - after) + total)
        total = after
    rounded = np.asarray(total + lost)
    return rounded, np.asarray(lost - (rounded - total))


def exact_terms(left: Array, right: Array) -> list[Array]:
    """Matrices that sum to left @ right, the largest first; each is free of rounding."""
    bits = (_DOUBLE_BITS - math.ceil(math.log2(2 * max(left.shape[1], 1)))) // 2
    rows, columns = _slices(left, bits, axis=1), _slices(right, bits, axis=0)
    return [rows[i] @ columns[level - i] for level in range(_SLICES) for i in range(level + 1)]


def _slices(matrix: Array, bits: int, *, axis: int) -> list[Array]:
    """Doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    rest = matrix
    _, exponent = np.frexp(np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0))
    slices = []
    for index in range(_SLICES):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest, shift)), -shift))
        rest = rest - slices[-1]
    return slices
