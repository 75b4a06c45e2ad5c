"""Exported C and steppers in discrete time against the recurrence of the system in 400 bits: their bounds hold."""

from pathlib import Path

import numpy as np
import pytest

import ltinet
from data_sets import DATA_SETS
from discrete_oracle import random_system, recurrence, sampled_data_sets
from exported_runs import library_of
from ltinet.export.rounding import rounding_bound
from ltinet.export.step_model import build_step_model

N_STEPS = 200
_FAST_DATA_SETS = ("drum_boiler", "j100_jet_engine", "mr_demo")


def assert_bounds_hold(systems: dict[str, ltinet.StateSpace], place: Path, *, n_unknown: int = 0) -> None:
    """Run exported C and the stepper of each system on noise up to 1; some growing systems have no bound."""
    exports = {}
    for name, system in systems.items():
        net = ltinet.construct(system)
        exports[name] = net, net.export_c(place / name, prefix=name)
    library = library_of([place / name for name in systems], place)
    unknown = 0
    for number, (name, (net, export)) in enumerate(exports.items()):
        system = systems[name]
        u = np.random.default_rng(number).uniform(-1.0, 1.0, (N_STEPS, system.n_inputs))
        expected, bound = recurrence(system, u), np.array(export.error_bound)
        error = np.abs(library.run(name, u, system.n_outputs) - expected)
        assert (error <= bound).all(), f"{name}: C differs by {(error / bound).max():.2g} of its bound"
        unknown += bool(np.isinf(bound).any())
        stepper = net.stepper()
        stepped = np.abs(np.array([stepper.step(sample) for sample in u]) - expected)
        original = net._context.original
        model = build_step_model(original, system.dt, hold="zero", x0=None, by_increments=False)
        drift = rounding_bound(model, np.float64, n_steps=float(N_STEPS)).drift
        assert np.isfinite(drift).all()
        assert (stepped <= drift).all(), f"{name}: the stepper differs by {(stepped / drift).max():.2g} of its bound"
    assert unknown == n_unknown


def test_bounds_hold_for_sampled_data_sets(data_dir: Path, tmp_path: Path) -> None:
    """The steps include those at which A is 1e94 out of balance, and those at which its slow poles are near one."""
    assert_bounds_hold(sampled_data_sets(data_dir, _FAST_DATA_SETS), tmp_path)


@pytest.mark.slow
def test_bounds_hold_for_all_sampled_data_sets(data_dir: Path, tmp_path: Path) -> None:
    others = [name for name in DATA_SETS if name not in _FAST_DATA_SETS]
    assert_bounds_hold(sampled_data_sets(data_dir, others), tmp_path, n_unknown=2)


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 110), marks=pytest.mark.slow)], ids=["0 to 9", "10 to 109"]
)
def test_bounds_hold_for_random_systems(seeds: range, tmp_path: Path) -> None:
    assert_bounds_hold({f"seed{seed}": random_system(seed) for seed in seeds}, tmp_path)


def test_differences_are_decomposed(data_dir: Path) -> None:
    """With fast sampling C keeps the digits of slow modes, which errors relative to ‖A‖ = 1 would hide."""
    net = ltinet.construct(sampled_data_sets(data_dir, ["drum_boiler"])["drum_boiler_0_3"])
    u = np.random.default_rng(1).uniform(-1.0, 1.0, (N_STEPS, net.n_inputs))
    expected = recurrence(net.system, u)
    blocks = net.simulate(u, coordinates="blocks").y
    assert np.abs(blocks - expected).max() <= 1e-12 * np.abs(expected).max()  # 5e-11 by the eigenvalues of A itself
    assert net.form is not None
    assert np.array_equal(net.form.original, net.system.A)
    assert net.form.backward_error < 1e-13
    curve = ltinet.condition_tradeoff(net.system)
    assert np.allclose(
        np.sort_complex(np.concatenate(curve[-1].form.eigenvalues)), np.sort_complex(net.poles()), atol=1e-12
    )
