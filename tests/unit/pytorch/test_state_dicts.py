"""Time steps and holds are part of a `state_dict`, and others are not loaded."""

import re
from pathlib import Path

import pytest
import torch

import ltinet
from ltinet import nn
from ltinet.errors import InvalidNetworkError

NET = ltinet.construct(([[-1.0, 2.0], [-2.0, -1.0]], [[1.0], [0.5]], [[1.0, 0.2]]))


def layer(hold: str = "zero") -> nn.StateSpaceLayer:
    return nn.StateSpaceLayer(2, 4, hold=hold)


@pytest.mark.parametrize(
    ("saved", "other", "message"),
    [
        (layer, lambda: layer("linear"), "is of a model with hold='zero', but this model has hold='linear'; construct"),
        (
            lambda: NET.to_torch(0.1),
            lambda: NET.to_torch(0.2),
            "is of a model with dt=0.1, hold='linear', but this model has dt=0.2, hold='linear'; construct",
        ),
        (
            lambda: nn.Stack(nn.Polynomial(1), NET.to_torch(0.1)),
            lambda: nn.Stack(nn.Polynomial(1), NET.to_torch(0.1, hold="zero")),
            "is of a model with dt=0.1, hold='linear', but this model has dt=0.1, hold='zero'; construct",
        ),
    ],
    ids=["hold of a layer", "dt of a network", "hold in a stack"],
)
def test_other_sampling_is_not_loaded(saved, other, message, tmp_path: Path) -> None:
    torch.save(saved().state_dict(), tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt", weights_only=True)
    saved().load_state_dict(state)
    with pytest.raises(InvalidNetworkError, match=re.escape(message)):
        other().load_state_dict(state)


@pytest.mark.parametrize("model", [layer, lambda: nn.Stack(nn.Polynomial(1), NET.to_torch(0.1))])
def test_state_dicts_without_sampling_are_loaded(model) -> None:
    state = {name: values for name, values in model().state_dict().items() if not name.endswith("_extra_state")}
    assert len(state) == len(model().state_dict()) - 1
    model().load_state_dict(state)


def test_state_dicts_have_tensors_only() -> None:
    assert all(isinstance(values, torch.Tensor) for values in nn.Stack(layer(), layer("linear")).state_dict().values())
