"""Hypothesis: a system comes back from its frequency response, with its names, and becomes a network."""

import numpy as np
import pytest

import ltinet


def test_a_system_comes_back():
    system = ltinet.named_system("mass_spring_damper")
    omega = np.geomspace(1e-2, 1e2, 200)
    H = system.frequency_response(omega)
    found = ltinet.identify_frequency(omega, H, outputs=[f"z{i}" for i in range(system.n_outputs)])
    assert np.abs(found.system.frequency_response(omega) - H).max() <= 1e-8 * np.abs(H).max()
    assert ltinet.construct(found).n_outputs == system.n_outputs
    assert found.net.n_inputs == system.n_inputs
    assert "z0" in str(found)
    assert str(found.order) in repr(found)


def test_bad_data_are_refused():
    with pytest.raises(ltinet.InvalidSignalError):
        ltinet.identify_frequency([-1.0, 1.0], [1.0, 1.0])
