"""Evenly spaced samples: time cut into blocks of K steps, so that everything is matrix products.

With w_k = z_k − G₁ u_k the linear hold becomes w_{k+1} = P w_k + Γ u_k, Γ = P G₁ + G₀, y_k = C w_k + (D + C G₁) u_k;
the zero hold has this form with G₁ = 0. The state is kept only at the beginnings of blocks:

    block ends     S = U_blocks · [P^{K−1}Γ … Γ]ᵀ
    block starts   w_{b+1} = P^K w_b + S_b                       the only recurrence, over T/K steps
    outputs        Y = W · [C P⁰ … C P^{K−1}]ᵀ + U_blocks · (block Toeplitz matrix of Markov parameters)

Vectors are packed as real numbers: pairs as (Re v, Im v), then reals, then dense blocks.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix
from ltinet.solve.modal import ModalSystem
from ltinet.solve.propagators import matrix_steps, scalar_steps

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_LARGE = 1e150  # powers of unstable systems up to which products with them do not overflow


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
    from_input: Matrix
    """From the inputs of a block to its outputs, (K m × K p)."""
    decay: Complex
    """P^K of the scalars."""
    block_decays: tuple[Matrix, ...]
    """P^K of the dense blocks."""

    def start(self, v: Complex, parts: list[Array], u: Array) -> Array:
        """Packed w at the first sample from the states there."""
        return pack(self.system, v, parts) - u @ self.shift.T

    def outputs(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, and the packed state after the last of them."""
        batch, n_times, m = u.shape
        n_blocks = -(-n_times // self.width)
        rest = n_blocks * self.width - n_times
        blocks = u if rest == 0 else np.concatenate([u, np.zeros((batch, rest, m))], axis=1)
        blocks = blocks.reshape(batch * n_blocks, self.width * m)
        added = (blocks @ self.into_state).reshape(batch, n_blocks, self.system.n_states)
        starts, after = _recurrence(self, added, w)
        y = starts.reshape(batch * n_blocks, self.system.n_states) @ self.from_state
        y += blocks @ self.from_input
        return y.reshape(batch, n_blocks * self.width, self.system.n_outputs)[:, :n_times], after

    def states(self, u: Array, w: Array) -> Array:
        """Packed z `(batch, T, n)` at all samples; for a grid of width 1."""
        starts, _ = _recurrence(self, u @ self.into_state, w)
        return np.asarray(starts + u @ self.shift.T)


def uniform_grid(
    system: ModalSystem, step: float, *, linear: bool, n_times: int, width: int | None = None
) -> UniformGrid:
    """Prepare a grid for about `n_times` samples; the block width is chosen to balance products against recurrence."""
    K = width or _block_width(system, n_times)
    scalars = scalar_steps(system.rates, np.array([step]), linear=linear)
    P = scalars.P[0]
    shift_v = scalars.end[0][:, None] * system.B
    gamma_v = P[:, None] * shift_v + scalars.begin[0][:, None] * system.B
    with np.errstate(over="ignore", invalid="ignore"):  # unstable systems: looked at below
        powers_v = _without_dust(np.exp(np.multiply.outer(np.arange(K + 1) * step, system.rates)))
    dense = [_dense_powers(block.F, block.G, step, linear=linear, K=K) for block in system.blocks]
    largest = max(_size(powers_v[K]), *(_size(part.powers[K]) for part in dense), 0.0)
    if K > 1 and not largest < _LARGE:
        return uniform_grid(system, step, linear=linear, n_times=n_times, width=K // 2)
    shift = _pack_columns(system, shift_v, [part.shift for part in dense])
    gamma = _pack_columns(system, gamma_v, [part.gamma for part in dense])
    out = np.stack(
        [
            _pack_rows(
                system,
                system.C * powers_v[j],
                [b.C @ part.powers[j] for b, part in zip(system.blocks, dense, strict=True)],
            )
            for j in range(K)
        ]
    )
    into = np.stack(
        [
            _pack_columns(
                system, powers_v[K - 1 - j][:, None] * gamma_v, [part.powers[K - 1 - j] @ part.gamma for part in dense]
            )
            for j in range(K)
        ]
    )
    n, m, p = system.n_states, system.n_inputs, system.n_outputs
    markov = np.concatenate(
        [(system.D + out[0] @ shift)[None], (out[: K - 1] @ gamma) if K > 1 else np.zeros((0, p, m))]
    )
    return UniformGrid(
        system=system,
        step=step,
        width=K,
        shift=shift,
        into_state=into.transpose(0, 2, 1).reshape(K * m, n),
        from_state=out.transpose(2, 0, 1).reshape(n, K * p),
        from_input=_block_toeplitz(markov),
        decay=powers_v[K],
        block_decays=tuple(part.powers[K] for part in dense),
    )


def _block_width(system: ModalSystem, n_times: int) -> int:
    """K that minimises a model of the time: flops of the Toeplitz product, memory and calls of the recurrence."""
    n, mp = system.n_states, system.n_inputs * system.n_outputs
    candidates = [2**power for power in range(9) if 2**power <= max(n_times, 1)]

    def seconds(K: int) -> float:
        steps = n_times / K
        toeplitz, prepare = 2.0 * n_times * K * mp / 2e10, K * (n + K) * math.sqrt(mp) * 1e-9
        return toeplitz + steps * n * 4e-9 + math.sqrt(steps) * 1e-5 + prepare

    return int(min(candidates, key=seconds))


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


def _recurrence(grid: UniformGrid, added: Array, w: Array) -> tuple[Array, Array]:
    """w_{b+1} = P^K w_b + added_b along the second axis: all w_b, and the one after the last."""
    system = grid.system
    pairs, scalars = 2 * system.n_pairs, system.n_pairs + len(system.rates)
    starts, after = np.empty_like(added), np.empty_like(w)
    if pairs:
        own = slice(0, pairs)
        view = _complex(added[..., own])
        s, a = _scan(grid.decay[: system.n_pairs], view, _complex(w[..., own]))
        starts[..., own], after[..., own] = s.view(np.float64), a.view(np.float64)
    if scalars > pairs:
        own = slice(pairs, scalars)
        starts[..., own], after[..., own] = _scan(grid.decay[system.n_pairs :].real, added[..., own], w[..., own])
    offset = scalars
    for decay in grid.block_decays:
        own = slice(offset, offset + len(decay))
        starts[..., own], after[..., own] = _scan_dense(decay, added[..., own], w[..., own])
        offset = own.stop
    return starts, after


def _scan(decay: NDArray[Any], added: NDArray[Any], first: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """w_{b+1} = decay ∘ w_b + added_b along the second axis, in about 2√N array operations for N steps.

    The steps are cut into √N runs: all runs advance together from zero, then the true start of each is added with its
    decay.
    """
    runs = _in_runs(added, growth=_size(decay))
    batch, n_runs, length, n = runs.shape
    for i in range(1, length):
        runs[:, :, i] += decay * runs[:, :, i - 1]
    powers = _without_dust(np.cumprod(np.broadcast_to(decay, (length, n)), axis=0))
    carry = np.empty((batch, n_runs, n), dtype=added.dtype)
    carry[:, 0] = first
    for j in range(1, n_runs):
        carry[:, j] = powers[-1] * carry[:, j - 1] + runs[:, j - 1, -1]
    runs += powers * carry[:, :, None]
    return _starts_and_last(runs, first, added.shape[1])


def _scan_dense(decay: Matrix, added: Array, first: Array) -> tuple[Array, Array]:
    """The same for a dense block: w_{b+1} = decay · w_b + added_b."""
    runs = _in_runs(added, growth=_growth(decay))
    batch, n_runs, length, n = runs.shape
    for i in range(1, length):
        runs[:, :, i] += runs[:, :, i - 1] @ decay.T
    powers = np.empty((length, n, n))
    powers[0] = decay.T
    for i in range(1, length):
        powers[i] = powers[i - 1] @ decay.T
    carry = np.empty((batch, n_runs, n))
    carry[:, 0] = first
    for j in range(1, n_runs):
        carry[:, j] = carry[:, j - 1] @ powers[-1] + runs[:, j - 1, -1]
    runs += (carry @ powers.transpose(1, 0, 2).reshape(n, length * n)).reshape(runs.shape)
    return _starts_and_last(runs, first, added.shape[1])


def _growth(decay: Matrix) -> float:
    """By what a step multiplies states in the long run: 16 steps tell, where the norm of one is far too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        sixteen = float(np.linalg.norm(np.linalg.matrix_power(decay, 16)))
    return sixteen ** (1 / 16) if sixteen < _LARGE else float(np.linalg.norm(decay))


def _size(powers: NDArray[Any]) -> float:
    return float(np.max(np.abs(powers), initial=0.0))


def _in_runs(added: NDArray[Any], *, growth: float) -> NDArray[Any]:
    """Cut the second axis into about as many runs as each has steps; zeros fill up the last run.

    Runs of unstable systems are no longer than powers of their growth are finite: ∞ times a state of 0 is no number.
    """
    batch, n_steps, n = added.shape
    longest = math.log(_LARGE) / math.log(growth) if growth > 1.0 else math.inf
    length = max(1, int(min(math.sqrt(n_steps), longest)))
    n_runs = -(-n_steps // length)
    runs = np.zeros((batch, n_runs * length, n), dtype=added.dtype)
    runs[:, :n_steps] = added
    return runs.reshape(batch, n_runs, length, n)


def _starts_and_last(ends: NDArray[Any], first: NDArray[Any], n_steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """From the states after each step, those before each step and the one after the last."""
    flat = ends.reshape(len(ends), ends.shape[1] * ends.shape[2], ends.shape[-1])[:, :n_steps]
    starts = np.empty_like(flat)
    starts[:, 0], starts[:, 1:] = first, flat[:, :-1]
    return starts, flat[:, -1]


def _without_dust(powers: NDArray[Any]) -> NDArray[Any]:
    """Powers below 1e-150 as zeros: products with them would be subnormal numbers, slow and of no consequence."""
    return np.where(np.abs(powers) < 1e-150, 0.0, powers)


def _block_toeplitz(markov: Array) -> Matrix:
    """(K m × K p) with markov[k − j] from input sample j to output sample k ≥ j, transposed for rows of inputs."""
    K, p, m = markov.shape
    result = np.zeros((K, m, K, p))
    blocks = markov.transpose(2, 0, 1)
    for j in range(K):
        result[j, :, j:] = blocks[:, : K - j]
    return result.reshape(K * m, K * p)


def pack(system: ModalSystem, v: Complex, parts: list[Array]) -> Array:
    """States as real numbers along the last axis: (Re v, Im v) of pairs, reals, dense blocks."""
    pairs = np.ascontiguousarray(v[..., : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, v[..., system.n_pairs :].real, *parts], axis=-1)


def unpack(system: ModalSystem, packed: Array) -> tuple[Complex, list[Array]]:
    """The inverse of `pack`."""
    n_pairs, n_scalars = system.n_pairs, len(system.rates)
    v = np.empty((*packed.shape[:-1], n_scalars), dtype=np.complex128)
    v[..., :n_pairs] = _complex(packed[..., : 2 * n_pairs])
    v[..., n_pairs:] = packed[..., 2 * n_pairs : n_pairs + n_scalars]
    parts, offset = [], n_pairs + n_scalars
    for block in system.blocks:
        parts.append(packed[..., offset : offset + len(block.F)])
        offset += len(block.F)
    return v, parts


def _complex(packed: Array) -> Complex:
    """(Re, Im) neighbours along the last axis as complex numbers."""
    return np.ascontiguousarray(packed).view(np.complex128)


def _pack_columns(system: ModalSystem, v: Complex, parts: list[Matrix]) -> Matrix:
    """Pack a matrix whose rows belong to states: (Re, Im) rows for pairs."""
    pairs = np.stack([v[: system.n_pairs].real, v[: system.n_pairs].imag], axis=1)
    pairs = pairs.reshape(2 * system.n_pairs, v.shape[1])
    return np.vstack([pairs, v[system.n_pairs :].real, *parts])


def _pack_rows(system: ModalSystem, c: Complex, parts: list[Matrix]) -> Matrix:
    """Pack a matrix whose columns act on states: Re(c v) = Re c · Re v − Im c · Im v."""
    pairs = np.stack([c[:, : system.n_pairs].real, -c[:, : system.n_pairs].imag], axis=2)
    pairs = pairs.reshape(len(c), 2 * system.n_pairs)
    return np.hstack([pairs, c[:, system.n_pairs :].real, *parts])
