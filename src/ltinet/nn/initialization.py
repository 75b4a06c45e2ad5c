"""Models from identified systems, and initial states of models by least squares.

The initial state minimizes the squared error over the first samples. It is one linear least-squares problem for a
linear network and a few Gauss–Newton steps with step-size reduction for nonlinear models; directions with small
singular values stay at rest.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.identification.result import IdentificationResult
from ltinet.nn.optimizers import jacobian_by_columns
from ltinet.nn.stack import Stack, has_states, underlying_network
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.packed_system import TrainableParts
from ltinet.torch.propagators import output_rows
from ltinet.torch.validation import require_finite, validate_input

_MAX_STEPS = 10  # of Gauss–Newton, each a Jacobian; they end earlier where no step lowers the error
_STEP_FRACTIONS = (1.0, 0.3, 0.1)  # fractions of a Gauss–Newton step that are tried
# Relative to the largest: directions that the first samples determine less stay at rest. It limits the amplification of
# noise to its inverse; without noise outputs err by some tenths of it (heat rod of 20 states with a cubic output: 2e-9, 2e-7
# and 3e-6 for cutoffs of 1e-7, 1e-6 and 1e-5).
_SINGULAR_VALUE_CUTOFF = 1e-6


def from_identified(
    result: IdentificationResult, *, trainable: TrainableParts = True
) -> LinearNetwork[DynamicNetwork] | DelayedNetwork[DynamicNetwork]:
    """Convert an identified system to a model with its time step, hold and delays.

    The model relates inputs and outputs without their offsets.

    Parameters
    ----------
    result : IdentificationResult
        Result of `ltinet.identify`.
    trainable : bool, str or iterable of str
        Parts of the network that are trained, as in `net.to_torch`.

    Returns
    -------
    LinearNetwork or DelayedNetwork
        The model.

    Raises
    ------
    InvalidNetworkError
        `result` is of another type, or was identified from a frequency response, which has no time step.

    Examples
    --------
    >>> import ltinet, numpy as np
    >>> from ltinet import nn
    >>> u = np.random.default_rng(0).standard_normal((400, 1))
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> y = net.simulate(u, 0.1 * np.arange(400)).y
    >>> nn.from_identified(ltinet.identify(u, y, dt=0.1, order=1)).dt
    0.1
    """
    if not isinstance(result, IdentificationResult):
        raise InvalidNetworkError(
            f"result is a {type(result).__name__}; give the result of ltinet.identify, or call net.to_torch(dt)"
        )
    if result.dt is None or result.hold is None:
        raise InvalidNetworkError(
            "result was identified from a frequency response, which has no time step; give one: result.net.to_torch(dt)"
        )
    core = result.system.with_signal_settings(u0=0, y0=0)
    return construct(core).to_torch(result.dt, hold=result.hold, trainable=trainable)


def initial_state(model: nn.Module, u: Tensor, y: Tensor) -> Any:
    """Estimate the initial state that explains the first samples of a record best, by least squares.

    Among several minimizers the smallest in the model's own coordinates is taken. A network needs one matrix product
    and accepts batches; other models take Gauss–Newton steps as long as the error decreases.

    Parameters
    ----------
    model : nn.Module
        Network, `Triangular`, `Feedback` or `Stack`.
    u : Tensor
        First inputs of a record, `(T, m)`, or `(…, T, m)` for a network.
    y : Tensor
        Outputs `(T, p)` at the same times.

    Returns
    -------
    Tensor or tuple
        x0 in the user's coordinates; for a `Stack` a tuple with None for its maps.

    Raises
    ------
    InvalidNetworkError
        The model has no states.
    InvalidSignalError
        u and y do not match the model or each other.

    Examples
    --------
    >>> import ltinet, torch
    >>> from ltinet import nn
    >>> model = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).to_torch(0.1)
    >>> u, x0 = torch.zeros(9, 1, dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    >>> torch.allclose(nn.initial_state(model, u, model(u, x0=x0)), x0)
    True
    """
    _require_matching_record(model, u, y)
    if isinstance(model, LinearNetwork):
        # y[k] = (response to u at rest)[k] + C Pᵏ z
        with torch.no_grad():
            rows = output_rows(model.one_step(), u.shape[-2]).flatten(0, 1)
            residual = (y - model(u)).to(rows.dtype).flatten(-2).reshape(-1, rows.shape[0])
            driver = "gels" if rows.is_cuda else "gelsd"  # a GPU has no routine for rows of deficient rank
            z = torch.linalg.lstsq(rows, residual.mT, driver=driver).solution.mT
            return (z @ model.to_user.mT).reshape(*u.shape[:-2], -1).to(y.dtype)
    y = y.detach()
    networks = [underlying_network(part) for part in (model.parts if isinstance(model, Stack) else [model])]
    n_states = sum(network.n_states for network in networks if network is not None)
    z = torch.zeros(n_states, dtype=u.dtype, device=u.device)

    def residuals(states: Tensor) -> Tensor:
        return (model(u, x0=_user_states(model, networks, states)) - y).flatten()

    for _ in range(_MAX_STEPS):
        with torch.no_grad():
            error = residuals(z)
        J = jacobian_by_columns(lambda values: residuals(values["z"]), {"z": z})
        step = torch.linalg.pinv(J, rtol=_SINGULAR_VALUE_CUTOFF) @ error
        candidates = [z - fraction * step for fraction in _STEP_FRACTIONS]
        errors = [_mean_square(residuals, candidate) for candidate in candidates]
        best = min(range(len(candidates)), key=lambda index: errors[index])
        if not errors[best] < float(error.square().mean()):
            break
        z = candidates[best]
    return _user_states(model, networks, z.detach())


def _require_matching_record(model: nn.Module, u: Tensor, y: Tensor) -> None:
    if not has_states(model) and not isinstance(model, Stack):
        raise InvalidNetworkError(f"model is a {type(model).__name__}; give a network, a model with one, or a Stack")
    if not isinstance(y, Tensor):
        raise InvalidSignalError(f"y is a {type(y).__name__}; give a tensor: torch.from_numpy(y)")
    validate_input(u, n_inputs=model.n_inputs, device=y.device)
    require_finite(y, "y")
    shape = (*u.shape[:-1], model.n_outputs)
    if tuple(y.shape) != shape or not y.numel():
        raise InvalidSignalError(f"y has shape {tuple(y.shape)}; for these u it must be {shape}, and not be empty")
    if u.dim() > 2 and not isinstance(model, LinearNetwork):
        raise InvalidSignalError(f"u has shape {tuple(u.shape)}; give one record (T, {model.n_inputs}) at a time")


def _user_states(model: nn.Module, networks: list[LinearNetwork[Any] | None], z: Tensor) -> Any:
    """Convert the states of all networks, in their own coordinates, to the x0 of the model."""
    sizes = [0 if network is None else network.n_states for network in networks]
    parts = zip(networks, z.split(sizes), strict=True)
    states = [None if network is None else part @ network.to_user.mT for network, part in parts]
    return tuple(states) if isinstance(model, Stack) else states[0]


def _mean_square(residuals: Callable[[Tensor], Tensor], z: Tensor) -> float:
    """Return the mean square of the residuals, infinity where the states of the model overflow."""
    try:
        with torch.no_grad():
            return float(residuals(z).square().mean())
    except SimulationError:
        return math.inf
