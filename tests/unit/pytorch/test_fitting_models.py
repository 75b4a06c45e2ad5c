"""`nn.fit` recovers models, keeps the best validation error, and resumes."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ltinet
from learnt_systems import network_of
from ltinet import nn


def oscillator(decay: float, frequency: float, gain: float) -> ltinet.DynamicNetwork:
    A = np.array([[-decay, frequency], [-frequency, -decay]])
    return ltinet.construct((A, np.array([[1.0], [0.0]]), np.array([[gain, 0.0]])))


def record(model: torch.nn.Module, steps: int = 300, *, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    u = torch.from_numpy(np.random.default_rng(seed).standard_normal((steps, model.n_inputs)))
    with torch.no_grad():
        return u, model(u)


TRUE = oscillator(0.2, 2.0, 1.0)
DT = 0.1


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("method", "steps", "error"), [("lm", 15, 1e-9), ("lbfgs", 12, 1e-4), ("adam", 120, 0.1)])
def test_a_perturbed_oscillator_is_found_again(method: str, steps: int, error: float) -> None:
    model = oscillator(0.3, 2.1, 0.7).to_torch(DT)
    data, unseen = record(TRUE.to_torch(DT)), record(TRUE.to_torch(DT), seed=1)
    history = nn.fit(model, data, validation=unseen, method=method, steps=steps, lr=0.02 if method == "adam" else None)
    assert history.best <= error
    assert history.validation is not None
    assert history.train[0] > 0.3  # where it began
    if method == "lm":
        poles = model.to_network().poles()
        assert np.abs(poles.real + 0.2).max() <= 1e-8


def test_a_cubic_spring_is_found() -> None:
    A, B = np.array([[0.0, 1.0], [-1.0, -0.2]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    C = np.array([[1.0, 0.0], [1.0, 0.0]])

    def model(cubic: float) -> nn.Feedback:
        spring = nn.Polynomial(1, 3, start="zero")
        with torch.no_grad():
            spring.weights[2] = cubic
        return nn.Feedback(ltinet.construct((A, B, C)).to_torch(0.2, trainable=False), spring)

    found = model(0.0)
    history = nn.fit(found, record(model(-0.3), 40), method="lm", steps=5)
    torch.testing.assert_close(found.map.weights[:, 0], torch.tensor([0.0, 0.0, -0.3]).double(), rtol=0.0, atol=1e-6)
    assert history.best <= 1e-6


def test_a_wiener_model_learns_its_map() -> None:
    true = nn.wiener(TRUE.to_torch(DT), nn.Polynomial(1, 3))
    with torch.no_grad():
        true.parts[1].weights[2] = 0.2
    model = nn.wiener(TRUE.to_torch(DT, trainable=False), nn.Polynomial(1, 3))
    history = nn.fit(model, record(true), method="lbfgs", steps=10)
    assert history.best <= 1e-5


def test_windows_are_drawn_by_the_seed() -> None:
    data = record(TRUE.to_torch(DT))
    errors = [
        nn.fit(
            oscillator(0.3, 2.1, 0.7).to_torch(DT), data, steps=6, every=2, window=80, n_windows=3, warmup=30, seed=seed
        ).train
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(errors[0], errors[1])
    assert not np.array_equal(errors[0], errors[2])


def test_resume(tmp_path: Path) -> None:
    data, unseen = record(TRUE.to_torch(DT)), record(TRUE.to_torch(DT), seed=1)
    options = {"validation": unseen, "every": 2, "window": 80, "n_windows": 2}
    whole, halves = (oscillator(0.3, 2.1, 0.7).to_torch(DT) for _ in range(2))
    expected = nn.fit(whole, data, steps=12, **options)
    path = tmp_path / "fit.safetensors"
    nn.fit(halves, data, steps=6, checkpoint=path, **options)
    again = oscillator(0.3, 2.1, 0.7).to_torch(DT)
    history = nn.fit(again, data, steps=12, checkpoint=path, resume=True, **options)
    assert np.array_equal(history.steps, expected.steps)
    np.testing.assert_allclose(history.train, expected.train, rtol=1e-12)
    for one, other in zip(again.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_patience_and_best_parameters() -> None:
    model, data = TRUE.to_torch(DT), record(TRUE.to_torch(DT))
    start = [own.detach().clone() for own in model.parameters()]
    history = nn.fit(model, data, steps=50, every=1, patience=3, lr=0.05)
    assert (history.stopped, history.best_step, int(history.steps[-1])) == ("patience", 0, 3)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), start, strict=True))
    assert "error 0 at step 0 of 3" in str(history)


def test_invalid_fits_raise() -> None:
    model, data = TRUE.to_torch(DT), record(TRUE.to_torch(DT))
    with pytest.raises(ltinet.InvalidNetworkError, match="must be 'adam', 'lbfgs' or 'lm'"):
        nn.fit(model, data, method="sgd")
    with pytest.raises(ltinet.InvalidNetworkError, match="no trainable parameters"):
        nn.fit(TRUE.to_torch(DT, trainable=False), data)
    with pytest.raises(ltinet.InvalidSignalError, match="data is empty"):
        nn.fit(model, [])
    with pytest.raises(ltinet.InvalidSignalError, match=r"inputs \(1, 300, 1\) and outputs \(1, 299, 1\)"):
        nn.fit(model, (data[0], data[1][1:]))
    with pytest.raises(ltinet.InvalidSignalError, match="not finite"):
        nn.fit(model, (data[0], data[1] * float("nan")))


def test_the_history_draws_itself() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    history = nn.fit(oscillator(0.3, 2.1, 0.7).to_torch(DT), record(TRUE.to_torch(DT)), steps=3, every=1)
    axes = history.plot().axes[0]
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["training", f"kept: step {history.best_step}"]


def test_initial_state_from_first_samples() -> None:
    net = network_of("coupled")
    model = net.to_torch(DT, trainable=False)
    rng = np.random.default_rng(4)
    u, x0 = torch.from_numpy(rng.standard_normal((3, 50, 2))), torch.from_numpy(rng.standard_normal((3, net.n_states)))
    torch.testing.assert_close(nn.initial_state(model, u, model(u, x0=x0)), x0, rtol=1e-7, atol=1e-7)


def test_from_identified() -> None:
    u, y = record(TRUE.to_torch(DT), 400)
    found = ltinet.identify(u.numpy(), y.numpy(), dt=DT, order=2, hold="linear")
    model = nn.from_identified(found)
    assert (model.dt, model.hold) == (found.dt, "linear")
    core = found.system.with_signal_settings(u0=0, y0=0)  # a model for deviations
    expected = ltinet.construct(core).simulate(u.numpy(), DT * np.arange(400)).y
    np.testing.assert_allclose(model(u).detach().numpy(), expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())
