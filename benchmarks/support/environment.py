"""What a measurement depends on beside the code: processor, threads, versions. Nothing that names the machine."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import scipy.linalg  # noqa: F401 - loads the BLAS of NumPy and that of SciPy, whose threads are counted below
from threadpoolctl import threadpool_info

import ltinet

PACKAGES = ("numpy", "scipy", "control", "slycot", "scikit-learn", "diffrax", "jax", "pymor")


def environment(*, quick: bool) -> dict[str, Any]:
    """Everything that is recorded with each table."""
    return {
        "mode": "quick" if quick else "full",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "blas": _blas(),
        "versions": {"ltinet": ltinet.__version__, **{package: _version(package) for package in PACKAGES}},
    }


def _processor() -> str:
    """The model of the processor, where the operating system tells."""
    lister = shutil.which("lscpu")
    if lister:
        listing = subprocess.run([lister], capture_output=True, text=True, check=False).stdout  # noqa: S603 - no input
        for line in listing.splitlines():
            if line.startswith("Model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _blas() -> str:
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    kinds = {f"{pool['internal_api']} ({pool.get('architecture')}), {pool['num_threads']} threads" for pool in pools}
    return "; ".join(sorted(kinds)) or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
