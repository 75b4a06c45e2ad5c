"""Optimizers of `fit`: Adam, L-BFGS and Levenberg–Marquardt.

Each optimizer takes one step on some records at a time, and can take smaller steps after a failure, which also discards
the information of the steps before.

Levenberg–Marquardt takes δ = −(JᵀJ + μ diag JᵀJ)⁻¹ Jᵀ r where it lowers the error and suits models of few parameters;
J is computed column by column by forward derivatives, several columns at once where there are many.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, jvp, vmap

from ltinet.errors import SimulationError
from ltinet.nn.feedback import reuse_solutions
from ltinet.nn.training_data import TrainingRecord

Residuals = Callable[[list[TrainingRecord]], Tensor]
# L-BFGS ends below this gradient and step, in units of the outputs: rounding then hides any further decrease.
_GRADIENT_TOLERANCE = 1e-14
# Damping μ of Levenberg–Marquardt: at the start, and limits, beyond which μ or 1 is lost in the sum of both. It decides
# the number of steps; a step is taken only where it lowers the error.
_INITIAL_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1e-3, 1e-12, 1e12
_MIN_BATCHED_COLUMNS = 16  # parameters from which columns of J are computed together; setting up vmap takes seconds
_MAX_BATCHED_ENTRIES = 4_000_000  # residuals times columns
_MAX_DAMPING_TRIES = 8  # with ten times the damping each


def mean_square(residuals: Residuals, records: list[TrainingRecord]) -> float:
    """Return the mean square of the residuals, infinity where the model overflows."""
    with torch.no_grad():
        try:
            return float(residuals(records).square().mean())
        except SimulationError:
            return math.inf


def jacobian_by_columns(function: Callable[[dict[str, Tensor]], Tensor], values: dict[str, Tensor]) -> Tensor:
    """Return the Jacobian `(N, P)` of a function of named tensors, column by column by forward derivatives."""
    columns = []
    for name, tensor in values.items():
        for direction in torch.eye(tensor.numel(), dtype=tensor.dtype, device=tensor.device):
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(tensor, direction.view_as(tensor))
                result, tangent = forward_ad.unpack_dual(function({**values, name: dual}))
                columns.append(torch.zeros_like(result) if tangent is None else tangent.detach())
    return torch.stack(columns, 1)


class AdamOptimizer:
    """Adam on the mean square of the residuals."""

    def __init__(self, parameters: list[nn.Parameter], residuals: Residuals, lr: float) -> None:
        self._parameters, self._residuals, self._lr = parameters, residuals, lr
        self._optimizer = torch.optim.Adam(parameters, lr=lr)

    def step(self, records: list[TrainingRecord]) -> float:
        """Take a step and return the loss before it."""
        self._optimizer.zero_grad()
        loss = self._residuals(records).square().mean()
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def reduce_steps(self) -> None:
        """Halve the learning rate and discard the moments."""
        self._lr *= 0.5
        self._optimizer = torch.optim.Adam(self._parameters, lr=self._lr)

    def state(self) -> dict[str, Tensor]:
        """Return the learning rate, and both moments and the number of steps of each parameter."""
        state = {"lr": torch.tensor(self._lr, dtype=torch.float64)}
        for index, parameter in enumerate(self._parameters):
            moments = self._optimizer.state.get(parameter) or {}
            state |= {f"{index}.{name}": torch.as_tensor(value).double() for name, value in moments.items()}
        return state

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self._lr = float(state["lr"])
        self._optimizer = torch.optim.Adam(self._parameters, lr=self._lr)
        for index, parameter in enumerate(self._parameters):
            if f"{index}.step" in state:
                names = ("step", "exp_avg", "exp_avg_sq")
                moments: dict[str, Any] = {name: state[f"{index}.{name}"].clone() for name in names}
                moments["step"] = moments["step"].float()
                self._optimizer.state[parameter] = moments


class LBFGSOptimizer:
    """L-BFGS with a line search (strong Wolfe conditions); a step is up to twenty of its iterations."""

    def __init__(self, parameters: list[nn.Parameter], residuals: Residuals, lr: float) -> None:
        self._parameters, self._residuals, self._lr = parameters, residuals, lr
        self.reduce_steps()

    def step(self, records: list[TrainingRecord]) -> float:
        """Take up to twenty iterations on all records and return the loss before them."""

        def closure() -> Tensor:
            self._optimizer.zero_grad()
            loss = self._residuals(records).square().mean()
            loss.backward()
            return loss

        return float(self._optimizer.step(closure).detach())

    def reduce_steps(self) -> None:
        """Discard the curvature information."""
        self._optimizer = torch.optim.LBFGS(
            self._parameters,
            lr=self._lr,
            max_iter=20,
            history_size=20,
            tolerance_grad=_GRADIENT_TOLERANCE,
            tolerance_change=_GRADIENT_TOLERANCE,
            line_search_fn="strong_wolfe",
        )

    def state(self) -> dict[str, Tensor]:
        """Return nothing: L-BFGS restarts without curvature information."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restart without curvature information."""


class LevenbergMarquardtOptimizer:
    """Levenberg–Marquardt steps δ = −(JᵀJ + μ diag JᵀJ)⁻¹ Jᵀ r, accepted where they lower the error."""

    def __init__(self, model: nn.Module, parameters: dict[str, nn.Parameter], residuals: Residuals) -> None:
        self._parameters, self._residuals = parameters, residuals
        self._model, self._module = model, _ResidualModule(model, residuals)
        self._damping = _INITIAL_DAMPING
        self._batches = sum(values.numel() for values in parameters.values()) >= _MIN_BATCHED_COLUMNS

    def step(self, records: list[TrainingRecord]) -> float:
        """Take a step that lowers the error, with as much damping as it needs, and return the loss before it."""
        before, J = self._linearize(records)
        loss = float(before.square().mean())
        curvature, gradient = J.mT @ J, J.mT @ before
        start = [values.detach().clone() for values in self._parameters.values()]
        floor = curvature.diagonal().max() * torch.finfo(J.dtype).eps
        for _ in range(_MAX_DAMPING_TRIES):
            damped = curvature + torch.diag(self._damping * curvature.diagonal() + floor)
            self._set_parameters(start, -torch.linalg.solve(damped, gradient))
            if mean_square(self._residuals, records) < loss:
                self._damping = max(0.2 * self._damping, _MIN_DAMPING)
                return loss
            self._damping = min(10.0 * self._damping, _MAX_DAMPING)
        self._set_parameters(start, torch.zeros_like(gradient))
        return loss

    def reduce_steps(self) -> None:
        """Increase the damping by a factor of 100."""
        self._damping = min(100.0 * self._damping, _MAX_DAMPING)

    def state(self) -> dict[str, Tensor]:
        """Return the damping."""
        return {"damping": torch.tensor(self._damping, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self._damping = float(state["damping"])

    def _linearize(self, records: list[TrainingRecord]) -> tuple[Tensor, Tensor]:
        """Return the residuals and their Jacobian `(N, P)`, by batches of columns where the model allows that."""
        parameters = {f"model.{name}": values.detach() for name, values in self._parameters.items()}
        with reuse_solutions(self._model) as rewind:
            with torch.no_grad():
                value = self._residuals(records)

            def residuals(values: dict[str, Tensor]) -> Tensor:
                rewind()
                return functional_call(self._module, values, (records,))

            if self._batches:
                try:
                    return value, self._batched_jacobian(residuals, parameters, value.numel())
                except RuntimeError:  # a user's map may branch on values, which vmap does not support
                    self._batches = False
            return value, jacobian_by_columns(residuals, parameters)

    @staticmethod
    def _batched_jacobian(
        residuals: Callable[[dict[str, Tensor]], Tensor], parameters: dict[str, Tensor], n_residuals: int
    ) -> Tensor:
        """Return the Jacobian, computed in batches of columns of limited memory, which `torch.func.jacfwd` cannot."""
        sizes = [values.numel() for values in parameters.values()]

        def column(direction: Tensor) -> Tensor:
            pieces = zip(parameters.items(), direction.split(sizes), strict=True)
            directions = {name: piece.view_as(values) for (name, values), piece in pieces}
            tangent: Tensor = jvp(residuals, (parameters,), (directions,))[1]
            return tangent

        first = next(iter(parameters.values()))
        identity = torch.eye(sum(sizes), dtype=first.dtype, device=first.device)
        chunk_size = max(1, min(len(identity), _MAX_BATCHED_ENTRIES // max(n_residuals, 1)))
        with torch.no_grad():
            J: Tensor = vmap(column, chunk_size=chunk_size)(identity)
        return J.mT

    def _set_parameters(self, start: list[Tensor], step: Tensor) -> None:
        with torch.no_grad():
            sizes = [values.numel() for values in start]
            for values, before, change in zip(self._parameters.values(), start, step.split(sizes), strict=True):
                values.copy_(before + change.view_as(before))


Optimizer: TypeAlias = AdamOptimizer | LBFGSOptimizer | LevenbergMarquardtOptimizer


class _ResidualModule(nn.Module):
    """The residuals of a model as a module, so that `functional_call` can replace its parameters."""

    def __init__(self, model: nn.Module, residuals: Residuals) -> None:
        super().__init__()
        self.model, self._residuals = model, residuals

    def forward(self, records: list[TrainingRecord]) -> Tensor:
        return self._residuals(records)
