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


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("seed", range(60))
def test_every_way_predicts_the_same(seed, tmp_path):
    system, t, u, x0 = drawn(seed)
    net, step = ltinet.construct(system), float(t[1])
    sol = net.simulate(u, t, x0=x0)
    net.save(tmp_path / "net.safetensors")
    ltinet.save_system(system, tmp_path / "system.npz")
    ltinet.save_system(system, tmp_path / "system.mat")
    # Samples at their own times, their values as a piecewise function and twice in a batch are the same input.
    own = ltinet.SampledSignal(t, u, hold=system.hold)
    runs = [
        system.simulate(u, t, x0=x0),
        ltinet.load(tmp_path / "net.safetensors").simulate(u, t, x0=x0),
        ltinet.load_system(tmp_path / "system.npz").simulate(u, t, x0=x0),
        ltinet.load_system(tmp_path / "system.mat").simulate(u, t, x0=x0),
        pickle.loads(pickle.dumps(net)).simulate(u, t, x0=x0),  # noqa: S301 - written here
        net.simulate(own, t, x0=x0),
    ]
    bound = sol.error_bound()
    for other in runs:
        assert np.all(np.abs(other.y - sol.y) <= bound + other.error_bound())
    batch = net.simulate(np.stack([u, u]), t, x0=x0).y
    streamed = np.concatenate(list(net.simulate_stream([u[:11], u[11:]], step, x0=x0)))
    size = 1e-9 * max(1.0, float(np.ptp(sol.y)))
    assert np.all(np.abs(batch - sol.y) <= bound + size)
    assert np.all(np.abs(streamed - sol.y) <= bound + size)
    assert np.all(np.abs(sol(t) - sol.y) <= 2.0 * bound + size)
