"""Linear recurrences x⁺ = P x + d and x⁺ = A_k x + b_k over a record, parallel in time and differentiable.

The scan with a constant P is one operation whose derivatives are scans again. Small data are scanned by doubling: each
of log₂ T passes joins segments of twice the length. Large data are scanned on two levels: about √T runs side by side,
each step by step, then the recurrence over the runs by the same function, then each run once more from its true
start; 2 T steps in about 3 √T calls. A GPU with Triton uses `triton_scan` for pairs and reals.

The scan with a matrix for every step works on the same two levels, cost O(T n³). With λ_T the gradient of the last
state and λ_k = g_k + A_kᵀ λ_{k+1}, the gradient of b_k is λ_{k+1}.
"""

import math
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.propagators import Propagator, StateLayout

_MAX_SEQUENTIAL_STEPS = 4  # steps up to which a record is scanned step by step; speed only (make bench-gpu)
_MAX_DOUBLING_SIZE = 1 << 19  # numbers up to which log₂ T passes over all of them cost less than √T calls; empirical


# Recurrence with a constant P


def add_group_axis(decay: Propagator) -> Propagator:
    """Return P with a leading axis of length one: scans take several P, one for each group of states."""
    re, im, reals = (factors.unsqueeze(0) for factors in decay[:3])
    return Propagator(re, im, reals, tuple(P.unsqueeze(0) for P in decay.blocks))


def scan_states(decay: Propagator, drive: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states before each of T steps `(B, T, n)` and after the last `(B, n)`.

    `decay` has a group axis, the drive d is `(B, T, n)` and the start `(B, n)`. The recurrence is computed in the type
    of P and the start, float64, and states are stored in the type of the drive: in single precision the rounding of P
    alone would cost three digits of states that ring for thousands of steps.
    """
    parts = (decay.re, decay.im, decay.reals)
    states, end = StateScan.apply(False, *parts, start.unsqueeze(0), drive.unsqueeze(0), *decay.blocks)
    return states.squeeze(0), end.squeeze(0)


class StateScan(torch.autograd.Function):
    """Scan for several P at once: P `(G, …)`, start `(G, B, n)`, drive `(G, B, T, n)`; in reverse time on request.

    With λ_T the gradient of the last state and λ_t = g_t + Pᵀ λ_{t+1}, the gradient of d_t is λ_{t+1}, that of the
    start λ_0, and that of P Σ λ_{t+1} x_tᵀ. The recurrence of λ is the same scan with Pᵀ in the other direction.
    """

    @staticmethod
    @cache_signature
    def forward(
        reverse: bool, re: Tensor, im: Tensor, reals: Tensor, start: Tensor, drive: Tensor, *blocks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the states before each step, and the one after the last."""
        states = torch.empty_like(drive, memory_format=torch.contiguous_format)
        decay = Propagator(re, im, reals, blocks)
        if not _has_kernel(drive, blocks):
            return states, scan_into(decay, drive, start, states, reverse=reverse)
        from ltinet.torch.triton_scan import scan_on_gpu

        return states, scan_on_gpu(decay, drive, start, states, reverse=reverse)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Save P and the states."""
        reverse, re, im, reals, _, _, *blocks = inputs
        ctx.reverse = reverse
        ctx.save_for_backward(re, im, reals, output[0], *blocks)
        ctx.save_for_forward(re, im, reals, output[0], *blocks)

    @staticmethod
    def backward(ctx: Any, grad_states: Tensor, grad_end: Tensor) -> tuple[Any, ...]:
        """Compute the gradients by the scan of λ."""
        re, im, reals, states, *blocks = ctx.saved_tensors
        if _has_kernel(grad_states, blocks) and not torch.is_grad_enabled():
            return (None, *_backward_on_gpu(ctx.reverse, Propagator(re, im, reals, ()), states, grad_states, grad_end))
        transposed = (P.mT for P in blocks)
        grad_drive, grad_start = StateScan.apply(not ctx.reverse, re, -im, reals, grad_end, grad_states, *transposed)
        layout = Propagator(re, im, reals, tuple(blocks)).layout
        if not any(ctx.needs_input_grad[index] for index in (1, 2, 3, *range(6, 6 + len(blocks)))):
            return (None, None, None, None, grad_start, grad_drive, *(None for _ in blocks))
        l_re, l_im, l_reals, l_blocks = layout.split(grad_drive)
        x_re, x_im, x_reals, x_blocks = layout.split(states)
        over = "gbtn,gbtn->gn"
        grad_re = torch.einsum(over, l_re, x_re) + torch.einsum(over, l_im, x_im)
        grad_im = torch.einsum(over, l_im, x_re) - torch.einsum(over, l_re, x_im)
        grad_reals = torch.einsum(over, l_reals, x_reals)
        grad_blocks = (torch.einsum("gbtci,gbtcj->gcij", lam, x) for lam, x in zip(l_blocks, x_blocks, strict=True))
        of_scalars = (grad.to(re.dtype) for grad in (grad_re, grad_im, grad_reals))
        return (None, *of_scalars, grad_start, grad_drive, *(grad.to(re.dtype) for grad in grad_blocks))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, Tensor]:
        """Return the tangents of the states, x′⁺ = P x′ + (P′ x + d′), by the same scan."""
        re, im, reals, states, *blocks = ctx.saved_tensors
        _, t_re, t_im, t_reals, t_start, t_drive, *t_blocks = tangents
        pairs = zip((re, im, reals, *blocks), (t_re, t_im, t_reals, *t_blocks), strict=True)
        t_re, t_im, t_reals, *t_blocks = (torch.zeros_like(P) if tangent is None else tangent for P, tangent in pairs)
        tangent_decay = Propagator(t_re, t_im, t_reals, tuple(t_blocks))
        drive = propagate(tangent_decay, states.to(re.dtype))
        drive = drive.to(states.dtype) if t_drive is None else drive.to(states.dtype) + t_drive
        start = torch.zeros_like(states[:, :, 0], dtype=re.dtype) if t_start is None else t_start
        result: tuple[Tensor, Tensor] = StateScan.apply(ctx.reverse, re, im, reals, start, drive, *blocks)
        return result

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], reverse: bool, *tensors: Tensor) -> tuple[Any, Any]:
        """Fold the mapped axis into the group axis if P has it, else into the batch axis."""
        dims = in_dims[1:]
        count = info.batch_size
        mapped = [_mapped_axis_first(values, dim, count) for values, dim in zip(tensors, dims, strict=True)]
        if any(dim is not None for index, dim in enumerate(dims) if index not in (3, 4)):
            states, end = StateScan.apply(reverse, *(values.flatten(0, 1) for values in mapped))
            return (states.unflatten(0, (count, -1)), end.unflatten(0, (count, -1))), (0, 0)
        start, drive = (values.movedim(0, 1).flatten(1, 2) for values in mapped[3:5])
        states, end = StateScan.apply(reverse, *tensors[:3], start, drive, *tensors[5:])
        return (states.unflatten(1, (count, -1)), end.unflatten(1, (count, -1))), (1, 1)


def _mapped_axis_first(values: Tensor, dim: int | None, count: int) -> Tensor:
    """Return values with the axis that vmap maps in front; equal ones along it where it is missing."""
    return values.expand(count, *values.shape) if dim is None else values.movedim(dim, 0)


_HAS_TRITON = find_spec("triton") is not None


def _has_kernel(drive: Tensor, blocks: tuple[Tensor, ...] | list[Tensor]) -> bool:
    """Return True if there is a Triton kernel: for pairs and reals on a GPU, where Triton is installed."""
    return not blocks and drive.is_cuda and _HAS_TRITON


def _backward_on_gpu(
    reverse: bool, decay: Propagator, states: Tensor, grad_states: Tensor, grad_end: Tensor
) -> tuple[Tensor, ...]:
    """Return the gradients of the parts of P, the start and the drive; not differentiable again."""
    from ltinet.torch.triton_scan import scan_backward_on_gpu

    transposed = Propagator(decay.re, -decay.im, decay.reals, ())
    grad_drive, grad_start, sums = scan_backward_on_gpu(transposed, grad_states, grad_end, states, reverse=not reverse)
    grad_re, grad_im, grad_reals, _ = decay.layout.split(sums)
    return grad_re, grad_im, grad_reals, grad_start, grad_drive


def scan_into(decay: Propagator, drive: Tensor, start: Tensor, states: Tensor, *, reverse: bool) -> Tensor:
    """Fill `states` and return the one after the last step, without derivatives."""
    steps = drive.shape[2]
    if steps <= _MAX_SEQUENTIAL_STEPS:
        return _scan_sequentially(decay, drive, start, states, reverse=reverse)
    if drive.numel() <= _MAX_DOUBLING_SIZE:
        return _scan_by_doubling(decay, drive, start, states, reverse=reverse)
    width = math.isqrt(steps)
    count = steps // width
    rest = steps - count * width
    body, tail = (slice(rest, None), slice(0, rest)) if reverse else (slice(0, steps - rest), slice(steps - rest, None))
    shape = (count, width)
    drive_runs, state_runs = drive[:, :, body].unflatten(2, shape), states[:, :, body].unflatten(2, shape)
    rest_state = torch.zeros_like(drive_runs[..., 0, :], dtype=decay.re.dtype, memory_format=torch.contiguous_format)
    ends_from_rest = _scan_sequentially(decay, drive_runs, rest_state, None, reverse=reverse)
    starts = torch.empty_like(ends_from_rest)
    end = scan_into(_propagator_power(decay, width), ends_from_rest, start, starts, reverse=reverse)
    _scan_sequentially(decay, drive_runs, starts, state_runs, reverse=reverse)
    if rest:
        end = _scan_sequentially(decay, drive[:, :, tail], end, states[:, :, tail], reverse=reverse)
    return end


def _scan_by_doubling(decay: Propagator, drive: Tensor, start: Tensor, states: Tensor, *, reverse: bool) -> Tensor:
    """Fill `states` in passes that add to each position the value 1, 2, 4, … positions before it, times a power of P."""
    steps = drive.shape[2]
    drive = drive.to(start.dtype)
    total = torch.cat([drive, start.unsqueeze(2)] if reverse else [start.unsqueeze(2), drive], 2)
    shift, power = 1, decay
    while shift <= steps:
        early, late = slice(0, -shift), slice(shift, None)
        source, target = (late, early) if reverse else (early, late)
        product = propagate(power, total[:, :, source])  # before the sum: the slices overlap
        total[:, :, target] += product
        shift *= 2
        power = power.compose(power) if shift <= steps else power
    states.copy_(total[:, :, 1:] if reverse else total[:, :, :-1])
    return total[:, :, 0 if reverse else -1]


def _scan_sequentially(
    decay: Propagator, drive: Tensor, start: Tensor, states: Tensor | None, *, reverse: bool
) -> Tensor:
    """Return the last state, step by step along the last axis but one, all axes before it in parallel; fill `states`."""
    steps = drive.shape[-2]
    state, decay = start, _insert_axes(decay, start.dim())
    for step in range(steps - 1, -1, -1) if reverse else range(steps):
        if states is not None:
            states[..., step, :] = state
        state = _advance(decay, state, drive[..., step, :])
    return state


def _advance(decay: Propagator, states: Tensor, drive: Tensor) -> Tensor:
    """Return P x + d in a new tensor, with one kernel call for each product and sum."""
    layout = decay.layout
    after = torch.empty_like(states)
    re, im, reals, blocks = layout.split(states)
    d_re, d_im, d_reals, d_blocks = layout.split(drive.to(states.dtype))
    a_re, a_im, a_reals, a_blocks = layout.split(after)
    if layout.n_pairs:
        torch.addcmul(d_re, decay.re, re, out=a_re).addcmul_(decay.im, im, value=-1.0)
        torch.addcmul(d_im, decay.re, im, out=a_im).addcmul_(decay.im, re)
    if layout.n_reals:
        torch.addcmul(d_reals, decay.reals, reals, out=a_reals)
    for P, x, d, a in zip(decay.blocks, blocks, d_blocks, a_blocks, strict=True):
        torch.add(d, _multiply_blocks(P, x), out=a)
    return after


def propagate(decay: Propagator, states: Tensor) -> Tensor:
    """Return P x for P `(G, …)` and x `(G, …, n)`, differentiable."""
    decay = _insert_axes(decay, states.dim())
    re, im, reals, blocks = decay.layout.split(states)
    return StateLayout.join(
        decay.re * re - decay.im * im,
        decay.im * re + decay.re * im,
        decay.reals * reals,
        tuple(_multiply_blocks(P, x) for P, x in zip(decay.blocks, blocks, strict=True)),
    )


def _propagator_power(decay: Propagator, exponent: int) -> Propagator:
    """Return a power of P by repeated squaring."""
    result: Propagator | None = None
    square = decay
    while exponent:
        if exponent & 1:
            result = square if result is None else result.compose(square)
        exponent >>= 1
        square = square.compose(square) if exponent else square
    return decay if result is None else result


def _insert_axes(decay: Propagator, n_axes: int) -> Propagator:
    """Insert axes of length one into P for the axes of states between the first and the last; not into blocks."""
    shape = (slice(None), *(None for _ in range(n_axes - 2)))
    return Propagator(decay.re[shape], decay.im[shape], decay.reals[shape], decay.blocks)


def _multiply_blocks(P: Tensor, states: Tensor) -> Tensor:
    """Multiply matrices `(G, count, k, k)` and states `(G, …, count, k)`, by one product for each matrix."""
    by_block = states.movedim(-2, 1)
    return (by_block.flatten(2, -2) @ P.mT).reshape(by_block.shape).movedim(1, -2)


# Recurrence with a matrix for every step


def scan_time_varying(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states before each step `(B, T, n)` and after the last, for A `(B, T, n, n)`, b `(B, T, n)` and a start.

    A is a constant to derivatives: a linearization about a solution has all of them in b.
    """
    states, end = _TimeVaryingScan.apply(A, b, start)
    return states, end


class _TimeVaryingScan(torch.autograd.Function):
    """Scan with derivatives by b and the start: the gradient of b_k is λ_{k+1}, with λ_k = g_k + A_kᵀ λ_{k+1}."""

    @staticmethod
    def forward(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        return _time_varying_scan(A, b, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ARG004
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *tensors: Tensor
    ) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
        """Fold the mapped axis into the batch."""
        if all(dim is None for dim in in_dims):
            return _TimeVaryingScan.apply(*tensors), (None, None)
        count = info.batch_size
        mapped = [_mapped_axis_first(values, dim, count) for values, dim in zip(tensors, in_dims, strict=True)]
        states, end = _TimeVaryingScan.apply(*(values.flatten(0, 1) for values in mapped))
        return (states.unflatten(0, (count, -1)), end.unflatten(0, (count, -1))), (0, 0)

    @staticmethod
    def jvp(ctx: Any, _: Tensor | None, b: Tensor | None, start: Tensor | None) -> tuple[Tensor, Tensor]:
        (A,) = ctx.saved_tensors
        b = A.new_zeros(A.shape[:3]) if b is None else b
        return _time_varying_scan(A, b, b.new_zeros(b.shape[::2]) if start is None else start)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad_states: Tensor, grad_end: Tensor) -> tuple[None, Tensor, Tensor]:
        (A,) = ctx.saved_tensors
        later, first = _time_varying_scan(A.flip(1).mT, grad_states.flip(1), grad_end)
        return None, later.flip(1), first


def _time_varying_scan(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    steps = b.shape[1]
    width = max(math.isqrt(steps), 1)
    count = steps // width
    n_in_runs = count * width
    A_runs, b_runs = (values[:, :n_in_runs].unflatten(1, (count, width)) for values in (A, b))
    product, end_from_rest = A_runs[:, :, 0], b_runs[:, :, 0]
    for step in range(1, width):
        A_step = A_runs[:, :, step]
        product = A_step @ product
        end_from_rest = _apply_matrices(A_step, end_from_rest) + b_runs[:, :, step]
    starts, end = _time_varying_sequential(product, end_from_rest, start)
    states, _ = _time_varying_sequential(A_runs.transpose(1, 2), b_runs.transpose(1, 2), starts)
    states = states.transpose(1, 2).flatten(1, 2)
    if n_in_runs == steps:
        return states, end
    rest, end = _time_varying_sequential(A[:, n_in_runs:], b[:, n_in_runs:], end)
    return torch.cat([states, rest], 1), end


def _time_varying_sequential(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the states step by step along the second axis, the axes after it in parallel."""
    states, state = [], start
    for step in range(b.shape[1]):
        states.append(state)
        state = _apply_matrices(A[:, step], state) + b[:, step]
    return torch.stack(states, 1), state


def _apply_matrices(A: Tensor, states: Tensor) -> Tensor:
    return (A @ states.unsqueeze(-1)).squeeze(-1)
