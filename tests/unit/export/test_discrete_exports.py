"""Exports of models in discrete time: difference equations in C and ONNX."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ltinet
from exported_runs import library_of
from ltinet.errors import InvalidSignalError, InvalidSystemError


def oscillating() -> ltinet.StateSpace:
    A = np.array([[0.9, 0.3, 0.1, 0.0], [-0.3, 0.9, 0.0, 0.2], [0.0, 0.0, -0.7, 1.0], [0.0, 0.0, 0.0, 0.0]])
    B, C = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0]]), np.eye(4)[[0, 2]]
    return ltinet.StateSpace(0.98 * A, B, C, [[0.0, 0.5], [0.25, 0.0]], dt=0.05)


def defective() -> ltinet.StateSpace:
    """Double integrators beside a slow pole: single precision takes increments."""
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.9999]])
    return ltinet.StateSpace(A, [[0.0], [1e-3], [1e-3]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dt=0.05)


def delayed() -> ltinet.StateSpace:
    return oscillating().with_signal_settings(
        input_delay=[0.1, 0.0], output_delay=[0.0, 0.2], u0=[1.0, 2.0], y0=[3.0, 4.0]
    )


SYSTEMS = {"oscillating": oscillating, "defective": defective, "delayed": delayed}


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_c_agrees_with_the_stepper_within_its_bound(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(1)
    exports = {}
    for name, make in SYSTEMS.items():
        net = ltinet.construct(make())
        exports[name] = net, net.export_c(tmp_path / name, dtype=dtype, prefix=name)
    library = library_of([tmp_path / name for name in SYSTEMS], tmp_path)
    for name, (net, export) in exports.items():
        u = net.u0 + rng.uniform(-1.0, 1.0, (500, net.n_inputs)).astype(np.float32)
        u = u.astype(np.float32).astype(np.float64)
        y = library.run(name, u, net.n_outputs, dtype=dtype)
        stepper = net.stepper()
        expected = np.array([stepper.step(sample) for sample in u])
        # The bound is that of 1e8 steps in blocks; the stepper rounds too, and the decomposition is not counted.
        slack = 1e-12 * np.abs(expected).max(axis=0)
        assert (np.abs(y - expected) <= np.array(export.error_bound) + slack).all(), name
        assert np.abs(y - expected).max() <= (1e-11 if dtype == "double" else 2e-4) * np.abs(expected).max(), name
        assert export.manifest["hold"] == "none, discrete time"
        assert export.manifest["dt"] == 0.05


@pytest.mark.parametrize("make", SYSTEMS.values())
def test_onnx_agrees_with_the_stepper(tmp_path: Path, make: Callable[[], ltinet.StateSpace]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    net = ltinet.construct(make())
    export = net.export_onnx(tmp_path / "net.onnx")
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    u = net.u0 + np.random.default_rng(2).uniform(-1.0, 1.0, (300, net.n_inputs))
    start = np.array(export.manifest["initial state"])[None]
    first, state = session.run(["y", "next_state"], {"u": u[None, :120], "state": start})
    second, _ = session.run(["y", "next_state"], {"u": u[None, 120:], "state": state})
    expected = net.simulate(u).y
    assert np.abs(np.concatenate([first[0], second[0]]) - expected).max() <= 1e-11 * np.abs(expected).max()


def test_print_says_where_the_time_step_comes_from(tmp_path: Path) -> None:
    discrete = ltinet.construct(oscillating()).export_c(tmp_path / "discrete")
    assert "time step  0.05 (that of the model in discrete time)" in str(discrete)
    net = ltinet.construct(ltinet.named_system("heat_rod", n_states=3))
    for hold, text in (("zero", "constant between samples"), ("linear", "linear between samples")):
        assert f"time step  0.01, inputs {text}" in str(net.export_c(tmp_path / hold, 0.01, hold=hold))


def test_options_of_continuous_time_are_refused(tmp_path: Path) -> None:
    net = ltinet.construct(oscillating())
    with pytest.raises(InvalidSignalError, match=r"dt must be the time step 0\.05"):
        net.export_c(tmp_path / "other", 0.1)
    with pytest.raises(InvalidSignalError, match="discrete time"):
        net.export_onnx(tmp_path / "net.onnx", hold="linear")
    with pytest.raises(InvalidSystemError, match="to_continuous"):
        net.export_fmu(tmp_path / "net.fmu", 0.05)
    with pytest.raises(InvalidSignalError, match="dt is missing"):
        ltinet.construct(ltinet.named_system("heat_rod", n_states=3)).export_c(tmp_path / "rod")


def test_bound_of_a_known_recurrence(tmp_path: Path) -> None:
    """One mode 0.5 with outputs up to 2: the bound is a few roundings of two and not less than one."""
    net = ltinet.construct(ltinet.StateSpace([[0.5]], [[1.0]], [[1.0]], dt=1.0))
    bound = net.export_c(tmp_path / "half").error_bound[0]
    assert 2.0**-53 <= bound <= 40 * 2.0**-52


def test_scipy_and_control_objects_keep_the_time_step() -> None:
    net = ltinet.construct(oscillating())
    assert net.to_scipy().dt == 0.05
    control = pytest.importorskip("control")
    assert net.to_control().dt == 0.05
    assert isinstance(net.to_control(), control.StateSpace)
