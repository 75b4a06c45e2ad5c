"""A folder of C: the model, its header, a self-test, a Makefile, a README and the manifest."""

from dataclasses import replace
from os import PathLike

from ltinet.errors import FileFormatError
from ltinet.export.c.readme import readme
from ltinet.export.c.self_test import vectors_section
from ltinet.export.c.sources import filled, renamed, source
from ltinet.export.c.tables import delays_section, signals_section, sizes_section, tables_section
from ltinet.export.identifiers import checked_prefix
from ltinet.export.manifest import (
    Export,
    as_json,
    bound_after_many_steps,
    input_names,
    manifest_of,
    output_names,
)
from ltinet.export.places import MANIFEST, write_export_folder
from ltinet.export.settings import ExportSettings, exported_model, remarks_on
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import TappedModel, tapped_model
from ltinet.solve.prepared import PreparedNetwork


def write_c(
    prepared: PreparedNetwork,
    folder: str | PathLike[str],
    *,
    settings: ExportSettings,
    prefix: str,
    user_states: bool,
) -> Export:
    """Write the sources of a network."""
    prefix = checked_prefix(prefix)
    if user_states and prepared.has_operator:
        raise FileFormatError(
            f"T of this network of {prepared.network.n_states} states is an operator and no array; leave "
            "user_states out"
        )
    model = exported_model(prepared, settings)
    tapped = tapped_model(model, settings) if settings.signals.moves_signals else None
    bound = bound_after_many_steps(tapped or model, settings)
    if tapped is None:
        files = model_sources(prepared, model, settings, prefix=prefix, user_states=user_states)
    else:
        files = _delayed_sources(prepared, tapped, settings, prefix=prefix, user_states=user_states)
    vectors = vectors_section(model, settings, tapped)
    makefile = source("c", "Makefile" if tapped is None else "Makefile.delayed")
    files |= {
        f"{prefix}_test.c": filled(source("c", "model_test.c"), {"vectors": vectors}, prefix=prefix),
        "Makefile": renamed(makefile, prefix),
        "README.md": readme(
            prepared, model, settings, bound=bound, prefix=prefix, user_states=user_states, tapped=tapped
        ),
    }
    names = (*files, MANIFEST)
    manifest = manifest_of("c", prepared, settings, model=model, bound=bound, files=names)
    files[MANIFEST] = as_json(manifest)
    place = write_export_folder(folder, {name: text.encode() for name, text in files.items()})
    return Export(place, names, manifest, remarks_on(model))


def model_sources(
    prepared: PreparedNetwork, model: StepModel, settings: ExportSettings, *, prefix: str, user_states: bool
) -> dict[str, str]:
    """The two files that a program needs."""
    sizes = sizes_section(
        model, settings, inputs=input_names(prepared), outputs=output_names(prepared), user_states=user_states
    )
    tables = tables_section(model, settings, user_states=user_states)
    return {
        f"{prefix}.c": filled(source("c", "model.c"), {"tables": tables}, prefix=prefix),
        f"{prefix}.h": filled(source("c", "model.h"), {"sizes": sizes}, prefix=prefix),
    }


def _delayed_sources(
    prepared: PreparedNetwork, tapped: TappedModel, settings: ExportSettings, *, prefix: str, user_states: bool
) -> dict[str, str]:
    """The four files that a program with delays or an operating point needs: the core, and what is around it."""
    core, held = f"{prefix}_core", replace(settings, hold="zero")
    sizes = sizes_section(tapped.step, held, inputs=(), outputs=(), user_states=user_states)
    tables = tables_section(tapped.step, held, user_states=user_states)
    signals = signals_section(tapped, inputs=input_names(prepared), outputs=output_names(prepared))
    delays = delays_section(tapped, settings)
    return {
        f"{prefix}.c": filled(source("c", "delayed.c"), {"delays": delays}, prefix=prefix),
        f"{prefix}.h": filled(source("c", "delayed.h"), {"signals": signals}, prefix=prefix),
        f"{core}.c": filled(source("c", "model.c"), {"tables": tables}, prefix=core),
        f"{core}.h": filled(source("c", "model.h"), {"sizes": sizes}, prefix=core),
    }
