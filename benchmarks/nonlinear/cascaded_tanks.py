"""Two tanks above each other, which overflow: `python -m benchmarks.nonlinear.cascaded_tanks`.

The rule, fixed before any test; it knows no square root, no level of overflow and no equation of a tank:

- two neurons of first order in triangular order, ẋ₁ = r (u − x₁/2 − f(x₁)), ẋ₂ = r (g(x₁) − x₂/2 − h(x₂)), y = x₂, in
  units of the record: f, g and h increasing maps (`nn.Monotone`) over the range of the inputs (f, g) and of the outputs
  (h), a tenth more on either side; r is the slowest pole that `identify` finds with order 2 in the training record;
- they begin as lines with slopes 1/2, 1, 1/2; a seed moves the logarithms of the two poles by deviations of 0.3, those
  of the slopes of maps and of their ratios by 0.1;
- trained, poles and maps, on the whole record by `_STEPS` steps of Levenberg–Marquardt with linear holds from rest, the
  first 50 samples not counted, and held to where it began with a weight (`ridge`);
- pieces of the maps and that weight are those for which models of seeds 0 and 1, trained on the first 624 samples,
  explain the last 400 best in the worse case of the two, scored as tests are: `--choose` prints that table;
- five seeds, the median counts.
"""

import argparse
import itertools
import statistics

import numpy as np
import torch

import ltinet
from benchmarks.nonlinear.records import Record, Units, cascaded_tanks
from benchmarks.nonlinear.scoring import n_parameters, rmse, simulated
from ltinet import nn

_DT = 4.0
_FIRST, _WARM_UP, _STEPS = 624, 50, 20
_PIECES, _WEIGHT = 10, 1e-4
_TRIED_PIECES, _TRIED_WEIGHTS = (6, 8, 10), (1e-5, 1e-4, 1e-3)


def main() -> None:
    """Print the errors of every seed and their median, in volts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear.cascaded_tanks", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--test", action="store_true", help="look at the test too")
    parser.add_argument("--choose", action="store_true", help="try other sizes on the training record, and end")
    given = parser.parse_args()
    torch.set_num_threads(1)
    records = cascaded_tanks()
    units = Units.of(records["train"])
    if given.choose:
        for pieces, weight in itertools.product(_TRIED_PIECES, _TRIED_WEIGHTS):
            errors = [held_out(records["train"], units, seed, pieces, weight) for seed in (0, 1)]
            print(f"{pieces} pieces, weight {weight:g}: {max(errors):.4f} V", flush=True)
        return
    found = []
    for seed in range(given.seeds):
        model, train = trained(units.scaled(records["train"]), seed, _PIECES, _WEIGHT)
        errors = [train * units.y_deviation]
        if given.test:
            errors.append(rmse(simulated(model, units, records["test"]), records["test"]))
        found.append(errors)
        print(f"seed {seed}: {n_parameters(model) + 4} parameters, V: {format_errors(errors)}", flush=True)
    print(f"medians, V: {format_errors([statistics.median(own) for own in zip(*found, strict=True)])}")


def format_errors(errors: list[float]) -> str:
    """Errors by name."""
    return ", ".join(f"{name} {error:.4f}" for name, error in zip(("training", "test"), errors, strict=False))


def held_out(record: Record, units: Units, seed: int, pieces: int, weight: float) -> float:
    """The error on the last samples of a record, in volts, of a model of the first ones."""
    model, _ = trained(units.scaled(record), seed, pieces, weight, n_samples=_FIRST)
    last = record.part(_FIRST, len(record.u))
    return rmse(simulated(model, units, last), last)


def trained(
    record: Record, seed: int, pieces: int, weight: float, *, n_samples: int | None = None
) -> tuple[nn.Feedback, float]:
    """A model of the first samples, all of them by default, and its error there."""
    model = first_model(record, seed, pieces=pieces)
    data = (record.u[:n_samples], record.y[:n_samples])
    history = nn.fit(model, data, method="lm", steps=_STEPS, warmup=_WARM_UP, ridge=weight)
    return model, float(history.train.min())


def first_model(record: Record, seed: int, *, pieces: int) -> nn.Feedback:
    """Two neurons of first order whose maps are lines, all moved a little by the seed."""
    poles = np.linalg.eigvals(ltinet.identify(record.u, record.y, dt=_DT, order=2, hold="linear", delay=0).system.A)
    rate = float(-poles.real.max())
    rng = np.random.default_rng(seed)
    A = -0.5 * rate * np.diag(np.exp(0.3 * rng.standard_normal(2)))
    B = rate * np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])  # u, f, g, h
    C = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # y, and what f, g and h see
    network = ltinet.construct((A, B, C)).to_torch(_DT, hold="linear", trainable=("poles",))
    (low1, high1), (low2, high2) = (widened(own) for own in (record.u, record.y))
    maps = nn.Monotone(3, pieces, low=(low1, low1, low2), high=(high1, high1, high2), slope=(0.5, 1.0, 0.5))
    with torch.no_grad():
        maps.log_ratios += torch.from_numpy(0.1 * rng.standard_normal(maps.log_ratios.shape))
    return nn.Feedback(network, maps)


def widened(samples: np.ndarray) -> tuple[float, float]:
    """The range of samples, and a tenth of it on either side."""
    low, high = float(samples.min()), float(samples.max())
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


if __name__ == "__main__":
    main()
