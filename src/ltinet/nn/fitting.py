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
from ltinet.nn.optimizers import (
    AdamOptimizer,
    LBFGSOptimizer,
    LevenbergMarquardtOptimizer,
    Optimizer,
    Residuals,
    mean_square,
)
from ltinet.nn.serialization import describe_module, read_model, write_model
from ltinet.nn.training_data import (
    TrainingRecord,
    draw_windows,
    make_training_records,
    output_scale,
    require_model,
    require_samples,
    require_start_options,
)
from ltinet.plotting.comparison import draw_learning_curve
from ltinet.plotting.figures import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MethodName = Literal["adam", "lbfgs", "lm"]
_MAX_REJECTED_STEPS = 10  # beyond, an error says that the model overflows
_DEFAULT_EVALUATIONS = 100  # error evaluations in a run of Adam, unless `every` is given
_CONVERGENCE_TOLERANCE = 1e-12  # relative change of the loss below which L-BFGS and Levenberg–Marquardt end


@final
@dataclass(frozen=True, eq=False)
class History:
    """Course of a fit: errors at the evaluated steps, in units of the standard deviation of each output.

    The model has the parameters of `best_step`.

    Parameters
    ----------
    method : str
        Optimizer.
    steps : ndarray
        Numbers of the steps at which errors were evaluated.
    train : ndarray
        Root mean square error on the training records at these steps.
    validation : ndarray or None
        Root mean square error on the validation records.
    best_step : int
        Step with the smallest error.
    stopped : str
        Reason for the end: "step limit", "patience" or "converged".
    notes : tuple of str
        Unexpected events, such as rejected steps.

    Examples
    --------
    >>> import ltinet, numpy as np
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> u = np.random.default_rng(0).standard_normal((50, 1))
    >>> history = nn.fit(net.to_torch(0.1), (u, 2.0 * u), steps=3, method="lm")
    >>> history.best < 2.0
    True
    """

    method: str
    steps: Array
    train: Array
    validation: Array | None
    best_step: int
    stopped: str
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> float:
        """Smallest error, on validation records if there are any."""
        errors = self.train if self.validation is None else self.validation
        return float(np.nanmin(errors))

    def plot(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the errors against the steps; requires matplotlib.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.figure.Figure
        """
        axes = draw_learning_curve(self.steps, self.train, self.validation, best_step=self.best_step, ax=ax)
        return figure_of(axes)

    def __str__(self) -> str:
        kind = "training" if self.validation is None else "validation"
        return (
            f"{self.method}: {kind} error {self.best:.4g} at step {self.best_step} of {int(self.steps[-1])}, "
            f"stopped: {self.stopped}"
        )


def fit(  # noqa: PLR0913
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
    """Fit a model of `ltinet.nn` to records by the mean square error, each output in units of its standard deviation.

    The model is trained in place. It ends with the parameters that have the smallest error on the validation records,
    or on the training records if there are none. A step after which the model overflows is rejected and followed by
    smaller ones.

    Parameters
    ----------
    model : nn.Module
        Network (`net.to_torch(dt)`), `Triangular`, `Feedback` or `Stack`; parameters that require gradients are
        trained.
    data : tuple or list of tuple
        Record (u, y), `(T, m)` and `(T, p)` or batches of them, or a list of records.
    validation : tuple or list of tuple, optional
        Records that decide when to stop and which parameters to keep.
    method : {"adam", "lbfgs", "lm"}
        Optimizer; "lm" is Levenberg–Marquardt, for up to some hundred parameters.
    steps : int
        Maximum number of steps.
    lr : float, optional
        Learning rate of Adam, 0.01 by default, or first step of L-BFGS, 1 by default.
    window : int, optional
        Length of the windows, drawn at random, on which Adam trains; whole records by default.
    n_windows : int
        Number of windows in a step.
    warmup : int
        Samples at the beginning of each record and window, run from rest, whose errors do not count.
    every : int, optional
        Steps between two evaluations of the errors; a hundredth of all steps for Adam, else 1, by default.
    patience : int, optional
        Number of evaluations without a smaller error after which the fit ends; unlimited by default.
    ridge : float
        Weight of the squared distance of all parameters from their initial values in the loss. The fewer samples
        there are, the closer a model should stay to its start.
    seed : int
        Seed of the windows.
    checkpoint : str or Path, optional
        Safetensors file, written atomically at every evaluation.
    resume : bool
        Continue from the checkpoint if it exists.

    Returns
    -------
    History
        Errors at the evaluated steps.

    Raises
    ------
    InvalidSignalError
        A record has a wrong shape, or numbers that are not finite.
    InvalidNetworkError
        Nothing is trainable, or an option is not valid.
    FileFormatError
        The checkpoint is damaged, or belongs to another model or method.

    Examples
    --------
    >>> import ltinet, numpy as np
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> u = np.random.default_rng(0).standard_normal((50, 1))
    >>> y = 2.0 * net.simulate(u, 0.1 * np.arange(50)).y
    >>> nn.fit(net.to_torch(0.1), (u, y), steps=20, method="lm").best < 1e-6
    True
    """
    require_model(model)
    require_positive_integers(steps=steps, window=window, n_windows=n_windows, every=every, patience=patience)
    require_start_options(lr, checkpoint, resume=resume)
    device = next(model.parameters()).device
    sizes = {"n_inputs": model.n_inputs, "n_outputs": model.n_outputs, "device": device}
    train = make_training_records(data, "data", **sizes)
    held_out = None if validation is None else make_training_records(validation, "validation", **sizes)
    require_samples(train, "data", warmup=warmup, window=window)
    require_samples(held_out or [], "validation", warmup=warmup)
    scale = output_scale(train, warmup)

    def residuals(records: list[TrainingRecord]) -> Tensor:
        return torch.cat([((model(u) - y) / scale)[:, warmup:].flatten() for u, y in records])

    penalty = ProximalPenalty(model, ridge)
    optimizer = make_optimizer(method, model, penalty.extend(residuals), lr)
    generator = torch.Generator().manual_seed(seed)
    run = _FitRun(model, optimizer, residuals, train, held_out, generator, penalty)
    if checkpoint is not None and resume and Path(checkpoint).exists():
        run.restore(checkpoint)
    return run.run(
        method,
        steps,
        every=every or (max(steps // _DEFAULT_EVALUATIONS, 1) if method == "adam" else 1),
        patience=patience,
        checkpoint=checkpoint,
        next_records=(lambda: draw_windows(train, window, n_windows, generator)) if window else (lambda: train),
    )


class ProximalPenalty:
    """Weighted squared distance of the trained parameters of a model from their values at construction.

    Raises InvalidNetworkError if the weight is negative or not finite.
    """

    def __init__(self, model: nn.Module, weight: float) -> None:
        if not (math.isfinite(weight) and weight >= 0.0):
            raise InvalidNetworkError(f"ridge must be a finite number of at least zero, got {weight}.")
        self.model, self.weight = model, float(weight)
        self.start = {name: values.detach().clone() for name, values in _trained_parameters(model).items()}

    def extend(self, residuals: Residuals) -> Residuals:
        """Append residuals to those of the errors so that the mean square is that of the errors plus the penalty."""
        if not self.weight:
            return residuals

        def extended(records: list[TrainingRecord]) -> Tensor:
            errors = residuals(records)
            return torch.cat([errors, math.sqrt(self.weight * errors.numel()) * self._distance()])

        return extended

    def value(self) -> float:
        """Return the penalty."""
        return self.weight * float(self._distance().detach().square().sum()) if self.weight else 0.0

    def _distance(self) -> Tensor:
        current = dict(self.model.named_parameters())  # looked up at each call: `functional_call` replaces them
        return torch.cat([(current[name] - start).flatten() for name, start in self.start.items()])


def make_optimizer(name: str, model: nn.Module, residuals: Residuals, lr: float | None) -> Optimizer:
    """Return the optimizer of a name; raise InvalidNetworkError if it does not exist or nothing is trainable."""
    parameters = _trained_parameters(model)
    if not parameters:
        raise InvalidNetworkError("the model has no trainable parameters; name parts: net.to_torch(dt, trainable=True)")
    if name == "adam":
        return AdamOptimizer(list(parameters.values()), residuals, 0.01 if lr is None else lr)
    if name == "lbfgs":
        return LBFGSOptimizer(list(parameters.values()), residuals, 1.0 if lr is None else lr)
    if name == "lm":
        return LevenbergMarquardtOptimizer(model, parameters, residuals)
    raise InvalidNetworkError(f"method must be 'adam', 'lbfgs' or 'lm', got {name!r}.")


def _trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: values for name, values in model.named_parameters() if values.requires_grad and values.numel()}


class _FitRun:
    """State of a running fit: current step, errors, best parameters and rejected steps."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        residuals: Residuals,
        train: list[TrainingRecord],
        held_out: list[TrainingRecord] | None,
        generator: torch.Generator,
        penalty: ProximalPenalty,
    ) -> None:
        self.model, self.optimizer, self.residuals = model, optimizer, residuals
        self.train, self.held_out, self.generator, self.penalty = train, held_out, generator, penalty
        self.step, self.n_without_progress, self.n_rejected = 0, 0, 0
        self.steps: list[float] = []
        self.errors: tuple[list[float], list[float]] = ([], [])
        self.best, self.best_step = math.inf, 0
        self.best_state = copy.deepcopy(model.state_dict())

    def run(
        self,
        method: MethodName,
        steps: int,
        *,
        every: int,
        patience: int | None,
        checkpoint: str | Path | None,
        next_records: Callable[[], list[TrainingRecord]],
    ) -> History:
        """Take steps until one of the criteria ends them, and set the best parameters."""
        if not self.steps:
            self._evaluate()
        last_loss, stopped = math.inf, "step limit"
        for _ in track_progress(range(self.step, steps), total=steps - self.step, noun="steps"):
            loss = self._take_step(next_records())
            self.step += 1
            if self.step % every == 0 or self.step == steps:
                self._evaluate()
                if checkpoint is not None:
                    self._save(checkpoint)
                if patience is not None and self.n_without_progress >= patience:
                    stopped = "patience"
                    break
            if method != "adam" and abs(last_loss - loss) <= _CONVERGENCE_TOLERANCE * loss:
                stopped = "converged"
                break
            last_loss = loss
        self.model.load_state_dict(self.best_state)
        notes = (f"{self.n_rejected} steps were rejected because the model overflowed",) if self.n_rejected else ()
        train, validation = np.array(self.errors[0]), None if self.held_out is None else np.array(self.errors[1])
        return History(method, np.array(self.steps), train, validation, self.best_step, stopped, notes)

    def _take_step(self, records: list[TrainingRecord]) -> float:
        """Take a step and return the loss before it; reject the step if the model overflows."""
        try:
            loss = self.optimizer.step(records)
        except SimulationError:
            loss = math.nan
        if not math.isfinite(loss) or not self._is_finite():
            if self.n_rejected == _MAX_REJECTED_STEPS:
                raise SimulationError(
                    f"the model overflows after step {self.step}, although {self.n_rejected} steps were rejected; give "
                    "a smaller lr"
                )
            self.n_rejected += 1
            self.model.load_state_dict(self.best_state)
            self.optimizer.reduce_steps()
        return loss

    def _is_finite(self) -> bool:
        return all(bool(torch.isfinite(values).all()) for values in self.model.parameters())

    def _evaluate(self) -> None:
        """Append the errors to the history, and copy the parameters if they are the best."""
        train = math.sqrt(mean_square(self.residuals, self.train))
        validation = math.nan if self.held_out is None else math.sqrt(mean_square(self.residuals, self.held_out))
        self.steps.append(float(self.step))
        self.errors[0].append(train)
        self.errors[1].append(validation)
        criterion = math.hypot(train, math.sqrt(self.penalty.value())) if self.held_out is None else validation
        self.n_without_progress += 1
        if criterion < self.best:
            self.best, self.best_step, self.n_without_progress = criterion, self.step, 0
            self.best_state = copy.deepcopy(self.model.state_dict())

    def _save(self, path: str | Path) -> None:
        """Write a checkpoint; the names of its arrays are a file format."""
        counts = np.array([self.step, self.n_without_progress, self.n_rejected, self.best_step], dtype=np.int64)
        extra = {"counts": counts, "errors": np.array([self.steps, *self.errors]), "best": np.array([self.best])}
        extra["draw"] = self.generator.get_state().numpy().astype(np.int64)
        extra |= {f"began.{name}": values.cpu().numpy() for name, values in self.penalty.start.items()}
        extra |= {f"kept.{name}": values.cpu().numpy() for name, values in self.best_state.items()}
        state = self.optimizer.state()
        extra |= {f"method.{name}": np.atleast_1d(values.cpu().numpy()) for name, values in state.items()}
        write_model(self.model, path, extra)

    def restore(self, path: str | Path) -> None:
        """Continue from a checkpoint; raise FileFormatError if it is damaged or of another model or method."""
        model, extra = read_model(path)
        file = format_path(as_path(path))
        if describe_module(model) != describe_module(self.model) or _shapes(model) != _shapes(self.model):
            raise FileFormatError(
                f"{file} is a checkpoint of another model; fit that one, or start again with resume=False"
            )
        try:
            self._restore_arrays(extra)
        except (KeyError, ValueError, RuntimeError, IndexError) as error:
            raise FileFormatError(
                f"{file} is not a checkpoint of this method ({error_text(error)}); fit with the method that wrote it, "
                "or start again with resume=False"
            ) from None
        self.model.load_state_dict(model.state_dict())

    def _restore_arrays(self, extra: dict[str, Any]) -> None:
        self.step, self.n_without_progress, self.n_rejected, self.best_step = map(int, extra["counts"])
        self.steps, *errors = (list(map(float, row)) for row in extra["errors"])
        self.errors, self.best = (errors[0], errors[1]), float(extra["best"][0])
        tensors = {name: torch.from_numpy(np.array(values)) for name, values in extra.items()}
        self.best_state = _with_prefix(tensors, "kept.")
        for name, start in self.penalty.start.items():
            start.copy_(tensors[f"began.{name}"])
        self.generator.set_state(tensors["draw"].to(torch.uint8))
        state = _with_prefix(tensors, "method.")
        for name, current in self.optimizer.state().items():
            if name in state and current.dim() == 0:
                state[name] = state[name].squeeze()
        self.optimizer.restore(state)


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {name[len(prefix) :]: values for name, values in tensors.items() if name.startswith(prefix)}


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: values.shape for name, values in model.state_dict().items()}
