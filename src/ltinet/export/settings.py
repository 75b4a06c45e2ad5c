"""What every exporter is told, checked once: the time step, the hold, the precision; and what is remarked about it."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.export.step_model import StepModel, step_model
from ltinet.model.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.shown import shown
from ltinet.signals.numbers import real_array
from ltinet.signals.sampled import checked_hold
from ltinet.signals.times import time_step
from ltinet.solve.prepared import PreparedNetwork

Precision = Literal["double", "float"]
PRECISIONS: dict[str, type[np.floating[Any]]] = {"double": np.float64, "float": np.float32}


@dataclass(frozen=True)
class ExportSettings:
    """Checked options."""

    dt: float
    hold: Literal["linear", "zero"]
    dtype: Precision
    x0: Array | None = None
    signals: SignalSettings = NO_SETTINGS
    """Delays and operating point."""


def checked_settings(
    dt: Any, *, hold: Any, dtype: Any, x0: Any, signals: SignalSettings = NO_SETTINGS
) -> ExportSettings:
    """The options of an export.

    Raises:
        InvalidSignalError: dt is no positive time, the hold is not known, x0 is no state.
        FileFormatError: the precision is not known.
    """
    if dtype not in PRECISIONS:
        raise FileFormatError(f'dtype is {shown(repr(dtype))}; give "double" or "float"')
    held: Literal["linear", "zero"] = "linear" if checked_hold(hold) in ("linear", "foh") else "zero"
    start = None if x0 is None else real_array(x0, "x0")
    return ExportSettings(time_step(dt, "dt"), held, dtype, start, signals)


def exported_model(prepared: PreparedNetwork, settings: ExportSettings, *, by_increments: bool = True) -> StepModel:
    """The arrays of one step that fit the precision; single precision takes slow scalars by increments, or not.

    Raises:
        FileFormatError: a number is beyond the largest of that precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        model = step_model(
            prepared,
            settings.dt,
            hold=settings.hold,
            x0=settings.x0,
            by_increments=by_increments and settings.dtype == "float",
        )
        dense = [entry.ravel() for block in model.blocks for entry in (block.P, block.less_one)]
        parts = [model.Gamma0, model.Gamma1, model.C, model.D, model.start, np.abs(model.P), *dense]
        largest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    if not largest <= float(np.finfo(PRECISIONS[settings.dtype]).max):
        way_out = (
            'choose dtype="double"' if settings.dtype == "float" and np.isfinite(largest) else "choose a smaller dt"
        )
        raise FileFormatError(
            f"one step of this network has a number of size {largest:.2g}, too large for {settings.dtype}; {way_out}, "
            "or other units for inputs and outputs"
        )
    return model


def remarks_on(model: StepModel) -> tuple[str, ...]:
    """What one might not expect of an exported network: that its states grow without end."""
    rates = [model.rates, *(np.linalg.eigvals(block.F) for block in model.blocks)]
    fastest = float(np.max(np.concatenate(rates).real, initial=-np.inf)) if model.n_states else -np.inf
    if fastest <= 0.0:
        return ()
    tenfold = np.log(10.0) / fastest / model.dt
    return (
        f"the network is unstable: a mode grows as exp({fastest:.3g} t), tenfold in {tenfold:.3g} steps; its outputs "
        "overflow in the end",
    )


def warn(remarks: tuple[str, ...]) -> None:
    """Say it to whoever called."""
    for remark in remarks:
        warnings.warn(remark, UserWarning, stacklevel=3)
