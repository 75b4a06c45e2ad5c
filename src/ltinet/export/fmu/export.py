"""An FMU: sources, description and libraries in one archive, the same bytes for equal networks and compilers."""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from os import PathLike

from ltinet.errors import FileFormatError
from ltinet.export.c.export import model_sources
from ltinet.export.c.sources import filled, source
from ltinet.export.fmu.compiling import checked_platforms, found_compiler, libraries
from ltinet.export.fmu.continuous import continuous_section, continuous_sizes, delay_sizes, delays_section
from ltinet.export.fmu.description import VERSIONS, Described, Version, build_description, description, documentation
from ltinet.export.manifest import (
    Export,
    as_json,
    bound_after_many_steps,
    input_names,
    manifest_of,
    output_names,
)
from ltinet.export.places import MANIFEST, checked_file, write_export_file
from ltinet.export.settings import ExportSettings, exported_model, remarks_on
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import tapped_model
from ltinet.shown import shown
from ltinet.solve.prepared import PreparedNetwork

SUFFIX = ".fmu"
_HEADERS = {"3": ("PlatformTypes", "FunctionTypes", "Functions"), "2": ("TypesPlatform", "FunctionTypes", "Functions")}
_BEGINNING = (1980, 1, 1, 0, 0, 0)  # of all time in an archive


def write_fmu(
    prepared: PreparedNetwork,
    path: str | PathLike[str],
    *,
    settings: ExportSettings,
    version: Version,
    compiler: str | Sequence[str] | None,
    platforms: Sequence[str] | None,
) -> Export:
    """Write the FMU of a network."""
    if version not in VERSIONS:
        raise FileFormatError(f'version is {shown(repr(version))}; give "3.0" or "2.0"')
    place = checked_file(path, suffix=SUFFIX)
    targets, command = checked_platforms(platforms), found_compiler(compiler)
    model = exported_model(prepared, settings)
    moved = settings.signals if settings.signals.moves_signals else None
    bound = bound_after_many_steps(tapped_model(model, settings) if moved else model, settings)
    facts = manifest_of("fmu", prepared, settings, model=model, bound=bound, files=[])
    token = hashlib.sha256(f"{version} {as_json(facts)} {model.start.tobytes().hex()}".encode()).hexdigest()
    sources = _sources(prepared, model, settings, version=version, token=token)
    described = Described(
        name="".join(mark if mark.isprintable() else "_" for mark in place.stem),
        identifier=re.sub(r"[^A-Za-z0-9]", "_", re.sub(r"^(?=[^A-Za-z])", "m", place.stem))[:60],
        token=token,
        inputs=input_names(prepared),
        outputs=output_names(prepared),
        model=model,
        sources=[name for name in sources if name.endswith(".c")],
        signals=settings.signals,
    )
    files = {"modelDescription.xml": description(described, version)}
    files |= {f"sources/{name}": text.encode() for name, text in sources.items()}
    if version == "3.0":
        files["sources/buildDescription.xml"] = build_description(described)
    files["documentation/licenses/fmi-headers.txt"] = _header("LICENSE.txt").encode()
    files |= libraries(sources, command, platforms=targets, identifier=described.identifier, old_names=version == "2.0")
    if moved:
        files["documentation/index.html"] = documentation(described, version)
    held = {"hold": "zero" if version == "3.0" else "zero, or linear where derivatives of inputs are set"}
    if moved and moved.hold == "linear":
        held["hold of delayed inputs"] = "linear between communication points"
    manifest = (
        dict(facts) | held | {"files": [*files, f"extra/ltinet/{MANIFEST}"], "fmi": version, "platforms": list(targets)}
    )
    files[f"extra/ltinet/{MANIFEST}"] = as_json(manifest).encode()
    write_export_file(place, _archive(files))
    return Export(place, tuple(files), manifest, remarks_on(model))


def _sources(
    prepared: PreparedNetwork, model: StepModel, settings: ExportSettings, *, version: Version, token: str
) -> dict[str, str]:
    """Everything that is compiled: the model as exported C, steps of any length, and the interface."""
    sections = {
        "continuous": continuous_section(model),
        "continuous sizes": continuous_sizes(model),
        "token": f'static const char TOKEN[] = "{token}";',
    }
    number = version[0]
    names = ("any_step.c", "any_step.h", "instance.c", "instance.h", f"fmi{number}.c", f"fmi{number}_absent.c")
    files = model_sources(prepared, model, settings, prefix="model", user_states=False)
    files |= {name: filled(source("fmu", name), sections, prefix="model") for name in names}
    if settings.signals.moves_signals:
        own = {
            "delay sizes": delay_sizes(model, settings.signals),
            "delays": delays_section(model, settings.signals),
        }
        delayed = {name: source("fmu", f"delayed_{name}") for name in ("instance.c", "instance.h")}
        files |= {name: filled(text, own, prefix="model") for name, text in delayed.items()}
    headers = [f"fmi{number}{part}.h" for part in _HEADERS[number]]
    return files | {name: _header(name) for name in headers}


def _header(name: str) -> str:
    return (resources.files("ltinet.export.fmu") / "headers" / name).read_text(encoding="utf-8")


def _archive(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_BEGINNING)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, files[name])
    return content.getvalue()
