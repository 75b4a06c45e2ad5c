"""All runs in one picture: a panel for each kind of model, the chosen rate drawn stronger."""

from pathlib import Path

import numpy as np

from benchmarks.fine_tuning.training import Runs
from ltinet.plotting import new_figure, save_figure

_COLOURS = ("#1f5fa8", "#b5651d", "#2e7d32", "#7b4ea3")


def draw(found: list[Runs], path: Path) -> None:
    """Write the picture."""
    figure = new_figure(10.0, 4.2)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, runs, colour in zip(panels, found, _COLOURS, strict=False):
        smallest = np.nan_to_num(runs.errors, nan=np.inf).min(0)
        chosen = int(np.argmin(np.median(smallest, axis=1)))
        for rate in range(runs.errors.shape[1]):
            is_chosen = rate == chosen
            style = {"color": colour if is_chosen else "0.75", "lw": 1.3 if is_chosen else 0.6}
            axes.loglog(runs.steps + 1, runs.errors[:, rate], zorder=2 + is_chosen, **style)
        axes.axhline(float(found[0].errors[0, 0, 0]), color="0.3", lw=0.8, ls=":")
        axes.set_title(f"{runs.name}\n{runs.n_parameters} parameters", fontsize=9)
        axes.set_xlabel("gradient steps + 1")
        axes.set_ylim(1e-4, 10.0)
    panels[0].set_ylabel("error on validation records, deviations")
    save_figure(figure, path)
