"""Random networks, inputs and solvers, and what their outputs should have been, with a proof."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import ltinet
from ball_oracle import respond

METHODS = ("RK45", "DOP853", "Radau")
PARTS = 4  # times between two samples at which dense output is judged


@dataclass(frozen=True, repr=False)
class Run:
    """A system, its network, and how to simulate it."""

    system: ltinet.StateSpace
    net: ltinet.DynamicNetwork
    t: np.ndarray
    u: np.ndarray
    x0: np.ndarray
    hold: str
    engine: str
    method: Any
    tolerance: float

    def __repr__(self):
        return f"Run({self.net!r}, {len(self.t)} times, {self.hold}, {self.engine}, {self.method}, {self.tolerance:g})"

    def solve(self):
        """The solution by the engine that was drawn."""
        return self.net.simulate(
            self.u, self.t, x0=self.x0, hold=self.hold, engine=self.engine, method=self.method,
            rtol=self.tolerance, atol=self.tolerance,
        )  # fmt: skip


@st.composite
def runs(draw, max_neurons=12):
    """One coupled layer or several, stable or not, any hold and tolerance, one solver for all neurons or several."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_real = draw(st.integers(0, max_neurons))
    n_pairs = draw(st.integers(0 if n_real else 1, max_neurons - n_real if n_real < max_neurons else 0))
    A = random_block(rng, n_real, n_pairs, shift=draw(st.sampled_from([0.0, 0.0, 0.5, 1.5])))
    n, m, p = len(A), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    system = ltinet.StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m)))
    net = ltinet.construct(system, n_layers=1 if draw(st.booleans()) else None)
    t = np.arange(int(rng.integers(3, 9))) * 2.0 ** -int(rng.integers(0, 4))
    methods = rng.choice(METHODS, max_neurons)
    mixed = draw(st.integers(0, 3)) == 0
    return Run(
        system,
        net,
        t,
        rng.standard_normal((len(t), m)),
        rng.standard_normal(n) * int(rng.integers(0, 2)),
        draw(st.sampled_from(["linear", "zero"])),
        draw(st.sampled_from(["per_neuron", "per_interval"])),
        {(index, i): str(methods[i]) for index, layer in enumerate(net.layers) for i in range(layer.n_neurons)}
        if mixed
        else str(methods[0]),
        10.0 ** -draw(st.integers(3, 10)),
    )


def random_block(rng, n_real, n_pairs, *, shift):
    """Reals and pairs around −1 + shift, each fed by all after it."""
    n = n_real + 2 * n_pairs
    A = np.triu(rng.uniform(-1.0, 1.0, (n, n)), 1)
    A[np.arange(n), np.arange(n)] = shift - rng.uniform(0.2, 2.0, n)
    for i in range(n_real, n, 2):
        A[i + 1, i + 1], A[i, i + 1], A[i + 1, i] = A[i, i], rng.uniform(0.2, 4.0), -rng.uniform(0.2, 4.0)
    return A


def true_outputs(run, x0=None):
    """Times, PARTS in every interval between samples, and the outputs there in balls."""
    h = float(run.t[1] - run.t[0]) / PARTS  # a power of two: no rounding
    times = np.append(np.add.outer(run.t[:-1], h * np.arange(PARTS)).ravel(), run.t[-1])
    system, start = run.system, run.x0 if x0 is None else x0
    A, B, C, D = system.A, system.B, system.C, system.D
    return times, respond(A, B, C, D, u=run.u, t=run.t, hold=run.hold, x0=start, at=times).between
