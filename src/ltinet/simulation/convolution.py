"""Simulation of evenly spaced samples from rest by fast convolution; the cost does not depend on the number of states.

The signal is cut into two halves of K samples, so that transforms are short and go in pairs. With the Markov
parameters H_0 … H_{2K−1} the outputs of the halves are

    Y₀ = H_{0 … K−1} ∗ U₀        Y₁ = H_{0 … K−1} ∗ U₁ + H_{1 … 2K−1} ∗ U₀

With K zeros after each half of the inputs these are products of discrete Fourier transforms of length 2K, of which
the first K results are right. Rounding is relative to the largest output, not to each output as in matrix products,
so that this method is for systems that do not grow.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy  # which loads scipy.fft when it is first used

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.simulation.recurrence import MAX_POWER_NORM, max_abs
from ltinet.simulation.step_model import ExactStep, run_in_groups
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.convolution
# Evenly spaced samples from rest, by fast convolution: the work of a run does not grow with the number of states.
#
# The signal is cut into two halves of K samples, so that transforms are short and go in pairs. With the Markov parameters
# H_0 … H_{2K−1} the outputs of the halves are
#
#     Y₀ = H_{0 … K−1} ∗ U₀        Y₁ = H_{0 … K−1} ∗ U₁ + H_{1 … 2K−1} ∗ U₀
#
# With K zeros after each half of the inputs these are products of discrete Fourier transforms of length 2K, of which the
# first K results are right.
#
# Rounding is relative to the largest outputs, not to each as in matrix products: this is for systems that do not grow.

_AT_ONCE = 2**18  # numbers: members of a batch that are worked on together, with their zeros, to stay in the cache
# A transform of length N errs by about 0.3 √(log₂ N) eps of the norm of what it transforms (Schatzman 1996). An output
# has gone through three of them, and each is counted thrice.
_PER_OUTPUT = 3 * 3 * 0.3


@dataclass(frozen=True)
class Convolution:
    """A grid prepared for up to 2K samples."""

    width: int
    """K, the number of samples in a half."""
    spectra: Complex
    """Transforms of the Markov parameters within a half and from the first to the second, `(m, p, 2, K + 1)`."""
    from_first: Matrix | None
    """C P^k G₁, (m × 2K p): what the first sample does not do, since no line leads to it; None for steps."""

    grows: bool
    """Whether responses are far larger in the second half: transforms round early outputs relative to late ones."""

    def outputs(self, u: Array, *, threads: int = 1) -> Array:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`."""
        batch, n_times, m = u.shape
        p = self.spectra.shape[1]
        y = np.empty((batch, 2 * self.width, p))

        def work(own: slice) -> None:
            self._some_outputs(u[own], out=y[own].reshape(-1, 2, self.width, p))

        run_in_groups(work, batch, at_once=_AT_ONCE // (4 * self.width * max(m, p)), threads=threads)
        if not u[:, 0].all():
            _zero_before_first_input(y, u)
        return y[:, :n_times]

    def rounding(self, norms: Array) -> Array:
        """Bound what rounding does to each output `(p,)`, for inputs with such Euclidean norms over time `(m,)`."""
        share = (_PER_OUTPUT * math.sqrt(math.log2(2 * self.width)) + math.sqrt(len(norms)) + 2) * EPS
        return np.asarray(share * (norms @ self._gains))

    @cached_property
    def _gains(self) -> Matrix:
        """By how much each input can be amplified in each output, (m × p)."""
        return np.asarray(np.max(np.abs(self.spectra).sum(axis=-2), axis=-1))

    def _some_outputs(self, u: Array, *, out: Array) -> None:
        """Fill the halves `(batch, 2, K, p)` of the outputs of some members of a batch."""
        U = scipy.fft.rfft(_with_zeros(u, self.width), axis=-1)
        first, second = U[:, :, 0], U[:, :, 1]
        Y = self.spectra[0, :, None] * first[0, :, None]
        within, across = self.spectra[:, :, None, 0], self.spectra[:, :, None, 1]
        scratch = np.empty_like(Y[:, :, 1])
        for values, own, other in zip(first[1:], within[1:], across[1:], strict=True):
            Y[:, :, 0] += np.multiply(values, own, out=scratch)
            Y[:, :, 1] += np.multiply(values, other, out=scratch)
        for values, own in zip(second, within, strict=True):
            Y[:, :, 1] += np.multiply(values, own, out=scratch)
        y = scipy.fft.irfft(Y, axis=-1, overwrite_x=True)[..., : self.width].transpose(1, 2, 3, 0)
        if self.from_first is None:
            out[:] = y
        else:
            by_first = out.reshape(len(u), self.from_first.shape[1])
            if len(self.from_first) == 1:
                np.multiply(u[:, 0], self.from_first, out=by_first)
            else:
                np.einsum("bm,mk->bk", u[:, 0], self.from_first, out=by_first)
            np.subtract(y, out, out=out)


def prepare_convolution(step: ExactStep, n_times: int) -> Convolution:
    """Prepare a grid for so many samples."""
    K = convolution_width(n_times)
    p, m = step.direct.shape
    by_Gamma, by_G1 = step.responses(2 * K)
    lags = np.zeros((m, p, 2, 2 * K))
    markov = by_Gamma.transpose(2, 1, 0)  # from lag 1 on
    lags[..., 0, 0], lags[..., 0, 1:K] = step.direct.T, markov[..., : K - 1]
    lags[..., 1, :K], lags[..., 1, K + 1 :] = markov[..., K - 1 : -1], markov[..., : K - 1]
    from_first = np.ascontiguousarray(by_G1.transpose(2, 0, 1).reshape(m, -1)) if step.shift.any() else None
    grows = not max_abs(by_Gamma[K:]) <= MAX_POWER_NORM * max_abs(by_Gamma[:K])
    return Convolution(K, scipy.fft.rfft(lags, axis=-1), from_first, grows)


@lru_cache(maxsize=64)
def convolution_width(n_times: int) -> int:
    """The smallest half that holds so many samples and has a fast transform: a product of powers of 2, 3 and 5.

    `scipy.fft.next_fast_len` says the same; asking it would import all transforms for runs that need none.
    """
    least = -(-n_times // 2)
    best = _double_until(1, least)
    fives = 1
    while fives < best:
        product = fives
        while product < best:
            best = min(best, _double_until(product, least))
            product *= 3
        fives *= 5
    return best


def _double_until(number: int, least: int) -> int:
    """The number, doubled until it is at least so large."""
    return number << max(0, -(-least // number) - 1).bit_length()


def _zero_before_first_input(y: Array, u: Array) -> None:
    """Before its first input that is not zero, a member of a batch is at rest: there is no rounding to be seen."""
    for own, inputs in zip(y, u, strict=True):
        if not inputs[0].any():
            driven = inputs.any(axis=-1)
            own[: np.argmax(driven) if driven.any() else len(own)] = 0.0


def _with_zeros(u: Array, K: int) -> Array:
    """Each half of each channel with as many zeros after it, `(m, batch, 2, 2K)`."""
    batch, n_times, m = u.shape
    inputs = np.zeros((m, batch, 2, 2 * K))
    channels = u.transpose(2, 0, 1)
    inputs[:, :, 0, :K], inputs[:, :, 1, : n_times - K] = channels[..., :K], channels[..., K:]
    return inputs
