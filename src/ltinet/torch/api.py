"""Conversion of networks to PyTorch modules.

This module can be imported without PyTorch, which is loaded by the first conversion.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import MissingDependencyError
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.signals.sampled import Hold
from ltinet.simulation.context import SimulationContext
from ltinet.state_space import StateSpace
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.torch.packed_system import TrainableParts

if TYPE_CHECKING:
    from ltinet.torch.delayed_network import DelayedNetwork
    from ltinet.torch.linear_network import LinearNetwork

# MERGED ltinet.torch.api
# The door from networks to PyTorch, which is imported when somebody goes through it.

NetworkType = TypeVar("NetworkType")


def require_torch() -> None:
    """Refuse to go on without PyTorch.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError('PyTorch is not installed; install it with pip install "ltinet[torch]"') from error


def to_torch(
    prepared: SimulationContext,
    dt: float,
    *,
    hold: Hold,
    trainable: TrainableParts,
    settings: SignalSettings = NO_SETTINGS,
    rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
) -> "LinearNetwork[NetworkType]":
    """A prepared network as a module; `rebuild` makes a network for users of what the way back constructs.

    Its states are those of its layers, which learning keeps stable. There T may lose up to log₁₀ cond(T) digits of the
    largest state, which `simulate` of few states keeps. Delays and the operating point are not in it, but in what its
    `to_network` gives back; `wrap_delays` adds them.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    require_torch()
    from ltinet.torch.linear_network import LinearNetwork
    from ltinet.torch.packed_system import pack_system
    from ltinet.torch.parameters import initial_tensors

    tensors = initial_tensors(pack_system(prepared))
    return LinearNetwork(
        tensors,
        dt=dt,
        hold=hold,
        trainable=trainable,
        names=prepared.names,
        signal_settings=settings,
        rebuild=rebuild,
    )


def wrap_delays(network: "LinearNetwork[NetworkType]") -> "DelayedNetwork[NetworkType]":
    """A module with the delays and the operating point of its network.

    Raises:
        InvalidSystemError: a delay is no multiple of the time step.
    """
    from ltinet.torch.delayed_network import DelayedNetwork

    return DelayedNetwork(network)
