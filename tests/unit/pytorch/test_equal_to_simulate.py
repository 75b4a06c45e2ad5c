"""Untrained models equal `net.simulate` with every algorithm."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

import ltinet
from data_sets import DATA_SETS
from learnt_systems import KINDS, network_of, off_by
from ltinet.torch.planner import AlgorithmName, Plan

STEPS = 10_000
FP64 = 2 * STEPS * 2.0**-53  # of the peak: a rounding in each step of either run
FP32 = {"pde": 1e-4}


def real_network(folder: Path, name: str) -> ltinet.DynamicNetwork:
    path = folder / f"{name}.mat"
    if name == "helicopter_v73":  # no C in the file
        return ltinet.construct(ltinet.load_system(path, C=np.eye(28)))
    if name == "j100_jet_engine":
        return ltinet.construct(ltinet.load_system(path))
    return ltinet.construct(ltinet.load_system(path))


def draw(net: ltinet.DynamicNetwork, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((*shape, net.n_inputs))


def model_step(net: ltinet.DynamicNetwork) -> float:
    return 0.9 / float(np.abs(net.poles()).max())


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", DATA_SETS)
def test_real_systems_in_double_and_single_precision(data_dir: Path, name: str) -> None:
    net = real_network(data_dir, name)
    dt = model_step(net)
    u, t = draw(net, STEPS), dt * np.arange(STEPS)
    samples = torch.from_numpy(u)
    for hold in ("linear", "zero"):
        model = net.to_torch(dt, hold=hold, trainable=False)
        y = net.simulate(u, t, hold=hold, coordinates="blocks").y
        assert off_by(model(samples), y) <= FP64
        assert off_by(model(samples.float()), y) <= FP32.get(name, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["building", "pde", "b767_flutter", "drum_boiler"])
def test_real_systems_from_states_in_pieces_and_at_other_times(data_dir: Path, name: str) -> None:
    net = real_network(data_dir, name)
    dt, steps = model_step(net), 1000
    model = net.to_torch(2.0 * dt, trainable=False).at(dt)
    u, x0 = draw(net, 2, steps), np.random.default_rng(1).standard_normal((2, net.n_states))
    samples, start, t = torch.from_numpy(u), torch.from_numpy(x0), dt * np.arange(steps)
    y = net.simulate(u, t, x0=x0, coordinates="original").y
    first, state = model(samples[:, :313], x0=start, return_state=True)
    assert off_by(torch.cat([first, model(samples[:, 313:], state=state)], 1), y) <= FP64
    t = np.cumsum(np.random.default_rng(2).uniform(0.1, 2.0, steps)) * dt
    times = torch.from_numpy(t)
    y = net.simulate(u, t, x0=x0, coordinates="original").y
    assert off_by(model(samples, times=times, x0=start), y) <= FP64
    first, state = model(samples[:, :313], times=times[:313], x0=start, return_state=True)
    assert off_by(torch.cat([first, model(samples[:, 313:], times=times[313:], state=state)], 1), y) <= FP64


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("way", get_args(AlgorithmName))
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_from_rest_from_x0_and_in_pieces(kind: str, hold: str, way: str) -> None:
    net, dt, steps = network_of(kind), 0.1, 150
    model = net.to_torch(dt, hold=hold, trainable=False)
    plan = Plan(way, 16)
    u, t = draw(net, 3, steps), dt * np.arange(steps)
    samples = torch.from_numpy(u)
    assert off_by(model(samples, plan=plan), net.simulate(u, t, hold=hold, coordinates="blocks").y) <= FP64
    x0 = np.random.default_rng(1).standard_normal((3, net.n_states))
    y = net.simulate(u, t, hold=hold, x0=x0, coordinates="blocks").y
    whole, end = model(samples, x0=torch.from_numpy(x0), plan=plan, return_state=True)
    assert off_by(whole, y) <= FP64
    first, state = model(samples[:, :67], x0=torch.from_numpy(x0), plan=plan, return_state=True)
    rest, last = model(samples[:, 67:], state=state, plan=plan, return_state=True)
    assert off_by(torch.cat([first, rest], 1), y) <= FP64
    assert off_by(last, end.numpy()) <= FP64


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_gives_the_record(kind: str) -> None:
    net, dt = network_of(kind), 0.1
    model = net.to_torch(dt, trainable=False)
    samples = torch.from_numpy(draw(net, 2, 40))
    state, outputs = None, []
    for k in range(40):
        y, state = model.step(samples[:, k], state)
        outputs.append(y)
    assert (
        off_by(torch.stack(outputs, 1), net.simulate(samples.numpy(), dt * np.arange(40), coordinates="blocks").y)
        <= FP64
    )


def test_a_state_that_grows_fast_is_not_lost_beside_its_input() -> None:
    net = ltinet.construct((np.array([[9.0, 0.0], [0.0, -1.0]]), np.ones((2, 1)), np.ones((1, 2))))
    u, x0 = draw(net, 8), np.array([1e-3, 1.0])
    model = net.to_torch(1.0, trainable=False)
    y = net.simulate(u, np.arange(8.0), x0=x0, coordinates="blocks").y
    got = model(torch.from_numpy(u), x0=torch.from_numpy(x0)).numpy()
    assert np.all(np.abs(got - y) <= 1e-13 * np.abs(y))  # at every time, however much larger later outputs are


def test_times_given_twice_are_jumps() -> None:
    net = network_of("pairs and reals")
    t = np.sort(np.concatenate([np.linspace(0.0, 5.0, 50), [1.0, 1.0, 3.3, 3.3]]))
    u = draw(net, len(t))
    for hold in ("linear", "zero"):
        model = net.to_torch(1.0, hold=hold, trainable=False)
        y = model(torch.from_numpy(u), times=torch.from_numpy(t))
        assert off_by(y, net.simulate(u, t, hold=hold, coordinates="blocks").y) <= FP64
