"""The systems that the benchmarks run on: the data sets beside the repository, where they are, and named ones."""

from pathlib import Path
from typing import Any

import numpy as np

import ltinet

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "lti"


def data_systems() -> dict[str, ltinet.StateSpace]:
    """All data sets by name, smallest first; empty where the folder is absent."""
    if not DATA.is_dir():
        return {}
    systems = {}
    for path in DATA.glob("*.mat"):
        missing: dict[str, Any] = (
            {"C": np.eye(28)} if path.stem == "helicopter_v73" else {}
        )  # the only one without outputs
        systems[path.stem] = ltinet.load_system(path, **missing)
    return dict(sorted(systems.items(), key=lambda item: item[1].n_states))


def named_systems() -> dict[str, ltinet.StateSpace]:
    """Systems by formula, for machines without the data."""
    small = {"convection_diffusion": ltinet.named_system("convection_diffusion", points=10)}
    return {name: ltinet.named_system(name) for name in ("triangular", "blobs", "mass_spring_damper")} | small
