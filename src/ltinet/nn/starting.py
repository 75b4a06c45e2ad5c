"""Where models come from, and in which state they begin."""

from typing import Any

import torch
from torch import Tensor

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError
from ltinet.identified import Identified
from ltinet.learn.door import Parts
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.powers import rows_out
from ltinet.networks import construct


def from_identified(found: Identified, *, trainable: Parts = True) -> LinearNetwork[DynamicNetwork]:
    """The model of what `ltinet.identify` found, with its step and hold, for inputs and outputs less their offsets.

    Raises:
        InvalidNetworkError: an input comes late, which a network cannot show, or it was found in a frequency response,
            which knows no step of time.
    """
    if found.dt is None or found.hold is None:
        raise InvalidNetworkError(
            "this was found in a frequency response, which knows no step of time; give one: found.net.to_torch(dt)"
        )
    if any(found.delay):
        raise InvalidNetworkError(
            f"inputs come late by {found.delay} samples, which a network has no states for; shift them in the data"
        )
    return construct(found.system).to_torch(found.dt, hold=found.hold, trainable=trainable)


def initial_state(model: LinearNetwork[Any], u: Tensor, y: Tensor) -> Tensor:
    """The x0 `(…, n)` in the user's coordinates that explains the first samples best, by least squares.

    `u` and `y` are the first samples of a record, `(…, T, m)` and `(…, T, p)`; of several x0 the smallest in the
    model's own coordinates is taken.
    """
    with torch.no_grad():
        rows = rows_out(model.one_step(), u.shape[-2]).flatten(0, 1)
        unexplained = (y - model(u)).to(rows.dtype).flatten(-2)
        z = torch.linalg.lstsq(rows, unexplained.reshape(-1, rows.shape[0]).mT, driver="gelsd").solution.mT
        return (z @ model.to_user.mT).reshape(*u.shape[:-2], -1).to(y.dtype)
