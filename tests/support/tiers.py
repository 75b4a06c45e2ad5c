"""How much a test does in the default tier, and in the slow one."""

import os

SHARE = 6  # of so many examples the default tier looks at one, of at least `FEWEST`
FEWEST = 5
ALL = os.environ.get("LTINET_TEST_TIER") == "all"
"""True if the slow tier runs as well; `tests/conftest.py` sets it before tests are imported."""


def n_examples(count: int) -> int:
    """The number of examples of a property that has so many in the slow tier."""
    return count if ALL else max(min(FEWEST, count), count // SHARE)
