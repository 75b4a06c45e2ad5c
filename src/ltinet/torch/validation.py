"""Validation of inputs, states and times, and types of tensors.

Half precision is computed in float32. Parameters stay float64 when a module is moved, because training cannot restore
digits that a conversion to single precision has removed.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from ltinet._util.text import format_count
from ltinet.errors import InvalidNetworkError, InvalidSignalError


class DoublePrecisionModule(nn.Module):
    """A module whose tensors keep their types when it is moved: `.to(…)` and `.float()` change the device only."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def move(tensor: Tensor) -> Tensor:
            moved: Tensor = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        return super()._apply(move, recurse)


class SampledModule(DoublePrecisionModule):
    """A module whose `state_dict` has its hold, and its time step unless that is a parameter.

    Parameters have other outputs with another hold or time step: `load_state_dict` refuses them.
    """

    hold: Literal["linear", "zero"]

    def get_extra_state(self) -> Tensor:
        """Return the hold (1 for linear) and the time step (0 if it is a parameter) for `state_dict`.

        Returns
        -------
        Tensor
            Two numbers: a tensor, because many tools take no other values in a `state_dict`.
        """
        dt: object = self.dt
        values = [float(self.hold == "linear"), dt if isinstance(dt, float) else 0.0]
        return torch.tensor(values, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        """Raise InvalidNetworkError unless a `state_dict` has the hold and the time step of this module.

        Parameters
        ----------
        state : Tensor
            Result of `get_extra_state`.
        """
        saved, current = (_describe_sampling(*values.tolist()) for values in (state, self.get_extra_state()))
        if saved != current:
            raise InvalidNetworkError(
                f"the state_dict is of a model with {saved}, but this model has {current}; construct it with {saved}"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Load a `state_dict` that was saved without hold and time step, as by ltinet 0.2, like one that has them."""
        state_dict.setdefault(f"{prefix}_extra_state", self.get_extra_state())
        super()._load_from_state_dict(state_dict, prefix, *args)


def _describe_sampling(is_linear: float, dt: float) -> str:
    hold = f"hold={'linear' if is_linear else 'zero'!r}"
    return f"dt={dt!r}, {hold}" if dt else hold


Method = TypeVar("Method", bound=Callable[..., Any])


def outside_compiled_graphs(method: Method) -> Method:
    """Let torch.compile break its graph at a method: compiling hundreds of small operations would cost more."""

    @wraps(method)
    def run(*args: Any, **options: Any) -> Any:
        return (torch.compiler.disable(method) if torch.compiler.is_compiling() else method)(*args, **options)

    return cast(Method, run)


_COMPUTE_DTYPES = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which inputs of a type are processed: float32 for half precision, else their own."""
    return _COMPUTE_DTYPES.get(dtype, dtype)


def validate_input(u: Any, *, n_inputs: int, device: torch.device, axes: str = "(…, T, {})") -> Tensor:
    """Return the samples after checks of type, shape, device and finiteness; raise InvalidSignalError otherwise."""
    shape = axes.format(n_inputs)
    min_axes = 2 if "T" in axes else 1
    if not isinstance(u, Tensor):
        raise InvalidSignalError(f"u is a {type(u).__name__}; give a tensor {shape}: torch.as_tensor(u)")
    if u.dtype not in (torch.float64, torch.float32, *_COMPUTE_DTYPES):
        raise InvalidSignalError(f"u has type {u.dtype}; give real floating-point numbers, for example u.double()")
    if u.layout != torch.strided:
        raise InvalidSignalError(f"u is stored as {u.layout}; give a dense tensor: u.to_dense()")
    if u.dim() < min_axes or u.shape[-1] != n_inputs or (min_axes == 2 and u.shape[-2] == 0):
        raise InvalidSignalError(
            f"u has shape {tuple(u.shape)}; it must be {shape}: batches first, {'then time, ' * (min_axes == 2)}"
            f"{format_count(n_inputs, 'input')} last"
        )
    if u.device != device:
        raise InvalidSignalError(f"u is on {u.device} but the model on {device}; move one of them: u.to(…)")
    require_finite(u, "u")
    return u


def all_finite(values: Tensor) -> bool:
    """Return True if all numbers are finite; one pass over them, and one synchronization of a GPU.

    A sum is finite only if all summands are. Where it is not, it may have overflowed, and the numbers are tested.
    """
    try:
        return math.isfinite(float(values.detach().sum())) or bool(torch.isfinite(values).all())
    except RuntimeError:  # values are not available inside torch.func.vmap
        return True


def require_finite(values: Tensor, name: str) -> None:
    """Raise InvalidSignalError if there are NaN or infinities."""
    if not all_finite(values):
        raise InvalidSignalError(f"{name} has entries that are not finite; replace NaN and infinities")


def validate_states(state: Any, like: Tensor, *, n: int, batch: tuple[int, ...], name: str) -> Tensor:
    """Return states `(…, n)` broadcast to a batch of inputs, as rows in the type of `like`."""
    if not isinstance(state, Tensor):
        raise InvalidSignalError(
            f"{name} is a {type(state).__name__}; give a tensor with {n} numbers along its last axis"
        )
    if state.dim() == 0 or state.shape[-1] != n or state.is_complex():
        raise InvalidSignalError(
            f"{name} has shape {tuple(state.shape)}; it must have {n} real numbers along its last axis"
        )
    if state.device != like.device:
        raise InvalidSignalError(f"{name} is on {state.device} but the model on {like.device}; move it: {name}.to(…)")
    try:
        rows = state.expand(*batch, n)
    except RuntimeError:
        raise InvalidSignalError(
            f"{name} has shape {tuple(state.shape)} but u comes in a batch of shape {batch}; give one state, or one for each "
            "member of the batch"
        ) from None
    require_finite(state, name)
    return rows.to(like.dtype).reshape(math.prod(batch), n)


def validate_times(times: Any, u: Tensor) -> Tensor:
    """Return ascending times `(1 or B, T)` of the samples u."""
    batch, steps = tuple(u.shape[:-2]), u.shape[-2]
    if not isinstance(times, Tensor) or not times.is_floating_point():
        raise InvalidSignalError(
            "times must be a floating-point tensor; give one time for each sample: torch.as_tensor(t)"
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
    except RuntimeError:  # values are not available inside torch.func.vmap
        descends = False
    if descends:
        raise InvalidSignalError("times descend; sort the samples by time")
    return times.reshape(-1, steps)
