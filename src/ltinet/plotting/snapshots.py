"""A field on a grid at several times: one row of images per solution, and rows of absolute errors below."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import PlottingError
from ltinet.plotting.canvas import figure_or_new

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

Fields = NDArray[np.float64]
Extent = tuple[float, float, float, float]
_FIELD_MAP, _ERROR_MAP = "viridis", "magma"  # both rise evenly in lightness


def draw_snapshots(
    times: ArrayLike,
    solutions: Mapping[str, ArrayLike],
    *,
    reference: ArrayLike | None = None,
    reference_name: str = "reference",
    extent: Extent | None = None,
    quantity: str = "value",
    axis_names: tuple[str, str] = ("x", "y"),
    figure: "Figure | SubFigure | None" = None,
) -> NDArray[Any]:
    """Draw named fields `(k, ny, nx)` at k times, `[:, 0, 0]` at the lower left; the Axes come as (rows, k).

    All fields share one colour bar. With a `reference` its row follows, and one row of |field − reference| for each
    solution, with a colour bar of its own. `extent` is (left, right, bottom, top) in the units of the grid.
    `quantity` names what the colours stand for, `axis_names` the axes of the grid.
    """
    moments = _checked_times(times)
    fields = {name: _checked(name, field, len(moments)) for name, field in solutions.items()}
    if not fields:
        raise PlottingError('solutions is empty; give at least one, such as {"network": fields}')
    errors: dict[str, Fields] = {}
    if reference is not None:
        expected = _checked(reference_name, reference, len(moments))
        errors = {f"|error|\n{name}": np.abs(field - expected) for name, field in _same_shape(fields, expected).items()}
        fields = {**fields, reference_name: expected}
    n_rows = len(fields) + len(errors)
    canvas = figure_or_new(figure, width=1.6 * len(moments) + 1.4, height=1.6 * n_rows + 0.5)
    panels = canvas.subplots(n_rows, len(moments), squeeze=False)  # shared axes would draw at half the speed
    low, high = min(map(np.min, fields.values())), max(map(np.max, fields.values()))
    for row, (name, field) in zip(panels, fields.items(), strict=False):
        image = _draw_row(
            row, name, field, limits=(low, high), colours=_FIELD_MAP, extent=extent, vertical=axis_names[1]
        )
    canvas.colorbar(image, ax=panels[: len(fields)], label=quantity, pad=0.02)
    for row, (name, error) in zip(panels[len(fields) :], errors.items(), strict=True):
        # A bar of one colour would hide that the error is zero.
        top = max(float(np.max(error)), np.finfo(float).tiny)
        image = _draw_row(
            row, name, error, limits=(0.0, top), colours=_ERROR_MAP, extent=extent, vertical=axis_names[1]
        )
        canvas.colorbar(image, ax=row, label="|error|", pad=0.02, format=_power_of_ten)
    for axes in panels[-1]:
        axes.set_xlabel(axis_names[0])
    for axes, moment in zip(panels[0], moments, strict=True):
        axes.set_title(f"time {moment:g}", fontsize="medium")
    return np.asarray(panels)


def _checked_times(times: ArrayLike) -> Fields:
    moments = np.asarray(times, dtype=np.float64)
    if moments.ndim != 1 or len(moments) == 0:
        raise PlottingError(f"times has shape {moments.shape}; give a list of one or more")
    return moments


def _checked(name: str, field: ArrayLike, n_times: int) -> Fields:
    values = np.asarray(field, dtype=np.float64)
    if values.ndim != 3 or len(values) != n_times or values.size == 0:
        raise PlottingError(f"{name!r} has shape {values.shape}; with {n_times} times it must be ({n_times}, ny, nx)")
    if not np.all(np.isfinite(values)):
        raise PlottingError(f"{name!r} is not finite everywhere; no scale of colours can show that")
    return values


def _same_shape(fields: Mapping[str, Fields], expected: Fields) -> Mapping[str, Fields]:
    for name, field in fields.items():
        if field.shape != expected.shape:
            raise PlottingError(f"{name!r} has shape {field.shape} but the reference {expected.shape}")
    return fields


def _draw_row(
    row: NDArray[Any],
    name: str,
    field: Fields,
    *,
    limits: tuple[float, float],
    colours: str,
    extent: Extent | None,
    vertical: str,
) -> Any:
    for axes, values in zip(row, field, strict=True):
        image = axes.imshow(values, origin="lower", vmin=limits[0], vmax=limits[1], cmap=colours, extent=extent)
        axes.tick_params(labelsize="x-small")
        axes.label_outer(remove_inner_ticks=True)
        axes.locator_params(nbins=3)
        if extent is None:
            axes.set_xticks([])
            axes.set_yticks([])
    row[0].set_ylabel(f"{name}\n{vertical}")
    return image


def _power_of_ten(value: float, _: int) -> str:
    return "0" if value == 0.0 else f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
