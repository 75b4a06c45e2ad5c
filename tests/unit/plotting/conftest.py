"""Drawings are made without a window and closed after each test."""

import pytest
from matplotlib import pyplot

pyplot.switch_backend("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")
