"""Step responses as sums of modes in many digits, and what one reads off them, by a dense look and bisection.

y(t) = y(∞) + Σ r_k exp(λ_k t). An approximate eigenbasis V is corrected once: with M = V⁻¹AV in balls, nearly diagonal,
λ_k = M_kk and X_ik = M_ik/(λ_k − λ_i) give V(I + X), wrong by X² only; small matrices take a basis of 400 bits, X = 0.
`moments_missed` tells what was missed: Σ r_k λ_kʲ must be Cᵀ A^(j−1) B, whatever the basis.

Nothing of ltinet takes part.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from flint import acb, acb_mat, arb, arb_mat, ctx
from scipy import linalg
from scipy.sparse.csgraph import connected_components

_MANY_BITS, _BITS = 400, 128
_SMALL = 40  # states: up to here a basis of many bits takes less than a second
_GONE = 1e-10  # of the final value: what is below is not looked for
_PER_RADIAN = 4.0  # places of the dense look: a turn that two of them pass over is 1e-4 of its mode high at most
_FEWEST = 400


@dataclass(frozen=True)
class ModalSystem:
    """λ `(n,)` and, in the coordinates of modes, C, B and D with y(∞), as balls."""

    rates: list[acb]
    C: acb_mat
    B: acb_mat
    final: arb_mat
    moments: list[arb_mat]


def modal_system(E, A, B, C, D):
    """The modes of E x' = A x + B u, y = C x + D u; E may be None."""
    parts = _parts(A if E is None else np.abs(A) + np.abs(E))
    is_small = max(map(len, parts)) <= _SMALL
    with ctx.workprec(_MANY_BITS if is_small else _BITS):
        A, B, C, D = (arb_mat(np.asarray(own).tolist()) for own in (A, B, C, D))
        if E is not None:
            E = arb_mat(np.asarray(E).tolist())
            A, B = E.solve(A), E.solve(B)
        moments, chain = [D], B
        for _ in range(4):
            moments.append(C * chain)
            chain = A * chain
        final = D - C * A.solve(B)
        make = _many_digits if is_small else _corrected
        found = [make(*(acb_mat(own) for own in _own_part(A, B, C, states))) for states in parts]
        rates = [rate for own in found for rate in own[0]]
        V_B = acb_mat([[own[i, j] for j in range(own.ncols())] for _, own, _ in found for i in range(own.nrows())])
        C_V = acb_mat([[own[i, k] for _, _, own in found for k in range(own.ncols())] for i in range(C.nrows())])
        return ModalSystem(rates, C_V, V_B, final, moments)


def _parts(A):
    """States that no chain of entries connects with others: eigenvalues of different parts may well be equal."""
    _, labels = connected_components(np.asarray(A) != 0.0, directed=False)
    return [np.flatnonzero(labels == part).tolist() for part in range(labels.max() + 1)]


def _own_part(A, B, C, states):
    return (
        arb_mat([[A[i, k] for k in states] for i in states]),
        arb_mat([[B[i, j] for j in range(B.ncols())] for i in states]),
        arb_mat([[C[i, k] for k in states] for i in range(C.nrows())]),
    )


def _many_digits(A, B, C):
    rates, V = A.eig(right=True, algorithm="approx")
    return rates, V.solve(B), C * V


def _corrected(A, B, C):
    n = A.nrows()
    doubles = np.array([float(entry.real) for entry in A.entries()]).reshape(n, n)
    V = acb_mat([[acb(z.real, z.imag) for z in row] for row in linalg.eig(doubles)[1].tolist()])
    solved = V.solve(acb_mat(n, n + B.ncols(), _beside(A * V, B)))
    rows = [[solved[i, j] for j in range(n + B.ncols())] for i in range(n)]
    rates = [rows[i][i] for i in range(n)]
    X = acb_mat([[0 if i == k else rows[i][k] / (rates[k] - rates[i]) for k in range(n)] for i in range(n)])
    V_B = acb_mat([row[n:] for row in rows])
    C_V = C * V
    return rates, V_B - X * V_B, C_V + C_V * X


def _beside(left, right):
    rows = range(left.nrows())
    return [own[i, j] for i in rows for own in (left, right) for j in range(own.ncols())]


@dataclass(frozen=True)
class StepCurve:
    """The response of one output to a step of one input."""

    rates: list[acb]
    residues: list[acb]
    final: arb
    moments: list[arb]

    @classmethod
    def of(cls, system, i, j):
        with ctx.workprec(_BITS):
            residues = [system.C[i, k] * system.B[k, j] / rate for k, rate in enumerate(system.rates)]
        return cls(system.rates, residues, system.final[i, j], [own[i, j] for own in system.moments])

    def moments_missed(self):
        """|D − y(∞) − Σ r_k| and |C A^(j−1) B − Σ r_k λ_kʲ|, each relative to the sizes of its terms."""
        missed = []
        with ctx.workprec(_BITS):
            for power, wanted in enumerate(self.moments):
                terms = [own * rate**power for own, rate in zip(self.residues, self.rates, strict=True)]
                given = wanted - self.final if power == 0 else wanted
                size = sum(float(abs(term)) for term in terms) + abs(float(given))
                missed.append(float(abs(sum(terms, acb(0)) - given)) / size if size else 0.0)
        return np.array(missed)

    def value(self, t):
        """y(t), exactly."""
        return self.final + self._sum(t, power=0)

    def slope(self, t):
        """y'(t), exactly."""
        return self._sum(t, power=1)

    def _sum(self, t, *, power):
        with ctx.workprec(_BITS):
            parts = zip(self.residues, self.rates, strict=True)
            return sum((own * rate**power * (rate * t).exp() for own, rate in parts), acb(0)).real

    def nodes(self):
        """Places between which the curve goes one way: samples, and turns with heights to about 1e-4 of a mode."""
        t, y, slope = self._dense_look()
        cells = np.flatnonzero(slope[:-1] * slope[1:] < 0.0)
        ahead = (t[cells + 1] - t[cells]) * slope[cells] / (slope[cells] - slope[cells + 1])
        times, heights = (
            np.concatenate([t, t[cells] + ahead]),
            np.concatenate([y, y[cells] + 0.5 * slope[cells] * ahead]),
        )
        order = np.argsort(times, kind="stable")
        is_turn = np.concatenate([np.zeros(len(t), bool), np.ones(len(cells), bool)])
        return Nodes(self, times[order], heights[order], is_turn[order])

    def _dense_look(self):
        rates = np.array([complex(own) for own in self.rates])
        residues = np.array([complex(own) for own in self.residues])
        scale, final = float(np.abs(residues).sum()), float(self.final)
        gone = np.log(np.maximum(np.abs(residues) / (_GONE * min(scale, abs(final) or scale)), 1.0)) / -rates.real
        pieces, end = [0.0], float(gone.max())
        edge = min(end, 10.0 / float(np.abs(rates).max()))
        while pieces[-1] < end:
            pieces.append(edge)
            edge = min(end, 2.0 * edge)
        looks = [self._look(start, stop, rates, residues, gone > start) for start, stop in pairwise(pieces)]
        t, y, slope = (np.concatenate(own) for own in zip(*looks, strict=True))
        return t, y + final, slope

    @staticmethod
    def _look(start, stop, rates, residues, is_there):
        rates, residues = rates[is_there], residues[is_there]
        count = max(math.ceil(_PER_RADIAN * (stop - start) * float(np.abs(rates).max())), _FEWEST)
        t = np.linspace(start, stop, count, endpoint=False)
        y, slope = np.empty(count), np.empty(count)
        for some in np.array_split(np.arange(count), max(1, count * len(rates) // 2_000_000)):
            modes = np.exp(np.multiply.outer(t[some], rates))
            y[some], slope[some] = (modes @ residues).real, (modes @ (residues * rates)).real
        return t, y, slope


@dataclass(frozen=True)
class Nodes:
    """A curve at places between which it goes one way only."""

    curve: StepCurve
    t: np.ndarray
    y: np.ndarray
    is_turn: np.ndarray

    @property
    def doubt(self):
        """By how much heights of turns may be off."""
        return 1e-3 * float(np.abs(self.y).max())

    def exact(self, place):
        """The time and the height of a node, exactly."""
        time = float(self.t[place])
        if self.is_turn[place]:
            start, stop = float(self.t[place - 1]), float(self.t[place + 1])
            rises = self.curve.slope(start) > 0
            time = bisected(lambda t: (self.curve.slope(t) > 0) != rises, start, stop)
        return time, float(self.curve.value(time))

    def highest(self, sign):
        """When sign·y is largest, and how large."""
        heights = sign * self.y
        places = np.flatnonzero(heights >= heights.max() - self.doubt)
        found = [self.exact(place) for place in places[np.argsort(-heights[places])][:40].tolist()]
        time, height = max(found, key=lambda own: sign * own[1])
        return time, sign * height

    def first_reaching(self, level):
        """When y first is as far from 0 as a level, on its side."""
        sign = math.copysign(1.0, level)
        for place in np.flatnonzero(sign * self.y >= abs(level) - self.doubt).tolist():
            time, height = self.exact(place)
            if sign * height >= abs(level):
                before = float(self.t[max(place - 1, 0)])
                return bisected(lambda t: sign * self.curve.value(t) >= abs(level), before, time)
        raise ValueError(f"{level} is never reached")

    def settling_time(self, band):
        """After which y stays within a band around its final value."""
        final = float(self.curve.final)
        for place in np.flatnonzero(np.abs(self.y - final) > band - self.doubt)[::-1].tolist():
            time, height = self.exact(place)
            if abs(height - final) > band:
                after = float(self.t[place + 1])
                return bisected(lambda t: abs(self.curve.value(t) - self.curve.final) <= band, time, after)
        return 0.0


def bisected(holds, start, stop):
    """The place between start and stop where a condition begins to hold."""
    for _ in range(46):
        middle = 0.5 * (start + stop)
        start, stop = (start, middle) if holds(middle) else (middle, stop)
    return stop
