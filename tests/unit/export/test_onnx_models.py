"""Hypothesis: models of ltinet.nn without feedback become graphs that compute what they do in PyTorch."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltinet
from learnt_systems import KINDS, network_of, off_by

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install ltinet[torch]")
onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
from ltinet import nn  # noqa: E402

DT = 0.2
# Sums of about a hundred products in each of two networks: their roundings, which go either way, amount to a few units.
SINGLE = 32.0 * float(np.finfo(np.float32).eps)

MAPS: dict[str, Callable[[int], Any]] = {
    "polynomial": lambda channels: nn.Polynomial(channels, 3, scale=8.0),
    "line": lambda channels: nn.Polynomial(channels, 1),
    "spline": lambda channels: nn.Spline(channels, 6, low=-3.0, high=2.0),
    "mlp": lambda channels: nn.MLP(channels, channels, hidden=5),
    "monotone": lambda channels: nn.Monotone(channels, 5, low=[-3.0 + own for own in range(channels)], high=4.0),
}


def trained(model: Any, seed: int) -> Any:
    """The same model as if it had been trained: every parameter moved at random."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for own in model.parameters():
            own.add_(0.2 * torch.randn(own.shape, generator=draw, dtype=own.dtype))
    return model


def network(kind: str, m: int, p: int, *, seed: int, hold: str = "zero") -> Any:
    return network_of(kind, n_inputs=m, n_outputs=p, seed=seed).to_torch(DT, hold=hold)


def models(seed: int) -> dict[str, Any]:
    """One of each form, with maps, kinds of blocks and holds in turn."""
    rng = np.random.default_rng(seed)
    kinds = list(rng.permutation(["pairs and reals", "coupled", "nearly real pair"]))
    first, second, third = (MAPS[name] for name in rng.permutation(list(MAPS))[:3])
    one = network(kinds[0], 2, 3, seed=seed, hold="linear")
    two = network(kinds[1], 3, 1, seed=seed + 10, hold="zero")
    three = network(kinds[2], 1, 2, seed=seed + 20, hold="linear")
    found = {
        "Hammerstein": nn.hammerstein(first(2), one),
        "Wiener": nn.wiener(one, second(3)),
        "Wiener–Hammerstein": nn.wiener_hammerstein(one, third(3), two),
        "stack": nn.Stack(first(2), one, two, second(1), nn.Stack(third(1), three), nn.MLP(2, 4)),
        "network": network("integrators", 2, 2, seed=seed, hold="linear"),
    }
    return {name: trained(model, seed) for name, model in found.items()}


class Served:
    """A model in onnxruntime, on one thread."""

    def __init__(self, model: Any, path: Path, **options: Any) -> None:
        self.export = nn.export_onnx(model, path, **options)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.log_severity_level = 1, 4
        self._session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        self._kind = np.float32 if options.get("dtype") == "float" else np.float64
        self.start = np.array(self.export.manifest["initial state"])

    def run(self, u: np.ndarray, state: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        state = np.tile(self.start, (len(u), 1)) if state is None else state
        y, after = self._session.run(None, {"u": u.astype(self._kind), "state": state.astype(self._kind)})
        return y, after


def samples(count: int, *, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((2, count, 2)).astype(np.float32).astype(np.float64)


def expected(model: Any, u: np.ndarray, **given: Any) -> np.ndarray:
    with torch.no_grad():
        return model(torch.from_numpy(u), **given).numpy()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:the network is unstable")
def test_the_graph_computes_what_the_model_does(seed, tmp_path):
    u = samples(700, seed=seed)
    for name, model in models(seed).items():
        y = expected(model, u)
        for dtype, allowed in (("double", 1e-12), ("float", SINGLE)):
            found, _ = Served(model, tmp_path / "model.onnx", dtype=dtype).run(u)
            assert found.dtype == (np.float64 if dtype == "double" else np.float32)
            assert off_by(found, y) <= allowed, (name, dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:the network is unstable")
def test_every_kind_of_block_from_x0(kind, tmp_path):
    """A map that bounds what it gives keeps unstable networks from leaving the numbers."""
    first, last = network(kind, 2, 2, seed=1, hold="linear"), network(kind, 2, 1, seed=2)
    model, u = nn.Stack(first, MAPS["mlp"](2), last), samples(150, seed=3)
    starts = [np.random.default_rng(4).standard_normal(part.n_states) for part in (first, last)]
    served = Served(model, tmp_path / "model.onnx", x0=[starts[0], None, torch.from_numpy(starts[1])])
    given = [torch.from_numpy(np.tile(start, (2, 1))) for start in starts]
    assert off_by(served.run(u)[0], expected(model, u, x0=(given[0], None, given[1]))) <= 1e-12


def test_pieces_equal_the_whole(tmp_path):
    model, u = models(1)["stack"], samples(300, seed=5)
    served = Served(model, tmp_path / "model.onnx")
    whole, end = served.run(u)
    pieces, state = [], None
    for piece in np.split(u, [0, 1, 2, 2, 130, 299], axis=1):
        y, state = served.run(piece, state)
        pieces.append(y)
    assert off_by(np.concatenate(pieces, axis=1), whole) <= 1e-12
    assert state is not None
    np.testing.assert_allclose(state, end, rtol=0, atol=1e-12 * np.abs(end).max())
    y, state = served.run(u[:0])
    assert y.shape == (0, 300, 4)


def test_the_manifest_knows_the_model(tmp_path):
    model = models(0)["Wiener–Hammerstein"]
    written = nn.export_onnx(model, tmp_path / "one.onnx")
    nn.save(model, tmp_path / "model.safetensors")
    nn.export_onnx(nn.load(tmp_path / "model.safetensors"), tmp_path / "two.onnx")
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
    facts = json.loads(onnx.load(tmp_path / "one.onnx").metadata_props[0].value)
    assert facts == dict(written.manifest)
    assert facts["network"]["sha256"].encode() in (tmp_path / "model.safetensors").read_bytes()
    assert [part["kind"] for part in facts["parts"]] == ["network", type(model.parts[1]).__name__, "network"]
    assert (facts["dt"], facts["hold"], facts["inputs"]) == (DT, "of each part", ["u1", "u2"])
    assert written.error_bound == (np.inf,)
    onnx.checker.check_model(onnx.load(tmp_path / "one.onnx"), full_check=True)


def test_a_network_alone_is_exported_as_a_network_is(tmp_path):
    model = network("coupled", 2, 2, seed=0)
    written = nn.export_onnx(model, tmp_path / "model.onnx")
    assert max(written.error_bound) < 1e-9
    assert set(written.manifest) == set(model.to_network().export_onnx(tmp_path / "net.onnx", DT).manifest)


def refused() -> dict[str, tuple[Any, dict[str, Any], str]]:
    linear = network("coupled", 1, 1, seed=0)
    feedback = nn.Feedback(network("coupled", 2, 2, seed=0), nn.Polynomial(1, start="zero"))
    return {
        "feedback": (feedback, {}, "a Feedback solves an equation at every sample, for which ONNX has no node"),
        "feedback in a stack": (nn.Stack(linear, feedback), {}, "for which ONNX has no node"),
        "another module": (torch.nn.ReLU(), {}, "a ReLU cannot be exported to ONNX"),
        "no network": (nn.Stack(nn.Polynomial(1)), {}, "the model contains no network"),
        "two steps": (nn.Stack(linear, linear.at(0.5)), {}, "different time steps, 0.2 and 0.5"),
        "x0 for all": (nn.Stack(linear, nn.Polynomial(1)), {"x0": np.zeros(5)}, "x0 must be a list of 2"),
        "x0 of a map": (nn.Stack(linear, nn.Polynomial(1)), {"x0": [None, [1.0]]}, "a Polynomial has no state"),
        "short x0": (nn.Stack(linear, nn.Polynomial(1)), {"x0": [[1.0], None]}, "x0"),
        "precision": (nn.Stack(linear, nn.Polynomial(1)), {"dtype": "half"}, "dtype is 'half'"),
    }


@pytest.mark.parametrize("case", refused())
def test_refusals_are_one_line_and_leave_nothing(case, tmp_path):
    model, options, message = refused()[case]
    with pytest.raises(ltinet.LtinetError, match=message) as caught:
        nn.export_onnx(model, tmp_path / "model.onnx", **options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_onnx(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ltinet.MissingDependencyError, match=r"ltinet\[onnx\]"):
        nn.export_onnx(nn.Stack(network("coupled", 1, 1, seed=0), nn.Polynomial(1)), tmp_path / "model.onnx")


def test_the_warning_of_an_unstable_network_points_here(tmp_path):
    model = nn.Stack(network("unstable", 1, 1, seed=0), nn.Polynomial(1))
    with pytest.warns(UserWarning, match="the network is unstable") as caught:
        nn.export_onnx(model, tmp_path / "model.onnx")
    assert caught[0].filename == __file__
