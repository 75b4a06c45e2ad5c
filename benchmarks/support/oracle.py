"""The outputs that errors are measured against, with a proof: Arb balls (python-flint) know their own error.

A step is x ← e^{Ah} x + h φ₁(Ah) B u + h φ₂(Ah) B (rise of u), with functions of the dense, balanced matrix. Balls that
go through one product after the other widen as |P|ᵏ, not as Pᵏ; time is therefore cut into short runs, whose outputs
and ends follow from their start and inputs in one product, and chunks of runs, linked by powers of P. More bits are
taken where that does not suffice. No peer and no part of ltinet takes part.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpz
from numpy.typing import NDArray
from scipy import linalg

import ltinet

Array = NDArray[np.float64]
_FIRST_BITS, _MOST_BITS = 192, 6144
_WANTED = 2.0**-60  # radius over the largest output: a hundredth of the rounding of a double
_LONGEST, _RUNS = 32, 64  # steps of a run at most, and runs of a chunk
_SMALL = 2.0**-4  # norm at which the series begins


def reference_outputs(system: ltinet.StateSpace, u: Array, *, step: float) -> Array:
    """Outputs `(T, p)` for samples u `(T, m)` a step apart, straight lines between them, from rest.

    They are the doubles next to the true ones, or their neighbors. Cost: about 50 products of n × n balls (half a
    second each for 350 states), and for few inputs and outputs some hundred products of numbers a sample.

    Raises:
        ArithmeticError: more than 6,144 bits would be needed.
    """
    bits = _FIRST_BITS
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            y, radius = _outputs(system, u, step=step, bits=bits)
        if radius <= _WANTED * np.max(np.abs(y), initial=0.0):
            return y
        bits *= 2
    raise ArithmeticError(f"{_MOST_BITS} bits do not tell the outputs to {_WANTED:.1e} of the largest")


def relative_error(y: Array, reference: Array) -> float:
    """Largest distance to the first len(y) rows of the reference, relative to the largest of all rows."""
    return float(np.max(np.abs(y - reference[: len(y)])) / np.max(np.abs(reference)))


@dataclass(frozen=True)
class _Run:
    """A run of L steps from x, inputs w (u at both ends of each step): outputs F x + G w, then x ← Pᴸ x + E w."""

    length: int
    F: Any
    G: Any
    E: Any
    over: list[Any]
    """Pᴸ, P²ᴸ, P⁴ᴸ, … up to the power that leads over a chunk."""

    @classmethod
    def of(cls, system: ltinet.StateSpace, *, step: float, bits: int) -> "_Run":
        balanced, (scale, _) = linalg.matrix_balance(np.array(system.A), permute=False, separate=True)
        P, phi1, phi2 = _phi_functions(np.asarray(balanced, dtype=np.float64).tobytes(), len(scale), step, bits)
        # The scale is one of powers of two, which round nothing.
        B, C = _exact(np.array(system.B) / scale[:, None]) * arb(step), _exact(np.array(system.C) * scale)
        p, m = system.D.shape
        doublings = min(_LONGEST, max(1, len(scale) // math.isqrt(max(m * p, 1)))).bit_length() - 1
        powers = _squares(P, doublings + _RUNS.bit_length() - 1)
        entering = _sequence(powers[:doublings], _joined([(phi1 - phi2) * B, phi2 * B]))
        F = _sequence([own.transpose() for own in powers[:doublings]], C.transpose()).transpose()
        # What an input adds to the output at once, and one, two, … steps later.
        late = [*_exact(np.hstack([system.D, np.zeros((p, m))])).tolist()]
        late = [[*own, *later] for own, later in zip(late, (C * entering).tolist(), strict=True)]
        length = 1 << doublings
        G = arb_mat([_delayed(late[i], j, 2 * m, length) for j in range(length) for i in range(p)])
        return cls(length, F, G, _reversed(entering, 2 * m), powers[doublings:])


def _outputs(system: ltinet.StateSpace, u: Array, *, step: float, bits: int) -> tuple[Array, float]:
    """Outputs at the working precision, and the largest radius of any."""
    run = _Run.of(system, step=step, bits=bits)
    chunk, n_times, p = run.length * _RUNS, len(u), len(system.C)
    padded = np.zeros((-(-n_times // chunk) * chunk + 1, u.shape[1]))
    padded[:n_times] = u
    both_ends = np.hstack([padded[:-1], padded[1:]])
    mid, radius = np.empty((len(both_ends), p)), np.empty((len(both_ends), p))
    x = arb_mat(system.n_states, 1)
    for first in range(0, n_times, chunk):
        rows = slice(first, first + chunk)
        w = _exact(both_ends[rows].reshape(_RUNS, -1).T)
        starts, end = _starts(run.over, run.E * w)
        starts, x = starts + _sequence(run.over[:-1], x), run.over[-1] * x + end
        y = (run.F * starts + run.G * w).transpose().entries()
        mid[rows] = np.array([float(entry) for entry in y]).reshape(-1, p)
        radius[rows] = np.array([float(entry.rad()) for entry in y]).reshape(-1, p)
    return mid[:n_times], float(np.max(radius[:n_times], initial=0.0))


def _starts(over: list[Any], added: Any) -> tuple[Any, Any]:
    """Where each run starts if the first does from zero, one in a column, and where the last one ends.

    All sums x_r = Σ P^{L(r − 1 − i)} added_i together: each is that of the latest 1, then 2, 4, … runs.
    """
    n = added.nrows()
    for k, power in enumerate(over[:-1]):
        reach = 1 << k
        added += _joined([arb_mat(n, reach), power * _columns(added, 0, _RUNS - reach)])
    return _joined([arb_mat(n, 1), _columns(added, 0, _RUNS - 1)]), _columns(added, _RUNS - 1, _RUNS)


def _squares(P: Any, count: int) -> list[Any]:
    """P, P², P⁴, …: the first and `count` more."""
    powers = [P]
    for _ in range(count):
        powers.append(powers[-1] * powers[-1])
    return powers


def _sequence(powers: list[Any], X: Any) -> Any:
    """[X, PX, P²X, …] side by side, doubled once for each of the powers P, P², P⁴, …."""
    for power in powers:
        X = _joined([X, power * X])
    return X


def _delayed(response: list[Any], delay: int, width: int, length: int) -> list[Any]:
    """The row of G for a place in a run: what inputs of that step and of those before add, the others nothing."""
    blocks = [response[width * (delay - step) : width * (delay - step + 1)] for step in range(delay + 1)]
    return [entry for block in blocks for entry in block] + [arb(0)] * (width * (length - delay - 1))


def _reversed(matrix: Any, width: int) -> Any:
    """Blocks of so many columns in reverse order."""
    return _joined([_columns(matrix, at, at + width) for at in range(matrix.ncols() - width, -1, -width)])


def _columns(matrix: Any, start: int, stop: int) -> Any:
    return arb_mat(matrix.nrows(), stop - start, [entry for row in matrix.tolist() for entry in row[start:stop]])


def _joined(blocks: Sequence[Any]) -> Any:
    """Blocks side by side."""
    rows = [list(chain.from_iterable(parts)) for parts in zip(*(block.tolist() for block in blocks), strict=True)]
    return arb_mat(rows)


@lru_cache(maxsize=1)
def _phi_functions(matrix: bytes, n: int, step: float, bits: int) -> tuple[Any, Any, Any]:
    """e^Z, φ₁(Z) = Z⁻¹(e^Z − I) and φ₂(Z) = Z⁻²(e^Z − I − Z) of Z = A·step: a series for a small Z, then Z is doubled.

    φ₁(2Z) = ½ (e^Z φ₁ + φ₁) and φ₂(2Z) = ¼ (e^Z φ₂ + φ₁ + φ₂).
    """
    Z = _exact(np.frombuffer(matrix).reshape(n, n)) * arb(step)
    norm = max((float(sum(map(abs, row), arb(0)).upper()) for row in Z.tolist()), default=0.0)
    halvings = max(0, math.ceil(math.log2(norm / _SMALL)) + 1) if norm > 0.0 else 0  # one more for rounding of norm
    small, identity = Z * (1 / arb(fmpz(1) << halvings)), _exact(np.eye(n))
    phi2 = _series(small, bits)
    phi1 = small * phi2 + identity
    # e^Z − I is squared on its own: beside I the digits of a small Z would be lost.
    less_identity = small * phi1
    for _ in range(halvings):
        growth = less_identity + identity
        phi2 = (growth * phi2 + phi2 + phi1) * arb(0.25)
        phi1 = (growth * phi1 + phi1) * arb(0.5)
        less_identity = growth * less_identity + less_identity
    return less_identity + identity, phi1, phi2


def _series(Z: Any, bits: int) -> Any:
    """φ₂(Z) = Σ Zᵏ/(k + 2)! for a Z of norm _SMALL at most; what is left out is added to the radii.

    Terms are gathered by powers of Zʳ, so that K of them take 2√K products (Paterson & Stockmeyer 1973).
    """
    n, n_terms = Z.nrows(), 1
    while n_terms * -math.log2(_SMALL) + math.lgamma(n_terms + 3) / math.log(2.0) < bits:
        n_terms += 1
    width = math.isqrt(n_terms) + 1
    powers = [_exact(np.eye(n)), Z]
    while len(powers) <= width:
        powers.append(powers[-1] * Z)
    n_terms = -(-n_terms // width) * width
    total = arb_mat(n, n)
    for first in range(n_terms - width, -1, -width):
        total = total * powers[width]
        for offset in range(width):
            total += powers[offset] * (1 / arb(fmpz(math.factorial(first + offset + 2))))
    # Of a geometric series with ratio _SMALL at most, beginning with the first term left out.
    rest = (arb(_SMALL) ** n_terms / arb(fmpz(math.factorial(n_terms + 2))) / (1 - arb(_SMALL))).upper()
    return total + arb_mat(n, n, [arb(0, rest)] * n**2)


def _exact(values: Array) -> Any:
    return arb_mat(*values.shape, values.ravel().tolist())
