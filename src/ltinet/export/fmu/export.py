"""Export of a network as an FMU: C sources, description and libraries in one archive.

Besides the exported C model, an FMU has tables for steps of any length (rates, inputs and dense blocks of the
continuous-time system) and for delays. Equal networks and compilers give equal bytes.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from os import PathLike

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError
from ltinet.export import manifest
from ltinet.export.c.export import model_sources
from ltinet.export.c.tables import c_integer_table, c_list, c_number, write_block_tables
from ltinet.export.c.templates import fill_template, read_source
from ltinet.export.fmu import description
from ltinet.export.fmu.compiler import compile_libraries, find_compiler, validate_platforms
from ltinet.export.fmu.description import Version
from ltinet.export.manifest import Export
from ltinet.export.step_model import ExportSettings, StepModel, build_exported_model, growth_warnings
from ltinet.export.tapped_delay_line import build_tapped_model
from ltinet.simulation.context import SimulationContext
from ltinet.systems.signal_settings import SignalSettings


def continuous_section(model: StepModel) -> str:
    """Return the tables of rates, B and dense blocks; "" for a model without states."""
    if not model.n_states:
        return ""
    rows = ["    {\n" + _c_numbers(row) + "}" for row in (model.B.T if model.n_inputs else np.zeros((1, 1)))]
    parts = [
        f"static const double RATE_RE[MODEL_DIM(SCALARS)] = {{\n{_c_numbers(model.rates.real)}}};",
        f"static const double RATE_IM[MODEL_DIM(SCALARS)] = {{\n{_c_numbers(model.rates.imag)}}};",
        "static const double B[MODEL_DIM(MODEL_INPUTS)][MODEL_STATES] = {\n" + ",\n".join(rows) + "};",
    ]
    blocks = write_block_tables(model, "F_BLOCK", [block.F for block in model.blocks], "double")
    return "\n".join([*parts, *blocks])


def _c_numbers(values: Array) -> str:
    return c_list([c_number(value, "double") for value in values.tolist()] or ["0"])


def delay_sizes(model: StepModel, signals: SignalSettings) -> str:
    """Return the sizes of the delay lines around the core."""
    copies, longest = np.unique(signals.array("output_delay", model.n_outputs)), largest_delay(model, signals)
    defined = {
        "COPIES": max(len(copies), 1),
        "PIECES": description.MAX_STEPS_PER_DT * int(np.ceil(longest / model.dt)) + 64,
        "LINES_BETWEEN_POINTS": int(signals.hold == "linear"),
    }
    return "\n".join(f"#define MODEL_{name} {value}" for name, value in defined.items())


def delay_tables_section(model: StepModel, signals: SignalSettings) -> str:
    """Return the tables of delays and the operating point."""
    m, p = model.n_inputs, model.n_outputs
    copies, copy_of_output = np.unique(signals.array("output_delay", p), return_inverse=True)
    copies = copies if len(copies) else np.zeros(1)
    tables = {
        "INPUT_DELAY[MODEL_DIM(MODEL_INPUTS)]": signals.array("input_delay", m),
        "COPY_DELAY[MODEL_COPIES]": copies,
        "U0[MODEL_DIM(MODEL_INPUTS)]": signals.array("u0", m),
        "Y0[MODEL_DIM(MODEL_OUTPUTS)]": signals.array("y0", p),
    }
    lines = [f"static const double {name} = {{\n{_c_numbers(values)}}};" for name, values in tables.items()]
    lines.append(f"static const double LONGEST_DELAY = {c_number(largest_delay(model, signals), 'double')};")
    lines.append(c_integer_table("OUTPUT_COPY", "MODEL_DIM(MODEL_OUTPUTS)", copy_of_output).rstrip())
    return "\n".join(lines)


def largest_delay(model: StepModel, signals: SignalSettings) -> float:
    """Return the largest delay from an input to an output."""
    return float(signals.total_delay(model.n_outputs, model.n_inputs).max(initial=0.0))


SUFFIX = ".fmu"
_HEADERS = {"3": ("PlatformTypes", "FunctionTypes", "Functions"), "2": ("TypesPlatform", "FunctionTypes", "Functions")}
_ARCHIVE_DATE = (1980, 1, 1, 0, 0, 0)  # the same in all archives, so that equal networks give equal bytes


def write_fmu(
    context: SimulationContext,
    path: str | PathLike[str],
    *,
    settings: ExportSettings,
    version: Version,
    compiler: str | Sequence[str] | None,
    platforms: Sequence[str] | None,
) -> Export:
    """Write the FMU of a network."""
    if version not in description.VERSIONS:
        raise FileFormatError(f'version is {sanitize(repr(version))}; give "3.0" or "2.0"')
    path = manifest.validate_export_path(path, suffix=SUFFIX)
    targets, command = validate_platforms(platforms), find_compiler(compiler)
    model = build_exported_model(context, settings)
    shifts_signals = settings.signals.shifts_signals
    bound = manifest.long_run_bound(build_tapped_model(model, settings) if shifts_signals else model, settings)
    facts = manifest.build_manifest("fmu", context, settings, model=model, bound=bound, files=[])
    identity = f"{version} {manifest.manifest_bytes(facts)} {model.start.tobytes().hex()}"
    token = hashlib.sha256(identity.encode()).hexdigest()
    sources = _sources(context, model, settings, version=version, token=token)
    model_description = description.ModelDescription(
        name="".join(mark if mark.isprintable() else "_" for mark in path.stem),
        identifier=re.sub(r"[^A-Za-z0-9]", "_", re.sub(r"^(?=[^A-Za-z])", "m", path.stem))[:60],
        token=token,
        inputs=manifest.input_names(context),
        outputs=manifest.output_names(context),
        model=model,
        sources=[name for name in sources if name.endswith(".c")],
        signals=settings.signals,
    )
    files = {"modelDescription.xml": description.model_description_xml(model_description, version)}
    files |= {f"sources/{name}": text.encode() for name, text in sources.items()}
    if version == "3.0":
        files["sources/buildDescription.xml"] = description.build_description_xml(model_description)
    files["documentation/licenses/fmi-headers.txt"] = _header("LICENSE.txt").encode()
    files |= compile_libraries(
        sources, command, platforms=targets, identifier=model_description.identifier, old_names=version == "2.0"
    )
    if shifts_signals:
        files["documentation/index.html"] = description.documentation_html(model_description, version)
    manifest_path = f"extra/ltinet/{manifest.MANIFEST_FILE}"
    hold = {"hold": "zero" if version == "3.0" else "zero, or linear where derivatives of inputs are set"}
    if shifts_signals and settings.signals.hold == "linear":
        hold["hold of delayed inputs"] = "linear between communication points"
    record = {**facts, **hold, "files": [*files, manifest_path], "fmi": version, "platforms": list(targets)}
    files[manifest_path] = manifest.manifest_bytes(record).encode()
    manifest.write_export_file(path, _archive(files))
    return Export(path, tuple(files), record, growth_warnings(model))


def _sources(
    context: SimulationContext, model: StepModel, settings: ExportSettings, *, version: Version, token: str
) -> dict[str, str]:
    """Return all files to compile: the model as exported C, steps of any length, and the interface."""
    sections = {
        "continuous": continuous_section(model),
        "continuous sizes": f"#define MODEL_BLOCK_ENTRIES {sum(len(block.F) ** 2 for block in model.blocks)}",
        "token": f'static const char TOKEN[] = "{token}";',
    }
    number = version[0]
    names = ("any_step.c", "any_step.h", "instance.c", "instance.h", f"fmi{number}.c", f"fmi{number}_absent.c")
    inputs, outputs = manifest.input_names(context), manifest.output_names(context)
    files = model_sources(model, settings, prefix="model", user_states=False, inputs=inputs, outputs=outputs)
    files |= {name: fill_template(read_source("fmu", name), sections, prefix="model") for name in names}
    if settings.signals.shifts_signals:
        sections["delay sizes"] = delay_sizes(model, settings.signals)
        sections["delays"] = delay_tables_section(model, settings.signals)
        for name in ("instance.c", "instance.h"):
            files[name] = fill_template(read_source("fmu", f"delayed_{name}"), sections, prefix="model")
    headers = [f"fmi{number}{part}.h" for part in _HEADERS[number]]
    return files | {name: _header(name) for name in headers}


def _header(name: str) -> str:
    return (resources.files("ltinet.export.fmu") / "headers" / name).read_text(encoding="utf-8")


def _archive(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_ARCHIVE_DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, files[name])
    return content.getvalue()
