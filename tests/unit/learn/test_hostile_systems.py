"""Hypothesis: also for systems that were drawn to break decompositions a model gives what `net.simulate` gives.

Where the network's own stepper is further away than rounding, ten times as far is allowed. Left out are steps so short
that nothing happens in them (1e-8 of 1/‖A‖): outputs are then differences of states that only the
user's own coordinates show, and a model has coordinates in which it stays stable.
"""

import numpy as np
import pytest
import torch

import ltinet
from hostile.draw import draw
from hostile.families import FAMILIES
from learnt_systems import off_by

PER_FAMILY = 5
_NOTHING_HAPPENS = 1e-8


# Of 26 draws a family these miss: steps of 1e-11 of a time constant, and an integrator, 4e-12 off.
MISSED = ("17/integrating/10", "17/non_normal/8", "17/non_normal/25")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family(family: str) -> None:
    assert sum(map(holds, (f"17/{family}/{index}" for index in range(PER_FAMILY)))) >= PER_FAMILY - 2


@pytest.mark.parametrize("name", MISSED)
@pytest.mark.xfail(reason="4.2e-12, 1.6e-6 and 5.9e-7 off", strict=False)
def test_what_is_missed(name: str) -> None:
    assert holds(name, even_if_nothing_happens=True)


def holds(name: str, *, even_if_nothing_happens: bool = False) -> bool:
    """Whether there was something to compare; that it agrees is asserted."""
    case = draw(name)
    given = (case.A, case.B, case.C, case.D) if case.E is None else (case.A, case.B, case.C, case.D, case.E)
    net = ltinet.construct(given)
    lengths = np.diff(case.t)
    dt, n = float(np.median(lengths[lengths > 0.0])), len(case.t)
    A = case.A if case.E is None else np.linalg.solve(case.E, case.A)
    if np.linalg.norm(A, 2) * dt < _NOTHING_HAPPENS and not even_if_nothing_happens:
        return False
    u = case.u.reshape(-1, *case.u.shape[-2:])[0]
    x0 = None if case.x0 is None else case.x0.reshape(-1, net.n_states)[0]
    y = net.simulate(u, dt * np.arange(n), hold=case.hold, x0=x0).y
    allowed = 10.0 * off_by(next(net.stepper(dt, hold=case.hold, x0=x0).run([u])), y)
    model = net.to_torch(dt, hold=case.hold, trainable=False)
    start = None if x0 is None else torch.from_numpy(x0)
    assert off_by(model(torch.from_numpy(u), x0=start).numpy(), y) <= max(1e-12, allowed), str(case)
    return True
