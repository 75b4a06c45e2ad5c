"""What rounding does to the numbers of the paper: how far each moved in full runs with other kernels of BLAS.

An adaptive solver takes a step more or less where an error estimate falls on the other side of its tolerance, so that
counts of evaluations differ from processor to processor. `kernel_bands.json` holds what full runs gave with one kernel
after the other; `docs/refresh_reproduction.py` writes it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources

from ltinet.paper.number import Number, plain
from ltinet.paper.section import Section

FILE = "kernel_bands.json"


@cache
def kernel_bands() -> Mapping[str, Mapping[str, float]]:
    """For each number that moved, by key, what it came out as with each kernel."""
    text = resources.files("ltinet.paper").joinpath(FILE).read_text(encoding="utf-8")
    numbers: dict[str, dict[str, float]] = json.loads(text)["numbers"]
    return numbers


def with_bands(section: Section) -> Section:
    """The section, its numbers with the bands that are known; what was found here is part of a band."""
    return replace(section, numbers=tuple(replace(own, band=_band(own)) for own in section.numbers))


def _band(number: Number) -> tuple[float, float] | None:
    values = [number.here, *kernel_bands().get(number.key, {}).values()]
    low, high = min(values), max(values)
    return None if plain(low) == plain(high) else (low, high)
