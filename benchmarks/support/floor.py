"""The floor under a simulation: what it cannot do without, and nothing else.

Two lines: the floating-point operations of blocks of time at the rate that a large square product reaches here, and the
bare work of a call, called on arrays that are there already: the same products, of the same shapes, or for a fast
convolution, which has no products and can go below that floor, its transforms.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

import ltinet
from benchmarks.support.timing import Effort, repeat
from ltinet.simulation.engines import ExactTrajectory
from ltinet.simulation.time_blocks import TimeBlocks

Array = NDArray[np.float64]
Shape = tuple[int, int, int]
_SQUARE = 768  # large enough for full speed, small enough for the cache


@dataclass(frozen=True)
class Products:
    """Products (rows × inner)·(inner × columns) that a call of `simulate` makes, with repetitions."""

    shapes: tuple[Shape, ...]

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return sum(2.0 * rows * inner * columns for rows, inner, columns in self.shapes)

    def bare(self) -> Callable[[], None]:
        """The products alone, into arrays that are there already."""
        random = np.random.default_rng(0)
        ready = [
            (random.standard_normal(shape[:2]), random.standard_normal(shape[1:]), np.empty((shape[0], shape[2])))
            for shape in self.shapes
        ]

        def run() -> None:
            for left, right, out in ready:
                np.matmul(left, right, out=out)

        return run


def products_of(net: ltinet.DynamicNetwork, u: Array, *, step: float) -> Products:
    """The products of a run in blocks of time for u `(T, m)` or `(batch, T, m)`, linear hold."""
    batch, n_times, m = (1, *u.shape) if u.ndim == 2 else u.shape
    grid = _run(net, n_times, step=step).realization.grids.uniform(step, linear=True, n_times=n_times)
    if isinstance(grid, TimeBlocks):
        rows = batch * (-(-n_times // grid.width))
        shapes = [(rows, *grid.inputs_to_lasting.shape), *((rows, *weights.shape) for weights in grid.weights)]
        shapes += [(rows, *grid.previous_to_outputs.shape)] if len(grid.decayed) else []
    else:
        shapes = _by_states(net, u.reshape(-1, m))
    return Products(tuple(shape for shape in shapes if min(shape) > 0))


def bare_work(net: ltinet.DynamicNetwork, u: Array, *, step: float) -> Callable[[], None]:
    """What a call cannot do without: the transforms of a convolution, or the products of blocks."""
    batch, n_times, m = (1, *u.shape) if u.ndim == 2 else u.shape
    grid = _run(net, n_times, step=step).convolution
    if grid is None:
        return products_of(net, u, step=step).bare()
    inputs = np.random.default_rng(0).standard_normal((m, 2 * batch, 2 * grid.width))
    spectra = np.ones((net.n_outputs, 2 * batch, grid.width + 1), dtype=np.complex128)

    def run() -> None:
        fft.rfft(inputs, axis=-1)
        fft.irfft(spectra, axis=-1)

    return run


def multiplication_rate(effort: Effort) -> float:
    """Floating-point operations a second in a large square product."""
    left, right = np.random.default_rng(0).standard_normal((2, _SQUARE, _SQUARE))
    out = np.empty_like(left)
    return 2.0 * _SQUARE**3 / repeat(lambda: np.matmul(left, right, out=out), effort=effort).min


def _run(net: ltinet.DynamicNetwork, n_times: int, *, step: float) -> ExactTrajectory:
    """What a run leaves behind: it knows how its outputs were computed."""
    trajectory = net.simulate(np.zeros((n_times, net.n_inputs)), step * np.arange(n_times)).trajectory
    if not isinstance(trajectory, ExactTrajectory):
        raise TypeError("the floor is that of the exact engine")
    return trajectory


def _by_states(net: ltinet.DynamicNetwork, u: Array) -> list[Shape]:
    """Many inputs and outputs: B u of the samples that are not zero, and C z."""
    driven = int(np.count_nonzero(u.any(axis=1)))
    rows = driven if 2 * driven <= len(u) else len(u)
    return [(rows, net.n_inputs, net.n_states), (len(u), net.n_states, net.n_outputs)]
