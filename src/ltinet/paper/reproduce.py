"""Reproduction of the paper's numerical examples by `ltinet reproduce`.

The examples are computed with their layers distributed over processes (full run) or one process per example (quick
run), and written as figures, numbers and one page.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from ltinet._util.progress import ProgressCallback, progress_bar
from ltinet._util.text import install_hint
from ltinet.errors import LtinetError, MissingDependencyError
from ltinet.paper import convection_diffusion, diffusion, forward_passes, horizontal_layers, layer_types
from ltinet.paper.comparison import add_rounding_band
from ltinet.paper.forward_passes import SOLVER_TOLERANCE, SolverEffort
from ltinet.paper.report import (
    OutputFolder,
    ReportSection,
    RunInfo,
    SavedFigure,
    blas_kernel,
    installed_versions,
    report_page,
    results_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROGRESS_STEPS = 6  # steps that each example reports, including its figures


@dataclass(frozen=True)
class Example:
    """Module that computes and describes an example, solver effort in quick runs, and seeds."""

    module: ModuleType
    quick: SolverEffort
    seeds: Mapping[str, int]


_KMEANS_SEED = {"K-means": forward_passes.KMEANS_SEED}
EXAMPLES: Mapping[str, Example] = {
    "diffusion": Example(diffusion, SolverEffort(layers_across_knots=200, layers_from_knot_to_knot=10), {}),
    "horizontal-layers": Example(
        horizontal_layers, SolverEffort(stop=3.0), {"Example 3.2": horizontal_layers.SEED, **_KMEANS_SEED}
    ),
    "layer-types": Example(layer_types, SolverEffort(stop=0.3), {"Example 3.3": layer_types.SEED, **_KMEANS_SEED}),
    "convection-diffusion": Example(
        convection_diffusion, SolverEffort(stop=2.0, layers_across_knots=20, layers_from_knot_to_knot=5), {}
    ),
}


def reproduce(names: Sequence[str], *, out: Path, quick: bool) -> Path:
    """Compute examples and write `figures`, `results.json` and `report.html` to the folder `out`.

    A full run of all four examples takes some minutes on all cores. In a quick run ODE solvers stop earlier or solve
    fewer layers, as the report states, and figures are PNG only.

    Parameters
    ----------
    names : sequence of str
        Keys of `EXAMPLES`.
    out : Path
        Output folder.
    quick : bool
        Make a quick run.

    Returns
    -------
    Path
        Path of the report.

    Raises
    ------
    LtinetError
        An example does not exist.
    FileFormatError
        `out` is not writable.
    MissingDependencyError
        A library of the extra "paper" is not installed.
    """
    examples = _select_examples(names)
    run = _run_info(examples, quick=quick)
    folder = OutputFolder.ready(out)
    # Processes use all cores; additional BLAS threads would compete with them.
    with threadpool_limits(limits=1, user_api="blas"), progress_bar(_PROGRESS_STEPS * len(examples)) as progress:
        if quick:
            outputs = _run_in_parallel(examples, folder, progress)
        else:  # one after the other, the layers of each network in parallel processes
            outputs = [_compute_and_draw(name, folder, full=True, progress=progress) for name in examples]
    seconds = {output.section.name: output.seconds for output in outputs}
    figures = {name: figure for output in outputs for name, figure in output.figures.items()}
    sections = [output.section for output in outputs]
    folder.write("results.json", results_text(sections, run=run, seconds=seconds))
    return folder.write("report.html", report_page(sections, run=run, figures=figures))


@dataclass(frozen=True)
class _ExampleOutput:
    section: ReportSection
    figures: dict[str, SavedFigure]
    seconds: float


def _run_in_parallel(
    examples: Collection[str], folder: OutputFolder, progress: ProgressCallback
) -> list[_ExampleOutput]:
    """Run each example in its own process; distributing layers would take as long as it saves in a quick run."""
    import joblib

    runs = joblib.Parallel(n_jobs=-1, return_as="generator")(
        joblib.delayed(_compute_and_draw)(name, folder, full=False, progress=_no_progress) for name in examples
    )
    outputs = []
    for name, output in zip(examples, runs, strict=True):
        for _ in range(_PROGRESS_STEPS):
            progress(name)
        outputs.append(output)
    return outputs


def _compute_and_draw(name: str, folder: OutputFolder, *, full: bool, progress: ProgressCallback) -> _ExampleOutput:
    """Compute an example, draw its figures and save them."""
    import joblib

    def report_step(step: str) -> None:
        progress(f"{name}: {step}")

    example, start_time = EXAMPLES[name], perf_counter()
    with joblib.parallel_config(backend="loky" if full else "sequential"):
        result = example.module.compute(SolverEffort() if full else example.quick, progress=report_step)
        section: ReportSection = example.module.report_section(result)
    seconds = round(perf_counter() - start_time, 1)
    if full:  # the stored values are those of full runs
        section = replace(section, numbers=tuple(map(add_rounding_band, section.numbers)))
    report_step("figures")
    figures = {
        f"{name}_{picture.name}": folder.save_picture(picture, example=name, as_svg=full)
        for picture in section.pictures
    }
    # The draw functions refer to all results, which need not be sent between processes after drawing.
    pictures = tuple(replace(picture, draw=_already_drawn) for picture in section.pictures)
    return _ExampleOutput(replace(section, pictures=pictures), figures, seconds)


def _no_progress(step: str) -> None:
    """Ignore the progress of an example in another process."""


def _already_drawn() -> "Figure":
    raise LtinetError("the figure was drawn and saved, and its data were discarded")


def _select_examples(names: Sequence[str]) -> dict[str, Example]:
    unknown = [name for name in names if name not in EXAMPLES]
    if unknown or not names:
        problem = f"there is no example {', '.join(map(repr, unknown))}" if unknown else "no example was named"
        raise LtinetError(f"{problem}; there are {', '.join(EXAMPLES)}")
    return {name: example for name, example in EXAMPLES.items() if name in names}  # in the order of the paper


def _run_info(examples: Mapping[str, Example], *, quick: bool) -> RunInfo:
    names = "all" if len(examples) == len(EXAMPLES) else " ".join(examples)
    try:
        versions = installed_versions()
    except ImportError as error:
        raise MissingDependencyError(f"the paper's examples need {error.name}; {install_hint('paper')}") from error
    return RunInfo(
        command=f"ltinet reproduce {names}{' --quick' if quick else ''}",
        quick=quick,
        quick_note=_quick_note(examples) if quick else "",
        tolerance=SOLVER_TOLERANCE,
        seeds={purpose: seed for example in examples.values() for purpose, seed in example.seeds.items()},
        versions=versions,
        kernel=blas_kernel(),
    )


def _quick_note(examples: Mapping[str, Example]) -> str:
    limits = "; ".join(f"in {name} they {_effort_note(example.quick)}" for name, example in examples.items())
    return (
        f"To save time, ODE solvers do less: {limits}. Layers that are not solved are exact. Everything else is as in a "
        "full run."
    )


def _effort_note(effort: SolverEffort) -> str:
    parts = (
        f"stop at t = {effort.stop:g}" if effort.stop < SolverEffort.stop else "",
        f"solve {effort.layers_across_knots} layers as in the paper" if effort.layers_across_knots else "",
        f"solve {effort.layers_from_knot_to_knot} layers from knot to knot" if effort.layers_from_knot_to_knot else "",
    )
    return " and ".join(filter(None, parts))
