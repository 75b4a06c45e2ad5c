"""A measured frequency response beside that of a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.bode import draw_bode
from ltinet.plotting.pairs import Pair, checked_responses, pairs_of, peaks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_MEASURED = "0.35"


def draw_measured_response(
    omega: ArrayLike,
    measured: ArrayLike,
    modelled: ArrayLike,
    *,
    fits: Sequence[float],
    pairs: Sequence[Pair] | None = None,
    names: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw H `(K, p, m)` of a model as lines, as `draw_bode` does, and what was measured as dots; two Axes come back.

    `fits` in % of every output are told above.
    """
    seen, own = checked_responses(measured), checked_responses(modelled)
    if seen.shape != own.shape or len(fits) != own.shape[1]:
        raise PlottingError(
            f"measured, modelled and fits have {seen.shape}, {own.shape} and {len(fits)} entries; give (K, p, m), "
            "(K, p, m) and p of them"
        )
    frequencies = np.asarray(omega, dtype=np.float64)
    panels = draw_bode(frequencies, own, pairs=pairs, names=names, input_names=input_names, figure=figure)
    chosen = pairs_of(peaks_of(own), pairs, names=names, input_names=input_names).chosen
    for place, (output, channel) in enumerate(chosen):
        value = seen[:, output, channel]
        with np.errstate(divide="ignore"):
            decibels = 20.0 * np.log10(np.abs(value))
        above, below = (axes.get_lines()[place] for axes in panels)
        # Within half a turn of the model's own phase, which is continuous.
        turned = np.rad2deg(np.angle(value / np.exp(1j * np.deg2rad(below.get_ydata()))))
        for axes, line, dots in (
            (panels[0], above, decibels),
            (panels[1], below, np.asarray(below.get_ydata()) + turned),
        ):
            axes.plot(frequencies, dots, linestyle="none", marker=".", markersize=3.0, color=_MEASURED,
                      zorder=line.get_zorder() - 0.5)  # fmt: skip
    told = ", ".join(f"{value:.1f} %" for value in list(fits)[:4])
    panels[0].set_title(f"measured (dots) and model, fit {told}", fontsize="medium", color="0.25")
    return panels
