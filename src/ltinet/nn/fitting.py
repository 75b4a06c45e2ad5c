"""Fit of a model to measured records, its history, and the penalty on parameter changes.

`fit` minimizes the mean square of the errors, each output in units of its standard deviation, plus `ridge` times the
squared distance of the parameters from their initial values. It returns to the parameters with the best validation
error, and can save and resume checkpoints.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
import torch
from torch import Tensor, nn

from ltinet._util.floating_point import Array
from ltinet._util.progress import track_progress
from ltinet._util.text import format_path
from ltinet.errors import FileFormatError, InvalidNetworkError, SimulationError
from ltinet.io.file_access import as_path, error_text
from ltinet.nn.maps import require_positive_integers
from ltinet.nn.optimizers import AdamOptimizer, LBFGSOptimizer, LevenbergMarquardtOptimizer, Optimizer
from ltinet.nn.serialization import describe_module, read_model, write_model
from ltinet.nn.training_data import (
    TrainingRecord,
    draw_windows,
    make_training_records,
    output_scale,
    require_checkpoint,
    require_learning_rate,
    require_model,
    require_samples,
)
from ltinet.plotting.error_curves import draw_learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# MERGED ltinet.nn.fitting
# What holds the parameters of a fit to where they began.

Residuals = Callable[[list[TrainingRecord]], Tensor]


@final
@dataclass(frozen=True, eq=False)
class ProximalPenalty:
    """A model, where its trained parameters began, and the weight of their squared distance from there."""

    model: nn.Module
    weight: float
    start: dict[str, Tensor]

    @classmethod
    def of(cls, model: nn.Module, weight: float) -> "ProximalPenalty":
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


# MERGED ltinet.nn.fitting
# What happened while a model was fitted.


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
    notes: tuple[str, ...] = ()
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


# MERGED ltinet.nn.fitting
# `fit`: from a model and measured records to the parameters that explain them.

MethodName = Literal["adam", "lbfgs", "lm"]
_MAX_REJECTED_STEPS = 10
_DEFAULT_EVALUATIONS = 100  # of a run by Adam, unless another number is given
_CONVERGENCE_TOLERANCE = 1e-12  # of the error: what a step of L-BFGS or Levenberg–Marquardt must change to go on


def fit(  # noqa: PLR0913 - every option of a fit is a keyword of this one door
    model: nn.Module,
    data: Any,
    *,
    validation: Any = None,
    method: MethodName = "adam",
    steps: int = 1000,
    lr: float | None = None,
    window: int | None = None,
    n_windows: int = 16,
    warmup: int = 0,
    every: int | None = None,
    patience: int | None = None,
    ridge: float = 0.0,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> History:
    """Fit a model of `ltinet.nn` to records by the mean square of its errors, each output in units of its deviation.

    The model is trained in place and has, in the end, the parameters with the smallest error on `validation`, or on the
    data where there is none. A step to where the model explodes is taken back, and smaller ones follow.

    Args:
        model: a network (`net.to_torch(dt)`), a `Triangular`, `Feedback` or `Stack`; what is trained is what requires
            gradients.
        data: a record (u, y), `(T, m)` and `(T, p)` or batches of them, or a list of records.
        validation: records of the same kind that only decide when to stop and what to keep.
        method: "adam"; "lbfgs"; "lm" (Levenberg–Marquardt), for some hundred parameters at most.
        steps: how many steps are taken at most.
        lr: the rate of Adam (0.01 if left out) and the first step of L-BFGS (1).
        window: Adam: train on windows of this length, drawn at random, and not on whole records.
        n_windows: how many windows a step takes.
        warmup: samples at the beginning of each record and window, run from rest, that do not count.
        every: how many steps lie between two looks at the errors; a hundredth of all for Adam, else one.
        patience: end after so many looks without a smaller error; never if left out.
        ridge: beside the mean square of errors, this times the squared distance of all parameters from where they
            began is made small too: the fewer samples, the more a model should stay what it was.
        seed: for the windows.
        checkpoint: a safetensors file that is written at every look, whole or not at all.
        resume: go on from that file where it exists.

    Raises:
        InvalidSignalError: a record has other shapes, or numbers that are not finite.
        InvalidNetworkError: nothing is trainable, or an option does not exist or is no number of its kind.
        FileFormatError: the checkpoint is damaged, or that of another model or another method.
    """
    require_model(model)
    require_positive_integers(steps=steps, window=window, n_windows=n_windows, every=every, patience=patience)
    require_learning_rate(lr)
    require_checkpoint(checkpoint, resume)
    device = next(model.parameters()).device
    sizes = {"n_inputs": model.n_inputs, "n_outputs": model.n_outputs, "device": device}
    train = make_training_records(data, "data", **sizes)
    held_out = None if validation is None else make_training_records(validation, "validation", **sizes)
    require_samples(train, "data", warmup=warmup, window=window)
    require_samples(held_out or [], "validation", warmup=warmup)
    residuals = make_residuals(model, output_scale(train, warmup), warmup)
    held = ProximalPenalty.of(model, ridge)
    own = make_optimizer(method, model, held.beside(residuals), lr)
    draw = torch.Generator().manual_seed(seed)
    looks = every or (max(steps // _DEFAULT_EVALUATIONS, 1) if method == "adam" else 1)
    course = _FitRun(model, own, residuals, train, held_out, draw, held)
    if checkpoint is not None and resume and Path(checkpoint).exists():
        course.restore(checkpoint)
    chosen = (lambda: draw_windows(train, window, n_windows, draw)) if window else (lambda: train)
    stopped = course.run(
        steps, looks, patience=patience, checkpoint=checkpoint, chosen=chosen, settles=method != "adam"
    )
    return course.finished(method, stopped)


def make_residuals(model: nn.Module, scale: Tensor, warmup: int) -> Callable[[list[TrainingRecord]], Tensor]:
    """Errors of a model over records, in units of the outputs, without those of the warm-up."""

    def residuals(records: list[TrainingRecord]) -> Tensor:
        return torch.cat([((model(u) - y) / scale)[:, warmup:].flatten() for u, y in records])

    return residuals


def make_optimizer(name: str, model: nn.Module, residuals: Callable[..., Tensor], lr: float | None) -> Optimizer:
    """The method of a name.

    Raises:
        InvalidNetworkError: there is none, or nothing to train.
    """
    named = {key: own for key, own in model.named_parameters() if own.requires_grad and own.numel()}
    if not named:
        raise InvalidNetworkError("nothing of the model is trainable; name parts: net.to_torch(dt, trainable=True)")
    if name == "adam":
        return AdamOptimizer(list(named.values()), residuals, 0.01 if lr is None else lr)
    if name == "lbfgs":
        return LBFGSOptimizer(list(named.values()), residuals, 1.0 if lr is None else lr)
    if name == "lm":
        return LevenbergMarquardtOptimizer(model, named, residuals)
    raise InvalidNetworkError(f"method is {name!r}; there are 'adam', 'lbfgs' and 'lm'")


class _FitRun:
    """A fit under way: where it stands, what was best, and what was taken back."""

    def __init__(
        self,
        model: nn.Module,
        method: Optimizer,
        residuals: Callable[[list[TrainingRecord]], Tensor],
        train: list[TrainingRecord],
        held_out: list[TrainingRecord] | None,
        draw: torch.Generator,
        held: ProximalPenalty,
    ) -> None:
        self.model, self.method, self.residuals = model, method, residuals
        self.train, self.held_out, self.draw, self.held = train, held_out, draw, held
        self.step, self.waited, self.taken_back = 0, 0, 0
        self.steps: list[float] = []
        self.errors: tuple[list[float], list[float]] = ([], [])
        self.best, self.best_step = math.inf, 0
        self.kept = copy.deepcopy(model.state_dict())

    def run(
        self,
        steps: int,
        looks: int,
        *,
        patience: int | None,
        checkpoint: str | Path | None,
        chosen: Callable[[], list[TrainingRecord]],
        settles: bool,
    ) -> str:
        """Take steps until something ends them; says what it was."""
        if not self.steps:
            self._look()
        last = math.inf
        for _ in track_progress(range(self.step, steps), total=steps - self.step, noun="steps"):
            loss = self._take(chosen())
            self.step += 1
            if self.step % looks == 0 or self.step == steps:
                self._look()
                if checkpoint is not None:
                    self._save(checkpoint)
                if patience is not None and self.waited >= patience:
                    return "patience"
            if settles and abs(last - loss) <= _CONVERGENCE_TOLERANCE * loss:
                return "settled"
            last = loss
        return "steps"

    def _take(self, records: list[TrainingRecord]) -> float:
        """A step; where the model explodes it is taken back."""
        try:
            loss = self.method.step(records)
        except SimulationError:
            loss = math.nan
        if not math.isfinite(loss) or not self._is_finite():
            if self.taken_back == _MAX_REJECTED_STEPS:
                raise SimulationError(f"the model explodes again and again after step {self.step}; give a smaller lr")
            self.taken_back += 1
            self.model.load_state_dict(self.kept)
            self.method.slower()
        return loss

    def _is_finite(self) -> bool:
        return all(bool(torch.isfinite(own).all()) for own in self.model.parameters())

    def _look(self) -> None:
        """Note the errors, and keep the parameters if they are the best."""
        errors = [self._error(self.train), math.nan if self.held_out is None else self._error(self.held_out)]
        self.steps.append(float(self.step))
        for noted, error in zip(self.errors, errors, strict=True):
            noted.append(error)
        decides = math.hypot(errors[0], math.sqrt(self.held.penalty())) if self.held_out is None else errors[1]
        self.waited += 1
        if decides < self.best:
            self.best, self.best_step, self.waited = decides, self.step, 0
            self.kept = copy.deepcopy(self.model.state_dict())

    def _error(self, records: list[TrainingRecord]) -> float:
        with torch.no_grad():
            try:
                return float(self.residuals(records).square().mean().sqrt())
            except SimulationError:
                return math.inf

    def finished(self, method: str, stopped: str) -> History:
        """The history; the model gets its best parameters back."""
        self.model.load_state_dict(self.kept)
        notes = (f"{self.taken_back} steps were taken back, where the model exploded",) if self.taken_back else ()
        validation = None if self.held_out is None else np.array(self.errors[1])
        steps, train = np.array(self.steps), np.array(self.errors[0])
        return History(method, steps, train, validation, self.best_step, stopped, notes)

    def _save(self, path: str | Path) -> None:
        counts = np.array([self.step, self.waited, self.taken_back, self.best_step], dtype=np.int64)
        errors = np.array([self.steps, *self.errors])
        extra = {"counts": counts, "errors": errors, "best": np.array([self.best])}
        extra["draw"] = self.draw.get_state().numpy().astype(np.int64)
        extra |= {f"began.{name}": own.cpu().numpy() for name, own in self.held.start.items()}
        extra |= {f"kept.{name}": own.cpu().numpy() for name, own in self.kept.items()}
        extra |= {f"method.{name}": np.atleast_1d(own.cpu().numpy()) for name, own in self.method.state().items()}
        write_model(self.model, path, extra)

    def restore(self, path: str | Path) -> None:
        """Go on from a checkpoint.

        Raises:
            FileFormatError: it is damaged, no checkpoint, or that of another model or another method.
        """
        model, extra = read_model(path)
        place = format_path(as_path(path))
        if describe_module(model) != describe_module(self.model) or _parameter_shapes(model) != _parameter_shapes(
            self.model
        ):
            raise FileFormatError(
                f"{place} is a checkpoint of another model; fit that one, or begin anew with resume=False"
            )
        try:
            self._go_on(extra)
        except (KeyError, ValueError, RuntimeError, IndexError) as error:
            raise FileFormatError(
                f"{place} is no checkpoint of this method ({error_text(error)}); fit with the method that wrote it, or "
                "begin anew with resume=False"
            ) from None
        self.model.load_state_dict(model.state_dict())

    def _go_on(self, extra: dict[str, Any]) -> None:
        self.step, self.waited, self.taken_back, self.best_step = (int(count) for count in extra["counts"])
        self.steps, *errors = (list(map(float, row)) for row in extra["errors"])
        self.errors, self.best = (errors[0], errors[1]), float(extra["best"][0])
        tensors = {name: torch.from_numpy(np.array(own)) for name, own in extra.items()}
        self.kept = {name[5:]: own for name, own in tensors.items() if name.startswith("kept.")}
        for name, own in self.held.start.items():
            own.copy_(tensors[f"began.{name}"])
        self.draw.set_state(tensors["draw"].to(torch.uint8))
        state = {name[7:]: own for name, own in tensors.items() if name.startswith("method.")}
        like = self.method.state()
        self.method.restore(
            {name: own.squeeze() if name in like and like[name].dim() == 0 else own for name, own in state.items()}
        )


def _parameter_shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: own.shape for name, own in model.state_dict().items()}
