"""A filter, a diode, a filter: `python -m benchmarks.nonlinear.wiener_hammerstein`, with `--device cuda` on a GPU.

The rule, fixed before any test:

- a network, a layer of tanh with a line, a network; its poles begin as those that `identify` finds with order 6 in the
  first 20,000 samples of the training record;
- every way to share these poles out, at least one to each side: the first network begins without zeros, the weights of
  the second by least squares, both with linear holds; each is trained for 5 steps of L-BFGS (20 iterations each) on
  10,000 samples, and the one that explains the last 20,000 samples of the training record best goes on;
- both networks get two more pairs of poles with small weights, which a seed draws, as it draws the layer; sizes are
  `_EXTRA` and `_HIDDEN`;
- trained on the first 80,000 samples by `_FIRST` steps of L-BFGS, then by at most `_STEPS` of Levenberg–Marquardt; the
  parameters with the smallest error on the last 20,000 are kept, and `_PATIENCE` steps without a smaller one end it;
- five seeds: the median counts, and beside it the seed that is best on those 20,000.
"""

import argparse
import itertools
import statistics
from typing import Literal

import numpy as np
import torch
from scipy import linalg

import ltinet
from benchmarks.nonlinear.records import Record, Units, wiener_hammerstein
from benchmarks.nonlinear.scoring import n_parameters, rmse, simulated
from ltinet import nn

_ORDER, _EXTRA, _HIDDEN = 6, 2, 16
_FIRST, _STEPS, _PATIENCE, _WARM_UP = 30, 60, 15, 200
Poles = list[complex]


def main() -> None:
    """Print the errors of every seed and their median, in millivolts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nonlinear.wiener_hammerstein", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--test", action="store_true", help="look at the test too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    records = wiener_hammerstein()
    units = Units.of(records["train"])
    train = units.scaled(records["train"])
    first, second = shared_out(train, given.device)
    print(f"poles before the map {np.round(first, 3)}, after it {np.round(second, 3)}", flush=True)
    found = []
    for seed in range(given.seeds):
        model, validation = trained(train, first, second, seed=seed, device=given.device)
        error = rmse(simulated(model, units, records["test"]), records["test"]) if given.test else float("nan")
        found.append((1e3 * units.y_deviation * validation, 1e3 * error))
        scores = f"validation {found[-1][0]:.4f}, test {found[-1][1]:.4f}"
        print(f"seed {seed}: {n_parameters(model)} parameters, mV: {scores}", flush=True)
    medians = [statistics.median(own) for own in zip(*found, strict=True)]
    print(f"medians, mV: validation {medians[0]:.4f}, test {medians[1]:.4f}")
    print(f"best by validation, mV: test {min(found)[1]:.4f}")


def shared_out(record: Record, device: str) -> tuple[Poles, Poles]:
    """The poles of the linear model, those before the map and those after it."""
    linear = ltinet.identify(record.u[:20_000], record.y[:20_000], dt=1.0, order=_ORDER, hold="linear", delay=0)
    poles = [complex(own) for own in np.linalg.eigvals(linear.system.A) if own.imag >= 0.0]
    tried = []
    for count in range(1, len(poles)):
        for chosen in itertools.combinations(range(len(poles)), count):
            first = [poles[place] for place in chosen]
            second = [own for place, own in enumerate(poles) if place not in chosen]
            model = first_model(record, first, second, hidden=8, seed=0).to(device)
            error = fitted(model, record, 10_000, method="lbfgs", steps=5)
            tried.append((error, first, second))
            print(f"  {np.round(first, 2)} before the map: {error:.4f} deviations", flush=True)
    return min(tried, key=lambda own: own[0])[1:]


def trained(record: Record, first: Poles, second: Poles, *, seed: int, device: str) -> tuple[nn.Stack, float]:
    """The model of a seed, and its error on the last samples of the training record."""
    rng = np.random.default_rng(seed)
    extra = [[complex(-rng.uniform(0.2, 0.8), rng.uniform(0.2, 2.0)) for _ in range(_EXTRA)] for _ in range(2)]
    model = first_model(record, first, second, hidden=_HIDDEN, seed=seed, extra=extra).to(device)
    fitted(model, record, 80_000, method="lbfgs", steps=_FIRST)
    return model, fitted(model, record, 80_000, method="lm", steps=_STEPS)


def fitted(model: nn.Stack, record: Record, n_samples: int, *, method: Literal["lbfgs", "lm"], steps: int) -> float:
    """Train a model on the first samples, and return its error on the last of the training record."""
    data, unseen = (record.part(*span) for span in ((0, n_samples), (80_000, 100_000)))
    history = nn.fit(
        model,
        (data.u, data.y),
        validation=(unseen.u, unseen.y),
        method=method,
        steps=steps,
        patience=_PATIENCE,
        warmup=_WARM_UP,
    )
    assert history.validation is not None
    return float(history.validation.min())


def first_model(
    record: Record, first: Poles, second: Poles, *, hidden: int, seed: int, extra: list[Poles] | None = None
) -> nn.Stack:
    """The linear model as two networks with a map between them that is a line at first."""
    more = extra or [[], []]
    u, y = record.u[:10_000], record.y[:10_000]
    net = low_pass(first, more[0], u)
    x = net.simulate(u, np.arange(len(u))).y.ravel()
    return nn.wiener_hammerstein(
        net.to_torch(1.0), nn.MLP(1, 1, hidden=hidden, seed=seed), least_squares(second + more[1], x, y).to_torch(1.0)
    )


def low_pass(poles: Poles, extra: Poles, u: np.ndarray) -> ltinet.DynamicNetwork:
    """A network without zeros whose output has a deviation of one; more poles stand beside with a hundredth of it."""
    every = [own for pole in poles for own in ((pole, pole.conjugate()) if pole.imag else (pole,))]
    weights = np.poly(every).real
    n = len(every)
    A, B, C = np.zeros((n, n)), np.zeros((n, 1)), np.zeros((1, n))
    A[0], A[1:, :-1], B[0], C[0, -1] = -weights[1:], np.eye(n - 1), 1.0, weights[-1]
    C /= ltinet.construct((A, B, C)).simulate(u, np.arange(len(u))).y.std()
    if not extra:
        return ltinet.construct((A, B, C))
    beside = blocks(extra)
    k = len(beside)
    return ltinet.construct(
        (linalg.block_diag(A, beside), np.vstack([B, np.ones((k, 1))]), np.hstack([C, np.full((1, k), 0.01)]))
    )


def least_squares(poles: Poles, x: np.ndarray, y: np.ndarray) -> ltinet.DynamicNetwork:
    """The network with given poles whose output is nearest to y."""
    A = blocks(poles)
    B = np.ones((len(A), 1))
    states = ltinet.construct((A, B, np.eye(len(A)))).simulate(x, np.arange(len(x))).y
    weights = np.linalg.lstsq(np.column_stack([states, x])[_WARM_UP:], y[_WARM_UP:], rcond=None)[0]
    return ltinet.construct((A, B, weights[None, :-1], weights[None, -1:]))


def blocks(poles: Poles) -> np.ndarray:
    """A real matrix with these eigenvalues and the conjugates of those that are not real."""
    pairs = ([[own.real, own.imag], [-own.imag, own.real]] if own.imag else [[own.real]] for own in poles)
    return np.asarray(linalg.block_diag(*(np.array(own) for own in pairs)))


if __name__ == "__main__":
    main()
