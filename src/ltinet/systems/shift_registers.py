"""Shift registers: the exact form of delays of whole samples in discrete time.

A delay of k samples has the transfer function z⁻ᵏ and becomes k states, x₁⁺ = v, x₂⁺ = x₁, …, x_k⁺ = x_{k−1}, whose last one is
the delayed signal.
"""

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices


def delays_as_states(system: SystemMatrices, settings: SignalSettings) -> SystemMatrices:
    """Return a discrete-time system with the delays of its inputs and outputs as states."""
    if system.dt is None:
        raise ValueError("shift registers need a discrete-time system")
    steps = (
        np.round(settings.array(name, size) / system.dt)
        for name, size in (("input_delay", system.n_inputs), ("output_delay", system.n_outputs))
    )
    return add_shift_registers(system, *steps)


def add_shift_registers(system: SystemMatrices, input_steps: Array, output_steps: Array) -> SystemMatrices:
    """Return a discrete-time system whose inputs and outputs pass through shift registers of the given lengths.

    A register of k states is x₁⁺ = v, x₂⁺ = x₁, …, and its end x_k = v[t − k] takes the place of v.
    """
    A, B, C, D = system.A, system.B, system.C, system.D
    for channel, steps in enumerate(input_steps.astype(int).tolist()):
        if steps:
            column, feedthrough = B[:, [channel]], D[:, [channel]]
            B, D = B.copy(), D.copy()
            B[:, channel], D[:, channel] = 0.0, 0.0
            last = np.eye(1, steps, steps - 1)
            A = np.block([[A, column @ last], [np.zeros((steps, len(A))), np.eye(steps, k=-1)]])
            B = np.vstack([B, np.zeros((steps, B.shape[1]))])
            B[len(A) - steps, channel] = 1.0
            C = np.hstack([C, feedthrough @ last])
    for channel, steps in enumerate(output_steps.astype(int).tolist()):
        if steps:
            first = np.eye(steps, 1)
            A = np.block([[A, np.zeros((len(A), steps))], [first @ C[[channel]], np.eye(steps, k=-1)]])
            B = np.vstack([B, first @ D[[channel]]])
            C, D = np.hstack([C, np.zeros((len(C), steps))]), D.copy()
            C[channel], D[channel] = 0.0, 0.0
            C[channel, -1] = 1.0
    if len(A) == system.n_states:
        return system
    return SystemMatrices(A, B, C, D, dt=system.dt, names=system.names.without_states)
