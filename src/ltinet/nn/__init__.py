"""Networks that learn, in PyTorch: `from ltinet import nn`; `net.to_torch(dt)` gives the first of them."""

from ltinet.torch.api import require_torch

require_torch()  # without PyTorch its error says what to do

from ltinet.nn.feedback import Feedback  # noqa: E402
from ltinet.nn.fitting import History, fit  # noqa: E402
from ltinet.nn.initialization import from_identified, initial_state  # noqa: E402
from ltinet.nn.maps import MLP, Monotone, Polynomial, Spline  # noqa: E402
from ltinet.nn.onnx_export import export_onnx  # noqa: E402
from ltinet.nn.serialization import load, save  # noqa: E402
from ltinet.nn.stack import Stack, hammerstein, wiener, wiener_hammerstein  # noqa: E402
from ltinet.nn.state_space_layer import StateSpaceLayer  # noqa: E402
from ltinet.nn.triangular import Triangular  # noqa: E402
from ltinet.torch.delayed_network import DelayedNetwork  # noqa: E402
from ltinet.torch.linear_network import LinearNetwork  # noqa: E402

__all__ = [
    "MLP",
    "DelayedNetwork",
    "Feedback",
    "History",
    "LinearNetwork",
    "Monotone",
    "Polynomial",
    "Spline",
    "Stack",
    "StateSpaceLayer",
    "Triangular",
    "export_onnx",
    "fit",
    "from_identified",
    "hammerstein",
    "initial_state",
    "load",
    "save",
    "wiener",
    "wiener_hammerstein",
]
