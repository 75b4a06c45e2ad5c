"""Delays, operating point, hold and sample time: checked once, carried by systems and networks alike."""

import copy
import pickle

import numpy as np
import pytest

import ltinet
from ltinet.errors import InvalidSystemError

MATRICES = ([[0.0, 1.0], [-4.0, -0.8]], [[0.0, 1.0], [4.0, 0.0]], [[1.0, 0.0]])
SETTINGS = {
    "input_delay": [0.25, 0.0],
    "output_delay": 0.5,
    "u0": [1.0, 2.0],
    "y0": [292.8],
    "hold": "zoh",
    "sample_time": 0.1,
}


def test_a_system_and_its_network_carry_the_same_settings():
    system = ltinet.StateSpace(*MATRICES, **SETTINGS)
    net = ltinet.construct(system)
    for model in (system, net, net.system, net.to_state_space()):
        assert model.input_delay.tolist() == [0.25, 0.0]
        assert model.output_delay.tolist() == [0.5]
        assert model.u0.tolist() == [1.0, 2.0]
        assert model.y0.tolist() == [292.8]
        assert (model.hold, model.sample_time) == ("zero", 0.1)


def test_settings_survive_pickle_and_copy_and_count_in_equality():
    system = ltinet.StateSpace(*MATRICES, **SETTINGS)
    net = ltinet.construct(system)
    for model in (system, net):
        for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):  # noqa: S301
            assert other == model
            assert hash(other) == hash(model)
            assert other.signal_settings == model.signal_settings
        assert model != model.with_signal_settings(output_delay=0)


def test_zeros_are_no_settings():
    zeros = ltinet.StateSpace(*MATRICES, input_delay=0.0, output_delay=[0.0], u0=[0.0, -0.0], y0=0)
    assert zeros == ltinet.StateSpace(*MATRICES)
    assert zeros.signal_settings.is_default
    assert repr(zeros) == repr(ltinet.StateSpace(*MATRICES))


def test_a_network_without_a_system_carries_settings():
    parameters = ltinet.construct(ltinet.StateSpace(*MATRICES)).parameters
    settings = ltinet.SignalSettings(input_delay=[0.1, 0.2], hold="zero")
    net = ltinet.DynamicNetwork.from_parameters(parameters, signal_settings=settings)
    assert net.input_delay.tolist() == [0.1, 0.2]
    assert net.with_signal_settings(y0=3.0).y0.tolist() == [3.0]
    with pytest.raises(InvalidSystemError, match="input_delay has 1 number"):
        ltinet.DynamicNetwork.from_parameters(parameters, signal_settings=ltinet.SignalSettings(input_delay=[0.1]))


def test_with_signal_settings_changes_what_is_named():
    net = ltinet.construct(ltinet.StateSpace(*MATRICES, **SETTINGS))
    changed = net.with_signal_settings(u0=None, hold="linear")
    assert changed.hold == "linear"
    assert not changed.u0.any()
    assert changed.input_delay.tolist() == [0.25, 0.0]
    assert changed.system.hold == "linear"
    with pytest.raises(InvalidSystemError, match="did you mean 'input_delay'"):
        net.with_signal_settings(input_dely=1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"input_delay": -1.0}, "finite numbers ≥ 0"),
        ({"input_delay": [0.1]}, "input_delay has 1 number, but the system has 2 inputs"),
        ({"output_delay": np.nan}, "finite numbers ≥ 0"),
        ({"u0": [1.0, np.inf]}, "must contain finite numbers"),
        ({"y0": "warm"}, "one number for each channel"),
        ({"y0": [[1.0]]}, "one number for each channel"),
        ({"hold": "cubic"}, "got 'cubic'"),
        ({"sample_time": 0.0}, "must be a positive number"),
    ],
)
def test_what_is_not_valid_is_refused(given, message):
    with pytest.raises(InvalidSystemError, match=message):
        ltinet.StateSpace(*MATRICES, **given)


def test_delays_in_discrete_time_are_whole_steps():
    assert ltinet.StateSpace(0.5, 1.0, 1.0, dt=0.1, input_delay=0.3).input_delay.tolist() == [0.3]
    with pytest.raises(InvalidSystemError, match="must be multiples"):
        ltinet.StateSpace(0.5, 1.0, 1.0, dt=0.1, input_delay=0.25)


def test_print_shows_settings_where_there_are_some():
    system = ltinet.StateSpace(*MATRICES, **SETTINGS)
    for text in (str(system), system._repr_html_(), str(ltinet.construct(system))):
        assert all(own in text for own in ("input delay", "0.25", "y0", "292.8", "zero"))
    assert "input_delay=[0.25, 0.0]" in repr(system)
    assert "delay" not in str(ltinet.construct(ltinet.StateSpace(*MATRICES)))
