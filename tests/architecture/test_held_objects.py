"""Objects that users can hold have public types, and so have their attributes."""

import numpy as np
import pytest

import ltinet

PUBLIC = {getattr(ltinet, name) for name in ltinet.__all__}


def held() -> list[object]:
    """One object of each kind that the public functions and their results give."""
    t = np.linspace(0.0, 1.0, 6)
    system = ltinet.StateSpace([[-1.0, 2.0], [-2.0, -1.0]], [1.0, 0.0], [0.0, 1.0], E=2.0 * np.eye(2))
    net = ltinet.construct(system)
    layer = net.layers[0]
    facts = [net.damping(), net.step_info(), system.step_response()]
    results = [
        *facts,
        net.simulate(t, t),
        net.stepper(0.1),
        net.certificate(horizon=1.0),
        ltinet.tolerances_for(net, u=t, t=t),
    ]
    parts = [net.form, net.plot, system.plot, net.form.plot, net.parameters, layer, layer.neurons[0], layer.parameters]
    inputs = [ltinet.SampledSignal(t, t), ltinet.FunctionSignal(np.sin, n_inputs=1)]
    return [system, system.descriptor, net, *parts, *inputs, *results]


HELD = held()


@pytest.mark.parametrize("thing", HELD, ids=lambda thing: type(thing).__name__)
def test_what_users_hold_is_public(thing: object) -> None:
    assert type(thing) in PUBLIC


@pytest.mark.parametrize("thing", HELD, ids=lambda thing: type(thing).__name__)
def test_dir_leads_only_to_what_is_public(thing: object) -> None:
    for name in (name for name in dir(thing) if not name.startswith("_")):
        value = getattr(thing, name)
        for part in value if isinstance(value, tuple) else (value,):
            module = type(part).__module__
            assert not module.startswith("ltinet") or type(part) in PUBLIC, (
                f"{name} is a {module}.{type(part).__name__}"
            )


@pytest.mark.parametrize("thing", HELD, ids=lambda thing: type(thing).__name__)
def test_dir_shows_no_way_around_validation(thing: object) -> None:
    assert not {"trusted", "of"} & set(dir(thing))
