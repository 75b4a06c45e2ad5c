"""Runs of large sparse models in discrete time: E x[k+1] = A x[k] + B u[k], sample by sample, with the sparse matrices.

A step costs a product with A and, with an E, a solution with its sparse LU factors. Every step is rounded as in the dense
recurrence, but nothing bounds the errors: the powers of A that a bound needs are dense.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet.errors import SimulationError
from ltinet.signals.arrays import broadcast_states
from ltinet.signals.sampled import SampledSignal
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SparseLU, has_symmetric_pattern


class SparseRun:
    """Run of a sparse model in discrete time; states are computed again where they are requested."""

    algorithm = "sparse steps"
    coordinates = "original"

    def __init__(
        self, pencil: SparseDescriptor, C: Matrix, D: Matrix, samples: SampledSignal, x0: Array | None
    ) -> None:
        self.samples, self._pencil, self._C, self._D = samples, pencil, C, D
        start = np.zeros(pencil.n_states) if x0 is None else x0
        self._batch = samples.u.shape[:-2]
        self._start = broadcast_states(start, pencil.n_states, self._batch).T  # (n, batch)

    @cached_property
    def _mass(self) -> SparseLU | None:
        E = self._pencil.E
        return None if E is None else SparseLU(E.tocsc(), has_symmetric_pattern=has_symmetric_pattern(E))

    def sampled_outputs(self) -> Array:
        """Return outputs at all samples, `(..., T, p)`."""
        return self._collect(self._C, self._D, np.arange(len(self.samples.t)))

    def user_states(self, t: Array) -> Array:
        """Return states at times of samples, `(..., k, n)`."""
        numbers = np.rint((t - self.samples.t[0]) / float(self.samples.step or 1.0)).astype(np.intp)
        return self._collect(None, None, numbers)

    def neuron_states(self, t: Array) -> Array:  # noqa: ARG002 - signature of trajectories
        """Raise SimulationError: there is no network."""
        raise SimulationError(
            "a large sparse model in discrete time is simulated without a network and has no neurons. Use solution.states."
        )

    def _collect(self, C: Matrix | None, D: Matrix | None, numbers: NDArray[np.intp]) -> Array:
        """Return C x + D u, or x, at some samples in ascending order, `(..., k, p)`."""
        u = self.samples.u.reshape(math.prod(self._batch), len(self.samples.t), -1)
        x, A, B = self._start, self._pencil.A, self._pencil.B
        requested, values = set(numbers.tolist()), {}
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
            for k in range(max(requested, default=-1) + 1):
                sample = u[:, k].T
                if k in requested:
                    values[k] = x if C is None or D is None else C @ x + D @ sample
                x = A @ x + B @ sample
                x = x if self._mass is None else self._mass.solve(x)
        rows = np.array([values[k].T for k in numbers.tolist()])
        if not np.isfinite(rows).all():
            k = int(np.argmin(np.isfinite(rows).reshape(len(rows), -1).all(axis=1)))
            raise SimulationError(f"the outputs overflow at sample {int(numbers[k])}. Simulate a shorter time.")
        return np.moveaxis(rows, 0, 1).reshape(*self._batch, len(rows), rows.shape[-1])
