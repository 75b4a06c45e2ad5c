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

# MERGED ltinet.nn.training_data
# Measured records for fitting, checked once: inputs `(T, m)` and outputs `(T, p)`, or batches of them.


class TrainingRecord(NamedTuple):
    """Inputs `(B, T, m)` and outputs `(B, T, p)` of one length, in float64."""

    u: Tensor
    y: Tensor


def make_training_records(
    data: Any, name: str, *, n_inputs: int, n_outputs: int, device: torch.device
) -> list[TrainingRecord]:
    """A record, or a list of them, each a pair (u, y) of arrays or tensors.

    Raises:
        InvalidSignalError: there is none, or one has other shapes or numbers that are not finite.
    """
    given = data if isinstance(data, list) else [data]
    if not given:
        raise InvalidSignalError(f"{name} is empty; give a record (u, y) or a list of records")
    return [_record(one, f"{name}[{place}]", n_inputs, n_outputs, device) for place, one in enumerate(given)]


def _record(given: Any, name: str, n_inputs: int, n_outputs: int, device: torch.device) -> TrainingRecord:
    if not isinstance(given, Sequence) or len(given) != 2:
        raise InvalidSignalError(f"{name} is a {type(given).__name__}; give a pair (u, y)")
    u, y = (_real_tensor(own, name, device) for own in given)
    u, y = (own.unsqueeze(-1) if own.dim() == 1 else own for own in (u, y))
    u, y = (own.unsqueeze(0) if own.dim() == 2 else own for own in (u, y))
    if u.dim() != 3 or y.dim() != 3 or u.shape[:2] != y.shape[:2] or (u.shape[2], y.shape[2]) != (n_inputs, n_outputs):
        raise InvalidSignalError(
            f"{name} has inputs {tuple(u.shape)} and outputs {tuple(y.shape)}; the model takes (batch, T, {n_inputs}) "
            f"to (batch, T, {n_outputs})"
        )
    if not bool(torch.isfinite(u).all() & torch.isfinite(y).all()):
        raise InvalidSignalError(f"{name} has entries that are not finite; replace NaN and infinities")
    return TrainingRecord(u, y)


def _real_tensor(given: Any, name: str, device: torch.device) -> Tensor:
    """Real numbers as a tensor; what has imaginary parts would lose them without a word."""
    try:
        found = given if isinstance(given, Tensor) else torch.as_tensor(np.asarray(given))
    except (TypeError, ValueError) as error:
        raise InvalidSignalError(f"{name} is no array of numbers ({error}); give arrays or tensors") from None
    if found.is_complex():
        raise InvalidSignalError(f"{name} has complex numbers; give real inputs and outputs")
    return found.detach().to(device=device, dtype=torch.float64)


def output_scale(records: list[TrainingRecord], warmup: int) -> Tensor:
    """The standard deviation of each output over all records, one where it does not move."""
    values = torch.cat([record.y[:, warmup:].flatten(0, 1) for record in records])
    scale = values.std(0, correction=0)
    return torch.where(scale > 0.0, scale, 1.0)


def draw_windows(records: list[TrainingRecord], length: int, count: int, draw: torch.Generator) -> list[TrainingRecord]:
    """As many windows of a length, drawn at random from all records; whole records where these are no longer."""
    found = []
    for place in torch.randint(len(records), (count,), generator=draw).tolist():
        u, y = records[place]
        row = int(torch.randint(u.shape[0], (1,), generator=draw))
        room = u.shape[1] - length
        start = int(torch.randint(room + 1, (1,), generator=draw)) if room > 0 else 0
        span = slice(start, start + length)
        found.append(TrainingRecord(u[row : row + 1, span], y[row : row + 1, span]))
    if len({one.u.shape for one in found}) == 1:
        return [TrainingRecord(torch.cat([one.u for one in found]), torch.cat([one.y for one in found]))]
    return found


# MERGED ltinet.nn.training_data
# What a fit may be asked for: numbers that make sense, and records that are long enough for them.


def require_model(model: Any) -> None:
    """Refuse what is no model of this package.

    Raises:
        InvalidNetworkError: it has no inputs, outputs or parameters.
    """
    is_one = isinstance(model, nn.Module) and hasattr(model, "n_inputs") and hasattr(model, "n_outputs")
    if not is_one or next(model.parameters(), None) is None:
        raise InvalidNetworkError(
            f"model is a {type(model).__name__} that ltinet.nn cannot fit; give a network (net.to_torch(dt)), a "
            "Triangular, a Feedback or a Stack"
        )


def require_learning_rate(lr: float | None) -> None:
    """Refuse a rate that is not positive and finite.

    Raises:
        InvalidNetworkError: it is not.
    """
    if lr is not None and not (math.isfinite(lr) and lr > 0.0):
        raise InvalidNetworkError(f"lr is {lr}; give a positive number")


def require_checkpoint(checkpoint: str | Path | None, resume: bool) -> None:
    """Refuse to go on from nowhere.

    Raises:
        InvalidNetworkError: there is no checkpoint to resume from.
    """
    if resume and checkpoint is None:
        raise InvalidNetworkError("resume is asked for without a checkpoint; give the file: checkpoint=path")


def require_samples(records: list[TrainingRecord], name: str, *, warmup: int, window: int | None = None) -> None:
    """Refuse records and windows of which nothing is left after the warm-up.

    Raises:
        InvalidSignalError: one is as short as that, or the warm-up is no number of samples.
    """
    if not isinstance(warmup, int) or warmup < 0:
        raise InvalidSignalError(f"warmup is {warmup!r}; give a number of samples")
    if window is not None and window <= warmup:
        raise InvalidSignalError(f"window is {window} and warmup {warmup}, which leaves nothing; give longer windows")
    for place, record in enumerate(records):
        if record.u.shape[1] <= warmup or not len(record.u):
            raise InvalidSignalError(
                f"{name}[{place}] has {len(record.u)} x {record.u.shape[1]} samples, of which the first {warmup} are "
                "warm-up: nothing is left; give longer records or a shorter warm-up"
            )
