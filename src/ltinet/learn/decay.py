"""P = e^{Ah} and its powers, on packed states: rotations for pairs, numbers for reals, matrices for coupled blocks."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltinet.learn.signed_once import signed_once
from ltinet.learn.system import Layout, System

_SPLIT = 2.0**27 + 1.0


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
    re, im = _Powers.apply(length, counts.to(rates.dtype), rates)
    n_pairs = system.frequencies.shape[-1]
    return re[..., :n_pairs], im[..., :n_pairs], re[..., n_pairs:]


class _Powers(torch.autograd.Function):
    """Re and Im of e^{kλh}, whose derivative by λ is kh times itself."""

    generate_vmap_rule = True

    @staticmethod
    @signed_once
    def forward(length: float, counts: Tensor, rates: Tensor) -> tuple[Tensor, Tensor]:
        once, k = rates * length, counts.unsqueeze(-1)
        lost_once = _lost(rates, length, once)
        each = once.unsqueeze(-2) * k
        lost = _lost_to_whole(once.unsqueeze(-2), k, each) + lost_once.unsqueeze(-2) * k
        size = torch.exp(each[0]) * (1.0 + lost[0])
        cosine, sine = torch.cos(each[1]), torch.sin(each[1])
        return size * (cosine - lost[1] * sine), size * (sine + lost[1] * cosine)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.length = inputs[0]
        ctx.save_for_backward(inputs[1], *output)
        ctx.save_for_forward(inputs[1], *output)

    @staticmethod
    def backward(ctx: Any, grad_re: Tensor, grad_im: Tensor) -> tuple[None, None, Tensor]:
        counts, re, im = ctx.saved_tensors
        products = torch.stack([grad_re * re + grad_im * im, grad_im * re - grad_re * im])
        return None, None, ctx.length * (counts @ products)

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, along: Tensor) -> tuple[Tensor, Tensor]:
        counts, re, im = ctx.saved_tensors
        x, y = (ctx.length * along).unsqueeze(-2) * counts.unsqueeze(-1)
        return re * x - im * y, im * x + re * y


def _lost(a: Tensor, b: float, product: Tensor) -> Tensor:
    """What rounding took from a b, as `ltinet.exact_arithmetic.exact_product` (Dekker 1971); zero beyond its range."""
    a1, a2 = _halves(a)
    scaled = b * _SPLIT
    b1 = scaled - (scaled - b)
    b2 = b - b1
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return torch.where(torch.isfinite(lost), lost, 0.0)


def _lost_to_whole(a: Tensor, k: Tensor, product: Tensor) -> Tensor:
    """The same for whole numbers k below 2²⁶, which need no halves."""
    a1, a2 = _halves(a)
    lost = (a1 * k - product) + a2 * k
    return torch.where(torch.isfinite(lost), lost, 0.0)


def _halves(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = a * _SPLIT
    upper = scaled - (scaled - a)
    return upper, a - upper
