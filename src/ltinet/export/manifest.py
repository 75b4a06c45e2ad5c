"""Manifests and output files of exports.

A manifest states the version of the package, the network by its checksum, the step, and the rounding bound. It has no
date, so that equal networks give equal bytes. Files and folders are written atomically; a folder is replaced only if it
is empty or an earlier export.
"""

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from ltinet._util.atomic_files import write_file_atomically, write_folder_atomically
from ltinet._util.floating_point import Array
from ltinet._util.text import format_path, format_rows
from ltinet._version import __version__
from ltinet.errors import FileFormatError
from ltinet.export.rounding import RoundingBound, decomposition_error
from ltinet.export.step_model import PRECISIONS, ExportSettings, StepModel
from ltinet.export.tapped_delay_line import TappedModel, exported_rounding_bound
from ltinet.io.file_access import as_path, error_reason
from ltinet.network.network_file import network_checksum
from ltinet.simulation.context import SimulationContext
from ltinet.systems.signal_names import names_or_defaults
from ltinet.systems.signal_settings import SignalSettings

MANIFEST_FILE = "manifest.json"
GENERATOR = f"ltinet {__version__}"


def write_export_folder(folder: str | PathLike[str], files: Mapping[str, bytes]) -> Path:
    """Write a folder, which must be new, empty or an earlier export; raise `FileFormatError` otherwise."""
    path = as_path(folder)
    try:
        if path.exists() and not _may_be_replaced(path):
            raise FileFormatError(
                f"{format_path(path)} exists and is not an earlier export; name an empty or a new folder"
            )
        write_folder_atomically(path, files)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error
    return path


def validate_export_path(path: str | PathLike[str], *, suffix: str) -> Path:
    """Return the path of an exported file; raise `FileFormatError` for a wrong suffix, a folder, or no permission."""
    path = as_path(path)
    if path.suffix.lower() != suffix:
        raise FileFormatError(f"{format_path(path)} does not end in {suffix}; add this suffix")
    try:
        is_folder = path.is_dir()
    except OSError as error:  # no permission to enter a folder above it
        raise _write_error(path, error) from error
    if is_folder:
        raise FileFormatError(f"{format_path(path)} is a folder; name a file in it that ends in {suffix}")
    return path


def write_export_file(path: Path, content: bytes) -> None:
    """Write a file or replace it; raise `FileFormatError` if that is not possible."""
    try:
        write_file_atomically(path, content)
    except (OSError, ValueError) as error:
        raise _write_error(path, error) from error


def _write_error(path: Path, error: Exception) -> FileFormatError:
    if isinstance(error, FileFormatError):
        return error
    return FileFormatError(f"{format_path(path)} cannot be written ({error_reason(error)}); choose another place")


def _may_be_replaced(path: Path) -> bool:
    """Return whether a folder is empty, or holds only an export and what its Makefile builds."""
    if not path.is_dir():
        return False
    entries = {entry.name for entry in path.iterdir()}
    try:
        exported = {str(name) for name in json.loads((path / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return not entries
    stems = {name.removesuffix(".c") for name in exported}
    return entries <= exported | stems | {f"{stem}.o" for stem in stems}


DISCRETE = "none, discrete time"  # `hold` of a model in discrete time
_HOLD_TEXTS = {"zero": "constant between samples", "linear": "linear between samples"}
LONG_RUN_STEPS = 10**8  # steps of the bound in the manifest: a day at 1 kHz


@final
@dataclass(frozen=True, eq=False)
class Export:
    """Record of an export: path, files, manifest with error bounds, and notes.

    Parameters
    ----------
    path
        Folder or file that was written.
    files
        Names of the files, relative to `path` for a folder and inside the archive for an FMU.
    manifest
        Facts of the export as plain data: version, checksum of the network, step, error bounds.
    notes
        Warnings, such as that of an unstable network.
    """

    path: Path
    files: tuple[str, ...]
    manifest: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def error_bound(self) -> tuple[float, ...]:
        """Bound on the error of each output in 1e8 steps by rounding, from the exported x0, for inputs up to 1.

        In discrete time the bound includes the error of the decomposition. Inputs are counted from the operating point of
        the model. The error of a reduction, `manifest["reduced by"]` times the L2 norm of the inputs, comes in addition.
        """
        return tuple(math.inf if bound is None else bound for bound in self.manifest["bound"]["drift"])

    @property
    def _time_step(self) -> str:
        dt, hold = self.manifest["dt"], self.manifest["hold"]
        if hold == DISCRETE:
            return f"{dt:g} (that of the model in discrete time)"
        return f"{dt:g}, inputs {_HOLD_TEXTS.get(hold, f'with a hold {hold}')}"

    def __str__(self) -> str:
        rows = [("files", ", ".join(self.files)), ("time step", self._time_step)]
        rows.append(("precision", str(self.manifest["dtype"])))
        if "reduced by" in self.manifest:
            size = self.manifest["reduced by"]
            rows.append(
                ("reduction", "error not bounded" if size is None else f"error ≤ {size:.2g} ‖u‖ in L2, in addition")
            )
        rows.extend(("note", note) for note in self.notes)
        return format_rows(f"export to {self.path}", rows)


def with_warnings(export: Export) -> Export:
    """Issue the notes of an export as warnings at the caller of the export method; return the export."""
    for note in export.notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return export


def build_manifest(
    target: str,
    context: SimulationContext,
    settings: ExportSettings,
    *,
    model: StepModel,
    bound: RoundingBound,
    files: Sequence[str],
) -> Mapping[str, Any]:
    """Return the facts of an export as plain data; an unknown bound is null."""
    checksum = network_checksum(context.stored._replace(settings=settings.signals))
    facts: dict[str, Any] = {
        "made by": GENERATOR,
        "target": target,
        "network": {"sha256": checksum, "states": model.n_states},
        "inputs": list(input_names(context)),
        "outputs": list(output_names(context)),
        "dt": settings.dt,
        "hold": DISCRETE if model.is_discrete else settings.hold,
        "dtype": settings.dtype,
        "bound": {
            "inputs up to": 1.0,
            "steps": LONG_RUN_STEPS,
            "per step": _finite_or_none(bound.per_step),
            "drift": _finite_or_none(bound.drift),
            "size": _finite_or_none(bound.size),
        },
        "files": list(files),
    }
    if settings.signals.shifts_signals:
        facts["delays and operating point"] = describe_signal_settings(settings.signals)
        facts["bound"]["inputs counted from"] = "the operating point"
    if context.form is not None:  # in continuous time the bound is that of the network and does not count it
        form = {"backward error": context.form.backward_error, "cond(T)": context.form.condition_raw}
        facts["decomposition"] = {name: value if math.isfinite(value) else None for name, value in form.items()}
    if context.reduction_error is not None:  # ‖y − y of the full-order system‖ ≤ this times ‖u‖ in L2
        facts["reduced by"] = context.reduction_error if math.isfinite(context.reduction_error) else None
    return MappingProxyType(facts)


def describe_signal_settings(signals: SignalSettings) -> dict[str, Any]:
    """Return delays and operating point as plain data, if set."""
    names = ("input_delay", "output_delay", "u0", "y0")
    return {name: value for name, value in signals.facts.items() if name in names}


def input_names(context: SimulationContext) -> tuple[str, ...]:
    """Return the names of the inputs, u1, u2, … by default."""
    return names_or_defaults(context.names.inputs, "inputs", context.network.n_inputs)


def output_names(context: SimulationContext) -> tuple[str, ...]:
    """Return the names of the outputs, y1, y2, … by default."""
    return names_or_defaults(context.names.outputs, "outputs", context.network.n_outputs)


def long_run_bound(model: StepModel | TappedModel, settings: ExportSettings, *, terms: int = 1) -> RoundingBound:
    """Return the bound of the manifest: inputs up to 1, `LONG_RUN_STEPS` steps, sums over `terms` samples at a time.

    In discrete time the error after all steps is that of the system: the decomposition counts.
    """
    n_steps, step = float(LONG_RUN_STEPS), model if isinstance(model, StepModel) else model.step
    bound = exported_rounding_bound(model, PRECISIONS[settings.dtype], n_steps=n_steps, samples_at_once=terms)
    if not step.is_discrete:
        return bound
    return bound._replace(drift=bound.drift + decomposition_error(step, n_steps=n_steps, x0=settings.x0))


def manifest_bytes(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as JSON text, equal for equal manifests."""
    return json.dumps(dict(manifest), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _finite_or_none(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]
