"""A small system whose inputs, outputs and states have names."""

import ltinet

A, B, C = [[0.0, 1.0], [-4.0, -0.4]], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 0.0]]
NAMES = {"inputs": ["Force (N)", "Wind (N)"], "outputs": ["Position (m)"], "states": ["x (m)", "v (m/s)"]}
GIVEN = tuple(map(tuple, NAMES.values()))


def named(**others):
    return ltinet.StateSpace(A, B, C, **{**NAMES, **others})


def names_of(system):
    return system.input_names, system.output_names, system.state_names
