"""The door from networks to PyTorch, which is imported when somebody goes through it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import MissingDependencyError
from ltinet.learn.trainable_parts import Parts
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.signals.sampled import Hold
from ltinet.solve.prepared import PreparedNetwork
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
    from ltinet.learn.delayed_network import DelayedNetwork
    from ltinet.learn.linear_network import LinearNetwork

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
    prepared: PreparedNetwork,
    dt: float,
    *,
    hold: Hold,
    trainable: Parts,
    settings: SignalSettings = NO_SETTINGS,
    rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
) -> "LinearNetwork[NetworkType]":
    """A prepared network as a module; `rebuild` makes a network for users of what the way back constructs.

    Its states are those of its layers, which learning keeps stable. There T may lose up to log₁₀ cond(T) digits of the
    largest state, which `simulate` of few states keeps. Delays and the operating point are not in it, but in what its
    `to_network` gives back; `with_delays` adds them.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    require_torch()
    from ltinet.learn.linear_network import LinearNetwork
    from ltinet.learn.packed import packed_system
    from ltinet.learn.parameters import tensors_of

    tensors = tensors_of(packed_system(prepared))
    return LinearNetwork(
        tensors,
        dt=dt,
        hold=hold,
        trainable=trainable,
        names=prepared.names,
        signal_settings=settings,
        rebuild=rebuild,
    )


def with_delays(network: "LinearNetwork[NetworkType]") -> "DelayedNetwork[NetworkType]":
    """A module with the delays and the operating point of its network.

    Raises:
        InvalidSystemError: a delay is no multiple of the time step.
    """
    from ltinet.learn.delayed_network import DelayedNetwork

    return DelayedNetwork(network)
