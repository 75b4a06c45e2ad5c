"""Linear systems as tensors and their exact one-step propagators.

The system z' = A z + B u, y = C z + D u has the real parts of all pairs first, then their imaginary parts, the reals,
and coupled blocks. P = e^{Ah} consists of rotations, real factors and small matrices. One exact step is

    w⁺ = P w + Γ u,   y = C w + (D + C G₁) u,   w = z − G₁ u,

with G₀ = h (φ₁ − φ₂)(Ah) B, G₁ = h φ₂(Ah) B and Γ = P G₁ + G₀ for a linear hold, G₁ = 0 and Γ = h φ₁(Ah) B for a zero
hold. Rows C Pᵏ, columns Pᵏ Γ and impulse responses C Pᵏ Γ for many k come from exponentials e^{kλh} of scalars, each
accurate to a few units in the last place (products kλh are computed with their rounding errors; T. J. Dekker, 1971),
and from repeated doubling for coupled blocks.
"""

import math
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ltinet.torch.exponentials import cache_signature, matrix_exponential, matrix_phi, pair_phi

# MERGED ltinet.torch.propagators
# The system that parameters stand for, as tensors: z' = A z + B u, y = C z + D u, its states packed as in `packed`.


class TensorSystem(NamedTuple):
    """Pairs, reals and coupled blocks in continuous time; all tensors of one type."""

    pair_rates: Tensor
    """Re λ of the pairs, `(n_pairs,)`."""
    frequencies: Tensor
    """Im λ of the pairs."""
    real_rates: Tensor
    blocks: tuple[Tensor, ...]
    """Coupled blocks, `(count, k, k)` for each size k."""
    B: Tensor
    C: Tensor
    D: Tensor

    @property
    def scalar_rates(self) -> Tensor:
        """Re λ of pairs and reals together."""
        return torch.cat([self.pair_rates, self.real_rates], -1)

    @property
    def scalar_frequencies(self) -> Tensor:
        """Im λ of both, zero for reals."""
        return torch.cat([self.frequencies, torch.zeros_like(self.real_rates)], -1)

    @property
    def layout(self) -> "StateLayout":
        """Where each part of the states stands."""
        return StateLayout(
            self.pair_rates.shape[-1], self.real_rates.shape[-1], tuple(own.shape[-3:-1] for own in self.blocks)
        )

    @property
    def block_inputs(self) -> tuple[Tensor, ...]:
        """The rows of B of the coupled blocks, `(count, k, m)` for each size."""
        return tuple(own.movedim(-3, -1) for own in self.layout.split(self.B.mT)[3])


class StateLayout(NamedTuple):
    """How many states of each kind there are, in their order."""

    n_pairs: int
    n_reals: int
    groups: tuple[tuple[int, int], ...]
    """Number and size of the coupled blocks of each size."""

    @property
    def sizes(self) -> list[int]:
        """The lengths of all parts."""
        return [self.n_pairs, self.n_pairs, self.n_reals, *(count * size for count, size in self.groups)]

    @property
    def n_states(self) -> int:
        """All of them."""
        return sum(self.sizes)

    def split(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """Views of the parts along the last axis: Re and Im of pairs, reals, and blocks as `(…, count, k)`."""
        re, im, reals, *dense = torch.split(states, self.sizes, dim=-1)
        shaped = (own.unflatten(-1, group) for own, group in zip(dense, self.groups, strict=True))
        return re, im, reals, tuple(shaped)

    @staticmethod
    def join(re: Tensor, im: Tensor, reals: Tensor, blocks: tuple[Tensor, ...]) -> Tensor:
        """The parts side by side again, along the last axis."""
        return torch.cat([re, im, reals, *(own.flatten(-2) for own in blocks)], dim=-1)


# MERGED ltinet.torch.propagators
# P = e^{Ah} and its powers, on packed states: rotations for pairs, numbers for reals, matrices for coupled blocks.

_VELTKAMP_FACTOR = 2.0**27 + 1.0


class Propagator(NamedTuple):
    """What states are multiplied by in a step; leading axes, if any, are those of several steps."""

    re: Tensor
    im: Tensor
    reals: Tensor
    blocks: tuple[Tensor, ...]

    @property
    def layout(self) -> StateLayout:
        """Where each part of the states stands."""
        return StateLayout(self.re.shape[-1], self.reals.shape[-1], tuple(own.shape[-3:-1] for own in self.blocks))

    def times(self, states: Tensor) -> Tensor:
        """P x, along the last axis of x."""
        re, im, reals, blocks = self.layout.split(states)
        return StateLayout.join(
            self.re * re - self.im * im,
            self.im * re + self.re * im,
            self.reals * reals,
            tuple((own @ x.unsqueeze(-1)).squeeze(-1) for own, x in zip(self.blocks, blocks, strict=True)),
        )

    def squared(self) -> "Propagator":
        """P²."""
        return Propagator(
            self.re * self.re - self.im * self.im,
            2.0 * self.re * self.im,
            self.reals * self.reals,
            tuple(own @ own for own in self.blocks),
        )


def scalar_powers(system: TensorSystem, length: float, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Re and Im of e^{kλh} of the pairs, and e^{kλh} of the reals, for whole numbers k `(K,)`: each `(K, n)`.

    As `ltinet.simulation.propagators.exp_of_multiples`: what rounding takes from kλh comes back as a factor, so that a
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
    @cache_signature
    def forward(length: float, counts: Tensor, rates: Tensor) -> tuple[Tensor, Tensor]:
        once, k = rates * length, counts.unsqueeze(-1)
        lost_once = _product_error(rates, length, once)
        each = once.unsqueeze(-2) * k
        lost = _integer_product_error(once.unsqueeze(-2), k, each) + lost_once.unsqueeze(-2) * k
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


def _product_error(a: Tensor, b: float, product: Tensor) -> Tensor:
    """What rounding took from a b, as `ltinet._util.floating_point.exact_product` (Dekker 1971); zero beyond its range."""
    a1, a2 = _split_double(a)
    scaled = b * _VELTKAMP_FACTOR
    b1 = scaled - (scaled - b)
    b2 = b - b1
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return torch.where(torch.isfinite(lost), lost, 0.0)


def _integer_product_error(a: Tensor, k: Tensor, product: Tensor) -> Tensor:
    """The same for whole numbers k below 2²⁶, which need no halves."""
    a1, a2 = _split_double(a)
    lost = (a1 * k - product) + a2 * k
    return torch.where(torch.isfinite(lost), lost, 0.0)


def _split_double(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = a * _VELTKAMP_FACTOR
    upper = scaled - (scaled - a)
    return upper, a - upper


# MERGED ltinet.torch.propagators
# One exact step as the recurrence w⁺ = P w + Γ u, y = C w + (D + C G₁) u, w = z − G₁ u (`solve.steps.one_step`).
#
# A linear hold has Γ = P G₁ + G₀ with G₀ = h(φ₁ − φ₂)(Ah) B and G₁ = h φ₂(Ah) B, a zero hold G₁ = 0 and Γ = h φ₁(Ah) B.


class OneStep(NamedTuple):
    """Everything that depends on the step and the hold, but not on the samples."""

    system: TensorSystem
    length: float
    decay: Propagator
    G0: Tensor
    G1: Tensor
    Gamma: Tensor
    direct: Tensor
    """D + C G₁."""


def one_step(system: TensorSystem, length: float, *, linear: bool) -> OneStep:
    """Prepare steps of one length; cost O(n m) and a matrix exponential for each coupled block."""
    decay, first, second = propagator_and_input_integrals(system, length)
    if not linear:
        zero = torch.zeros_like(first)
        return OneStep(system, length, decay, first, zero, first, system.D)
    Gamma = decay.times(second.mT).mT + (first - second)
    return OneStep(system, length, decay, first - second, second, Gamma, system.D + system.C @ second)


def propagator_and_input_integrals(system: TensorSystem, length: float) -> tuple[Propagator, Tensor, Tensor]:
    """P, h φ₁(Ah) B and h φ₂(Ah) B, the latter two `(n, m)`."""
    re, im, reals = (own.squeeze(-2) for own in scalar_powers(system, length, torch.ones(1, device=system.B.device)))
    blocks = [propagate_block(F, G, length) for F, G in zip(system.blocks, system.block_inputs, strict=True)]
    decay = Propagator(re, im, reals, tuple(own.P for own in blocks))
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
        joined = StateLayout.join(f_re * b_re - f_im * b_im, f_im * b_re + f_re * b_im, f_real * b_real, dense)
        weighted.append(joined.mT)
    return decay, weighted[0], weighted[1]


class BlockStep(NamedTuple):
    """P = e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G of coupled blocks."""

    P: Tensor
    first: Tensor
    second: Tensor


def propagate_block(F: Tensor, G: Tensor, length: float | Tensor) -> BlockStep:
    """Steps of blocks `(…, k, k)` with inputs `(…, k, m)`; a length may be a tensor `(…, 1, 1, 1)`."""
    P, first, second = matrix_phi(F * length)
    return BlockStep(P, length * (first @ G), length * (second @ G))


# MERGED ltinet.torch.propagators
# Rows C Pᵏ, columns Pᵏ Γ and responses C Pᵏ Γ for many k, as `OneStep.out_of`, `into` and `impulse_responses` of the engine.
#
# Scalars by their exponentials, each right to a few units; coupled blocks by doubling.

ScalarPowers: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Powers of pairs and reals, as `scalar_powers` gives them."""


def output_rows(step: OneStep, count: int, scalars: ScalarPowers | None = None) -> Tensor:
    """C Pᵏ for all k below `count`: `(count, p, n)`; powers of scalars are computed where they are not given."""
    re, im, reals = (own.unsqueeze(-2) for own in scalars or scalar_power_table(step, count))
    c_re, c_im, c_reals, blocks = step.system.layout.split(step.system.C)
    dense = _block_rows(blocks, step.system.blocks, step.length, count)
    return StateLayout.join(c_re * re + c_im * im, c_im * re - c_re * im, c_reals * reals, dense)


def input_columns(
    step: OneStep, drive: Tensor, count: int, *, stride: int = 1, scalars: ScalarPowers | None = None
) -> Tensor:
    """(Pˢ)ᵏ G for all k below `count` and a drive G `(n, m)`, transposed: `(count, m, n)`."""
    re, im, reals = (own.unsqueeze(-2) for own in scalars or scalar_power_table(step, count, stride=stride))
    g_re, g_im, g_reals, blocks = step.system.layout.split(drive.mT)
    dense = _block_rows(blocks, tuple(F.mT for F in step.system.blocks), stride * step.length, count)
    return StateLayout.join(g_re * re - g_im * im, g_im * re + g_re * im, g_reals * reals, dense)


def impulse_responses(step: OneStep, drives: Tensor, count: int) -> Tensor:
    """C Pᵏ G for all k below `count`: `(count, p, m)`, by about √count rows times about √count columns."""
    inner = math.isqrt(max(count - 1, 0)) + 1
    outer = -(-count // inner)
    rows_at, columns_at = _inner_and_outer_powers(step, inner, outer)
    rows = output_rows(step, inner, rows_at)
    columns = input_columns(step, drives, outer, stride=inner, scalars=columns_at)
    # (outer, m, n) × (inner, p, n) → (outer, m, inner, p)
    each = columns.flatten(0, 1) @ rows.flatten(0, 1).mT
    each = each.unflatten(-2, (outer, -1)).unflatten(-1, (inner, -1))
    return each.permute(0, 2, 3, 1).flatten(0, 1)[:count]


def propagator_power(step: OneStep, count: int, scalars: ScalarPowers | None = None) -> Propagator:
    """P to the power `count`; of powers of scalars that are given the last is taken."""
    if scalars is None:
        counts = torch.full((1,), float(count), device=step.system.B.device)
        scalars = scalar_powers(step.system, step.length, counts)
    re, im, reals = (own[-1] for own in scalars)
    return Propagator(re, im, reals, tuple(matrix_exponential(F * (count * step.length)) for F in step.system.blocks))


def scalar_power_table(step: OneStep, count: int, *, stride: int = 1) -> ScalarPowers:
    """Powers of scalars for all multiples of the stride below `count` of them."""
    counts = stride * torch.arange(count, device=step.system.B.device)
    return scalar_powers(step.system, step.length, counts)


def _inner_and_outer_powers(step: OneStep, inner: int, outer: int) -> tuple[ScalarPowers, ScalarPowers]:
    """Powers for all counts below `inner` and for as many multiples of it as `outer` says, in one go."""
    device = step.system.B.device
    counts = torch.cat([torch.arange(inner, device=device), inner * torch.arange(outer, device=device)])
    re, im, reals = scalar_powers(step.system, step.length, counts)
    return (re[:inner], im[:inner], reals[:inner]), (re[inner:], im[inner:], reals[inner:])


def _block_rows(rows: tuple[Tensor, ...], blocks: tuple[Tensor, ...], length: float, count: int) -> tuple[Tensor, ...]:
    """Rows `(p, blocks, k)` times e^{jFh} for all j below `count`: `(count, p, blocks, k)` for each size."""
    return tuple(
        _rows_by_doubling(own.movedim(-2, -3), F, length, count).movedim(-3, -2)
        for own, F in zip(rows, blocks, strict=True)
    )


def _rows_by_doubling(rows: Tensor, F: Tensor, length: float, count: int) -> Tensor:
    """Rows `(blocks, p, k)` times e^{jFh}: `(count, blocks, p, k)`.

    From the first j rows follow the next j by one product with e^{jFh}, an exponential of its own and not a power of
    e^{Fh}: that is rounded, and its power by j times as much.
    """
    known = rows.unsqueeze(0)
    levels = max(count - 1, 0).bit_length()
    if not levels:
        return known
    lengths = length * 2.0 ** torch.arange(levels, dtype=F.dtype, device=F.device)
    for power in matrix_exponential(F * lengths[:, None, None, None]):
        known = torch.cat([known, (known @ power)[: count - known.shape[0]]])
    return known
