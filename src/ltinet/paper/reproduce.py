"""`ltinet reproduce`: the paper's numerical section and its appendix as figures, numbers and one page to read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from ltinet.errors import LtinetError, MissingDependencyError
from ltinet.paper import convection_diffusion, diffusion, horizontal_layers, kmeans, layer_types
from ltinet.paper.accounts import convection_diffusion as convection_diffusion_account
from ltinet.paper.accounts import diffusion as diffusion_account
from ltinet.paper.accounts import horizontal_layers as horizontal_layers_account
from ltinet.paper.accounts import layer_types as layer_types_account
from ltinet.paper.forward_passes import TOLERANCE, Effort
from ltinet.paper.kernel_bands import with_bands
from ltinet.paper.output_folder import OutputFolder
from ltinet.paper.report import DrawnPicture, report_page
from ltinet.paper.results import results_text
from ltinet.paper.run import Run, blas_kernel, installed_versions
from ltinet.paper.section import Section
from ltinet.progress import Tell, progress_bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STEPS = 6  # that each example tells of, its figures included


@dataclass(frozen=True)
class Example:
    """How one example is computed and told."""

    compute: Callable[..., Any]
    account: Callable[[Any], Section]
    quick: Effort
    seeds: Mapping[str, int]


EXAMPLES: Mapping[str, Example] = {
    "diffusion": Example(
        diffusion.compute, diffusion_account.account, Effort(layers_across_knots=200, layers_from_knot_to_knot=10), {}
    ),
    "horizontal-layers": Example(
        horizontal_layers.compute,
        horizontal_layers_account.account,
        Effort(stop=3.0),
        {"Example 3.2": horizontal_layers.SEED, "K-means": kmeans.SEED},
    ),
    "layer-types": Example(
        layer_types.compute,
        layer_types_account.account,
        Effort(stop=0.3),
        {"Example 3.3": layer_types.SEED, "K-means": kmeans.SEED},
    ),
    "convection-diffusion": Example(
        convection_diffusion.compute,
        convection_diffusion_account.account,
        Effort(stop=2.0, layers_across_knots=20, layers_from_knot_to_knot=5),
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
    chosen = _chosen(names)
    run = _run(chosen, quick=quick)
    folder = OutputFolder.ready(out)
    # Processes keep all cores busy; BLAS threads on top of them would only wait for each other.
    with threadpool_limits(limits=1, user_api="blas"), progress_bar(_STEPS * len(chosen)) as tell:
        made = _side_by_side(chosen, folder, tell) if quick else _one_by_one(chosen, folder, tell)
    seconds = {one.section.name: one.seconds for one in made}
    drawn = {name: picture for one in made for name, picture in one.drawn.items()}
    sections = [one.section for one in made]
    folder.write("results.json", results_text(sections, run=run, seconds=seconds))
    return folder.write("report.html", report_page(sections, run=run, drawn=drawn))


@dataclass(frozen=True)
class _Made:
    section: Section
    drawn: dict[str, DrawnPicture]
    seconds: float


def _one_by_one(chosen: Mapping[str, Example], folder: OutputFolder, tell: Tell) -> list[_Made]:
    """A full run: the layers of each network are shared among processes."""
    return [_made(name, folder, full=True, tell=_named(tell, name)) for name in chosen]


def _side_by_side(chosen: Mapping[str, Example], folder: OutputFolder, tell: Tell) -> list[_Made]:
    """A quick run: each example has a process of its own, for sharing layers would take as long as it saves."""
    import joblib

    runs = joblib.Parallel(n_jobs=-1, return_as="generator")(
        joblib.delayed(_made)(name, folder, full=False, tell=_nobody) for name in chosen
    )
    made = []
    for name, one in zip(chosen, runs, strict=True):
        for _ in range(_STEPS):
            tell(name)
        made.append(one)
    return made


def _made(name: str, folder: OutputFolder, *, full: bool, tell: Tell) -> _Made:
    """Compute an example, draw its figures and put them into the folder."""
    import joblib

    example, begin = EXAMPLES[name], perf_counter()
    with joblib.parallel_config(backend="loky" if full else "sequential"):
        section = example.account(example.compute(Effort() if full else example.quick, tell=tell))
    seconds = round(perf_counter() - begin, 1)
    if full:  # bands are those of full runs
        section = with_bands(section)
    tell("figures")
    drawn = {
        f"{name}_{picture.name}": folder.save_picture(picture, example=name, as_svg=full)
        for picture in section.pictures
    }
    # What draws holds all results; they need not travel between processes once it has drawn.
    pictures = tuple(replace(picture, draw=_drawn_already) for picture in section.pictures)
    return _Made(replace(section, pictures=pictures), drawn, seconds)


def _nobody(step: str) -> None:
    """Nobody is told which step begins."""


def _drawn_already() -> "Figure":
    raise LtinetError("this picture was drawn and saved; its data are gone")


def _chosen(names: Sequence[str]) -> dict[str, Example]:
    unknown = [name for name in names if name not in EXAMPLES]
    if unknown or not names:
        came = f"there is no example {', '.join(map(repr, unknown))}" if unknown else "no example was named"
        raise LtinetError(f"{came}; there are {', '.join(EXAMPLES)}")
    return {name: example for name, example in EXAMPLES.items() if name in names}  # in the order of the paper


def _run(chosen: Mapping[str, Example], *, quick: bool) -> Run:
    which = "all" if len(chosen) == len(EXAMPLES) else " ".join(chosen)
    try:
        versions = installed_versions()
    except ImportError as error:
        raise MissingDependencyError(
            f'the paper\'s examples need {error.name}; install it with pip install "ltinet[paper]"'
        ) from error
    return Run(
        command=f"ltinet reproduce {which}{' --quick' if quick else ''}",
        quick=quick,
        quick_note=_quick_note(chosen) if quick else "",
        tolerance=TOLERANCE,
        seeds={what: seed for example in chosen.values() for what, seed in example.seeds.items()},
        versions=versions,
        kernel=blas_kernel(),
    )


def _quick_note(chosen: Mapping[str, Example]) -> str:
    cuts = "; ".join(f"in {name} they {_saved(example.quick)}" for name, example in chosen.items())
    return (
        f"To save time, ODE solvers do less: {cuts}. Layers that are not solved are exact. Everything else is as in a "
        "full run."
    )


def _saved(effort: Effort) -> str:
    parts = (
        f"stop at t = {effort.stop:g}" if effort.stop < Effort.stop else "",
        f"solve {effort.layers_across_knots} layers as in the paper" if effort.layers_across_knots else "",
        f"solve {effort.layers_from_knot_to_knot} layers from knot to knot" if effort.layers_from_knot_to_knot else "",
    )
    return " and ".join(filter(None, parts))


def _named(tell: Tell, name: str) -> Tell:
    return lambda step: tell(f"{name}: {step}")
