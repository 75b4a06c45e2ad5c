"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Where a change is judged, the same examples every time; elsewhere new ones. Shared machines make deadlines useless.
settings.register_profile("judged", derandomize=True, deadline=None)
settings.register_profile("exploring", deadline=None)
settings.load_profile("judged" if os.environ.get("CI") else "exploring")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real systems beside the repository, or skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data/lti with real systems is not here")
    return folder
