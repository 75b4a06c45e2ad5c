"""What a user's program sees of the types: checked by `mypy --strict` as every other file, and run.

`assert_type` fails where mypy sees `Any`; at run time it does nothing.
"""

from typing import assert_type

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import ltinet

Array = NDArray[np.float64]


def main() -> None:
    """Touch every door of a system, a network, its form and its solution that answers with an object."""
    A = np.array([[-1.0, 2.0], [-2.0, -1.0]])
    system = ltinet.StateSpace(A, np.eye(2, 1), np.eye(1, 2))
    assert_type(system.A, Array)

    form = ltinet.block_diagonalize(A)
    assert_type(form, ltinet.BlockDiagonalForm)
    assert_type(form.T, Array)
    assert_type(form.condition, float)
    assert_type(form.plot, ltinet.BlockDiagonalPlots)
    assert_type(form.plot.spectrum(), Figure)
    assert_type(form.plot.tradeoff(), Figure)

    ladder = ltinet.condition_tradeoff(system)
    assert_type(ladder, ltinet.TradeoffCurve)
    assert_type(ladder[0].condition, float)

    net = ltinet.construct(system)
    assert_type(net, ltinet.DynamicNetwork)
    assert_type(net.form, ltinet.BlockDiagonalForm | None)
    assert_type(net.system, ltinet.StateSpace | None)
    assert_type(net.to_state_space(), ltinet.StateSpace)
    assert_type(net.layers[0].K, Array)
    assert_type(net.plot, ltinet.NetworkPlots)
    assert_type(net.plot.architecture(), Figure)
    assert_type(net.plot.overview(), Figure)
    assert_type(net.plot(), Figure)
    assert_type(net.plot.nyquist(), Figure)
    assert_type(system.plot, ltinet.SystemPlots)
    assert_type(system.plot(), Figure)
    assert_type(net.frequency_response([1.0]), NDArray[np.complex128])
    assert_type(net.certificate(horizon=1.0), ltinet.Certificate)

    t = np.linspace(0.0, 1.0, 11)
    sol = net.simulate(t, t)
    assert_type(sol, ltinet.Solution)
    assert_type(sol.y, Array)
    assert_type(sol(0.5), Array)
    assert_type(sol.states, Array)
    assert_type(sol.error_bound(), Array)
    assert_type(sol.error_parts(), dict[str, Array])
    assert_type(sol.plot(), Figure)

    stepper = net.stepper(0.1)
    assert_type(stepper, ltinet.Stepper)
    assert_type(stepper.step([0.0]), Array)
    chosen = ltinet.tolerances_for(net, 1e-6, u=t, t=t)
    assert_type(chosen, ltinet.NeuronTolerances)


if __name__ == "__main__":
    main()
