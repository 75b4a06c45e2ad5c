"""Invalid arguments and checkpoints of `nn.fit` raise errors before anything is changed."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ltinet
from ltinet import nn
from ltinet.nn import fitting

DT = 0.1
NET = ltinet.construct(([[-0.2, 2.0], [-2.0, -0.2]], [[1.0], [0.0]], [[1.0, 0.0]]))


def data(steps: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(steps)
    return rng.standard_normal((steps, 1)), rng.standard_normal((steps, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"warmup": 60}, r"data\[0\] has 1 x 60 samples, of which the first 60 are warm-up"),
        ({"warmup": -1}, "warmup must be a number of samples, got -1"),
        ({"warmup": 40, "validation": data(30)}, r"validation\[0\] has 1 x 30 samples"),
        ({"warmup": 20, "window": 20}, "window is 20 and warmup 20, which leaves no samples"),
        ({"validation": []}, "validation is empty"),
    ],
)
def test_records_shorter_than_warmup_raise(options: dict[str, object], message: str) -> None:
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        nn.fit(NET.to_torch(DT), data(), **options)


@pytest.mark.parametrize("name", ["steps", "window", "n_windows", "every", "patience"])
@pytest.mark.parametrize("count", [0, -3, 1.5, True])
def test_invalid_counts_raise(name: str, count: object) -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match=rf"{name} must be an integer of at least 1, got {count!r}"):
        nn.fit(NET.to_torch(DT), data(), **{name: count})


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (torch.nn.Linear(1, 1), {}, "model is a Linear that"),
        (NET, {}, "model is a DynamicNetwork that"),
        (NET.to_torch(DT), {"lr": 0.0}, "lr must be a positive number, got 0.0"),
        (NET.to_torch(DT), {"lr": float("nan")}, "lr must be a positive number, got nan"),
        (NET.to_torch(DT), {"resume": True}, "requires a checkpoint"),
    ],
)
def test_invalid_models_and_options_raise(model: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match=message):
        nn.fit(model, data(), **options)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ((data()[0] + 1j, data()[1]), "complex"),
        ((["a"], ["b"]), "arrays of numbers"),
        (([[1.0], [1.0, 2.0]], [1.0, 2.0]), "arrays of numbers"),
        (data()[0], r"give a pair \(u, y\)"),
        ((data()[0].T, data()[1].T), r"inputs \(1, 1, 60\)"),
        ((np.zeros((0, 1)), np.zeros((0, 1))), "no samples are left"),
    ],
)
def test_invalid_records_raise(record: object, message: str) -> None:
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        nn.fit(NET.to_torch(DT), record)


def test_records_are_weighted_by_samples() -> None:
    model, (long, short) = NET.to_torch(DT), (data(80), data(20))
    history = nn.fit(model, [long, short], steps=1, method="lm", validation=data(200))
    outputs = np.concatenate([long[1], short[1]])
    errors = [NET.to_torch(DT)(torch.from_numpy(u)).detach().numpy() - y for u, y in (long, short)]
    assert history.train[0] == pytest.approx(np.sqrt(np.mean(np.concatenate(errors) ** 2)) / outputs.std(), rel=1e-12)


def foreign(kind: str, path: Path) -> str:
    """Write a file that is no checkpoint of the fit below, and say what is to be told of it."""
    if kind == "model":
        nn.save(NET.to_torch(DT), path)
        return "not a checkpoint of this method"
    nn.fit(NET.to_torch(0.2 if kind == "step" else DT), data(), steps=2, every=1, checkpoint=path)
    if kind == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
        return "not a readable safetensors"
    if kind == "text":
        path.write_text("steps = 7")
        return "not a readable safetensors"
    if kind == "other":
        nn.fit(nn.wiener(NET.to_torch(DT), nn.Polynomial(1)), data(), steps=1, method="lm", checkpoint=path)
    return "not a checkpoint of this method" if kind == "method" else "checkpoint of another model"


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("kind", ["model", "step", "truncated", "text", "other", "method"])
def test_foreign_checkpoint_raises(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.safetensors"
    message = foreign(kind, path)
    model = NET.to_torch(DT)
    before = {name: own.clone() for name, own in model.state_dict().items()}
    with pytest.raises(ltinet.FileFormatError, match=message):
        nn.fit(model, data(), method="lm", steps=3, checkpoint=path, resume=True)
    assert all(torch.equal(own, before[name]) for name, own in model.state_dict().items())


def test_interrupted_fit_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, options = tmp_path / "fit.safetensors", {"steps": 12, "every": 2}
    whole = NET.to_torch(DT)
    expected = nn.fit(whole, data(), **options)
    model = NET.to_torch(DT)
    steps = []

    def interrupts(*_: object) -> bool:
        steps.append(1)
        if len(steps) == 7:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(fitting._FitRun, "_is_finite", interrupts)
    with pytest.raises(KeyboardInterrupt):
        nn.fit(model, data(), checkpoint=path, **options)
    monkeypatch.undo()
    history = nn.fit(NET.to_torch(DT), data(), checkpoint=path, resume=True, **options)
    np.testing.assert_allclose(history.train, expected.train, rtol=1e-12)


def test_invalid_initial_data_raise() -> None:
    with pytest.raises(
        ltinet.InvalidNetworkError, match=r"result is a DynamicNetwork; give the result of ltinet\.identify"
    ):
        nn.from_identified(NET)
    u, y = data()
    with pytest.raises(ltinet.InvalidSignalError, match="y is a ndarray; give a tensor"):
        nn.initial_state(NET.to_torch(DT), torch.from_numpy(u), y)
    with pytest.raises(ltinet.InvalidSignalError, match="u is a ndarray"):
        nn.initial_state(NET.to_torch(DT), u, torch.from_numpy(y))
