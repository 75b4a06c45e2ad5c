"""Scan of states on a GPU by a Triton kernel.

Equal to `scan.scan_into` for pairs and reals. The kernel works on tiles of time and keeps the carry in registers, so
that every number is read and written once; arithmetic is in float64. The annotations of kernels are quoted because
Triton compiles unquoted ones.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ltinet.torch.propagators import Propagator

_TILE_STEPS, _TILE_STATES = 64, 16  # empirical, on an NVIDIA H200


@triton.jit  # type: ignore[untyped-decorator]
def _combine(ar: "Any", ai: "Any", br: "Any", bi: "Any", cr: "Any", ci: "Any", dr: "Any", di: "Any") -> "Any":
    """Compose two segments of x⁺ = a x + b, in complex numbers by their parts."""
    return ar * cr - ai * ci, ar * ci + ai * cr, cr * br - ci * bi + dr, cr * bi + ci * br + di


@triton.jit  # type: ignore[untyped-decorator]
def _load_complex(ptr: "Any", re_at: "Any", im_at: "Any", mask: "Any", REAL: tl.constexpr) -> "Any":
    """Load real and imaginary parts; reals have imaginary part zero."""
    re = tl.load(ptr + re_at, mask, 0.0).to(tl.float64)
    im = tl.zeros_like(re)
    if not REAL:
        im = tl.load(ptr + im_at, mask, 0.0).to(tl.float64)
    return re, im


@triton.jit  # type: ignore[untyped-decorator]
def _store_complex(
    ptr: "Any", re_at: "Any", im_at: "Any", re: "Any", im: "Any", mask: "Any", REAL: tl.constexpr
) -> "Any":
    tl.store(ptr + re_at, re, mask)
    if not REAL:
        tl.store(ptr + im_at, im, mask)


@triton.jit  # type: ignore[untyped-decorator]
def _scan(  # noqa: PLR0913 - a kernel takes pointers and sizes one by one
    re_ptr: "Any",
    im_ptr: "Any",
    start_ptr: "Any",
    drive_ptr: "Any",
    states_ptr: "Any",
    end_ptr: "Any",
    forward_ptr: "Any",
    sums_ptr: "Any",
    B: "Any",
    T: "Any",
    N: "Any",
    n_all: "Any",
    re_at: "Any",
    im_at: "Any",
    REAL: tl.constexpr,
    REVERSE: tl.constexpr,
    SUMS: tl.constexpr,
    BT: tl.constexpr,
    BN: tl.constexpr,
) -> "Any":
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BT)
    mask = n < N
    group = row // B
    ar = tl.load(re_ptr + group * N + n, mask, 0.0).to(tl.float64)
    ai = tl.zeros((BN,), tl.float64) if REAL else tl.load(im_ptr + group * N + n, mask, 0.0).to(tl.float64)
    cr, ci = _load_complex(start_ptr + row * n_all + n, re_at, im_at, mask, REAL)
    one = tl.full((BT, BN), 1.0, tl.float64)
    sr, si = cr, ci
    if SUMS:  # Σ over time of conj(x) λ, with λ the scanned states and x the forward ones
        first = (row * T + (T - 1 if REVERSE else 0)) * n_all + n
        fr, fi = _load_complex(forward_ptr + first, re_at, im_at, mask, REAL)
        sr, si = cr * fr + ci * fi, ci * fr - cr * fi
    for begin in range(0, T, BT):
        t = begin + k
        here = T - 1 - t if REVERSE else t
        after = here - 1 if REVERSE else here + 1
        inside = (t < T)[:, None] & mask[None, :]
        stored = (t < T - 1)[:, None] & mask[None, :]
        at = (row * T + here)[:, None] * n_all + n[None, :]
        to = (row * T + after)[:, None] * n_all + n[None, :]
        br, bi = _load_complex(drive_ptr + at, re_at, im_at, inside, REAL)
        pr, pi, xr, xi = tl.associative_scan((ar[None, :] * one, ai[None, :] * one, br, bi), 0, _combine)
        yr = xr + pr * cr[None, :] - pi * ci[None, :]
        yi = xi + pr * ci[None, :] + pi * cr[None, :]
        _store_complex(states_ptr + to, re_at, im_at, yr, yi, stored, REAL)
        if SUMS:
            hr, hi = _load_complex(forward_ptr + to, re_at, im_at, stored, REAL)
            sr += tl.sum(yr * hr + yi * hi, 0)
            si += tl.sum(yi * hr - yr * hi, 0)
        last = (t == tl.minimum(begin + BT, T) - 1)[:, None]
        cr = tl.sum(tl.where(last, yr, 0.0), 0)
        ci = tl.sum(tl.where(last, yi, 0.0), 0)
    _store_complex(end_ptr + row * n_all + n, re_at, im_at, cr, ci, mask, REAL)
    if SUMS:
        _store_complex(sums_ptr + row * n_all + n, re_at, im_at, sr, si, mask, REAL)


def scan_on_gpu(decay: Propagator, drive: Tensor, start: Tensor, states: Tensor, *, reverse: bool) -> Tensor:
    """Fill `states` `(G, B, T, n)` and return the one after the last step; pairs and reals only."""
    return _launch(decay, drive, start, states, None, reverse=reverse)[0]


def scan_backward_on_gpu(
    decay: Propagator, drive: Tensor, start: Tensor, forward_states: Tensor, *, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return λ `(G, B, T, n)`, the last λ, and Σ conj(x) λ `(G, n)` for the states x of the forward pass."""
    adjoint = torch.empty_like(drive, memory_format=torch.contiguous_format)
    end, sums = _launch(decay, drive, start, adjoint, forward_states.contiguous(), reverse=reverse)
    return adjoint, end, sums.sum(1)


def _launch(
    decay: Propagator, drive: Tensor, start: Tensor, states: Tensor, forward_states: Tensor | None, *, reverse: bool
) -> tuple[Tensor, Tensor]:
    groups, batch, steps, n_all = drive.shape
    n_pairs, n_reals = decay.re.shape[-1], decay.reals.shape[-1]
    drive, start = drive.contiguous(), start.contiguous()
    end = torch.empty_like(start)
    # Without sums the kernel does not access the last two tensors; any pointers will do.
    x, sums = (states, end) if forward_states is None else (forward_states, torch.empty_like(start))
    states[:, :, steps - 1 if reverse else 0] = start
    kinds = [
        (n_pairs, decay.re, decay.im, 0, n_pairs, False),
        (n_reals, decay.reals, decay.reals, 2 * n_pairs, 0, True),
    ]
    for count, re, im, re_at, im_at, is_real in kinds:
        if count:
            grid = (groups * batch, triton.cdiv(count, _TILE_STATES))
            tensors = (re.contiguous(), im.contiguous(), start, drive, states, end, x, sums)
            sizes = (batch, steps, count, n_all, re_at, im_at)
            flags = {"REAL": is_real, "REVERSE": reverse, "SUMS": forward_states is not None}
            _scan[grid](*tensors, *sizes, **flags, BT=_TILE_STEPS, BN=_TILE_STATES)
    return end, sums
