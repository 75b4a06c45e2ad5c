"""Networks that learn, in PyTorch: `from ltinet import nn`; `net.to_torch(dt)` gives the first of them."""

from ltinet.learn.door import require_torch

require_torch()

from ltinet.learn.linear_network import LinearNetwork  # noqa: E402 - without PyTorch the error above says what to do

__all__ = ["LinearNetwork"]
