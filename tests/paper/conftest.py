"""One quick reproduction of the whole paper for all tests that read it."""

import os
from pathlib import Path

import pytest

from ltinet.paper.reproduce import EXAMPLES, reproduce


@pytest.fixture(scope="session")
def quick_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the page; figures and `results.json` lie beside it. Test processes side by side share it."""
    fcntl = pytest.importorskip("fcntl", reason="processes that share the report lock a file as POSIX does")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "reproduction.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first to come makes it, others wait
        page = folder / "reproduction" / "report.html"
        return page if page.exists() else reproduce(list(EXAMPLES), out=page.parent, quick=True)
