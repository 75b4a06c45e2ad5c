"""The door from networks to PyTorch, which is imported when somebody goes through it."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import MissingDependencyError
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.network.response import poles
from ltinet.signals.sampled import Hold, checked_hold
from ltinet.signals.times import time_step
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest import engine_for_run
from ltinet.solve.exact.trials import MANY, Steps, Trial
from ltinet.solve.prepared import PreparedNetwork
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
    from ltinet.learn.linear_network import LinearNetwork

NetworkType = TypeVar("NetworkType")
Parts: TypeAlias = bool | str | Iterable[str]
"""What is trained: True for all that keeps a network stable, False for nothing, or parts of it by their names."""


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
    rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
    in_layers: bool = False,
) -> "LinearNetwork[NetworkType]":
    """A prepared network as a module; `rebuild` makes a network for users of what the way back constructs.

    Its states are those of its layers, which learning keeps stable. Where poles are not learnt and T would cost
    steps their digits, they are the user's own, as in `simulate`, unless layers are asked for or keep more.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    require_torch()
    from ltinet.learn.checks import checked_parts
    from ltinet.learn.linear_network import LinearNetwork
    from ltinet.learn.nearest import nearest
    from ltinet.learn.packed import PackedSystem, packed_as_given, packed_system
    from ltinet.learn.parameters import tensors_of

    def model(packed: PackedSystem) -> LinearNetwork[NetworkType]:
        tensors = tensors_of(packed)
        return LinearNetwork(tensors, dt=dt, hold=hold, trainable=trainable, names=prepared.names, rebuild=rebuild)

    moves = set(checked_parts(trainable)) & {"poles", "held", "couplings"}
    steps = Steps.even(time_step(dt, "dt"), MANY)
    given = None if moves or in_layers else engine_for_run(prepared, steps, hold=checked_hold(hold), from_state=False)
    layers = model(packed_system(prepared))
    if given is None or given is prepared or poles(prepared.network).real.max(initial=0.0) > 0.0:
        return layers
    trial = Trial(*steps.whole, checked_hold(hold), (1.0,) * prepared.system.n_inputs)
    return nearest(ExactPath(given, trial.samples, None), model(packed_as_given(given.blocks)), layers)
