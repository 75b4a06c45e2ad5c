"""What a fit may be asked for: numbers that make sense, and records that are long enough for them."""

import math
from pathlib import Path
from typing import Any

from torch import nn

from ltinet.errors import InvalidNetworkError, InvalidSignalError
from ltinet.nn.records import TrainingRecord


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


def require_rate(lr: float | None) -> None:
    """Refuse a rate that is not positive and finite.

    Raises:
        InvalidNetworkError: it is not.
    """
    if lr is not None and not (math.isfinite(lr) and lr > 0.0):
        raise InvalidNetworkError(f"lr is {lr}; give a positive number")


def require_place(checkpoint: str | Path | None, resume: bool) -> None:
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
