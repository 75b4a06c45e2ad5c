"""Manifests and output files of exports.

A manifest states the version of the package, the network by its checksum, the step, and the rounding bound. It has no
date, so that equal networks give equal bytes. Files and folders are written atomically; a folder is replaced only if it
is empty or an earlier export.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np

from ltinet._util.atomic_files import write_file_atomically, write_folder_atomically
from ltinet._util.text import format_path, format_rows
from ltinet._version import __version__
from ltinet.errors import FileFormatError
from ltinet.export.rounding import RoundingBound, rounding_bound
from ltinet.export.step_model import PRECISIONS, ExportSettings, StepModel
from ltinet.export.tapped_delay_line import TappedModel, tapped_rounding_bound
from ltinet.io.file_access import as_path, error_reason
from ltinet.network.network_file import network_checksum
from ltinet.simulation.context import SimulationContext
from ltinet.systems.signal_names import names_or_defaults
from ltinet.systems.signal_settings import SignalSettings

MANIFEST_FILE = "manifest.json"


def write_export_folder(folder: str | PathLike[str], files: Mapping[str, bytes]) -> Path:
    """Write a folder, or one over an earlier export.

    Raises:
        FileFormatError: something else stands there, or the file system refuses.
    """
    path = as_path(folder)
    try:
        if path.exists() and not _may_be_replaced(path):
            raise FileFormatError(
                f"{format_path(path)} exists and is no earlier export; name an empty folder or a new one"
            )
        write_folder_atomically(path, files)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error
    return path


def validate_export_path(path: str | PathLike[str], *, suffix: str) -> Path:
    """A path that a file of this kind may have.

    Raises:
        FileFormatError: its name ends otherwise, it is a folder, or nobody may look there.
    """
    place = as_path(path)
    if place.suffix.lower() != suffix:
        raise FileFormatError(
            f"{format_path(place)} does not end in {suffix}; name it so, since programs look for that"
        )
    try:
        is_folder = place.is_dir()
    except OSError as error:  # a folder above it is closed to us
        raise _write_error(place, error) from error
    if is_folder:
        raise FileFormatError(f"{format_path(place)} is a folder; name a file in it that ends in {suffix}")
    return place


def write_export_file(place: Path, content: bytes) -> None:
    """Write a file, or over one of its name.

    Raises:
        FileFormatError: the file system refuses.
    """
    try:
        write_file_atomically(place, content)
    except (OSError, ValueError) as error:
        raise _write_error(place, error) from error


def _write_error(path: Path, error: Exception) -> FileFormatError:
    if isinstance(error, FileFormatError):
        return error
    return FileFormatError(f"{format_path(path)} cannot be written ({error_reason(error)}); choose another place")


def _may_be_replaced(path: Path) -> bool:
    """Whether a folder is empty, or holds nothing but an export and what its Makefile makes."""
    if not path.is_dir():
        return False
    entries = {entry.name for entry in path.iterdir()}
    try:
        written = {str(name) for name in json.loads((path / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return not entries
    made = {name.removesuffix(".c") for name in written} | {f"{name.removesuffix('.c')}.o" for name in written}
    return entries <= written | made


LONG_RUN_STEPS = 10**8


@final
@dataclass(frozen=True, eq=False)
class Export:
    """What an export wrote: where, which files, what they say of themselves, and what one might not expect of them."""

    path: Path
    files: tuple[str, ...]
    """Names of what was written, relative to `path` for a folder and inside the archive for an FMU."""
    manifest: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def error_bound(self) -> tuple[float, ...]:
        """For each output how far rounding may take it in 1e8 steps, from the exported x0, for inputs up to 1.

        Inputs are counted from the operating point of the model.
        """
        return tuple(math.inf if bound is None else bound for bound in self.manifest["bound"]["drift"])

    def __str__(self) -> str:
        rows = [("files", ", ".join(self.files)), ("dt, hold", f"{self.manifest['dt']:g}, {self.manifest['hold']}")]
        rows.append(("precision", str(self.manifest["dtype"])))
        rows.extend(("note", note) for note in self.notes)
        return format_rows(f"export to {self.path}", rows)


def build_manifest(
    target: str,
    prepared: SimulationContext,
    settings: ExportSettings,
    *,
    model: StepModel,
    bound: RoundingBound,
    files: Sequence[str],
) -> Mapping[str, Any]:
    """The facts of an export as plain data; a bound that is not known is null."""
    facts: dict[str, Any] = {
        "made by": generator_name(),
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
    if settings.signals.shifts_signals:
        facts["delays and operating point"] = describe_signal_settings(settings.signals)
        facts["bound"]["inputs counted from"] = "the operating point"
    if prepared.form is not None:  # what the bound, which is that of the network, does not count
        found = {"backward error": prepared.form.backward_error, "cond(T)": prepared.form.condition_raw}
        facts["decomposition"] = {name: own if math.isfinite(own) else None for name, own in found.items()}
    if prepared.reduction_error is not None:  # |y − y of the system before| ≤ this times ‖u‖ in L2
        facts["reduced by"] = prepared.reduction_error if math.isfinite(prepared.reduction_error) else None
    return MappingProxyType(facts)


def describe_signal_settings(signals: SignalSettings) -> dict[str, Any]:
    """Delays and the operating point as plain data, those that are there."""
    return {name: own for name, own in signals.facts.items() if name in ("input_delay", "output_delay", "u0", "y0")}


def input_names(prepared: SimulationContext) -> tuple[str, ...]:
    """How the inputs are called, u1, u2, … where nobody gave names."""
    return names_or_defaults(prepared.names.inputs, "inputs", prepared.network.n_inputs)


def output_names(prepared: SimulationContext) -> tuple[str, ...]:
    """How the outputs are called."""
    return names_or_defaults(prepared.names.outputs, "outputs", prepared.network.n_outputs)


def long_run_bound(model: StepModel | TappedModel, settings: ExportSettings, *, terms: int = 1) -> RoundingBound:
    """The bound that is written down: inputs up to 1, a hundred million steps, sums over so many samples at a time."""
    if isinstance(model, TappedModel):
        return tapped_rounding_bound(
            model, PRECISIONS[settings.dtype], n_steps=float(LONG_RUN_STEPS), samples_at_once=terms
        )
    return rounding_bound(model, PRECISIONS[settings.dtype], n_steps=float(LONG_RUN_STEPS), samples_at_once=terms)


def manifest_bytes(manifest: Mapping[str, Any]) -> str:
    """The manifest as a file, the same bytes each time."""
    return json.dumps(dict(manifest), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _bound_facts(bound: RoundingBound) -> dict[str, Any]:
    def finite(values: Any) -> list[float | None]:
        return [float(value) if np.isfinite(value) else None for value in values]

    facts = {"inputs up to": 1.0, "steps": LONG_RUN_STEPS}
    return facts | {"per step": finite(bound.per_step), "drift": finite(bound.drift), "size": finite(bound.size)}


def generator_name() -> str:
    """The package and its version."""
    return f"ltinet {__version__}"
