"""Hypothesis: exported C computes what simulate does: twelve digits of the peak in double, below its bound in float."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import ltinet
from data_sets import DATA_SETS
from exported_runs import Library, Run, any_compiler, assert_same_run, compiled, data_set_runs, hostile_runs, library_of
from ltinet.export.rounding import rounding_bound
from ltinet.export.step_model import PRECISIONS, build_exported_model, validate_settings

N_HOSTILE = 24  # two of each family; `make export-agreement` runs 200


def exported(runs: dict[str, Run], place: Path, dtype: str) -> Library:
    folders = [place / f"m{number}" for number in range(len(runs))]
    for folder, run in zip(folders, runs.values(), strict=True):
        run.net.export_c(folder, dtype=dtype, prefix=folder.name, **run.options)
    return library_of(folders, place)


def bound(run: Run, dtype: str) -> np.ndarray:
    settings = validate_settings(run.dt, hold=run.hold, dtype=dtype, x0=run.x0)
    model = build_exported_model(run.net._context, settings)
    peak = np.abs(run.u).max(axis=0, initial=0.0)
    return rounding_bound(model, PRECISIONS[dtype], n_steps=len(run.u), peak=peak).drift


def assert_below_bound(y: np.ndarray, run: Run, name: str) -> None:
    limit = bound(run, "float")
    assert np.isfinite(limit).all(), name
    assert np.all(np.abs(y - run.simulated()).max(axis=0) <= limit), name


def in_float(run: Run) -> Run:
    """The same run with inputs that single precision holds."""
    return Run(run.net, run.dt, run.hold, run.u.astype(np.float32).astype(np.float64), run.x0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the network is unstable")
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_hostile_systems(dtype, tmp_path):
    runs = hostile_runs(range(N_HOSTILE), n_steps=2000)
    library = exported(runs, tmp_path, dtype)
    for number, (name, run) in enumerate(runs.items()):
        own = in_float(run) if dtype == "float" else run
        y = library.run(f"m{number}", own.u, run.net.n_outputs, dtype=dtype)
        if dtype == "double":
            assert_same_run(y, own, name=name)
        else:
            assert_below_bound(y, own, name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the network is unstable")
@pytest.mark.parametrize("dtype", ["double", "float"])
def test_data_sets(dtype, tmp_path, data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    runs = {
        name: run
        for name, run in data_set_runs(data_dir, DATA_SETS, n_steps=10_000).items()
        if name.endswith(("zero_x0", "linear_rest"))
    }
    library = exported(runs, tmp_path, dtype)
    for number, (name, run) in enumerate(runs.items()):
        own = in_float(run) if dtype == "float" else run
        y = library.run(f"m{number}", own.u, run.net.n_outputs, dtype=dtype)
        if dtype == "double":
            assert_same_run(y, own, name=name)
        else:
            assert_below_bound(y, own, name)


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_every_kind_of_block(hold, tmp_path, mixed_net):
    run = Run(mixed_net, 0.125, hold, np.random.default_rng(0).standard_normal((3000, 2)), np.ones(10))
    y = exported({"m": run}, tmp_path, "double").run("m0", run.u, 3)
    assert_same_run(y, run, name=hold)


def test_a_slow_mode_in_single_precision_reaches_its_end(tmp_path):
    """Without compensation the increments of λh = 1e-6 are lost beside a state that has come 0.970 of its way."""
    net = ltinet.construct(ltinet.StateSpace([[-1e-6]], [[1e-6]], [[1.0]]))
    u = np.ones((2**22, 1))
    run = Run(net, 1.0, "zero", u, None)
    y = exported({"m": run}, tmp_path, "float").run("m0", u, 1, dtype="float")
    truth = -np.expm1(-1e-6 * np.arange(len(u)))
    assert np.abs(y[:, 0] - truth).max() <= bound(run, "float")[0] < 1e-5


def test_states_are_set_read_and_kept_apart(tmp_path, mixed_net):
    folder = tmp_path / "model"
    mixed_net.export_c(folder, 0.125, hold="linear", user_states=True, x0=np.arange(10.0))
    target = tmp_path / "model.so"
    compiled(any_compiler(), ["-std=c99", "-shared", "-fPIC", "-o", target, folder / "model.c"])
    library, room = ctypes.CDLL(str(target)), ctypes.create_string_buffer
    u = np.random.default_rng(1).standard_normal((50, 2))
    one, other, y, x, z = room(4096), room(4096), np.zeros(3), np.zeros(10), np.zeros(10)
    pointers = [ctypes.c_void_p(own.ctypes.data) for own in (y, x, z)]
    stepper = mixed_net.stepper(0.125, hold="linear", x0=np.arange(10.0))
    for state in (one, other):
        library.model_init(state)
    library.model_get_user_state(one, pointers[1])
    np.testing.assert_allclose(x, np.arange(10.0), atol=1e-12)
    for sample in u:
        library.model_step(one, ctypes.c_void_p(sample.ctypes.data), pointers[0])
        expected = stepper.step(sample)
        np.testing.assert_allclose(y, expected, atol=1e-12 * np.abs(expected).max())
    library.model_get_user_state(one, pointers[1])
    np.testing.assert_allclose(x, stepper.x, atol=1e-11)
    library.model_get_state(one, pointers[2])
    saved, last = z.copy(), room(one.raw)
    library.model_step(last, ctypes.c_void_p(u[0].ctypes.data), pointers[0])
    expected = y.copy()
    library.model_set_state(one, ctypes.c_void_p(saved.ctypes.data))
    library.model_step(one, ctypes.c_void_p(u[0].ctypes.data), pointers[0])
    np.testing.assert_allclose(y, expected, rtol=1e-14)
    library.model_get_user_state(other, pointers[1])
    np.testing.assert_allclose(x, np.arange(10.0), atol=1e-12)
    library.model_reset(one)
    library.model_get_user_state(one, pointers[1])
    np.testing.assert_allclose(x, np.arange(10.0), atol=1e-12)
