"""Networks from files."""

from pathlib import Path

from ltinet.dynamic_network import DynamicNetwork
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES
from ltinet.network.files import read_network
from ltinet.state_space import StateSpace


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> DynamicNetwork:
    """Read a network that `net.save` wrote, bit for bit, with its delays, operating point, hold and sample time.

    Files of 0.1.0 know of none of these, and `print` says so of their networks.

    A file whose tensors take more than `max_bytes`, 2 GiB unless another number is given, is refused.

    Raises:
        FileFormatError: there is no such file, it is damaged, not a network, too large, or of a newer format.
    """
    network, form, system, blocks, reduced_error, settings = read_network(path, max_bytes=max_bytes)
    held = None if system is None else StateSpace.of(system, settings=settings)
    return DynamicNetwork(network, form, held, blocks, reduced_error, settings)
