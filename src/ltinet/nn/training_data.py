"""Training records, windows of them, and validation of the arguments of `fit`.

A record has inputs `(T, m)` and outputs `(T, p)`, or batches of them. Errors are measured in units of the standard
deviation of each output.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError, InvalidSignalError


class TrainingRecord(NamedTuple):
    """Inputs `(B, T, m)` and outputs `(B, T, p)` of one length, in float64."""

    u: Tensor
    y: Tensor


def make_training_records(
    data: Any, name: str, *, n_inputs: int, n_outputs: int, device: torch.device
) -> list[TrainingRecord]:
    """Convert a pair (u, y) of arrays or tensors, or a list of pairs, to records on a device.

    Raises InvalidSignalError if there are none, or one has a wrong shape or numbers that are not finite.
    """
    pairs = data if isinstance(data, list) else [data]
    if not pairs:
        raise InvalidSignalError(f"{name} is empty; give a record (u, y) or a list of records")
    return [_record(pair, f"{name}[{index}]", n_inputs, n_outputs, device) for index, pair in enumerate(pairs)]


def _record(pair: Any, name: str, n_inputs: int, n_outputs: int, device: torch.device) -> TrainingRecord:
    if not isinstance(pair, Sequence) or len(pair) != 2:
        raise InvalidSignalError(f"{name} is a {type(pair).__name__}; give a pair (u, y)")
    u, y = (_real_tensor(samples, name, device) for samples in pair)
    u, y = (samples.unsqueeze(-1) if samples.dim() == 1 else samples for samples in (u, y))
    u, y = (samples.unsqueeze(0) if samples.dim() == 2 else samples for samples in (u, y))
    if u.dim() != 3 or y.dim() != 3 or u.shape[:2] != y.shape[:2] or (u.shape[2], y.shape[2]) != (n_inputs, n_outputs):
        raise InvalidSignalError(
            f"{name} has inputs {tuple(u.shape)} and outputs {tuple(y.shape)}; the model takes (batch, T, {n_inputs}) "
            f"to (batch, T, {n_outputs})"
        )
    if not bool(torch.isfinite(u).all() & torch.isfinite(y).all()):
        raise InvalidSignalError(f"{name} has entries that are not finite; replace NaN and infinities")
    return TrainingRecord(u, y)


def _real_tensor(values: Any, name: str, device: torch.device) -> Tensor:
    """Convert numbers to a float64 tensor; reject complex ones, whose imaginary parts would be dropped silently."""
    try:
        tensor = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise InvalidSignalError(
            f"{name} must consist of arrays of numbers ({error}); give arrays or tensors"
        ) from None
    if tensor.is_complex():
        raise InvalidSignalError(f"{name} has complex numbers; give real inputs and outputs")
    return tensor.detach().to(device=device, dtype=torch.float64)


def output_scale(records: list[TrainingRecord], warmup: int) -> Tensor:
    """Return the standard deviation of each output over all records after the warm-up, 1 for constant outputs."""
    values = torch.cat([record.y[:, warmup:].flatten(0, 1) for record in records])
    scale = values.std(0, correction=0)
    return torch.where(scale > 0.0, scale, 1.0)


def draw_windows(
    records: list[TrainingRecord], length: int, count: int, generator: torch.Generator
) -> list[TrainingRecord]:
    """Draw windows at random from all records, as one batch if all have the same length.

    Records that are not longer than a window are taken as a whole.
    """
    windows = []
    for index in torch.randint(len(records), (count,), generator=generator).tolist():
        u, y = records[index]
        row = int(torch.randint(u.shape[0], (1,), generator=generator))
        last_start = u.shape[1] - length
        start = int(torch.randint(last_start + 1, (1,), generator=generator)) if last_start > 0 else 0
        span = slice(start, start + length)
        windows.append(TrainingRecord(u[row : row + 1, span], y[row : row + 1, span]))
    if len({window.u.shape for window in windows}) == 1:
        return [TrainingRecord(*(torch.cat(parts) for parts in zip(*windows, strict=True)))]
    return windows


def require_model(model: Any) -> None:
    """Raise InvalidNetworkError if `fit` cannot train the model: it needs inputs, outputs and parameters."""
    is_model = isinstance(model, nn.Module) and hasattr(model, "n_inputs") and hasattr(model, "n_outputs")
    if not is_model or next(model.parameters(), None) is None:
        raise InvalidNetworkError(
            f"model is a {type(model).__name__} that ltinet.nn cannot fit; give a network (net.to_torch(dt)), a "
            "Triangular, a Feedback or a Stack"
        )


def require_start_options(lr: float | None, checkpoint: str | Path | None, *, resume: bool) -> None:
    """Raise InvalidNetworkError if the learning rate is not positive, or a run is to resume without a checkpoint."""
    if lr is not None and not (math.isfinite(lr) and lr > 0.0):
        raise InvalidNetworkError(f"lr must be a positive number, got {lr}.")
    if resume and checkpoint is None:
        raise InvalidNetworkError("resume requires a checkpoint; give the file: checkpoint=path")


def require_samples(records: list[TrainingRecord], name: str, *, warmup: int, window: int | None = None) -> None:
    """Raise InvalidSignalError if the warm-up leaves no samples of a record or a window."""
    if not isinstance(warmup, int) or warmup < 0:
        raise InvalidSignalError(f"warmup must be a number of samples, got {warmup!r}.")
    if window is not None and window <= warmup:
        raise InvalidSignalError(
            f"window is {window} and warmup {warmup}, which leaves no samples; give longer windows"
        )
    for index, record in enumerate(records):
        if record.u.shape[1] <= warmup or not len(record.u):
            raise InvalidSignalError(
                f"{name}[{index}] has {len(record.u)} x {record.u.shape[1]} samples, of which the first {warmup} are "
                "warm-up: no samples are left; give longer records or a shorter warm-up"
            )
