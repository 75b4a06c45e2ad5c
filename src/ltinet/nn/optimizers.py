"""Optimizers of `fit`: Adam, L-BFGS and Levenberg–Marquardt.

Levenberg–Marquardt takes δ = −(JᵀJ + μ diag JᵀJ)⁻¹ Jᵀ r where it lowers the error and suits models of few parameters;
J is computed column by column by forward derivatives, several columns at once where there are many.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, jvp, vmap

from ltinet.errors import SimulationError
from ltinet.nn.feedback import reuse_solutions
from ltinet.nn.training_data import TrainingRecord

# MERGED ltinet.nn.optimizers
# Three ways to take a step: Adam, L-BFGS, and Levenberg–Marquardt for models of few parameters.

Residuals = Callable[[list[TrainingRecord]], Tensor]
_GRADIENT_TOLERANCE = 1e-14  # of gradients and steps, in units of the outputs: there L-BFGS has nothing more to win
_MIN_DAMPING, _MAX_DAMPING = 1e-12, 1e12
_MIN_BATCHED_COLUMNS = 16  # parameters from which columns are taken together: to set that up takes seconds
_MAX_BATCHED_ENTRIES = 4_000_000  # residuals times columns
_MAX_DAMPING_TRIES = 8  # of ten times the damping each


class Optimizer(Protocol):
    """One step on some records: gives back the loss before it."""

    def step(self, records: list[TrainingRecord]) -> float:
        """Take a step."""
        ...

    def slower(self) -> None:
        """Take smaller steps from now on, and forget those before."""
        ...

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on later."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from there."""
        ...


class AdamOptimizer:
    """Adam on mean squares."""

    def __init__(self, parameters: list[nn.Parameter], residuals: Residuals, lr: float) -> None:
        self._parameters, self._residuals, self._lr = parameters, residuals, lr
        self._optimiser = torch.optim.Adam(parameters, lr=lr)

    def step(self, records: list[TrainingRecord]) -> float:
        """A step against the gradient."""
        self._optimiser.zero_grad()
        loss = self._residuals(records).square().mean()
        loss.backward()
        self._optimiser.step()
        return float(loss.detach())

    def slower(self) -> None:
        """Half the rate."""
        self._lr *= 0.5
        self._optimiser = torch.optim.Adam(self._parameters, lr=self._lr)

    def state(self) -> dict[str, Tensor]:
        """Both moments of each parameter, how many steps there were, and the rate."""
        found = {"lr": torch.tensor(self._lr, dtype=torch.float64)}
        for place, own in enumerate(self._parameters):
            moments = self._optimiser.state.get(own)
            if moments:
                found |= {f"{place}.{name}": torch.as_tensor(value).double() for name, value in moments.items()}
        return found

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self._lr = float(state["lr"])
        self._optimiser = torch.optim.Adam(self._parameters, lr=self._lr)
        for place, own in enumerate(self._parameters):
            names = ("step", "exp_avg", "exp_avg_sq")
            if f"{place}.step" in state:
                moments: dict[str, Any] = {name: state[f"{place}.{name}"].clone() for name in names}
                moments["step"] = moments["step"].float()
                self._optimiser.state[own] = moments


class LBFGSOptimizer:
    """L-BFGS with a line search (strong Wolfe conditions); a step is up to twenty of its iterations."""

    def __init__(self, parameters: list[nn.Parameter], residuals: Residuals, lr: float) -> None:
        self._parameters, self._residuals, self._lr = parameters, residuals, lr
        self.slower()

    def step(self, records: list[TrainingRecord]) -> float:
        """Iterations on all records."""

        def closure() -> Tensor:
            self._optimiser.zero_grad()
            loss = self._residuals(records).square().mean()
            loss.backward()
            return loss

        return float(self._optimiser.step(closure).detach())

    def slower(self) -> None:
        """Forget what was learnt of the curvature."""
        self._optimiser = torch.optim.LBFGS(
            self._parameters,
            lr=self._lr,
            max_iter=20,
            history_size=20,
            tolerance_grad=_GRADIENT_TOLERANCE,
            tolerance_change=_GRADIENT_TOLERANCE,
            line_search_fn="strong_wolfe",
        )

    def state(self) -> dict[str, Tensor]:
        """Nothing: it begins anew."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Begin anew."""


class LevenbergMarquardtOptimizer:
    """δ = −(JᵀJ + μ diag JᵀJ)⁻¹ Jᵀ r, taken where it lowers the error; J column by column by forward derivatives."""

    def __init__(self, model: nn.Module, parameters: dict[str, nn.Parameter], residuals: Residuals) -> None:
        self._model, self._parameters, self._residuals = model, parameters, residuals
        self._damping = 1e-3
        self._batches = sum(own.numel() for own in parameters.values()) >= _MIN_BATCHED_COLUMNS

    def step(self, records: list[TrainingRecord]) -> float:
        """One step that lowers the error, with as much damping as it needs."""
        before, J = self._linearised(records)
        loss = float(before.square().mean())
        curvature, slope = J.mT @ J, J.mT @ before
        start = [own.detach().clone() for own in self._parameters.values()]
        floor = curvature.diagonal().max() * torch.finfo(J.dtype).eps
        for _ in range(_MAX_DAMPING_TRIES):
            damped = curvature + torch.diag(self._damping * curvature.diagonal() + floor)
            self._move(start, -torch.linalg.solve(damped, slope))
            after = self._error(records)
            if after < loss:
                self._damping = max(0.2 * self._damping, _MIN_DAMPING)
                return loss
            self._damping = min(10.0 * self._damping, _MAX_DAMPING)
        self._move(start, torch.zeros_like(slope))
        return loss

    def _error(self, records: list[TrainingRecord]) -> float:
        """The mean square; infinite where the model explodes, so that a step there is not taken."""
        with torch.no_grad():
            try:
                return float(self._residuals(records).square().mean())
            except SimulationError:
                return math.inf

    def slower(self) -> None:
        """More damping."""
        self._damping = min(100.0 * self._damping, _MAX_DAMPING)

    def state(self) -> dict[str, Tensor]:
        """The damping."""
        return {"damping": torch.tensor(self._damping, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on with it."""
        self._damping = float(state["damping"])

    def _linearised(self, records: list[TrainingRecord]) -> tuple[Tensor, Tensor]:
        """Residuals and their Jacobian, `(N, P)`: many columns at once, or one by one for what cannot be batched."""
        given = {name: own.detach() for name, own in self._parameters.items()}
        with reuse_solutions(self._model) as again:
            with torch.no_grad():
                value = self._residuals(records)
            if self._batches:
                try:
                    return value, self._together(records, given, value, again)
                except RuntimeError:  # a map of somebody's own may decide by its numbers
                    self._batches = False
            columns = []
            for name, own in given.items():
                for place in range(own.numel()):
                    along = torch.zeros_like(own)
                    along.view(-1)[place] = 1.0
                    again()
                    columns.append(self._slope(records, given, name, along, like=value))
        return value, torch.stack(columns, 1)

    def _together(
        self, records: list[TrainingRecord], given: dict[str, Tensor], value: Tensor, again: Callable[[], None]
    ) -> Tensor:
        """The Jacobian by as many columns at a time as memory is meant for."""
        module, sizes = _ResidualModule(self._model, self._residuals), [own.numel() for own in given.values()]

        def residuals(own: dict[str, Tensor]) -> Tensor:
            found: Tensor = functional_call(module, {f"model.{name}": each for name, each in own.items()}, (records,))
            return found

        def column(along: Tensor) -> Tensor:
            again()
            pieces = zip(given.items(), along.split(sizes), strict=True)
            found: Tensor = jvp(residuals, (given,), ({name: own.view_as(at) for (name, at), own in pieces},))[1]
            return found

        identity = torch.eye(sum(sizes), dtype=value.dtype, device=value.device)
        at_once = max(1, min(len(identity), _MAX_BATCHED_ENTRIES // max(value.numel(), 1)))
        with torch.no_grad():
            J: Tensor = vmap(column, chunk_size=at_once)(identity)
        return J.mT

    def _slope(
        self, records: list[TrainingRecord], given: dict[str, Tensor], name: str, along: Tensor, *, like: Tensor
    ) -> Tensor:
        """The derivative of the residuals along a direction of one parameter."""
        with forward_ad.dual_level():
            dual = {f"model.{key}": own for key, own in given.items()}
            dual[f"model.{name}"] = forward_ad.make_dual(given[name], along)
            residuals = functional_call(_ResidualModule(self._model, self._residuals), dual, (records,))
            tangent = forward_ad.unpack_dual(residuals).tangent
            return torch.zeros_like(like) if tangent is None else tangent

    def _move(self, start: list[Tensor], by: Tensor) -> None:
        with torch.no_grad():
            sizes = [own.numel() for own in start]
            for own, before, change in zip(self._parameters.values(), start, by.split(sizes), strict=True):
                own.copy_(before + change.view_as(before))


class _ResidualModule(nn.Module):
    """The residuals as a module, so that its parameters can be replaced."""

    def __init__(self, model: nn.Module, residuals: Residuals) -> None:
        super().__init__()
        self.model, self._residuals = model, residuals

    def forward(self, records: list[TrainingRecord]) -> Tensor:
        return self._residuals(records)
