"""Parts with states: what a stack hands states to, and takes them from."""

from typing import Any

from torch import nn

from ltinet.learn.delayed_network import DelayedNetwork
from ltinet.learn.linear_network import LinearNetwork
from ltinet.nn.feedback import Feedback
from ltinet.nn.triangular import Triangular

_KINDS = (LinearNetwork, DelayedNetwork, Feedback, Triangular)


def is_dynamic(part: nn.Module) -> bool:
    """Whether a part has states; others are maps from samples to samples."""
    return isinstance(part, _KINDS)


def network_in(part: nn.Module) -> LinearNetwork[Any] | None:
    """The network whose states are those of a part, None for a map."""
    if isinstance(part, DelayedNetwork | Feedback | Triangular):
        return part.network
    return part if isinstance(part, LinearNetwork) else None
