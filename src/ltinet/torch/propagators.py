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


class TensorSystem(NamedTuple):
    """Continuous-time system of pairs, reals and coupled blocks; all tensors have one type."""

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
        """Re λ of pairs, then of reals."""
        return torch.cat([self.pair_rates, self.real_rates], -1)

    @property
    def scalar_frequencies(self) -> Tensor:
        """Im λ of pairs, then zeros for reals."""
        return torch.cat([self.frequencies, torch.zeros_like(self.real_rates)], -1)

    @property
    def layout(self) -> "StateLayout":
        """Numbers of states of each kind."""
        groups = tuple(F.shape[-3:-1] for F in self.blocks)
        return StateLayout(self.pair_rates.shape[-1], self.real_rates.shape[-1], groups)

    @property
    def block_inputs(self) -> tuple[Tensor, ...]:
        """Rows of B of the coupled blocks, `(count, k, m)` for each size."""
        return tuple(rows.movedim(-3, -1) for rows in self.layout.split(self.B.mT)[3])


class StateLayout(NamedTuple):
    """Numbers of pairs, reals and coupled blocks, which define the order of the states."""

    n_pairs: int
    n_reals: int
    groups: tuple[tuple[int, int], ...]
    """Number and size of the coupled blocks of each size."""

    @property
    def sizes(self) -> list[int]:
        """Lengths of all parts."""
        return [self.n_pairs, self.n_pairs, self.n_reals, *(count * size for count, size in self.groups)]

    @property
    def n_states(self) -> int:
        """Total number of states."""
        return sum(self.sizes)

    def split(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """Return views of the parts along the last axis: Re and Im of pairs, reals, and blocks `(…, count, k)`."""
        re, im, reals, *blocks = torch.split(states, self.sizes, dim=-1)
        shaped = (part.unflatten(-1, group) for part, group in zip(blocks, self.groups, strict=True))
        return re, im, reals, tuple(shaped)

    @staticmethod
    def join(re: Tensor, im: Tensor, reals: Tensor, blocks: tuple[Tensor, ...]) -> Tensor:
        """Concatenate the parts along the last axis."""
        return torch.cat([re, im, reals, *(part.flatten(-2) for part in blocks)], dim=-1)


_VELTKAMP_FACTOR = 2.0**27 + 1.0  # splits a double into halves of 26 bits


class Propagator(NamedTuple):
    """Propagator P = e^{Ah} on packed states; leading axes, if any, are those of several steps."""

    re: Tensor
    im: Tensor
    reals: Tensor
    blocks: tuple[Tensor, ...]

    @property
    def layout(self) -> StateLayout:
        """Numbers of states of each kind."""
        return StateLayout(self.re.shape[-1], self.reals.shape[-1], tuple(P.shape[-3:-1] for P in self.blocks))

    def times(self, states: Tensor) -> Tensor:
        """Return P x along the last axis of x."""
        re, im, reals, blocks = self.layout.split(states)
        return StateLayout.join(
            self.re * re - self.im * im,
            self.im * re + self.re * im,
            self.reals * reals,
            tuple((P @ x.unsqueeze(-1)).squeeze(-1) for P, x in zip(self.blocks, blocks, strict=True)),
        )

    def compose(self, other: "Propagator") -> "Propagator":
        """Return the product of this propagator and another one."""
        return Propagator(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
            self.reals * other.reals,
            tuple(P @ Q for P, Q in zip(self.blocks, other.blocks, strict=True)),
        )


def scalar_powers(system: TensorSystem, length: float, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return Re and Im of e^{kλh} of the pairs, and e^{kλh} of the reals, for integers k `(K,)`: each `(K, n)`.

    As in `ltinet.simulation.propagators.exp_of_multiples`, the rounding error of kλh is applied as a factor, so that a
    mode that rings for thousands of steps keeps its phase. Reals are treated as pairs of frequency zero.
    """
    rates = torch.stack([system.scalar_rates, system.scalar_frequencies])
    re, im = _Powers.apply(length, counts.to(rates.dtype), rates)
    sizes = [system.frequencies.shape[-1], system.real_rates.shape[-1]]
    re_of_pairs, reals = re.split(sizes, -1)
    return re_of_pairs, im.split(sizes, -1)[0], reals


class _Powers(torch.autograd.Function):
    """Re and Im of e^{kλh}, whose derivative with respect to λ is kh e^{kλh}."""

    generate_vmap_rule = True

    @staticmethod
    @cache_signature
    def forward(length: float, counts: Tensor, rates: Tensor) -> tuple[Tensor, Tensor]:
        # kλh = product + error, and e^{x + δ} = e^x (1 + δ), cos(y + δ) = cos y − δ sin y to first order.
        scaled, k = rates * length, counts.unsqueeze(-1)
        product = scaled.unsqueeze(-2) * k
        error = _integer_product_error(scaled.unsqueeze(-2), k, product)
        if length != 1.0:
            error = error + _product_error(rates, length, scaled).unsqueeze(-2) * k
        magnitude = torch.exp(product[0]) * (1.0 + error[0])
        cosine, sine = torch.cos(product[1]), torch.sin(product[1])
        return magnitude * (cosine - error[1] * sine), magnitude * (sine + error[1] * cosine)

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
    """Return the rounding error of the product a b (Dekker, 1971); zero where the splitting overflows."""
    a1, a2 = _split_double(a)
    scaled = b * _VELTKAMP_FACTOR
    b1 = scaled - (scaled - b)
    b2 = b - b1
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return torch.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0)


def _integer_product_error(a: Tensor, k: Tensor, product: Tensor) -> Tensor:
    """Return the rounding error of the product a k for integers k below 2²⁶, which need no splitting."""
    a1, a2 = _split_double(a)
    error = (a1 * k - product) + a2 * k
    return torch.nan_to_num(error, nan=0.0, posinf=0.0, neginf=0.0)


def _split_double(a: Tensor) -> tuple[Tensor, Tensor]:
    scaled = a * _VELTKAMP_FACTOR
    upper = scaled - (scaled - a)
    return upper, a - upper


class OneStep(NamedTuple):
    """Matrices of an exact step, which depend on its length and the hold but not on the samples."""

    system: TensorSystem
    length: float
    decay: Propagator
    G0: Tensor
    G1: Tensor
    Gamma: Tensor
    direct: Tensor
    """D + C G₁."""


def one_step(system: TensorSystem, length: float, *, linear: bool) -> OneStep:
    """Compute the matrices of a step; cost O(n m) and a matrix exponential for each coupled block."""
    decay, integrals = propagator_and_input_integrals(system, length, count=2 if linear else 1)
    first, second = integrals[0], integrals[-1]
    if not linear:
        zero = torch.zeros_like(first)
        return OneStep(system, length, decay, first, zero, first, system.D)
    Gamma = decay.times(second.mT).mT + (first - second)
    return OneStep(system, length, decay, first - second, second, Gamma, system.D + system.C @ second)


def propagator_and_input_integrals(
    system: TensorSystem, length: float, *, count: int
) -> tuple[Propagator, list[Tensor]]:
    """Compute P and h φ₁(Ah) B, for a count of 2 also h φ₂(Ah) B, `(…, n, m)`; leading axes are those of several systems."""
    one = torch.ones(1, device=system.B.device)
    re, im, reals = (powers.squeeze(-2) for powers in scalar_powers(system, length, one))
    blocks = [propagate_block(F, G, length) for F, G in zip(system.blocks, system.block_inputs, strict=True)]
    decay = Propagator(re, im, reals, tuple(step.P for step in blocks))
    n_pairs = system.frequencies.shape[-1]
    b_re, b_im, b_real, _ = system.layout.split(system.B.mT)
    integrals = []
    phi = pair_phi(system.scalar_rates * length, system.scalar_frequencies * length, count=count)
    of_all_blocks = [step.first for step in blocks], [step.second for step in blocks]
    for factor, of_blocks in zip(phi, of_all_blocks[:count], strict=True):
        f_re, f_im = (length * part[..., None, :n_pairs] for part in (factor.re, factor.im))
        f_real = length * factor.re[..., None, n_pairs:]
        dense = tuple(integral.movedim(-1, -3) for integral in of_blocks)
        joined = StateLayout.join(f_re * b_re - f_im * b_im, f_im * b_re + f_re * b_im, f_real * b_real, dense)
        integrals.append(joined.mT)
    return decay, integrals


class BlockStep(NamedTuple):
    """P = e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G of coupled blocks."""

    P: Tensor
    first: Tensor
    second: Tensor


def propagate_block(F: Tensor, G: Tensor, length: float | Tensor) -> BlockStep:
    """Compute steps of blocks `(…, k, k)` with inputs `(…, k, m)`; the length may be a tensor `(…, 1, 1, 1)`."""
    P, first, second = matrix_phi(F * length)
    return BlockStep(P, length * (first @ G), length * (second @ G))


ScalarPowers: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Powers of pairs (Re, Im) and reals: the result of `scalar_powers`."""


def output_rows(step: OneStep, count: int, scalars: ScalarPowers | None = None) -> Tensor:
    """Compute C Pᵏ for all k below `count`: `(…, count, p, n)`; leading axes are those of several systems."""
    re, im, reals = (powers.unsqueeze(-2) for powers in scalars or scalar_power_table(step, count))
    c_re, c_im, c_reals, blocks = step.system.layout.split(step.system.C.unsqueeze(-3))
    dense = _block_rows(blocks, step.system.blocks, step.length, count)
    return StateLayout.join(c_re * re + c_im * im, c_im * re - c_re * im, c_reals * reals, dense)


def input_columns(
    step: OneStep, G: Tensor, count: int, *, stride: int = 1, scalars: ScalarPowers | None = None
) -> Tensor:
    """Compute (Pˢ)ᵏ G for a stride s, all k below `count` and G `(…, n, m)`, transposed: `(…, count, m, n)`."""
    re, im, reals = (powers.unsqueeze(-2) for powers in scalars or scalar_power_table(step, count, stride=stride))
    g_re, g_im, g_reals, blocks = step.system.layout.split(G.mT.unsqueeze(-3))
    dense = _block_rows(blocks, tuple(F.mT for F in step.system.blocks), stride * step.length, count)
    return StateLayout.join(g_re * re - g_im * im, g_im * re + g_re * im, g_reals * reals, dense)


def impulse_responses(step: OneStep, G: Tensor, count: int) -> Tensor:
    """Compute C Pᵏ G for all k below `count`: `(…, count, p, m)`; leading axes are those of several systems.

    With k = i + s j and s ≈ √count these are products of the rows C Pⁱ with the columns (Pˢ)ʲ G.
    """
    inner = math.isqrt(max(count - 1, 0)) + 1
    outer = -(-count // inner)
    device = step.system.B.device
    counts = torch.cat([torch.arange(inner, device=device), inner * torch.arange(outer, device=device)])
    powers = scalar_powers(step.system, step.length, counts)  # of rows and columns in one call
    of_rows, of_columns = zip(*(values.split([inner, outer], -2) for values in powers), strict=True)
    rows = output_rows(step, inner, of_rows)
    columns = input_columns(step, G, outer, stride=inner, scalars=of_columns)
    # (…, outer, m, n) × (…, inner, p, n) → (…, outer, m, inner, p)
    products = columns.flatten(-3, -2) @ rows.flatten(-3, -2).mT
    products = products.unflatten(-1, (inner, -1)).unflatten(-3, (outer, -1))
    return products.movedim(-3, -1).flatten(-4, -3)[..., :count, :, :]


def select_powers(powers: ScalarPowers, chosen: slice) -> ScalarPowers:
    """Return some of the powers of scalars."""
    re, im, reals = (values[..., chosen, :] for values in powers)
    return re, im, reals


def propagator_power(step: OneStep, count: int, scalars: ScalarPowers | None = None) -> Propagator:
    """Compute P to the power `count`; of given powers of scalars the last one is used."""
    if scalars is None:
        counts = torch.full((1,), float(count), device=step.system.B.device)
        scalars = scalar_powers(step.system, step.length, counts)
    re, im, reals = (powers.select(-2, -1) for powers in scalars)
    return Propagator(re, im, reals, tuple(matrix_exponential(F * (count * step.length)) for F in step.system.blocks))


def scalar_power_table(step: OneStep, count: int, *, stride: int = 1) -> ScalarPowers:
    """Compute the powers of scalars for the first `count` multiples of the stride."""
    counts = stride * torch.arange(count, device=step.system.B.device)
    return scalar_powers(step.system, step.length, counts)


def _block_rows(rows: tuple[Tensor, ...], blocks: tuple[Tensor, ...], length: float, count: int) -> tuple[Tensor, ...]:
    """Multiply rows `(…, 1, p, blocks, k)` by e^{jFh} for all j below `count`: `(…, count, p, blocks, k)` for each size."""
    return tuple(
        _rows_by_doubling(block_rows.squeeze(-4).movedim(-2, -3), F, length, count).movedim(-3, -2).movedim(0, -4)
        for block_rows, F in zip(rows, blocks, strict=True)
    )


def _rows_by_doubling(rows: Tensor, F: Tensor, length: float, count: int) -> Tensor:
    """Multiply rows `(…, blocks, p, k)` by e^{jFh} for all j below `count`: `(count, …, blocks, p, k)`.

    The first j rows give the next j by one product with e^{jFh}. This is computed as an exponential and not as a power
    of e^{Fh}, which would multiply the rounding error of e^{Fh} by j.
    """
    table = rows.unsqueeze(0)
    levels = max(count - 1, 0).bit_length()
    if not levels:
        return table
    lengths = length * 2.0 ** torch.arange(levels, dtype=F.dtype, device=F.device)
    for power in matrix_exponential(F * lengths.view(-1, *(1 for _ in F.shape))):
        table = torch.cat([table, (table @ power)[: count - table.shape[0]]])
    return table
