"""What a person should know before trusting an identified model."""

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.estimation import Estimate
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.record import Record, n_samples

_POOR = 50.0  # %: a fit below is told
_LONGEST_GROWTH = 1e-9


def cautions(
    model: ModalModel, records: tuple[Record, ...], *, fits: Array, n_doubled: int, remarks: tuple[str, ...]
) -> tuple[str, ...]:
    """Warnings about a model and the records that it was found in."""
    told = [remark for remark in remarks if "outlier" in remark]
    growing = np.abs(model.poles) > 1.0 + _LONGEST_GROWTH
    if growing.any():
        told.append(f"the model is unstable, |λ| up to {np.abs(model.poles).max():.6g} at samples; stable=True mirrors")
    if n_doubled:
        told.append(
            f"{n_doubled} negative real pole(s) at samples became pairs at half the sampling frequency: another order, "
            "or a shorter dt, may explain the records better"
        )
    poor = np.flatnonzero(fits < _POOR)
    if len(poor):
        told.append(f"output {poor[0] + 1} is explained by {fits[poor[0]]:.0f} % only")
    steps = [_steps_of(np.concatenate([own.y[:, j] for own in records])) for j in range(model.n_outputs)]
    coarse = [j for j, count in enumerate(steps) if count < 16]
    if coarse:
        told.append(f"output {coarse[0] + 1} has {steps[coarse[0]]} different values only: a coarse converter?")
    return tuple(told)


def on_a_part(found: Estimate, records: tuple[Record, ...]) -> tuple[str, ...]:
    """A remark where choices were made with some of the samples only."""
    n = n_samples(records)
    if found.n_used_for_choice == n:
        return ()
    return (f"method, block rows, order and refinement were decided on {found.n_used_for_choice} of {n} samples",)


def _steps_of(values: Array) -> int:
    return len(np.unique(values[: 2**14]))
