"""Hypothesis: an exported graph computes what simulate does, whole or in pieces, and onnx finds no fault with it."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltinet
from data_sets import DATA_SETS
from exported_runs import Run, assert_same_run, data_set_runs, hostile_runs, share_of_peak
from ltinet.export.rounding import rounding_bound
from ltinet.export.step_model import build_exported_model, validate_settings

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


class Served:
    """An exported network in onnxruntime, on one thread."""

    def __init__(self, run: Run, path: Path, **options: Any) -> None:
        self.export = run.net.export_onnx(path, **run.options, **options)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.log_severity_level = 1, 3
        self._session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self._kind = np.float32 if options.get("dtype") == "float" else np.float64
        self.start = np.array(self.export.manifest["initial state"])

    def run(self, u: np.ndarray, state: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        state = np.tile(self.start, (len(u), 1)) if state is None else state
        y, after = self._session.run(None, {"u": u.astype(self._kind), "state": state.astype(self._kind)})
        return y.astype(np.float64), after


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the network is unstable")
def test_hostile_systems(tmp_path):
    for name, run in hostile_runs(range(24), n_steps=2000).items():
        y, _ = Served(run, tmp_path / "net.onnx").run(run.u[None])
        assert_same_run(y[0], run, name=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the network is unstable")
def test_data_sets(tmp_path, data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    for name, run in data_set_runs(data_dir, DATA_SETS, n_steps=10_000).items():
        if name.endswith(("zero_x0", "linear_rest")):
            y, _ = Served(run, tmp_path / "net.onnx").run(run.u[None])
            assert_same_run(y[0], run, name=name)


@pytest.fixture(params=["zero", "linear"])
def mixed_run(request, mixed_net) -> Run:
    u = np.random.default_rng(0).standard_normal((99_991, 2))
    return Run(mixed_net, 0.125, request.param, u, np.arange(10.0))


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_any_number_of_samples(off, mixed_run, tmp_path):
    served = Served(mixed_run, tmp_path / "net.onnx")
    chunk = served.export.manifest["samples in a chunk"]
    expected = mixed_run.simulated()
    for count in (1, chunk + off, 2 * chunk + off, 99_991):
        y, _ = served.run(mixed_run.u[None, :count])
        assert y.shape == (1, count, 3)
        assert share_of_peak(y[0], expected[:count]) < 1e-12


def test_pieces_and_batches_equal_the_whole(mixed_run, tmp_path):
    served = Served(mixed_run, tmp_path / "net.onnx")
    u = mixed_run.u[:3000].reshape(3, 1000, 2)
    whole, end = served.run(u)
    pieces, state = [], None
    for first, last in ((0, 1), (1, 2), (2, 300), (300, 301), (301, 999), (999, 1000)):
        y, state = served.run(u[:, first:last], state)
        pieces.append(y)
    np.testing.assert_allclose(np.concatenate(pieces, axis=1), whole, rtol=0, atol=1e-12 * np.abs(whole).max())
    np.testing.assert_allclose(state, end, rtol=0, atol=1e-12 * np.abs(end).max())
    for member in range(3):
        alone, _ = served.run(u[member : member + 1])
        np.testing.assert_allclose(alone[0], whole[member], rtol=0, atol=1e-13 * np.abs(whole).max())


def test_pieces_and_batches_of_nothing(mixed_run, tmp_path):
    served = Served(mixed_run, tmp_path / "net.onnx")
    y, state = served.run(mixed_run.u[None, :0])
    assert y.shape == (1, 0, 3)
    np.testing.assert_array_equal(state[0], served.start)
    first, _ = served.run(mixed_run.u[None, :40])
    again, state = served.run(mixed_run.u[None, :40], state)
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(served.run(mixed_run.u[None, :0], state)[1], state)
    y, state = served.run(mixed_run.u[None, :200].repeat(0, axis=0))
    assert y.shape == (0, 200, 3)
    assert len(state) == 0


def test_single_precision_stays_below_its_bound(mixed_run, tmp_path):
    served = Served(mixed_run, tmp_path / "net.onnx", dtype="float")
    run = Run(mixed_run.net, 0.125, mixed_run.hold, mixed_run.u[:5000].astype(np.float32).astype(float), mixed_run.x0)
    y, _ = served.run(run.u[None])
    settings = validate_settings(run.dt, hold=run.hold, dtype="float", x0=run.x0)
    model = build_exported_model(run.net._context, settings, by_increments=False)
    width = served.export.manifest["samples in a chunk"]
    bound = rounding_bound(model, np.float32, n_steps=5000, peak=np.abs(run.u).max(axis=0), samples_at_once=width)
    assert np.all(np.abs(y[0] - run.simulated()).max(axis=0) <= bound.drift)


@pytest.mark.parametrize(("n", "m"), [(0, 2), (2, 0), (1, 1)], ids=["static gain", "no input", "one state"])
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_odd_sizes(n, m, hold, tmp_path):
    net = ltinet.construct(ltinet.StateSpace(-np.eye(n), np.ones((n, m)), np.ones((1, n)), np.ones((1, m))))
    run = Run(net, 0.1, hold, np.random.default_rng(0).standard_normal((50, m)), np.ones(n) if n else None)
    y, _ = Served(run, tmp_path / "net.onnx").run(run.u[None])
    assert share_of_peak(y[0], run.stepped()) < 1e-12


def test_the_file_is_checked_small_and_says_what_it_is(mixed_run, tmp_path):
    Served(mixed_run, tmp_path / "net.onnx")
    written = onnx.load(tmp_path / "net.onnx")
    onnx.checker.check_model(written, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(written, strict_mode=True, data_prop=True)
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in [*inferred.graph.input, *inferred.graph.output]
    }
    size = 10 + (mixed_run.hold == "linear")
    assert shapes["u"] == ["batch", "time", 2]
    assert shapes["y"] == ["batch", "time", 3]
    assert shapes["state"] == shapes["next_state"] == ["batch", size]
    assert len(written.graph.node) < 120
    facts = json.loads(written.metadata_props[0].value)
    assert facts["inputs"] == ["Force (N)", "int"]
    assert facts["opset"] == written.opset_import[0].version == 17


def test_equal_networks_give_equal_bytes(tmp_path):
    for name in ("one", "two"):
        net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))
        net.export_onnx(tmp_path / f"{name}.onnx", 0.1)
    one, two = ((tmp_path / f"{name}.onnx").read_bytes() for name in ("one", "two"))
    assert one == two


def test_refusals(tmp_path, mixed_net, monkeypatch):
    with pytest.raises(ltinet.FileFormatError, match=r"does not end in \.onnx"):
        mixed_net.export_onnx(tmp_path / "net.pb", 0.1)
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        mixed_net.export_onnx(tmp_path / "missing" / "net.onnx", 0.1)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ltinet.MissingDependencyError, match=r"ltinet\[onnx\]"):
        mixed_net.export_onnx(tmp_path / "net.onnx", 0.1)
    assert list(tmp_path.iterdir()) == []
