"""Rows C Pᵏ, columns Pᵏ Γ and responses C Pᵏ Γ for many k, as `OneStep.out_of`, `into` and `responses` of the engine.

Scalars by their exponentials, each right to a few units; coupled blocks by doubling.
"""

import math
from typing import TypeAlias

import torch
from torch import Tensor

from ltinet.learn.decay import Decay, scalar_powers
from ltinet.learn.exponential import matrix_exponential
from ltinet.learn.one_step import OneStep
from ltinet.learn.system import Layout

Scalars: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Powers of pairs and reals, as `scalar_powers` gives them."""


def rows_out(step: OneStep, count: int, scalars: Scalars | None = None) -> Tensor:
    """C Pᵏ for all k below `count`: `(count, p, n)`; powers of scalars are computed where they are not given."""
    re, im, reals = (own.unsqueeze(-2) for own in scalars or scalars_below(step, count))
    c_re, c_im, c_reals, blocks = step.system.layout.split(step.system.C)
    dense = _block_rows(blocks, step.system.blocks, step.length, count)
    return Layout.join(c_re * re + c_im * im, c_im * re - c_re * im, c_reals * reals, dense)


def columns_in(step: OneStep, drive: Tensor, count: int, *, stride: int = 1, scalars: Scalars | None = None) -> Tensor:
    """(Pˢ)ᵏ G for all k below `count` and a drive G `(n, m)`, transposed: `(count, m, n)`."""
    re, im, reals = (own.unsqueeze(-2) for own in scalars or scalars_below(step, count, stride=stride))
    g_re, g_im, g_reals, blocks = step.system.layout.split(drive.mT)
    dense = _block_rows(blocks, tuple(F.mT for F in step.system.blocks), stride * step.length, count)
    return Layout.join(g_re * re - g_im * im, g_im * re + g_re * im, g_reals * reals, dense)


def responses(step: OneStep, drives: Tensor, count: int) -> Tensor:
    """C Pᵏ G for all k below `count`: `(count, p, m)`, by about √count rows times about √count columns."""
    inner = math.isqrt(max(count - 1, 0)) + 1
    outer = -(-count // inner)
    rows_at, columns_at = _both(step, inner, outer)
    rows = rows_out(step, inner, rows_at)
    columns = columns_in(step, drives, outer, stride=inner, scalars=columns_at)
    # (outer, m, n) × (inner, p, n) → (outer, m, inner, p)
    each = columns.flatten(0, 1) @ rows.flatten(0, 1).mT
    each = each.unflatten(-2, (outer, -1)).unflatten(-1, (inner, -1))
    return each.permute(0, 2, 3, 1).flatten(0, 1)[:count]


def decay_over(step: OneStep, count: int, scalars: Scalars | None = None) -> Decay:
    """P to the power `count`; of powers of scalars that are given the last is taken."""
    if scalars is None:
        counts = torch.full((1,), float(count), device=step.system.B.device)
        scalars = scalar_powers(step.system, step.length, counts)
    re, im, reals = (own[-1] for own in scalars)
    return Decay(re, im, reals, tuple(matrix_exponential(F * (count * step.length)) for F in step.system.blocks))


def scalars_below(step: OneStep, count: int, *, stride: int = 1) -> Scalars:
    """Powers of scalars for all multiples of the stride below `count` of them."""
    counts = stride * torch.arange(count, device=step.system.B.device)
    return scalar_powers(step.system, step.length, counts)


def _both(step: OneStep, inner: int, outer: int) -> tuple[Scalars, Scalars]:
    """Powers for all counts below `inner` and for as many multiples of it as `outer` says, in one go."""
    device = step.system.B.device
    counts = torch.cat([torch.arange(inner, device=device), inner * torch.arange(outer, device=device)])
    re, im, reals = scalar_powers(step.system, step.length, counts)
    return (re[:inner], im[:inner], reals[:inner]), (re[inner:], im[inner:], reals[inner:])


def _block_rows(rows: tuple[Tensor, ...], blocks: tuple[Tensor, ...], length: float, count: int) -> tuple[Tensor, ...]:
    """Rows `(p, blocks, k)` times e^{jFh} for all j below `count`: `(count, p, blocks, k)` for each size."""
    return tuple(
        _doubled(own.movedim(-2, -3), F, length, count).movedim(-3, -2) for own, F in zip(rows, blocks, strict=True)
    )


def _doubled(rows: Tensor, F: Tensor, length: float, count: int) -> Tensor:
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
