"""Without PyTorch these tests are skipped; with it they run on one thread, as all others do."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install ltinet[torch]")
torch.set_num_threads(1)
