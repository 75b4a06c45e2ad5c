"""Layers to time: real systems as given, and a wide one drawn at random."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import linalg

import ltinet

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "lti"


@dataclass(frozen=True)
class Shape:
    """A network, and the records that it is timed with."""

    name: str
    net: ltinet.DynamicNetwork
    batch: int
    steps: int

    @property
    def dt(self) -> float:
        """Half a radian of the fastest mode."""
        return 0.5 / float(np.abs(self.net.poles()).max())


def wide(n_pairs: int, channels: int, *, seed: int = 0) -> ltinet.DynamicNetwork:
    """Pairs at random with as many inputs as outputs."""
    rng = np.random.default_rng(seed)
    rates = zip(rng.uniform(0.01, 0.5, n_pairs), rng.uniform(0.1, 30.0, n_pairs), strict=True)
    A = linalg.block_diag(*[np.array([[-a, w], [-w, -a]]) for a, w in rates])
    B, C = rng.standard_normal((2 * n_pairs, channels)), rng.standard_normal((channels, 2 * n_pairs)) / n_pairs
    return ltinet.construct((A, B, C, np.zeros((channels, channels))))


def cpu_shapes() -> list[Shape]:
    """The four shapes that layers are compared on with one core."""
    found = [Shape("wide, 128 pairs, 128 channels, T = 4096", wide(128, 128), 1, 4096)]
    if not DATA.is_dir():
        return found
    building, iss = (ltinet.construct(ltinet.load_system(DATA / f"{name}.mat")) for name in ("building", "iss"))
    return [
        Shape("building, T = 100000", building, 1, 100_000),
        Shape("building, T = 4096, batch 16", building, 16, 4096),
        Shape("iss, T = 10000", iss, 1, 10_000),
        *found,
    ]


def gpu_shapes() -> list[Shape]:
    """The five shapes that layers are compared on with a GPU: pairs, channels, batch, steps."""
    sizes = [(64, 1, 1024, 8192), (135, 3, 256, 8192), (706, 3, 64, 8192), (256, 64, 16, 4096), (135, 3, 16, 131_072)]
    return [
        Shape(f"{pairs} pairs, {channels} channels, batch {batch}, T = {steps}", wide(pairs, channels), batch, steps)
        for pairs, channels, batch, steps in sizes
    ]
