"""Step model of a difference equation x[k+1] = A x[k] + B u[k].

It is its own step: P = A, G₀ = Γ = B and G₁ = 0, in original or in block coordinates, so that single steps, blocks of time
and fast convolution take it as they take the exact step of a differential equation. Nothing is exponentiated:
eigenvalues may be zero, negative or defective.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import DoubleDouble, multiply
from ltinet._util.floating_point import Array, Complex
from ltinet.simulation.modal import ModalSystem, pack_states, unpack_states
from ltinet.simulation.recurrence import StepDecay, flush_underflow
from ltinet.simulation.step_model import ExactStep, InputMatrices


@dataclass(frozen=True)
class DiscreteStep(ExactStep):
    """Step model of a difference equation; the rates of its modal system are the eigenvalues z of A."""

    def scalar_powers(self, counts: NDArray[np.intp]) -> Complex:
        """Return z^k of the scalars for some k, `(counts, n_scalars)`, by repeated squaring in pairs of doubles."""
        return eigenvalue_powers(self.system.rates, counts)

    def markov_parameters(self, count: int) -> tuple[Array, Array]:
        """Return C P^k Γ and zeros for all k below `count`, `(count, p, m)` each.

        Products of rows C P^j and columns P^{is} Γ would lose digits where powers of P are large. There rows follow each
        other in blocks as narrow as those of a run.
        """
        limit = 1 << max(count - 1, 0).bit_length()
        width = self.widest_block(limit)
        if width == limit:
            return super().markov_parameters(count)
        columns = self.reachability_rows(self.Gamma, 1)[0].T
        rows = self.observability_rows(width)
        response = np.empty((-(-count // width), width, *self.direct.shape))
        decay = self.decay(width)
        for index in range(len(response)):
            response[index] = rows @ columns
            rows = _after(rows, self.system, decay)
        response = response.reshape(-1, *self.direct.shape)[:count]
        return response, np.zeros_like(response)


def _after(rows: Array, system: ModalSystem, decay: StepDecay) -> Array:
    """Return packed weights of states multiplied by a power of P from the right."""
    scalars, dense = unpack_states(system, rows)
    factors = np.concatenate([decay.pairs.conj(), decay.reals])  # weights of a pair are packed as their conjugates
    products = [part @ P for part, P in zip(dense, decay.blocks, strict=True)]
    return pack_states(system, scalars * factors, products)


def eigenvalue_powers(eigenvalues: Complex, counts: NDArray[np.intp]) -> Complex:
    """Return z^k, `(counts, eigenvalues)`, rounded once; powers that overflow are infinite."""
    high = np.ones((len(counts), len(eigenvalues)), dtype=np.complex128)
    low = np.zeros_like(high)
    square = DoubleDouble(eigenvalues.astype(np.complex128), np.zeros(len(eigenvalues), dtype=np.complex128))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for bit in range(int(np.max(counts, initial=0)).bit_length()):
            if bit:
                square = multiply(square, square)
            chosen = np.flatnonzero((counts >> bit) & 1)
            high[chosen], low[chosen] = multiply(DoubleDouble(high[chosen], low[chosen]), square)
    values = high + low
    values[~np.isfinite(values)] = np.inf
    return flush_underflow(values)


def prepare_discrete_step(system: ModalSystem, dt: float) -> DiscreteStep:
    """Prepare the step model of a difference equation with the time step dt."""
    driven = InputMatrices(system.B.T, tuple(block.G for block in system.blocks))
    none = InputMatrices(np.zeros_like(system.B.T), tuple(np.zeros_like(block.G) for block in system.blocks))
    return DiscreteStep(
        system=system,
        length=dt,
        dense=tuple(block.F for block in system.blocks),
        G0=driven,
        G1=none,
        Gamma=driven,
        has_fast_growth=False,
    )
