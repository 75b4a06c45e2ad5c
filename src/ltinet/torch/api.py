"""Conversion of networks to PyTorch modules.

This module can be imported without PyTorch, which is loaded by the first conversion.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ltinet._util.text import install_hint
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.errors import MissingDependencyError
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.signals.sampled import Hold
from ltinet.simulation.context import SimulationContext
from ltinet.state_space import StateSpace
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.torch.packed_system import TrainableParts, pack_system

if TYPE_CHECKING:
    from ltinet.torch.delayed_network import DelayedNetwork
    from ltinet.torch.linear_network import LinearNetwork

NetworkType = TypeVar("NetworkType")


def require_torch() -> None:
    """Raise MissingDependencyError if PyTorch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(f"PyTorch is not installed; {install_hint('torch')}") from error


def to_torch(
    prepared: SimulationContext,
    dt: float,
    *,
    hold: Hold,
    trainable: TrainableParts,
    settings: SignalSettings = NO_SETTINGS,
    rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
) -> "LinearNetwork[NetworkType]":
    """Convert a prepared network to a module; `rebuild` constructs the result of its `to_network`.

    The states of the module are those of the layers, which stay stable in training. In these coordinates up to
    log₁₀ cond(T) digits of the largest state may be lost, which `simulate` of small systems keeps. The module does not
    apply delays and operating point, which its `to_network` restores; `wrap_delays` adds them.

    Raises MissingDependencyError if PyTorch is not installed.
    """
    require_torch()
    from ltinet.torch.linear_network import LinearNetwork
    from ltinet.torch.parameters import initial_tensors

    return LinearNetwork(
        initial_tensors(pack_system(prepared)),
        dt=dt,
        hold=hold,
        trainable=trainable,
        names=prepared.names,
        signal_settings=settings,
        rebuild=rebuild,
    )


def wrap_delays(network: "LinearNetwork[NetworkType]") -> "DelayedNetwork[NetworkType]":
    """Add the delays and the operating point of its network to a module.

    Raises InvalidSystemError if a delay is not a multiple of the time step.
    """
    from ltinet.torch.delayed_network import DelayedNetwork

    return DelayedNetwork(network)
