"""What happened while a model was fitted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ltinet.arrays import Array
from ltinet.plotting.learning_curve import draw_learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(frozen=True, eq=False)
class History:
    """Errors at steps, each output in units of its deviation; the model has the parameters of `best_step`."""

    method: str
    steps: Array
    train: Array
    validation: Array | None
    best_step: int
    stopped: str
    """Why it ended: "steps", "patience" or "settled"."""
    remarks: tuple[str, ...] = ()
    """What one might not expect, as steps that were taken back."""

    @property
    def best(self) -> float:
        """The smallest error: on validation data where there were any."""
        errors = self.train if self.validation is None else self.validation
        return float(np.nanmin(errors))

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw errors against steps; needs matplotlib."""
        return draw_learning_curve(self.steps, self.train, self.validation, best_step=self.best_step, ax=ax)

    def __str__(self) -> str:
        kind = "training" if self.validation is None else "validation"
        return (
            f"{self.method}: {kind} error {self.best:.4g} at step {self.best_step} of {int(self.steps[-1])}, "
            f"ended by {self.stopped}"
        )
