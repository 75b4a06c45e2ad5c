"""Silverbox, an electronic oscillator with a hardening spring: `python -m benchmarks.nonlinear.silverbox`.

The rule, fixed before any test:

- one neuron of second order whose equation has a polynomial of third degree in its own output, its output matrix as
  identified: 2 poles, 4 weights of inputs, 4 direct ones, 3 of the polynomial, and the two offsets of the data;
- from the network that `identify` finds in the first 6,000 samples of the training record, by Levenberg–Marquardt on 12
  windows of 1,000 samples that a seed draws, 200 of each not counted, for 6 steps;
- zero or linear hold, whichever explains 12 other windows of the training record better;
- five seeds, the median counts.
"""

import argparse
import statistics
from typing import Literal

import numpy as np
import torch

import ltinet
from benchmarks.nonlinear.records import Record, Units, silverbox
from benchmarks.nonlinear.scoring import n_parameters, rmse, simulated
from ltinet import nn

Hold = Literal["zero", "linear"]
_RATE = 610.35
_WINDOWS, _LENGTH, _WARM_UP, _STEPS = 12, 1000, 200, 6


def main() -> None:
    """Print the errors of every seed and their medians, in millivolts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear.silverbox", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--test", action="store_true", help="look at the tests too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    records = silverbox()
    units = Units.of(records["train"])
    found: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        model, validation, hold = trained(units.scaled(records["train"]), seed)
        errors = {"validation": validation * units.y_deviation}
        if given.test:
            y = simulated(model, units, records["arrow"])
            errors["multisine"] = rmse(simulated(model, units, records["multisine"]), records["multisine"])
            errors["arrow"] = rmse(y, records["arrow"])
            errors["inside"] = rmse(y[: len(records["inside"].y)], records["inside"])
        for name, error in errors.items():
            found.setdefault(name, []).append(1e3 * error)
        scores = ", ".join(f"{name} {1e3 * error:.4f}" for name, error in errors.items())
        print(f"seed {seed}: {hold} hold, {n_parameters(model) + 2} parameters, mV: {scores}", flush=True)
    print("medians, mV: " + ", ".join(f"{name} {statistics.median(own):.4f}" for name, own in found.items()))


def trained(record: Record, seed: int) -> tuple[nn.Feedback, float, str]:
    """The model of a seed, its error on windows that it was not trained with, and its hold."""
    starts = _LENGTH * np.random.default_rng(seed).permutation(len(record.u) // _LENGTH)[: 2 * _WINDOWS]
    train, unseen = (windows(record, own) for own in (starts[:_WINDOWS], starts[_WINDOWS:]))
    tried = []
    holds: tuple[Hold, ...] = ("zero", "linear")
    for hold in holds:
        model = first_model(record, hold)
        history = nn.fit(model, train, validation=unseen, method="lm", steps=_STEPS, warmup=_WARM_UP)
        assert history.validation is not None
        tried.append((float(history.validation.min()), hold, model))
    validation, hold, model = min(tried, key=lambda own: own[0])
    return model, validation, hold


def first_model(record: Record, hold: Hold) -> nn.Feedback:
    """The linear network, with a force on its input that depends on its output and is zero at first."""
    found = ltinet.identify(record.u[:6000], record.y[:6000], dt=1.0 / _RATE, order=2, hold=hold, delay=0).system
    B, C = np.hstack([found.B, found.B]), np.vstack([found.C, found.C])
    D = np.zeros((2, 2))
    D[0, 0] = found.D[0, 0]
    network = ltinet.construct((found.A, B, C, D)).to_torch(1.0 / _RATE, hold=hold, trainable=("poles", "B", "D"))
    return nn.Feedback(network, nn.Polynomial(1, 3, start="zero"))


def windows(record: Record, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of a record, side by side."""
    pieces = [slice(start, start + _LENGTH) for start in starts]
    u, y = (np.stack([signal[own] for own in pieces])[..., None] for signal in (record.u, record.y))
    return u, y


if __name__ == "__main__":
    main()
