"""Tests import the extensions of the documentation: they run its pages with the code that builds them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "_extensions"))
