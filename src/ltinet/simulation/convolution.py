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

import numpy as np
import scipy  # which loads scipy.fft when it is first used

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, MAX_AMPLIFICATION, Array, Complex
from ltinet.simulation.recurrence import max_abs
from ltinet.simulation.step_model import ExactStep, run_in_groups
from ltinet.systems.matrices import Matrix

_MAX_GROUP_NUMBERS = 2**18  # numbers in the padded signals of a group of batch members, which stay in the cache (2 MiB)
# The root-mean-square error of a transform of length N is about 0.3 √(log₂ N) eps of the norm of its input (Schatzman
# 1996). An output passes three transforms, and each error is counted three times.
_ROUNDING_PER_OUTPUT = 3 * 3 * 0.3


@dataclass(frozen=True)
class Convolution:
    """A convolution prepared for up to 2K samples."""

    width: int
    """K, the number of samples of a half."""
    spectra: Complex
    """Transforms of H_{0 … K−1} and of H_{1 … 2K−1}, `(m, p, 2, K + 1)`."""
    from_first: Matrix | None
    """C P^k G₁, (m × 2K p): the response to a line that leads to the first sample, which is subtracted; None for steps."""
    grows: bool
    """True if responses are far larger in the second half: transforms round early outputs relative to late ones."""

    def outputs(self, u: Array, *, threads: int = 1) -> Array:
        """Return outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from rest."""
        batch, n_times, m = u.shape
        p = self.spectra.shape[1]
        y = np.empty((batch, 2 * self.width, p))

        def work(group: slice) -> None:
            self._fill_outputs(u[group], out=y[group].reshape(-1, 2, self.width, p))

        at_once = _MAX_GROUP_NUMBERS // (4 * self.width * max(m, p))
        run_in_groups(work, batch, at_once=at_once, threads=threads)
        # Before its first nonzero input a member of a batch is at rest: rounding of later outputs must not show there.
        for outputs, inputs in zip(y, u, strict=True) if not u[:, 0].all() else ():
            if not inputs[0].any():
                driven = inputs.any(axis=-1)
                outputs[: np.argmax(driven) if driven.any() else len(outputs)] = 0.0
        return y[:, :n_times]

    def rounding(self, norms: Array) -> Array:
        """Bound the rounding error of each output `(p,)`, for inputs with Euclidean norms over time `(m,)`."""
        relative = (_ROUNDING_PER_OUTPUT * math.sqrt(math.log2(2 * self.width)) + math.sqrt(len(norms)) + 2) * EPS
        return np.asarray(relative * (norms @ self._gains))

    @cached_property
    def _gains(self) -> Matrix:
        """Largest amplification of each input in each output, (m × p)."""
        return np.asarray(np.max(np.abs(self.spectra).sum(axis=-2), axis=-1))

    def _fill_outputs(self, u: Array, *, out: Array) -> None:
        """Fill the halves `(batch, 2, K, p)` of the outputs of some members of a batch."""
        U = scipy.fft.rfft(_padded_halves(u, self.width), axis=-1)
        first, second = U[:, :, 0], U[:, :, 1]
        Y = self.spectra[0, :, None] * first[0, :, None]
        within, across = self.spectra[:, :, None, 0], self.spectra[:, :, None, 1]
        product = np.empty_like(Y[:, :, 1])
        for channel, H_within, H_across in zip(first[1:], within[1:], across[1:], strict=True):
            Y[:, :, 0] += np.multiply(channel, H_within, out=product)
            Y[:, :, 1] += np.multiply(channel, H_across, out=product)
        for channel, H_within in zip(second, within, strict=True):
            Y[:, :, 1] += np.multiply(channel, H_within, out=product)
        y = scipy.fft.irfft(Y, axis=-1, overwrite_x=True)[..., : self.width].transpose(1, 2, 3, 0)
        if self.from_first is None:
            out[:] = y
            return
        line = out.reshape(len(u), self.from_first.shape[1])
        if len(self.from_first) == 1:
            np.multiply(u[:, 0], self.from_first, out=line)
        else:
            np.einsum("bm,mk->bk", u[:, 0], self.from_first, out=line)
        np.subtract(y, out, out=out)


def prepare_convolution(step: ExactStep, n_times: int) -> Convolution:
    """Prepare a convolution for `n_times` samples."""
    K = scipy.fft.next_fast_len(-(-n_times // 2), real=True)  # half of the samples, with a fast transform
    p, m = step.direct.shape
    by_Gamma, by_G1 = step.markov_parameters(2 * K)
    lags = np.zeros((m, p, 2, 2 * K))
    markov = by_Gamma.transpose(2, 1, 0)  # from lag 1 on
    lags[..., 0, 0], lags[..., 0, 1:K] = step.direct.T, markov[..., : K - 1]
    lags[..., 1, :K], lags[..., 1, K + 1 :] = markov[..., K - 1 : -1], markov[..., : K - 1]
    from_first = np.ascontiguousarray(by_G1.transpose(2, 0, 1).reshape(m, -1)) if step.shift.any() else None
    grows = not max_abs(by_Gamma[K:]) <= MAX_AMPLIFICATION * max_abs(by_Gamma[:K])
    return Convolution(K, scipy.fft.rfft(lags, axis=-1), from_first, grows)


def _padded_halves(u: Array, K: int) -> Array:
    """Return both halves of each channel, each followed by zeros, `(m, batch, 2, 2K)`."""
    batch, n_times, m = u.shape
    inputs = np.zeros((m, batch, 2, 2 * K))
    channels = u.transpose(2, 0, 1)
    inputs[:, :, 0, :K], inputs[:, :, 1, : n_times - K] = channels[..., :K], channels[..., K:]
    return inputs
