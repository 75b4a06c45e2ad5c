"""One model, one prediction: random delays, operating points and holds, after every way through Python."""

import pickle

import numpy as np
import pytest

import ltinet

COUNT = 60


def drawn(seed):
    """A random model with its step, input and initial state."""
    rng = np.random.default_rng(seed)
    n, m, p = rng.integers(1, 6), rng.integers(1, 4), rng.integers(1, 4)
    step = 10.0 ** rng.uniform(-2.0, 1.0)
    A = (rng.standard_normal((n, n)) - 2.0 * np.eye(n)) / step / 4.0
    delays = step * rng.choice([0.0, 0.0, 1e-6, 0.3, 1.0, 3.0, 4.62, 55.0], m + p)
    system = ltinet.StateSpace(
        A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m)) * rng.integers(0, 2),
        input_delay=delays[:m], output_delay=delays[m:], u0=rng.standard_normal(m) * rng.integers(0, 2),
        y0=100.0 * rng.standard_normal(p), hold=rng.choice(["linear", "zero"]), sample_time=step,
    )  # fmt: skip
    u = rng.standard_normal((COUNT, m)) + system.u0
    return system, step * np.arange(COUNT), u, rng.standard_normal(n) if seed % 2 else None


def predictions(seed, folder):
    """Outputs of one model by each of Python's ways out, the one of the network first."""
    system, t, u, x0 = drawn(seed)
    net, step = ltinet.construct(system), float(t[1])
    net.save(folder / "net.safetensors")
    ltinet.save_system(system, folder / "system.npz")
    ltinet.save_system(system, folder / "system.mat")
    # Samples at their own times, their values as a piecewise function and twice in a batch are the same input.
    own = ltinet.SampledSignal(t, u, hold=system.hold)
    sol = net.simulate(u, t, x0=x0)
    stepper = net.stepper(step, x0=x0)
    return {
        "network": sol.y,
        "system": system.simulate(u, t, x0=x0).y,
        "network file": ltinet.load(folder / "net.safetensors").simulate(u, t, x0=x0).y,
        "npz": ltinet.load_system(folder / "system.npz").simulate(u, t, x0=x0).y,
        "mat": ltinet.load_system(folder / "system.mat").simulate(u, t, x0=x0).y,
        "pickle": pickle.loads(pickle.dumps(net)).simulate(u, t, x0=x0).y,  # noqa: S301 - written here
        "signal": net.simulate(own, t, x0=x0).y,
        "batch": net.simulate(np.stack([u, u]), t, x0=x0).y[1],
        "stream": np.concatenate(list(net.simulate_stream([u[:11], u[11:]], step, x0=x0))),
        "stepper": np.array([stepper.step(own) for own in u]),
        "dense output": sol(t),
        "realization": net.to_state_space().simulate(u, t, x0=_in_neuron_states(net, x0)).y,
    }


def _in_neuron_states(net, x0):
    return None if x0 is None else net.simulate(None, [0.0, 1.0], x0=x0).neuron_states[0]


@pytest.mark.default_cases(12, rest="stress")
@pytest.mark.parametrize("seed", range(500))
def test_every_way_predicts_the_same(seed, tmp_path):
    found = predictions(seed, tmp_path)
    y = found.pop("network")
    for way, other in found.items():
        assert np.all(np.abs(other - y) <= 1e-9 * np.ptp(y, axis=0) + 4e-16 * np.abs(y).max(axis=0)), way
