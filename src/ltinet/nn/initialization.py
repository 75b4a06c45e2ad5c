"""Models from identified systems, and initial states of models by least squares.

The initial state minimizes the squared error over the first samples. It is one linear least-squares problem for a
linear network and a few Gauss–Newton steps with step-size reduction for nonlinear models; directions with small
singular values stay at rest.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.identification.result import IdentificationResult
from ltinet.nn.stack import Stack, has_states, underlying_network
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import TrainableParts
from ltinet.torch.propagators import output_rows
from ltinet.torch.validation import require_finite, validate_input

# MERGED ltinet.nn.initialization
# Where models come from, and in which state they begin.

_MAX_STEPS = 10
_STEP_FRACTIONS = (1.0, 0.3, 0.1)  # of a step that are tried
_SINGULAR_VALUE_CUTOFF = 1e-6  # of the largest singular value: what the first samples say less of stays at rest


def from_identified(
    found: IdentificationResult, *, trainable: TrainableParts = True
) -> LinearNetwork[DynamicNetwork] | DelayedNetwork[DynamicNetwork]:
    """The model of what `ltinet.identify` found: step, hold and delays, for inputs and outputs less their offsets.

    Raises:
        InvalidNetworkError: it is nothing that was identified, or it was found in a frequency response, which knows no
            step of time.
    """
    if not isinstance(found, IdentificationResult):
        raise InvalidNetworkError(
            f"found is a {type(found).__name__}; give what ltinet.identify returned, or call net.to_torch(dt)"
        )
    if found.dt is None or found.hold is None:
        raise InvalidNetworkError(
            "this was found in a frequency response, which knows no step of time; give one: found.net.to_torch(dt)"
        )
    core = found.system.with_signal_settings(u0=0, y0=0)
    return construct(core).to_torch(found.dt, hold=found.hold, trainable=trainable)


def initial_state(model: nn.Module, u: Tensor, y: Tensor) -> Any:
    """The x0 in the user's coordinates that explains the first samples best, by least squares.

    `u` and `y` are the first samples of a record, `(T, m)` and `(T, p)`; of several x0 the smallest in the model's own
    coordinates is taken. For a network that is one product, and batches `(…, T, m)` are allowed; for other models, of
    which a `Stack` gets a tuple with None for its maps, the steps of Gauss and Newton that bring outputs nearer.
    """
    _require_matching_record(model, u, y)
    if isinstance(model, LinearNetwork):
        with torch.no_grad():
            rows = output_rows(model.one_step(), u.shape[-2]).flatten(0, 1)
            unexplained = (y - model(u)).to(rows.dtype).flatten(-2)
            z = torch.linalg.lstsq(
                rows, unexplained.reshape(-1, rows.shape[0]).mT, driver=_lstsq_driver(rows)
            ).solution.mT
            return (z @ model.to_user.mT).reshape(*u.shape[:-2], -1).to(y.dtype)
    y = y.detach()
    networks = [underlying_network(part) for part in (model.parts if isinstance(model, Stack) else [model])]
    z = torch.zeros(sum(own.n_states for own in networks if own is not None), dtype=u.dtype, device=u.device)
    for _ in range(_MAX_STEPS):
        error, J = _error_jacobian(model, networks, u, y, z)
        step = torch.linalg.pinv(J, rtol=_SINGULAR_VALUE_CUTOFF) @ error
        found = [z - share * step for share in _STEP_FRACTIONS]
        errors = [_mean_square_error(model, networks, u, y, own) for own in found]
        best = min(range(len(found)), key=lambda place: errors[place])
        if not errors[best] < float(error.square().mean()):
            break
        z = found[best]
    return _user_states(model, networks, z.detach())


def _require_matching_record(model: nn.Module, u: Tensor, y: Tensor) -> None:
    if not has_states(model) and not isinstance(model, Stack):
        raise InvalidNetworkError(f"model is a {type(model).__name__}; give a network, a model with one, or a Stack")
    if not isinstance(y, Tensor):
        raise InvalidSignalError(f"y is a {type(y).__name__}; give a tensor: torch.from_numpy(y)")
    validate_input(u, n_inputs=model.n_inputs, device=y.device)
    require_finite(y, "y")
    wanted = (*u.shape[:-1], model.n_outputs)
    if tuple(y.shape) != wanted or not y.numel():
        raise InvalidSignalError(f"y has shape {tuple(y.shape)}; for these u it must be {wanted}, and not be empty")
    if u.dim() > 2 and not isinstance(model, LinearNetwork):
        raise InvalidSignalError(f"u has shape {tuple(u.shape)}; give one record (T, {model.n_inputs}) at a time")


def _lstsq_driver(rows: Tensor) -> str:
    """Where a GPU has no routine for rows that may depend on each other, the one that it has."""
    return "gels" if rows.is_cuda else "gelsd"


def _user_states(model: nn.Module, networks: list[LinearNetwork[Any] | None], z: Tensor) -> Any:
    """What a model takes as x0, from all states in the coordinates of its networks."""
    sizes = [0 if own is None else own.n_states for own in networks]
    each = [None if own is None else part @ own.to_user.mT for own, part in zip(networks, z.split(sizes), strict=True)]
    return tuple(each) if isinstance(model, Stack) else each[0]


def _outputs(model: nn.Module, networks: list[LinearNetwork[Any] | None], u: Tensor, z: Tensor) -> Tensor:
    with torch.no_grad():
        y: Tensor = model(u, x0=_user_states(model, networks, z))
        return y


def _mean_square_error(
    model: nn.Module, networks: list[LinearNetwork[Any] | None], u: Tensor, y: Tensor, z: Tensor
) -> float:
    """The mean square; infinite where the model explodes."""
    try:
        return float((_outputs(model, networks, u, z) - y).square().mean())
    except SimulationError:
        return math.inf


def _error_jacobian(
    model: nn.Module, networks: list[LinearNetwork[Any] | None], u: Tensor, y: Tensor, z: Tensor
) -> tuple[Tensor, Tensor]:
    """Errors `(T p,)`, and their Jacobian by the states, column by column by forward derivatives."""
    error = (_outputs(model, networks, u, z) - y).flatten()
    columns = []
    for place in range(len(z)):
        along = torch.zeros_like(z)
        along[place] = 1.0
        with forward_ad.dual_level():
            moved = model(u, x0=_user_states(model, networks, forward_ad.make_dual(z, along)))
            tangent = forward_ad.unpack_dual(moved).tangent
            columns.append(torch.zeros_like(error) if tangent is None else tangent.detach().flatten())
    return error, torch.stack(columns, 1)
