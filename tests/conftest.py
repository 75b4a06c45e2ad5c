"""Fixtures that every test may use."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real systems beside the repository, or skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data/lti with real systems is not here")
    return folder
