"""Hypothesis: also for systems that were drawn to break decompositions a model gives what `net.simulate` gives.

Where the network's own stepper is further away than rounding, ten times as far is allowed; where the model is still
further away, its error is at most ten times that of `simulate`. Models are those whose poles
are not learnt: where T costs digits they run in the user's own states, as `simulate` does, in which no parameters keep
a system stable. One that learns its poles stays in the states of its layers and is off by 1e-6 for the worst of these.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch

import ltinet
from ball_oracle import respond
from hostile.draw import draw
from hostile.families import FAMILIES
from learnt_systems import off_by

PER_FAMILY = 26
_EVEN_BITS = 26  # of a step whose multiples are all doubles


class Run(NamedTuple):
    """A draw at even times, and what gives outputs for it."""

    name: str
    system: tuple[np.ndarray, ...]
    net: ltinet.DynamicNetwork
    dt: float
    u: np.ndarray
    hold: str
    x0: np.ndarray | None

    @property
    def t(self) -> np.ndarray:
        return self.dt * np.arange(len(self.u))

    def simulated(self) -> np.ndarray:
        return self.net.simulate(self.u, self.t, hold=self.hold, x0=self.x0, coordinates="blocks").y

    def streamed(self) -> np.ndarray:
        return next(self.net.stepper(self.dt, hold=self.hold, x0=self.x0).run([self.u]))

    def modelled(self) -> np.ndarray:
        model = self.net.to_torch(self.dt, hold=self.hold, trainable=False)
        start = None if self.x0 is None else torch.from_numpy(self.x0)
        return model(torch.from_numpy(self.u), x0=start).numpy()


def drawn(name: str) -> Run:
    case = draw(f"17/{name}")
    system = tuple(own for own in (case.A, case.B, case.C, case.D, case.E) if own is not None)
    lengths = np.diff(case.t)
    mantissa, exponent = np.frexp(np.median(lengths[lengths > 0.0]))
    dt = float(np.ldexp(np.round(np.ldexp(mantissa, _EVEN_BITS)), exponent - _EVEN_BITS))
    x0 = None if case.x0 is None else case.x0.reshape(-1, len(case.A))[0]
    return Run(name, system, ltinet.construct(system), dt, case.u.reshape(-1, *case.u.shape[-2:])[0], case.hold, x0)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family(family: str) -> None:
    for name in (f"{family}/{index}" for index in range(PER_FAMILY)):
        run = drawn(name)
        y, modelled = run.simulated(), run.modelled()
        if off_by(modelled, y) > max(1e-12, 10.0 * off_by(run.streamed(), y)):
            truth = respond(*run.system, u=run.u, t=run.t, hold=run.hold, x0=run.x0).y.mid
            assert off_by(modelled, truth) <= max(1e-12, 10.0 * off_by(y, truth)), name
