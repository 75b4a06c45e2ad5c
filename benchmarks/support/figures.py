"""Figures of the results, PNG and SVG; they draw what the tables hold and compute nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.support.table import Table, middle

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "ltinet"  # the same figure is the same file
from matplotlib import pyplot as plt  # noqa: E402 - after the backend is chosen
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import NullFormatter  # noqa: E402

Tables = dict[str, Table]
OURS = "#0072b2"
OTHERS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c510a", "#444444")
MARKS = "sD^vPX*<"


def draw_all(tables: Tables, folder: Path) -> None:
    """Every figure whose table is there."""
    figures: dict[str, tuple[str, Callable[[Tables], Figure]]] = {
        "simulation": ("simulation", _simulation),
        "work_precision": ("work_precision", _work_precision),
        "construction": ("construction", _construction),
        "scaling": ("scaling_n", _scaling),
        "memory": ("memory", _memory),
    }
    for name, (needed, draw) in figures.items():
        if needed in tables:
            figure = draw(tables)
            figure.savefig(folder / f"{name}.png", dpi=150, metadata={"Software": None})
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


def _simulation(tables: Tables) -> Figure:
    """Ratios to the functions for this work, with their range, and the ratio that every case must reach."""
    table = tables["simulation"]
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    names = [str(row["case"]) for row in table.rows]
    peers = [key for key in ("scipy.signal.lsim", "control.forced_response") if table.column(key)]
    for number, peer in enumerate(peers):
        cells: list[Any] = [row[peer] for row in table.rows]
        places = np.arange(len(names)) + 0.35 * (number - 0.5 * (len(peers) - 1))
        medians = np.array([cell["median"] for cell in cells])
        spread = [medians - [cell["min"] for cell in cells], [cell["max"] for cell in cells] - medians]
        axes.bar(places, medians, 0.33, color=(OTHERS[5], OTHERS[4])[number], label=peer)
        axes.errorbar(places, medians, spread, fmt="none", color="black", linewidth=0.8, capsize=2)
    axes.axhline(300.0, color=OTHERS[0], linewidth=0.8, linestyle="--")
    axes.set(yscale="log", ylabel="time of the peer / time of ltinet", title="Simulation, prepared, outputs only")
    axes.set_ylim(1.0, 4.0 * axes.get_ylim()[1])  # space for the legend above the bars
    axes.set_xticks(range(len(names)), names, rotation=20, ha="right")
    axes.legend(frameon=False, loc="upper right", ncols=2)
    return figure


def _tidy(axes: Any) -> None:
    """A light grid, and figures at powers of ten only."""
    axes.grid(alpha=0.3)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())


def _work_precision(tables: Tables) -> Figure:
    table = tables["work_precision"]
    cases = list(dict.fromkeys(str(row["case"]) for row in table.rows))
    figure, panels = plt.subplots(1, len(cases), figsize=(5 * len(cases) + 1, 4.4), layout="constrained", squeeze=False)
    methods = [name for name in dict.fromkeys(str(row["method"]) for row in table.rows) if name != "ltinet"]
    for axes, case in zip(panels[0], cases, strict=True):
        for row in (row for row in table.rows if row["case"] == case and row["method"] == "ltinet"):
            fill = OURS if row["tolerance"] == "prepared" else "none"
            seconds, label = middle(row["seconds"]), f"ltinet, {row['tolerance']}"  # type: ignore[arg-type]
            axes.plot(row["error"], seconds, "o", color=OURS, markerfacecolor=fill, label=label)
        for number, method in enumerate(methods):
            rows = [row for row in table.rows if row["case"] == case and row["method"] == method]
            times = [middle(row["seconds"]) for row in rows]  # type: ignore[arg-type]
            errors: list[Any] = [row["error"] for row in rows]
            axes.plot(errors, times, MARKS[number % len(MARKS)], color=OTHERS[number], label=method, linestyle="-")
        axes.set(xscale="log", yscale="log", xlabel="error relative to max |y|", ylabel="seconds", title=case)
        axes.invert_xaxis()
        _tidy(axes)
    panels[0][-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _construction(tables: Tables) -> Figure:
    rows = [row for row in tables["construction"].rows if str(row["matrix"]).startswith("random")]
    n: list[Any] = [row["n"] for row in rows]
    ours = np.array([middle(row["seconds"]) for row in rows])  # type: ignore[arg-type]
    ratio = np.array([middle(row["ratio"]) for row in rows])  # type: ignore[arg-type]
    figure, axes = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    axes.loglog(n, ours, "o-", color=OURS, label="ltinet.block_diagonalize")
    axes.loglog(n, ours / ratio, "s-", color=OTHERS[5], label="scipy.linalg.schur, the floor")
    axes.loglog(n, ours[-1] * (np.array(n) / n[-1]) ** 3, ":", color="black", linewidth=0.8, label="n³")
    axes.set(xlabel="n, random dense", ylabel="seconds", title="Construction")
    _tidy(axes)
    axes.legend(frameon=False)
    return figure


def _scaling(tables: Tables) -> Figure:
    names = ("scaling_n", "scaling_t", "scaling_batch", "scaling_m", "scaling_coupled")
    found = [tables[name] for name in names if name in tables]
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained")
    for axes, table in zip(panels.flat, found, strict=False):
        sizes = table.column("size")
        axes.loglog(sizes, table.column("ours"), "o-", color=OURS, label="ltinet")
        axes.loglog(sizes, table.column("floor"), ":", color="black", linewidth=0.9, label="its bare work")
        theirs = table.column("lsim")
        axes.loglog(sizes[: len(theirs)], theirs, "s-", color=OTHERS[5], label="scipy.signal.lsim")
        axes.set(xlabel=table.columns["size"], ylabel="milliseconds")
        _tidy(axes)
    for axes in panels.flat[len(found) :]:
        axes.set_visible(False)
    panels.flat[0].legend(frameon=False)
    return figure


def _memory(tables: Tables) -> Figure:
    table = tables["memory"]
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axes, what, label in zip(panels, ("n", "T"), ("states n", "steps T"), strict=True):
        part = Table("", "", "", table.columns, [row for row in table.rows if row["what"] == what])
        axes.loglog(part.column("size"), part.column("call"), "o-", color=OURS, label="a call of simulate")
        axes.loglog(part.column("size"), part.column("states"), ":", color=OTHERS[0], label="states at all times")
        axes.loglog(part.column("size"), part.column("bound"), "--", color=OTHERS[5], label="outputs alone")
        axes.set(xlabel=label, ylabel="MB")
        _tidy(axes)
    panels[0].legend(frameon=False)
    return figure
