"""Validation of inputs, states and times, and types of tensors.

Half precision is computed in float32. Parameters stay float64 when a module is moved, because training cannot restore
digits that a conversion to single precision has removed.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError

# MERGED ltinet.torch.validation
# Moves between devices that leave numbers in double precision: what single precision costs, training cannot undo.


def preserve_dtype(move: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What a module applies to its tensors, but for a change of type."""

    def moved(tensor: Tensor) -> Tensor:
        asked = move(tensor)
        return asked if asked.dtype == tensor.dtype else tensor.to(asked.device)

    return moved


# MERGED ltinet.torch.validation
# What is refused at the door of a model, each with what came, what was expected and what to do.

_COMPUTE_DTYPES = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type in which inputs of a type are worked on: half precision in float32, others in their own."""
    return _COMPUTE_DTYPES.get(dtype, dtype)


def validate_input(u: Any, *, n_inputs: int, device: torch.device, name: str = "u", axes: str = "(…, T, {})") -> Tensor:
    """Samples as they came, known to fit."""
    shape = axes.format(n_inputs)
    least = 2 if "T" in axes else 1
    if not isinstance(u, Tensor):
        raise InvalidSignalError(f"{name} is a {type(u).__name__}; give a tensor {shape}: torch.as_tensor({name})")
    if u.dtype not in (torch.float64, torch.float32, *_COMPUTE_DTYPES):
        raise InvalidSignalError(
            f"{name} has the type {u.dtype}; give real floating-point numbers, as {name}.double() has"
        )
    if u.layout != torch.strided:
        raise InvalidSignalError(f"{name} is stored as {u.layout}; give a dense tensor: {name}.to_dense()")
    if u.dim() < least or u.shape[-1] != n_inputs or (least == 2 and u.shape[-2] == 0):
        raise InvalidSignalError(
            f"{name} has shape {tuple(u.shape)}; it must be {shape}: batches first, {'then time, ' * (least == 2)}"
            f"{format_count(n_inputs, 'input')} last"
        )
    if u.device != device:
        raise InvalidSignalError(f"{name} is on {u.device} but the model on {device}; move one of them: {name}.to(…)")
    require_finite(u, name)
    return u


def all_finite(values: Tensor) -> bool:
    """Whether all numbers are; one pass over them, and on a GPU one wait for it.

    A sum is finite only if all numbers are; where it is not, it may have overflown, and they are looked at.
    """
    try:
        return math.isfinite(float(values.detach().sum())) or bool(torch.isfinite(values).all())
    except RuntimeError:  # within torch.func.vmap values cannot be asked for
        return True


def require_finite(values: Tensor, name: str) -> None:
    """Refuse NaN and infinities."""
    if not all_finite(values):
        raise InvalidSignalError(f"{name} has entries that are not finite; replace NaN and infinities")


def validate_states(given: Any, like: Tensor, *, n: int, batch: tuple[int, ...], name: str) -> Tensor:
    """States `(…, n)` for inputs in a batch, in the type that these are worked on, one row for each of the batch."""
    if not isinstance(given, Tensor):
        raise InvalidSignalError(
            f"{name} is a {type(given).__name__}; give a tensor with {n} numbers along its last axis"
        )
    if given.dim() == 0 or given.shape[-1] != n or given.is_complex():
        raise InvalidSignalError(
            f"{name} has shape {tuple(given.shape)}; it must have {n} real numbers along its last axis"
        )
    if given.device != like.device:
        raise InvalidSignalError(f"{name} is on {given.device} but the model on {like.device}; move it: {name}.to(…)")
    try:
        spread = given.expand(*batch, n)
    except RuntimeError:
        raise InvalidSignalError(
            f"{name} has shape {tuple(given.shape)} but u comes in a batch of shape {batch}; give one, or one for each "
            "of the batch"
        ) from None
    require_finite(given, name)
    return spread.to(like.dtype).reshape(math.prod(batch), n)


def validate_times(times: Any, u: Tensor) -> Tensor:
    """Times `(1 or B, T)` that do not descend."""
    batch, steps = tuple(u.shape[:-2]), u.shape[-2]
    if not isinstance(times, Tensor) or not times.is_floating_point():
        raise InvalidSignalError(
            "times are no floating-point tensor; give one time for each sample: torch.as_tensor(t)"
        )
    if tuple(times.shape) not in ((steps,), (*batch, steps)):
        raise InvalidSignalError(
            f"times have shape {tuple(times.shape)} but u has {steps} samples; give ({steps},) or {(*batch, steps)},"
            " one time for each sample"
        )
    if times.device != u.device:
        raise InvalidSignalError(f"times are on {times.device} but u on {u.device}; move them: times.to(u.device)")
    require_finite(times, "times")
    try:
        descends = bool((times.diff(dim=-1) < 0.0).any())
    except RuntimeError:  # within torch.func.vmap values cannot be asked for
        descends = False
    if descends:
        raise InvalidSignalError("times descend somewhere; sort the samples by time")
    return times.reshape(-1, steps)
