"""Evenly spaced samples: time cut into blocks of K steps, so that everything is matrix products.

With w_k = z_k − G₁ u_k the linear hold becomes w_{k+1} = P w_k + Γ u_k, Γ = P G₁ + G₀, y_k = C w_k + (D + C G₁) u_k;
the zero hold has this form with G₁ = 0. The state is kept only at the ends of blocks:

    block ends     W = U_blocks · [P^{K−1}Γ … Γ]ᵀ, then w_b ← w_b + P^K w_{b−1}      the only recurrence, over T/K steps
    outputs        Y = W_previous · [C P⁰ … C P^{K−1}]ᵀ + U_blocks · (block Toeplitz matrix of Markov parameters)

Scalars that have faded after K steps need no recurrence: what they bring from one block into the next is a product of
the inputs of the block before with one more matrix of Markov parameters. In stiff systems these are most of them.

Vectors are packed as real numbers (`packing`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix
from ltinet.solve.lasting import FADED, LastingStates, lasting_states
from ltinet.solve.modal import ModalSystem
from ltinet.solve.packing import pack, pack_weights
from ltinet.solve.propagators import matrix_steps, scalar_steps
from ltinet.solve.recurrence import LARGE, Decay, accumulate, size, without_dust
from ltinet.solve.toeplitz import BlockToeplitz, block_toeplitz

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_BATCH_AT_ONCE = 2**16  # numbers: inputs and states of blocks that are worked on together
_STATES_AT_ONCE = 2**19  # numbers: pieces of time whose states stay in the cache


@dataclass(frozen=True)
class UniformGrid:
    """Everything that depends on the step and the hold, but not on the input."""

    system: ModalSystem
    step: float
    width: int
    """K, the number of steps in a block."""
    shift: Matrix
    """G₁, packed: z = w + G₁ u."""
    into_state: Matrix
    """From the inputs of a block to what they add to the state at its end, (K m × n)."""
    from_state: Matrix
    """From the state at the beginning of a block to its outputs, (n × K p)."""
    direct: Matrix
    """D + C G₁, from an input to the output of the same sample."""
    feeds_through: bool
    """Whether D is anything but zero."""
    toeplitz: BlockToeplitz
    """From the inputs of a block to its outputs."""
    decay: Decay
    """P^K of all states."""
    input_weights: Matrix
    """B of the scalars, packed, (m × 2 pairs + reals)."""
    gamma_factors: Complex
    """Γ = factors ∘ B for scalars."""
    shift_factors: Complex
    """G₁ = factors ∘ B for scalars."""
    lasting: LastingStates

    def start(self, v: Complex, parts: list[Array], u: Array) -> Array:
        """Packed w at the first sample from the states there."""
        return pack(self.system, v, parts) - u @ self.shift.T

    def outputs(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, and packed w at the end of the last block."""
        return self._by_states(u, w) if self.width == 1 else self._by_blocks(u, w)

    def states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Packed z `(batch, T, n)` at all samples, and w one step after the last; for a grid of width 1.

        Scalars are driven by B u: one product, from which G₁ u and Γ u follow by factors.
        """
        dense = slice(self.input_weights.shape[1], None)
        driven = _product_of_rows(u, self.input_weights)
        ends, z = np.empty((2, *u.shape[:-1], self.system.n_states))
        _scale(driven, self.gamma_factors, out=ends)
        _scale(driven, self.shift_factors, out=z)
        ends[..., dense], z[..., dense] = u @ self.into_state[:, dense], u @ self.shift.T[:, dense]
        accumulate(ends, w, self.decay)
        z[:, 0] += w
        z[:, 1:] += ends[:, :-1]
        return z, ends[:, -1]

    def _by_states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Many inputs and outputs: no product is larger than those with B and C themselves."""
        batch, n_times, _ = u.shape
        y = np.empty((batch, n_times, self.system.n_outputs))
        at_once = max(1, _STATES_AT_ONCE // max(1, self.system.n_states * batch))
        for begin in range(0, n_times, at_once):
            own = slice(begin, begin + at_once)
            z, w = self.states(u[:, own], w)
            np.matmul(z, self.from_state, out=y[:, own])
            if self.feeds_through:
                y[:, own] += u[:, own] @ self.system.D.T
        return y, w

    def _by_blocks(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Blocks of time; of a large batch a few members at once, so that what is worked on stays in the cache."""
        batch, n_times, m = u.shape
        n_blocks = -(-n_times // self.width)
        y = np.empty((batch, n_blocks * self.width, self.system.n_outputs))
        after = np.zeros_like(w)
        at_once = max(1, _BATCH_AT_ONCE // (n_blocks * (len(self.lasting.kept) + self.width * m) + 1))
        for begin in range(0, batch, at_once):
            own = slice(begin, begin + at_once)
            self._some_by_blocks(_whole_blocks(u[own], n_blocks * self.width), w[own], y[own], after[own])
        return y[:, :n_times], after

    def _some_by_blocks(self, u: Array, w: Array, y: Array, after: Array) -> None:
        """Fill y and `after` for inputs of whole blocks."""
        n_blocks = len(u) * (u.shape[1] // self.width)
        blocks = u.reshape(n_blocks, self.width * u.shape[-1])
        outputs = y.reshape(n_blocks, self.width * y.shape[-1])
        self.toeplitz.outputs(blocks, out=outputs)
        self.lasting.carry(blocks, w, outputs, after)
        self.lasting.fade(blocks, w, outputs, after)


def uniform_grid(
    system: ModalSystem, step: float, *, linear: bool, n_times: int, width: int | None = None
) -> UniformGrid:
    """Prepare a grid for about `n_times` samples; the block width is chosen to balance products against recurrence."""
    K = width or _block_width(system, step, n_times)
    scalars = scalar_steps(system.rates, np.array([step]), linear=linear)
    shift_factors, gamma_factors = scalars.end[0], scalars.P[0] * scalars.end[0] + scalars.begin[0]
    shift_v, gamma_v = shift_factors * system.B.T, gamma_factors * system.B.T
    with np.errstate(over="ignore", invalid="ignore"):  # unstable systems: looked at below
        powers_v = without_dust(np.exp(np.multiply.outer(np.arange(K + 1) * step, system.rates)))
    dense = [_dense_powers(block.F, block.G, step, linear=linear, K=K) for block in system.blocks]
    largest = max(size(powers_v[K]), *(size(part.powers[K]) for part in dense), 0.0)
    if K > 1 and not largest < LARGE:
        return uniform_grid(system, step, linear=linear, n_times=n_times, width=K // 2)
    n, m, p = system.n_states, system.n_inputs, system.n_outputs
    shift = pack(system, shift_v, [part.shift.T for part in dense])
    gamma = pack(system, gamma_v, [part.gamma.T for part in dense])
    into = pack(
        system,
        powers_v[K - 1 :: -1, None] * gamma_v if K > 1 else gamma_v[None],
        [(part.powers[:K][::-1] @ part.gamma).transpose(0, 2, 1) for part in dense],
    )
    out = pack_weights(
        system,
        system.C * powers_v[:K, None],
        [block.C @ part.powers[:K] for block, part in zip(system.blocks, dense, strict=True)],
    )
    markov = np.concatenate([(system.D + out[0] @ shift.T)[None], out[: K - 1] @ gamma.T])
    decay = Decay(
        powers_v[K, : system.n_pairs],
        powers_v[K, system.n_pairs :].real,
        tuple(part.powers[K] for part in dense),
    )
    into_state, from_state = into.reshape(K * m, n), np.ascontiguousarray(out.transpose(2, 0, 1)).reshape(n, K * p)
    return UniformGrid(
        system=system,
        step=step,
        width=K,
        shift=shift.T,
        into_state=into_state,
        from_state=from_state,
        direct=markov[0],
        feeds_through=bool(system.D.any()),
        toeplitz=block_toeplitz(markov),
        decay=decay,
        input_weights=pack(system, system.B.T, []),
        gamma_factors=gamma_factors,
        shift_factors=shift_factors,
        lasting=lasting_states(into_state, from_state, decay),
    )


def _block_width(system: ModalSystem, step: float, n_times: int) -> int:
    """K that minimises a model of the time: flops of the products, calls and memory of the recurrence, preparation."""
    m, p = system.n_inputs, system.n_outputs
    n_each = np.where(np.arange(len(system.rates)) < system.n_pairs, 2, 1)
    slowest = [float(np.max(np.linalg.eigvals(block.F).real)) for block in system.blocks]
    rates = np.concatenate([system.rates.real, slowest])
    sizes = np.concatenate([n_each, [len(block.F) for block in system.blocks]])

    def seconds(K: int) -> float:
        lasts = np.exp(np.minimum(rates * (step * K), 0.0)) >= FADED
        n_kept = int(sizes[lasts].sum())
        toeplitz = K * m * p * (2 if n_kept < system.n_states else 1)
        flops = 2.0 * n_times * (toeplitz + n_kept * (m + p))
        steps = n_times / K
        kinds = bool(n_kept) + int(np.count_nonzero(lasts[len(system.rates) :]))  # dense blocks go one by one
        calls = min(steps, 3.0 * math.sqrt(steps) + 20.0) * 3e-6 * kinds
        prepare = K * (system.n_states + K) * math.sqrt(m * p) * 1e-9
        return flops / 1.5e10 + calls + steps * n_kept * 4e-9 + prepare

    return int(min((2**power for power in range(9) if 2**power <= max(n_times, 1)), key=seconds))


@dataclass(frozen=True)
class _DensePowers:
    shift: Matrix
    gamma: Matrix
    powers: NDArray[np.float64]


def _dense_powers(F: Matrix, G: Matrix, step: float, *, linear: bool, K: int) -> _DensePowers:
    P, begin, end = (array[0] for array in matrix_steps(F, G, np.array([step]), linear=linear))
    powers = np.empty((K + 1, *P.shape))
    powers[0] = np.eye(len(P))
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(1, K + 1):
            powers[j] = powers[j - 1] @ P
    return _DensePowers(end, P @ end + begin, powers)


def _whole_blocks(u: Array, n_times: int) -> Array:
    """Inputs with zeros after them up to a whole number of blocks."""
    batch, given, m = u.shape
    return u if given == n_times else np.concatenate([u, np.zeros((batch, n_times - given, m))], axis=1)


def _product_of_rows(u: Array, weights: Matrix) -> Array:
    """U · weights; rows of zeros, as before and after a pulse, are not multiplied."""
    rows = u.any(axis=-1)
    if 2 * np.count_nonzero(rows) > rows.size:
        return np.asarray(u @ weights)
    product = np.zeros((*u.shape[:-1], weights.shape[1]))
    product[rows] = u[rows] @ weights
    return product


def _scale(driven: Array, factors: Complex, out: Array) -> None:
    """Packed scalars times a complex number each, into the leading part of `out`."""
    n_scalars = driven.shape[-1]
    pairs = 2 * (n_scalars - len(factors))
    if pairs:
        turned = out[..., :pairs].view(np.complex128)
        np.multiply(driven[..., :pairs].view(np.complex128), factors[: pairs // 2], out=turned)
    np.multiply(driven[..., pairs:], factors[pairs // 2 :].real, out=out[..., pairs:n_scalars])
