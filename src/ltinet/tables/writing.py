"""Writing of numbers as comma-separated text, as `repr` writes them: shortest decimals that read back exactly.

A number x of decimal exponent e is scaled to S = |x| 10^(16−e), which has 17 digits before the point, as a sum of two
doubles: its error is below 1e-14. A decimal of n digits reads back as x if it lies within half a unit in the last
place of x, scaled likewise. Two decimals of 15 digits never do both, so the shortest has at most 15 digits if the
nearest of these does, 16 if the nearest of 16 does, and 17 otherwise. Undecided cases, zeros, powers of two and
numbers of extreme size are left to `repr` itself.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array

TEXT_WIDTH = 26
"""Bytes for any number and a separator; unused ones are NUL."""
_SMALLEST, _LARGEST = 1e-200, 1e15
_N_NEGATIVE_EXPONENTS = 201  # decimal exponents below 0 that occur, with a margin for rounding of the logarithm
_SPLIT = 134217729.0  # 2²⁷ + 1 splits a double into two halves whose products are exact (Dekker)
_TIE_TOLERANCE = 1e-6  # relative to what is compared: far above the error of S
_ZERO, _POINT, _MINUS = b"0.-"
_POWERS = [Fraction(10) ** k for k in range(218)]
_HIGH = np.array([float(power) for power in _POWERS])
_LOW = np.array([float(power - Fraction(float(power))) for power in _POWERS])
_FOUR_DIGITS = np.frombuffer("".join(f"{k:04d}" for k in range(10_000)).encode(), dtype=np.uint32)
_ORDER = np.arange(17, dtype=np.uint8)

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


def shortest_decimals(numbers: Array) -> Bytes:
    """Return texts `(n, TEXT_WIDTH)` of numbers `(n,)`, padded with NUL; the last byte is free for a separator."""
    texts = np.empty((len(numbers), TEXT_WIDTH), dtype=np.uint8)
    size = np.abs(numbers)
    usual = (size >= _SMALLEST) & (size < _LARGEST)
    decimals, n_digits, exponents, certain = _shortest(np.where(usual, size, 0.3))
    certain &= usual
    digits = _digits(decimals)
    for counted in np.flatnonzero(np.bincount(exponents + _N_NEGATIVE_EXPONENTS)).tolist():
        exponent = counted - _N_NEGATIVE_EXPONENTS
        rows = np.flatnonzero(exponents == exponent)
        texts[rows] = _format_digits(digits[rows], n_digits[rows], exponent)
    texts[:, 0] = (numbers < 0.0) * np.uint8(_MINUS)
    if not certain.all():
        others = np.array([repr(number) for number in numbers[~certain].tolist()], dtype=f"S{TEXT_WIDTH}")
        texts[~certain] = others.view(np.uint8).reshape(-1, TEXT_WIDTH)
    return texts


def _shortest(x: Array) -> tuple[Integers, Integers, Integers, NDArray[np.bool_]]:
    """Return 17 digits of the shortest decimals, the number of significant ones, exponents, and where this is certain."""
    exponents = np.floor(np.log10(x)).astype(np.int64)
    scale = _HIGH[16 - exponents]
    high, low = _product(x, scale, _LOW[16 - exponents])
    whole = np.floor(low)
    integer, share = high.astype(np.int64) + whole.astype(np.int64), low - whole
    half_unit = 0.5 * np.spacing(x) * scale
    certain = (
        (integer >= 10**16) & (high < 1e17 - 200.0) & (np.frexp(x)[0] != 0.5) & (np.abs(share - 0.5) > _TIE_TOLERANCE)
    )
    decimals, n_digits = integer + (share > 0.5), np.full(len(x), 17)
    in_hundred = integer - 100 * (integer // 100)
    in_ten = in_hundred.astype(np.uint8) % np.uint8(10)  # of short integers, whose remainders are fast
    for shorter, unit, below in ((16, 10, in_ten), (15, 100, in_hundred)):
        above = below + share
        distance = np.minimum(above, unit - above)
        reads_back = distance < half_unit
        certain &= np.abs(distance - half_unit) > _TIE_TOLERANCE * half_unit
        certain &= ~reads_back | (np.abs(above - 0.5 * unit) > _TIE_TOLERANCE)
        decimals = np.where(reads_back, integer - below + unit * (above > 0.5 * unit), decimals)
        n_digits[reads_back] = shorter
    return decimals, n_digits, exponents, certain


def _product(x: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Return the product x (high + low) as a sum of two doubles."""
    product = x * high
    x_high = _SPLIT * x
    x_high = x_high - (x_high - x)
    p_high = _SPLIT * high
    p_high = p_high - (p_high - high)
    x_low, p_low = x - x_high, high - p_high
    rest = ((x_high * p_high - product) + x_high * p_low + x_low * p_high) + x_low * p_low
    return product, rest + x * low


def _digits(decimals: Integers) -> Bytes:
    """Return the 17 digits of each number as text."""
    fours = np.empty((len(decimals), 5), dtype=np.uint32)
    rest = decimals
    for place in (4, 3, 2, 1):
        shorter = rest // 10_000
        fours[:, place] = _FOUR_DIGITS[rest - 10_000 * shorter]
        rest = shorter
    fours[:, 0] = _FOUR_DIGITS[np.minimum(rest, 9)]
    return fours.view(np.uint8)[:, 3:]


def _format_digits(digits: Bytes, n_digits: Integers, exponent: int) -> Bytes:
    """Place digits, point and exponent as `repr` does, for numbers of one exponent."""
    few = n_digits <= 15
    if few.any():  # these may end with zeros
        n_digits = n_digits.copy()
        n_digits[few] = 17 - np.argmax(digits[few, ::-1] != _ZERO, axis=1)
    n_shown = n_digits if exponent < 0 else np.maximum(n_digits, exponent + 2)
    shown = digits * (n_shown.astype(np.uint8)[:, None] > _ORDER)
    text = np.zeros((len(digits), TEXT_WIDTH), dtype=np.uint8)
    if exponent >= 0:
        text[:, 1 : exponent + 2] = shown[:, : exponent + 1]
        text[:, exponent + 2] = _POINT
        text[:, exponent + 3 : 19] = shown[:, exponent + 1 :]
    elif exponent >= -4:
        lead = np.frombuffer(b"0." + b"0" * (-exponent - 1), dtype=np.uint8)
        text[:, 1 : 1 + len(lead)] = lead
        text[:, 1 + len(lead) : 18 + len(lead)] = shown
    else:
        tail = np.frombuffer(f"e-{-exponent:02d}".encode(), dtype=np.uint8)
        text[:, 1] = shown[:, 0]
        text[:, 2] = _POINT * (n_shown > 1)
        text[:, 3:19] = shown[:, 1:]
        text[:, 19 : 19 + len(tail)] = tail
    return text


ROWS_PER_CHUNK = 8192
"""Number of rows that are converted to text at a time."""
_MIN_VECTORIZED = 256  # numbers; fewer are faster written one by one


def format_rows(table: Array) -> Iterator[bytes]:
    """Yield rows `(T, k)` as lines with comma-separated cells, some thousand lines at a time."""
    for begin in range(0, len(table), ROWS_PER_CHUNK):
        part = table[begin : begin + ROWS_PER_CHUNK]
        if part.size < _MIN_VECTORIZED:
            yield "".join(",".join(map(repr, row)) + "\n" for row in part.tolist()).encode("ascii")
            continue
        texts = shortest_decimals(part.ravel()).reshape(*part.shape, TEXT_WIDTH)
        texts[:, :-1, -1] = ord(",")
        texts[:, -1, -1] = ord("\n")
        yield np.ascontiguousarray(texts).tobytes().translate(None, b"\0")
