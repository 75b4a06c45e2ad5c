"""Eigenvalues in the complex plane, coloured by the layer that they belong to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import axes_or_new, count_whole_numbers, write_instead
from ltinet.plotting.colours import add_layer_key
from ltinet.plotting.points import scatter_by_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = NDArray[np.complex128]
Parts = NDArray[np.float64]
_WIDE = 15.0  # largest over median: beyond, the axis is logarithmic on both sides of zero
_NEAR = 0.25  # of the width of the spectrum
_SQUARE = 4.0  # spans that differ by less than this factor are drawn to one scale


def draw_spectrum(eigenvalues: Sequence[ArrayLike], *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Draw the eigenvalues of each layer, given as one sequence of complex numbers per layer.

    `key=False` leaves out which colour is which layer, where another drawing beside says it. A spectrum that is all
    real has nothing to show on the imaginary axis: there the layers, if there are several, stand above each other.
    """
    layers = _checked(eigenvalues)
    axes = axes_or_new(ax)
    values = np.concatenate([*layers, np.empty(0, complex)])
    axes.set_xlabel("real part (1/time)")
    if len(values) == 0:
        axes.set_ylabel("imaginary part (1/time)")
        write_instead(axes, "no eigenvalues: a static gain")
        return axes
    is_real = not np.any(values.imag)
    _set_scales(axes, values)
    layer_of = np.repeat(np.arange(len(layers)), [len(own) for own in layers])
    scatter_by_layer(axes, values.real, layer_of if is_real else values.imag, layer_of=layer_of, n_layers=len(layers))
    _show_origin(axes, values)
    if is_real and len(layers) > 1:
        _set_layer_axis(axes, len(layers))
    else:
        axes.set_ylabel("imaginary part (1/time)")
        if is_real:
            axes.set_ylim(-1.0, 1.0)
        if key:
            add_layer_key(axes, len(layers))
    return axes


def _checked(eigenvalues: Sequence[ArrayLike]) -> list[Values]:
    try:
        layers = [np.atleast_1d(np.asarray(own, dtype=np.complex128)) for own in eigenvalues]
    except (TypeError, ValueError):
        layers = []
    if (len(layers) == 0 and len(eigenvalues)) or any(own.ndim != 1 for own in layers):
        raise PlottingError("eigenvalues must be one list of complex numbers per layer, such as form.eigenvalues")
    if not all(np.all(np.isfinite(own)) for own in layers):
        raise PlottingError("eigenvalues are not all finite; draw those of a form or of a network")
    return layers


def _set_layer_axis(axes: "Axes", n_layers: int) -> None:
    axes.set_ylabel("layer")
    margin = 0.6 + 0.02 * n_layers
    axes.set_ylim(n_layers - 1 + margin, -margin)  # the first layer on top, as in the drawing of the architecture
    count_whole_numbers(axes.yaxis)


def _show_origin(axes: "Axes", values: Values) -> None:
    """The imaginary axis, where stability ends, unless it lies so far away that the eigenvalues would crowd."""
    low, high = float(np.min(values.real)), float(np.max(values.real))
    margin = _NEAR * (high - low)
    if low - margin <= 0.0 <= high + margin:
        axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    if np.any(values.imag):
        axes.axhline(0.0, color="0.75", linewidth=0.8, zorder=0)


def _set_scales(axes: "Axes", values: Values) -> None:
    """Both axes to one scale where that shows something, logarithmic ones where a linear one would not."""
    wide = _is_wide(values.real), _is_wide(values.imag)
    if wide[0]:
        axes.set_xscale("symlog", linthresh=_linear_part(values.real))
    if wide[1]:
        axes.set_yscale("symlog", linthresh=_linear_part(values.imag))
    width, height = np.ptp(values.real), np.ptp(values.imag)
    if not any(wide) and height > 0.0 and 1.0 / _SQUARE < width / height < _SQUARE:
        axes.set_aspect("equal", adjustable="datalim")


def _is_wide(parts: Parts) -> bool:
    """Whether half of the parts would crowd around zero on a linear axis."""
    sizes = np.abs(parts[parts != 0.0])
    return bool(len(sizes)) and float(np.max(sizes)) > _WIDE * float(np.median(sizes))


def _linear_part(parts: Parts) -> float:
    """Where a symmetric logarithmic axis becomes linear around zero: at most four powers of ten stay outside."""
    sizes = np.abs(parts[parts != 0.0])
    smallest = max(float(np.min(sizes)), 1e-4 * float(np.max(sizes)))
    return float(10.0 ** np.floor(np.log10(smallest)))
