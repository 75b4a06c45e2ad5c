"""Invalid arguments of models raise one clear error each."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import ltinet
from learnt_systems import network_of

NET = network_of("pairs and reals")
MODEL = NET.to_torch(0.1)
U = torch.zeros(3, 20, 2, dtype=torch.float64)
N = NET.n_states
BAD_CALLS = {
    "no tensor": (np.zeros((20, 2)), {}, "is a ndarray; give a tensor"),
    "no time": (torch.zeros(2), {}, r"shape \(2,\)"),
    "no samples": (torch.zeros(0, 2), {}, r"shape \(0, 2\)"),
    "inputs": (torch.zeros(20, 3), {}, r"shape \(20, 3\).*2 inputs last"),
    "whole numbers": (torch.zeros(20, 2, dtype=torch.int64), {}, "torch.int64.*double"),
    "complex": (torch.zeros(20, 2, dtype=torch.complex128), {}, "complex128"),
    "device": (torch.zeros(20, 2, device="meta"), {}, "on meta but the model on cpu"),
    "sparse": (torch.zeros(20, 2).to_sparse(), {}, "dense tensor"),
    "NaN": (torch.full((20, 2), float("nan")), {}, "u has entries that are not finite"),
    "infinity": (torch.full((20, 2), float("inf")), {}, "u has entries that are not finite"),
    "state of another batch": (
        U,
        {"state": torch.zeros(4, N)},
        r"state has shape \(4, \d+\) but.*batch of shape \(3,\)",
    ),
    "state of another size": (U, {"state": torch.zeros(3, N + 1)}, f"must have {N} real numbers"),
    "state with NaN": (U, {"state": torch.full((3, N), float("nan"))}, "state has entries that are not finite"),
    "x0 as a list": (U, {"x0": [0.0] * N}, "x0 is a list"),
    "both": (U, {"x0": torch.zeros(N), "state": torch.zeros(3, N)}, "both state and x0"),
    "times of another length": (U, {"times": torch.arange(19.0)}, r"times have shape \(19,\) but u has 20 samples"),
    "times that descend": (U, {"times": -torch.arange(20.0)}, "times descend"),
    "times with NaN": (U, {"times": torch.full((20,), float("nan"))}, "times has entries that are not finite"),
    "whole times": (U, {"times": torch.arange(20)}, "times must be a floating-point tensor"),
    "even state at given times": (
        U,
        {"times": torch.arange(20.0), "state": torch.zeros(3, N)},
        "state of a run at given times",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_invalid_call_raises(case: str) -> None:
    u, options, message = BAD_CALLS[case]
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        MODEL(u, **options)


@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_step_raises(dt: float) -> None:
    with pytest.raises(ltinet.InvalidSignalError, match="dt is"):
        NET.to_torch(dt)
    with pytest.raises(ltinet.InvalidSignalError, match="dt is"):
        MODEL.at(dt)


def test_parts_and_holds_that_do_not_exist() -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match="'A'; choose from poles, held"):
        NET.to_torch(0.1, trainable=("A", "B"))
    with pytest.raises(ltinet.InvalidSignalError, match="hold"):
        NET.to_torch(0.1, hold="cubic")


def test_importing_ltinet_does_not_import_torch() -> None:
    script = "import sys, ltinet; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0  # noqa: S603


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ltinet.MissingDependencyError, match=r'pip install "ltinet\[torch\]"'):
        NET.to_torch(0.1)
