"""Hypothesis: `ltinet connect` gives the network of the interconnection that its file describes, or one clear error."""

from pathlib import Path

import numpy as np
import pytest
from processes import Run

import ltinet

LOOP = """
[systems]
plant = "plant.npz"
controller = {kp = 2.0, ki = 0.5}
sensor = {num = [1], den = [0.1, 1], inputs = ["y"]}
filter = {zeros = [], poles = [-2.0], gain = 2.0}
error = {sum = ["r", "-y"], output = "e"}

[connections]
"controller.u1" = "error.e"
"plant.u1" = ["controller.y1", "filter.y1"]
"sensor.y" = "plant.y1"
"error.y" = "sensor.y1"

[inputs]
r = "error.r"
d = "filter.u1"

[outputs]
y = "plant.y1"
u = ["controller.y1", "filter.y1"]
"""


@pytest.fixture
def loop(folder: Path) -> Path:
    (folder / "loop").mkdir()
    ltinet.save_system(ltinet.tf([2], [10, 1]), folder / "loop" / "plant.npz")
    (folder / "loop" / "loop.toml").write_text(LOOP, encoding="utf-8")
    return folder / "loop" / "loop.toml"


@pytest.mark.usefixtures("loop")
def test_the_network_is_that_of_the_closed_loop(run_here: Run, folder: Path) -> None:
    result = run_here("connect", "loop/loop.toml", "-o", "closed.safetensors")
    assert (result.code, result.err) == (0, b"")
    net = ltinet.load(folder / "closed.safetensors")
    assert (net.input_names, net.output_names) == (("r", "d"), ("y", "u"))
    for s in 1j * np.geomspace(1e-3, 1e2, 9):
        P, C, F, H = 2 / (10 * s + 1), 2 + 0.5 / s, 2 / (s + 2), 1 / (0.1 * s + 1)
        closed = np.array([[P * C, P * F], [C, F]]) / (1 + P * C * H)
        np.testing.assert_allclose(net.frequency_response([s.imag])[0], closed, rtol=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"plant.npz"', '"missing.npz"', "missing.npz"),
        ('"plant.npz"', "3", "must be a file or a table"),
        ('"plant.npz"', "{num = [1]}", "accepted are {num, den}"),
        ('"plant.npz"', "{num = [1], den = [1, 1], gain = 2}", "unexpected keyword argument 'gain'"),
        ('"plant.npz"', "{file = 3}", "must be the name of a file"),
        ('"plant.npz"', "{num = [1], den = [1, 1], input_delay = 1.0}", "pade = 4 in their tables"),
        (
            '"plant.npz"',
            "{num = [1], den = [1, 1], input_delay = 1.0, pade = 0}",
            "pade must be an integer between 1 and 20",
        ),
        ('"plant.npz"', "{num = [1, 0, 0], den = [1, 1]}", "improper"),
        ('"plant.y1"\n"error.y"', '"plant.y9"\n"error.y"', "plant has no output 'y9'"),
        ("[inputs]", "[input]", "inputs"),
        ('[inputs]\nr = "error.r"\nd = "filter.u1"', "", "no table [inputs]"),
        ("[outputs]", "[outputs", "is not a TOML file"),
        ('"controller.u1" = "error.e"', "", "no source is connected to controller.u1"),
    ],
)
def test_mistakes_are_named(run_here: Run, folder: Path, loop: Path, old: str, new: str, message: str) -> None:
    assert old in LOOP
    loop.write_text(LOOP.replace(old, new), encoding="utf-8")
    result = run_here("connect", "loop/loop.toml", "-o", "closed.safetensors")
    assert result.code == 2
    assert message in result.err.decode()
    assert result.err.count(b"\n") == 1
    assert not (folder / "closed.safetensors").exists()


@pytest.mark.parametrize(
    "entry", ["{num = [2], den = [10, 1], input_delay = 1.5, pade = 3}", '{file = "d.npz", pade = 3}']
)
def test_dead_times_become_pade_approximants(run_here: Run, folder: Path, loop: Path, entry: str) -> None:
    delayed = ltinet.tf([2], [10, 1], input_delay=1.5)
    ltinet.save_system(delayed, folder / "loop" / "d.npz")
    loop.write_text(LOOP.replace('"plant.npz"', entry), encoding="utf-8")
    result = run_here("connect", "loop/loop.toml", "-o", "closed.safetensors")
    assert result.code == 0
    net = ltinet.load(folder / "closed.safetensors")
    s = 0.3j
    P, C, F, H = ltinet.pade(delayed, 3)(s), 2 + 0.5 / s, 2 / (s + 2), 1 / (0.1 * s + 1)
    closed = np.array([[P * C, P * F], [C, F]]) / (1 + P * C * H)
    np.testing.assert_allclose(net.frequency_response([s.imag])[0], closed, rtol=1e-9)


def test_bytes_that_are_not_text_are_refused(run_here: Run, loop: Path) -> None:
    loop.write_bytes(b"\xff\xfe\x00" * 100)
    result = run_here("connect", "loop/loop.toml", "-o", "closed.safetensors")
    assert (result.code, b"is not a TOML file" in result.err) == (2, True)
