"""The door from networks to PyTorch, which is imported when somebody goes through it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.errors import MissingDependencyError
from ltinet.learn.trainable_parts import Parts, checked_parts
from ltinet.network.block_system import BlockSystem
from ltinet.network.network import Network
from ltinet.signals.sampled import Hold, checked_hold
from ltinet.signals.times import time_step
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest import engine_for_run
from ltinet.solve.exact.trials import FEW, MANY, Steps, Trial
from ltinet.solve.prepared import PreparedNetwork
from ltinet.state_space import StateSpace

if TYPE_CHECKING:
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
    rebuild: Callable[[Network, BlockDiagonalForm, StateSpace, BlockSystem], NetworkType],
    in_layers: bool = False,
) -> "LinearNetwork[NetworkType]":
    """A prepared network as a module; `rebuild` makes a network for users of what the way back constructs.

    Its states are those of its layers, which learning keeps stable. Where poles are not learnt and `simulate` runs in
    the user's own states, since T would cost digits, so does the model, or in the states of its layers with all that
    rounding left outside of these: whichever is nearest to `simulate`, unless layers are asked for.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    require_torch()
    from ltinet.learn.linear_network import LinearNetwork
    from ltinet.learn.nearest import nearest
    from ltinet.learn.packed import PackedSystem, packed_in_one_block, packed_system
    from ltinet.learn.parameters import tensors_of

    def model(packed: PackedSystem) -> LinearNetwork[NetworkType]:
        tensors = tensors_of(packed)
        return LinearNetwork(tensors, dt=dt, hold=hold, trainable=trainable, names=prepared.names, rebuild=rebuild)

    layers = model(packed_system(prepared))
    if in_layers or set(checked_parts(trainable)) & {"poles", "held", "couplings"}:
        return layers
    for number in (MANY, FEW):
        steps = Steps.even(time_step(dt, "dt"), number)
        engine = engine_for_run(prepared, steps, hold=checked_hold(hold), from_state=False)
        if engine is not prepared:
            inputs = (1.0,) * prepared.system.n_inputs
            trials = [Trial(*own, checked_hold(hold), inputs) for own in (steps.whole, steps.few)]
            dense = [model(packed_in_one_block(own)) for own in (prepared.as_given, prepared.whole) if own is not None]
            return nearest((ExactPath(engine, own.samples, None) for own in trials), *dense, layers)
    return layers
