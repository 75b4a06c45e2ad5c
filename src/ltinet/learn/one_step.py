"""One exact step as the recurrence w⁺ = P w + Γ u, y = C w + (D + C G₁) u, w = z − G₁ u (`solve.steps.one_step`).

A linear hold has Γ = P G₁ + G₀ with G₀ = h(φ₁ − φ₂)(Ah) B and G₁ = h φ₂(Ah) B, a zero hold G₁ = 0 and Γ = h φ₁(Ah) B.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.decay import Decay, scalar_powers
from ltinet.learn.exponential import matrix_phi
from ltinet.learn.phi import pair_phi
from ltinet.learn.system import Layout, System


class OneStep(NamedTuple):
    """Everything that depends on the step and the hold, but not on the samples."""

    system: System
    length: float
    decay: Decay
    G0: Tensor
    G1: Tensor
    Gamma: Tensor
    direct: Tensor
    """D + C G₁."""


def one_step(system: System, length: float, *, linear: bool) -> OneStep:
    """Prepare steps of one length; cost O(n m) and a matrix exponential for each coupled block."""
    decay, first, second = held_inputs(system, length)
    if not linear:
        zero = torch.zeros_like(first)
        return OneStep(system, length, decay, first, zero, first, system.D)
    Gamma = decay.times(second.mT).mT + (first - second)
    return OneStep(system, length, decay, first - second, second, Gamma, system.D + system.C @ second)


def held_inputs(system: System, length: float) -> tuple[Decay, Tensor, Tensor]:
    """P, h φ₁(Ah) B and h φ₂(Ah) B, the latter two `(n, m)`."""
    re, im, reals = (own.squeeze(-2) for own in scalar_powers(system, length, torch.ones(1, device=system.B.device)))
    blocks = [block_step(F, G, length) for F, G in zip(system.blocks, system.block_inputs, strict=True)]
    decay = Decay(re, im, reals, tuple(own.P for own in blocks))
    n_pairs = system.frequencies.shape[-1]
    b_re, b_im, b_real, _ = system.layout.split(system.B.mT)
    weighted = []
    for factor, place in zip(
        pair_phi(system.scalar_rates * length, system.scalar_frequencies * length), (1, 2), strict=True
    ):
        f_re, f_im, f_real = (
            length * factor.re[..., :n_pairs],
            length * factor.im[..., :n_pairs],
            length * factor.re[..., n_pairs:],
        )
        dense = tuple(own[place].movedim(-1, -3) for own in blocks)
        joined = Layout.join(f_re * b_re - f_im * b_im, f_im * b_re + f_re * b_im, f_real * b_real, dense)
        weighted.append(joined.mT)
    return decay, weighted[0], weighted[1]


class BlockStep(NamedTuple):
    """P = e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G of coupled blocks."""

    P: Tensor
    first: Tensor
    second: Tensor


def block_step(F: Tensor, G: Tensor, length: float | Tensor) -> BlockStep:
    """Steps of blocks `(…, k, k)` with inputs `(…, k, m)`; a length may be a tensor `(…, 1, 1, 1)`."""
    P, first, second = matrix_phi(F * length)
    return BlockStep(P, length * (first @ G), length * (second @ G))
