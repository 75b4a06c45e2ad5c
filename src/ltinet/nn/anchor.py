"""What holds the parameters of a fit to where they began."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError
from ltinet.nn.records import TrainingRecord

Residuals = Callable[[list[TrainingRecord]], Tensor]


@final
@dataclass(frozen=True, eq=False)
class Anchor:
    """A model, where its trained parameters began, and the weight of their squared distance from there."""

    model: nn.Module
    weight: float
    start: dict[str, Tensor]

    @classmethod
    def of(cls, model: nn.Module, weight: float) -> "Anchor":
        """Hold a model to its parameters of now.

        Raises:
            InvalidNetworkError: the weight is negative or not finite.
        """
        if not (math.isfinite(weight) and weight >= 0.0):
            raise InvalidNetworkError(f"ridge is {weight}; give a finite number of at least zero")
        named = {name: own for name, own in model.named_parameters() if own.requires_grad and own.numel()}
        return cls(model, float(weight), {name: own.detach().clone() for name, own in named.items()})

    def beside(self, residuals: Residuals) -> Residuals:
        """Residuals whose mean square has, beside that of the errors, the weighted distance."""
        if not self.weight:
            return residuals

        def both(records: list[TrainingRecord]) -> Tensor:
            errors = residuals(records)
            return torch.cat([errors, math.sqrt(self.weight * errors.numel()) * self._away()])

        return both

    def penalty(self) -> float:
        """The weighted distance."""
        return self.weight * float(self._away().detach().square().sum()) if self.weight else 0.0

    def _away(self) -> Tensor:
        now = dict(self.model.named_parameters())  # those of the moment, which derivatives may have replaced
        return torch.cat([(now[name] - own).flatten() for name, own in self.start.items()])
