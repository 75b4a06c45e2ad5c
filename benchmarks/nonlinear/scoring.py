"""The error of a model on a test: its first 50 outputs set the state that it begins in, and do not count."""

import numpy as np
import torch

from benchmarks.nonlinear.records import Record, Samples, Units
from ltinet import nn

SEEN = 50


def simulated(model: torch.nn.Module, units: Units, record: Record) -> Samples:
    """Outputs of a model in volts, from the inputs and the first outputs of a record."""
    device = next(model.parameters()).device
    scaled = units.scaled(record)
    u, y = (torch.from_numpy(own[:, None]).to(device) for own in (scaled.u, scaled.y))
    x0 = nn.initial_state(model, u[:SEEN], y[:SEEN])
    with torch.no_grad():
        found = model(u, x0=x0)
    return np.asarray(found.cpu().numpy()[:, 0] * units.y_deviation + units.y_mean)


def rmse(found: Samples, record: Record) -> float:
    """Volts, without the outputs that were seen."""
    return float(np.sqrt(np.mean((found - record.y)[SEEN:] ** 2)))


def n_parameters(model: torch.nn.Module) -> int:
    """Numbers that are trained."""
    return sum(own.numel() for own in model.parameters() if own.requires_grad)
