"""How a reproduction was made: what to type for another one like it, and with which versions."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from threadpoolctl import threadpool_info

import ltinet

LIBRARIES = ("numpy", "scipy", "scikit-learn", "matplotlib", "joblib")


@dataclass(frozen=True)
class Run:
    """What the report and `results.json` say about themselves."""

    command: str
    quick: bool
    quick_note: str
    """What a quick run leaves out; empty for a full one."""
    tolerance: float
    seeds: Mapping[str, int]
    versions: Mapping[str, str]
    kernel: str
    """The kernel of BLAS, which decides how sums are rounded."""


def installed_versions() -> dict[str, str]:
    """Versions of everything that has a say in the numbers."""
    return {
        "ltinet": ltinet.__version__,
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def blas_kernel() -> str:
    """The kernel that NumPy and SciPy run, or both where they differ; the name of the library where it tells none."""
    found = (own.get("architecture") or own["internal_api"] for own in threadpool_info() if own["user_api"] == "blas")
    return " and ".join(dict.fromkeys(found)) or "unknown"
