"""Test files that are no package must differ in name: pytest collects only the first of two."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def test_no_two_files_share_a_name():
    alone = [path.name for path in TESTS.rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert [name for name, count in Counter(alone).items() if count > 1] == []
