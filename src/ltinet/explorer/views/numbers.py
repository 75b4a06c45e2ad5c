"""Arrays as plain lists for JSON: as many digits as a screen shows, and null for what is no finite number."""

import json
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ltinet.arrays import Array

Plain = dict[str, Any]


def curve(values: Array) -> list[float | None]:
    """Values of a curve in seven digits, more than a pixel is worth."""
    return [float(f"{value:.7g}") if math.isfinite(value) else None for value in np.asarray(values).ravel().tolist()]


def written(view: Plain) -> bytes:
    """A view as JSON, in which everything is a finite number or null."""
    return json.dumps(view, allow_nan=False, separators=(",", ":")).encode()


def exact(value: float | None) -> float | None:
    """A number as it is; None where it is none."""
    return None if value is None or not math.isfinite(value) else float(value)


def places(values: Iterable[float]) -> list[float]:
    """Places in a drawing, in hundredths of its unit."""
    return [round(float(value), 2) for value in values]
