"""Reproduction of the paper's numerical examples by `ltinet reproduce`.

The examples are computed with their layers distributed over processes (full run) or one process per example (quick
run), and written as figures, numbers and one page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from ltinet._util.progress import ProgressCallback, progress_bar
from ltinet.errors import LtinetError, MissingDependencyError
from ltinet.paper import convection_diffusion, diffusion, forward_passes, horizontal_layers, layer_types
from ltinet.paper import convection_diffusion as convection_diffusion_account
from ltinet.paper import diffusion as diffusion_account
from ltinet.paper import horizontal_layers as horizontal_layers_account
from ltinet.paper import layer_types as layer_types_account
from ltinet.paper.comparison import ReportSection, add_rounding_bands
from ltinet.paper.forward_passes import SOLVER_TOLERANCE, SolverEffort
from ltinet.paper.report import (
    OutputFolder,
    RunInfo,
    SavedFigure,
    blas_kernel,
    installed_versions,
    report_page,
    results_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# MERGED ltinet.paper.reproduce
# `ltinet reproduce`: the paper's numerical section and its appendix as figures, numbers and one page to read.

_PROGRESS_STEPS = 6  # that each example tells of, its figures included


@dataclass(frozen=True)
class Example:
    """How one example is computed and told."""

    compute: Callable[..., Any]
    account: Callable[[Any], ReportSection]
    quick: SolverEffort
    seeds: Mapping[str, int]


EXAMPLES: Mapping[str, Example] = {
    "diffusion": Example(
        diffusion.compute,
        diffusion_account.report_section,
        SolverEffort(layers_across_knots=200, layers_from_knot_to_knot=10),
        {},
    ),
    "horizontal-layers": Example(
        horizontal_layers.compute,
        horizontal_layers_account.report_section,
        SolverEffort(stop=3.0),
        {"Example 3.2": horizontal_layers.SEED, "K-means": forward_passes.KMEANS_SEED},
    ),
    "layer-types": Example(
        layer_types.compute,
        layer_types_account.report_section,
        SolverEffort(stop=0.3),
        {"Example 3.3": layer_types.SEED, "K-means": forward_passes.KMEANS_SEED},
    ),
    "convection-diffusion": Example(
        convection_diffusion.compute,
        convection_diffusion_account.report_section,
        SolverEffort(stop=2.0, layers_across_knots=20, layers_from_knot_to_knot=5),
        {},
    ),
}


def reproduce(names: Sequence[str], *, out: Path, quick: bool) -> Path:
    """Compute the examples called `names`; write `figures`, `results.json` and `report.html` to the folder `out`.

    Returns the path of the report. A full run of all four takes some minutes on all cores. In a quick one ODE
    solvers stop earlier or solve fewer layers, as the report says, and figures come as PNG only.

    Raises:
        LtinetError: there is no example of that name.
        FileFormatError: `out` cannot be written to.
        MissingDependencyError: a library of the extra "paper" is not installed.
    """
    chosen = _select_examples(names)
    run = _run_info(chosen, quick=quick)
    folder = OutputFolder.ready(out)
    # Processes keep all cores busy; BLAS threads on top of them would only wait for each other.
    with threadpool_limits(limits=1, user_api="blas"), progress_bar(_PROGRESS_STEPS * len(chosen)) as tell:
        made = _run_in_parallel(chosen, folder, tell) if quick else _run_sequentially(chosen, folder, tell)
    seconds = {one.section.name: one.seconds for one in made}
    drawn = {name: picture for one in made for name, picture in one.drawn.items()}
    sections = [one.section for one in made]
    folder.write("results.json", results_text(sections, run=run, seconds=seconds))
    return folder.write("report.html", report_page(sections, run=run, drawn=drawn))


@dataclass(frozen=True)
class _ExampleOutput:
    section: ReportSection
    drawn: dict[str, SavedFigure]
    seconds: float


def _run_sequentially(
    chosen: Mapping[str, Example], folder: OutputFolder, tell: ProgressCallback
) -> list[_ExampleOutput]:
    """A full run: the layers of each network are shared among processes."""
    return [_compute_and_draw(name, folder, full=True, tell=_prefixed_progress(tell, name)) for name in chosen]


def _run_in_parallel(
    chosen: Mapping[str, Example], folder: OutputFolder, tell: ProgressCallback
) -> list[_ExampleOutput]:
    """A quick run: each example has a process of its own, for sharing layers would take as long as it saves."""
    import joblib

    runs = joblib.Parallel(n_jobs=-1, return_as="generator")(
        joblib.delayed(_compute_and_draw)(name, folder, full=False, tell=_no_progress) for name in chosen
    )
    made = []
    for name, one in zip(chosen, runs, strict=True):
        for _ in range(_PROGRESS_STEPS):
            tell(name)
        made.append(one)
    return made


def _compute_and_draw(name: str, folder: OutputFolder, *, full: bool, tell: ProgressCallback) -> _ExampleOutput:
    """Compute an example, draw its figures and put them into the folder."""
    import joblib

    example, begin = EXAMPLES[name], perf_counter()
    with joblib.parallel_config(backend="loky" if full else "sequential"):
        section = example.account(example.compute(SolverEffort() if full else example.quick, tell=tell))
    seconds = round(perf_counter() - begin, 1)
    if full:  # bands are those of full runs
        section = add_rounding_bands(section)
    tell("figures")
    drawn = {
        f"{name}_{picture.name}": folder.save_picture(picture, example=name, as_svg=full)
        for picture in section.pictures
    }
    # What draws holds all results; they need not travel between processes once it has drawn.
    pictures = tuple(replace(picture, draw=_draw_mathtext) for picture in section.pictures)
    return _ExampleOutput(replace(section, pictures=pictures), drawn, seconds)


def _no_progress(step: str) -> None:
    """Nobody is told which step begins."""


def _draw_mathtext() -> "Figure":
    raise LtinetError("this picture was drawn and saved; its data are gone")


def _select_examples(names: Sequence[str]) -> dict[str, Example]:
    unknown = [name for name in names if name not in EXAMPLES]
    if unknown or not names:
        came = f"there is no example {', '.join(map(repr, unknown))}" if unknown else "no example was named"
        raise LtinetError(f"{came}; there are {', '.join(EXAMPLES)}")
    return {name: example for name, example in EXAMPLES.items() if name in names}  # in the order of the paper


def _run_info(chosen: Mapping[str, Example], *, quick: bool) -> RunInfo:
    which = "all" if len(chosen) == len(EXAMPLES) else " ".join(chosen)
    try:
        versions = installed_versions()
    except ImportError as error:
        raise MissingDependencyError(
            f'the paper\'s examples need {error.name}; install it with pip install "ltinet[paper]"'
        ) from error
    return RunInfo(
        command=f"ltinet reproduce {which}{' --quick' if quick else ''}",
        quick=quick,
        quick_note=_quick_note(chosen) if quick else "",
        tolerance=SOLVER_TOLERANCE,
        seeds={what: seed for example in chosen.values() for what, seed in example.seeds.items()},
        versions=versions,
        kernel=blas_kernel(),
    )


def _quick_note(chosen: Mapping[str, Example]) -> str:
    cuts = "; ".join(f"in {name} they {_effort_note(example.quick)}" for name, example in chosen.items())
    return (
        f"To save time, ODE solvers do less: {cuts}. Layers that are not solved are exact. Everything else is as in a "
        "full run."
    )


def _effort_note(effort: SolverEffort) -> str:
    parts = (
        f"stop at t = {effort.stop:g}" if effort.stop < SolverEffort.stop else "",
        f"solve {effort.layers_across_knots} layers as in the paper" if effort.layers_across_knots else "",
        f"solve {effort.layers_from_knot_to_knot} layers from knot to knot" if effort.layers_from_knot_to_knot else "",
    )
    return " and ".join(filter(None, parts))


def _prefixed_progress(tell: ProgressCallback, name: str) -> ProgressCallback:
    return lambda step: tell(f"{name}: {step}")
