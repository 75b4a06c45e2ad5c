"""Without PyTorch these tests are skipped, with the reason; with it they run on one thread, as all others do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)


class SkippedModule(pytest.Module):
    """A file of tests that is not read."""

    def collect(self) -> Iterator[pytest.Item]:
        """Say why."""
        pytest.skip("PyTorch is not installed: pip install ltinet[torch]", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Leave files to pytest where there is PyTorch."""
    return None if torch is not None else SkippedModule.from_parent(parent, path=module_path)
