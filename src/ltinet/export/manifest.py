"""What every exported thing says of itself: who made it, from which network, for which step, how exact it is.

Without a date: equal networks give equal bytes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from ltinet._version import __version__
from ltinet.export.rounding.bound import RoundingBound, rounding_bound
from ltinet.export.settings import PRECISIONS, ExportSettings
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import TappedModel, tapped_bound
from ltinet.model.names import names_or_numbers
from ltinet.model.signal_settings import SignalSettings
from ltinet.network.files import network_checksum
from ltinet.shown import shown_rows
from ltinet.solve.prepared import PreparedNetwork

MANY_STEPS = 10**8


@final
@dataclass(frozen=True, eq=False)
class Export:
    """What an export wrote: where, which files, what they say of themselves, and what one might not expect of them."""

    path: Path
    files: tuple[str, ...]
    """Names of what was written, relative to `path` for a folder and inside the archive for an FMU."""
    manifest: Mapping[str, Any]
    remarks: tuple[str, ...]

    @property
    def error_bound(self) -> tuple[float, ...]:
        """For each output how far rounding may take it in 1e8 steps, from the exported x0, for inputs up to 1.

        Inputs are counted from the operating point of the model.
        """
        return tuple(math.inf if bound is None else bound for bound in self.manifest["bound"]["drift"])

    def __str__(self) -> str:
        rows = [("files", ", ".join(self.files)), ("dt, hold", f"{self.manifest['dt']:g}, {self.manifest['hold']}")]
        rows.append(("precision", str(self.manifest["dtype"])))
        rows.extend(("remark", remark) for remark in self.remarks)
        return shown_rows(f"export to {self.path}", rows)


def manifest_of(
    target: str,
    prepared: PreparedNetwork,
    settings: ExportSettings,
    *,
    model: StepModel,
    bound: RoundingBound,
    files: Sequence[str],
) -> Mapping[str, Any]:
    """The facts of an export as plain data; a bound that is not known is null."""
    facts: dict[str, Any] = {
        "made by": made_by(),
        "target": target,
        "network": {
            "sha256": network_checksum(prepared.stored._replace(settings=settings.signals)),
            "states": model.n_states,
        },
        "inputs": list(input_names(prepared)),
        "outputs": list(output_names(prepared)),
        "dt": settings.dt,
        "hold": settings.hold,
        "dtype": settings.dtype,
        "bound": _bound_facts(bound),
        "files": list(files),
    }
    if settings.signals.moves_signals:
        facts["delays and operating point"] = moves_of(settings.signals)
        facts["bound"]["inputs counted from"] = "the operating point"
    if prepared.form is not None:  # what the bound, which is that of the network, does not count
        found = {"backward error": prepared.form.backward_error, "cond(T)": prepared.form.condition_raw}
        facts["decomposition"] = {name: own if math.isfinite(own) else None for name, own in found.items()}
    if prepared.reduced_error is not None:  # |y − y of the system before| ≤ this times ‖u‖ in L2
        facts["reduced by"] = prepared.reduced_error if math.isfinite(prepared.reduced_error) else None
    return MappingProxyType(facts)


def moves_of(signals: SignalSettings) -> dict[str, Any]:
    """Delays and the operating point as plain data, those that are there."""
    return {name: own for name, own in signals.facts.items() if name in ("input_delay", "output_delay", "u0", "y0")}


def input_names(prepared: PreparedNetwork) -> tuple[str, ...]:
    """How the inputs are called, u1, u2, … where nobody gave names."""
    return names_or_numbers(prepared.names.inputs, "inputs", prepared.network.n_inputs)


def output_names(prepared: PreparedNetwork) -> tuple[str, ...]:
    """How the outputs are called."""
    return names_or_numbers(prepared.names.outputs, "outputs", prepared.network.n_outputs)


def bound_after_many_steps(
    model: StepModel | TappedModel, settings: ExportSettings, *, terms: int = 1
) -> RoundingBound:
    """The bound that is written down: inputs up to 1, a hundred million steps, sums over so many samples at a time."""
    if isinstance(model, TappedModel):
        return tapped_bound(model, PRECISIONS[settings.dtype], n_steps=float(MANY_STEPS), samples_at_once=terms)
    return rounding_bound(model, PRECISIONS[settings.dtype], n_steps=float(MANY_STEPS), samples_at_once=terms)


def as_json(manifest: Mapping[str, Any]) -> str:
    """The manifest as a file, the same bytes each time."""
    return json.dumps(dict(manifest), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _bound_facts(bound: RoundingBound) -> dict[str, Any]:
    def finite(values: Any) -> list[float | None]:
        return [float(value) if np.isfinite(value) else None for value in values]

    facts = {"inputs up to": 1.0, "steps": MANY_STEPS}
    return facts | {"per step": finite(bound.per_step), "drift": finite(bound.drift), "size": finite(bound.size)}


def made_by() -> str:
    """The package and its version."""
    return f"ltinet {__version__}"
