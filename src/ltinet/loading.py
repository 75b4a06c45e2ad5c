"""Networks from files."""

from pathlib import Path

from ltinet.dynamic_network import DynamicNetwork
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES
from ltinet.network.files import read_network
from ltinet.state_space import StateSpace


def load(path: str | Path, *, max_bytes: float = DEFAULT_MAX_BYTES) -> DynamicNetwork:
    """Read a network that `net.save` wrote, bit for bit.

    A file whose tensors take more than `max_bytes`, 2 GiB unless another number is given, is refused.

    Raises:
        FileFormatError: there is no such file, it is damaged, not a network, too large, or of a newer format.
    """
    network, form, system, blocks, reduced_error = read_network(path, max_bytes=max_bytes)
    return DynamicNetwork(network, form, None if system is None else StateSpace.of(system), blocks, reduced_error)
