"""P = e^{Ah} and its powers, on packed states: rotations for pairs, numbers for reals, matrices for coupled blocks."""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.system import Layout, System


class Decay(NamedTuple):
    """What states are multiplied by in a step; leading axes, if any, are those of several steps."""

    re: Tensor
    im: Tensor
    reals: Tensor
    blocks: tuple[Tensor, ...]

    @property
    def layout(self) -> Layout:
        """Where each part of the states stands."""
        return Layout(self.re.shape[-1], self.reals.shape[-1], tuple(own.shape[-3:-1] for own in self.blocks))

    def times(self, states: Tensor) -> Tensor:
        """P x, along the last axis of x."""
        re, im, reals, blocks = self.layout.split(states)
        return Layout.join(
            self.re * re - self.im * im,
            self.im * re + self.re * im,
            self.reals * reals,
            tuple((own @ x.unsqueeze(-1)).squeeze(-1) for own, x in zip(self.blocks, blocks, strict=True)),
        )

    def squared(self) -> "Decay":
        """P²."""
        return Decay(
            self.re * self.re - self.im * self.im,
            2.0 * self.re * self.im,
            self.reals * self.reals,
            tuple(own @ own for own in self.blocks),
        )


def scalar_powers(system: System, length: float, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Re and Im of e^{kλh} of the pairs, and e^{kλh} of the reals, for whole numbers k `(K,)`: each `(K, n)`.

    As `ltinet.solve.steps.propagators.exp_of_multiples`: what rounding takes from kλh comes back as a factor, so that a
    mode that rings for thousands of steps keeps its phase. Reals go along as pairs of frequency zero.
    """
    rates = torch.stack([system.scalar_rates, system.scalar_frequencies])
    k = counts.to(rates.dtype).unsqueeze(-1)
    with torch.no_grad():  # what rounding took is a constant to derivatives
        once, lost_once = _exact_product(rates, torch.full_like(rates, length))
        _, lost = _exact_product(once.unsqueeze(-2), k)
        lost_x, lost_y = lost + k * lost_once.unsqueeze(-2)
    x, y = (rates * length).unsqueeze(-2) * k
    size = torch.exp(x) * (1.0 + lost_x)
    cosine, sine = torch.cos(y), torch.sin(y)
    re, im = size * (cosine - lost_y * sine), size * (sine + lost_y * cosine)
    n_pairs = system.frequencies.shape[-1]
    return re[..., :n_pairs], im[..., :n_pairs], re[..., n_pairs:]


def _exact_product(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """As `ltinet.exact_arithmetic.exact_product` (Dekker 1971)."""
    product = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return product, torch.where(torch.isfinite(lost), lost, 0.0)


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = a * (2.0**27 + 1.0)
    upper = scaled - (scaled - a)
    return upper, a - upper
