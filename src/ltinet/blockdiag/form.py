"""Block-diagonal form A T = T A_bd, the result of Algorithm 1, with its diagnostics.

The form reports condition numbers, residual, backward error, separation of eigenvalues, number of connections and, for
every block of several neurons, the reason why it was not split.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.floating_point import balancing_units
from ltinet._util.text import format_count
from ltinet.blockdiag.conditioning import Atoms, condition_number, separation_bounds
from ltinet.blockdiag.orthonormal_bases import neuron_bases
from ltinet.blockdiag.schur import SchurForm
from ltinet.blockdiag.separation import coupling_pattern
from ltinet.blockdiag.transformation import ImplicitTransformation, Transformation, estimate_residual
from ltinet.plotting.plots import BlockDiagonalPlots
from ltinet.systems.matrices import Matrix, make_read_only


@dataclass(frozen=True, eq=False, repr=False)
class BlockDiagonalForm:
    """Block-diagonal form A T = T A_bd of a matrix, with A_bd = blkdiag(A_1, …, A_L).

    Each block has the pattern G_r, G_c or G of the paper (Definition 4). Blocks are ordered by their largest real part,
    descending. Inside a block real eigenvalues come first, and pairs a ± iω stand as [[a, b], [c, a]] with b > 0, bc =
    −ω². The new coordinates are z = T⁻¹ x.

    Parameters
    ----------
    A : ndarray
        A_bd; of a large structured model `DiagonalBlocks`, which are indexed as an array.
    transformation : Transformation
        T and its inverse as factors or operators, from which `T` and `T_inv` are computed on first use.
    block_sizes : tuple of int
        Number of states of each block.
    eigenvalues : tuple of ndarray
        Eigenvalues of each block in the order of its diagonal; of a pair, the one with positive imaginary part first.
    scaling : ndarray
        Powers of two that balance the given matrix; ones where it was not balanced.
    original : ndarray or sparse array
        Given matrix; sparse where the model is large.
    candidates : tuple of (int, float)
        Number of blocks and condition number of each partition evaluated by the search before this form.
    budget : float, optional
        Limit on the condition number that determined the blocks; None if they were chosen in another way.
    decisions : tuple of str
        Decisions of the algorithm that a user may not expect, one sentence each; the first of the `notes`.
    """

    A: Matrix
    transformation: Transformation
    block_sizes: tuple[int, ...]
    eigenvalues: tuple[NDArray[np.complex128], ...]
    scaling: NDArray[np.float64]
    original: Matrix = field(repr=False)
    candidates: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    budget: float | None = None
    decisions: tuple[str, ...] = ()

    @property
    def T(self) -> Matrix:
        """Transformation x = T z, n×n."""
        return self.transformation.T

    @property
    def T_inv(self) -> Matrix:
        """Inverse transformation, z = T⁻¹ x."""
        return self.transformation.T_inv

    @property
    def n_blocks(self) -> int:
        """Number of blocks; each becomes one horizontal layer."""
        return len(self.block_sizes)

    @property
    def neurons_per_block(self) -> tuple[int, ...]:
        """Number of real eigenvalues plus pairs of each block."""
        return tuple((size + reals) // 2 for size, reals in zip(self.block_sizes, self.reals_per_block, strict=True))

    @cached_property
    def reals_per_block(self) -> tuple[int, ...]:
        """Number of real eigenvalues of each block; they come first in it."""
        if not self.block_sizes:
            return ()
        sizes = np.array(self.block_sizes)
        is_real = np.concatenate(self.eigenvalues).imag == 0.0
        return tuple(np.add.reduceat(is_real, np.cumsum(sizes) - sizes, dtype=np.intp).tolist())

    @cached_property
    def n_connections(self) -> int:
        """Number of nonzero couplings between neurons of one block, each pair of neurons once."""
        return sum(
            int(np.count_nonzero(coupling_pattern(self.block(index), self.reals_per_block[index])))
            for index, count in enumerate(self.neurons_per_block)
            if count > 1
        )

    @cached_property
    def condition(self) -> float:
        """cond₂(diag(scaling)⁻¹ T), in the units in which the form was computed; `max_condition` limits it."""
        if isinstance(self.transformation, ImplicitTransformation):
            return self.transformation.condition
        return condition_number(self.T / self.scaling[:, None])

    @cached_property
    def tradeoff(self) -> tuple[tuple[int, float], ...]:
        """Smallest condition number evaluated for each number of blocks: the trade-off curve of the paper."""
        best = {self.n_blocks: self.condition}
        for n_blocks, condition in self.candidates:
            best[n_blocks] = min(condition, best.get(n_blocks, np.inf))
        return tuple(sorted(best.items()))

    @cached_property
    def condition_raw(self) -> float:
        """cond₂(T) in the coordinates of the given matrix."""
        if isinstance(self.transformation, ImplicitTransformation):
            return self.transformation.condition
        return condition_number(self.T)

    @cached_property
    def residual(self) -> float:
        """Residual ‖A T − T A_bd‖₁ / (‖A‖₁ ‖T‖₁) of the decomposition, of the order of n·eps.

        Where T is an operator, the largest ‖(A T − T A_bd) z‖ / (‖A‖₁ ‖T z‖) for a few random z.
        """
        if isinstance(self.transformation, ImplicitTransformation):
            return estimate_residual(self.original, self.transformation, self.A)
        scale = max(float(np.max(np.abs(self.original), initial=0.0)), np.finfo(float).tiny)
        A, A_bd = self.original / scale, self.A / scale
        size = np.linalg.norm(A, 1) * np.linalg.norm(self.T, 1) if len(A) else 0.0
        return float(np.linalg.norm(A @ self.T - self.T @ A_bd, 1) / size) if size > 0 else 0.0

    @cached_property
    def backward_error(self) -> float:
        """Backward error ‖S⁻¹(A − T A_bd T⁻¹)S‖₁/‖S⁻¹AS‖₁, with S the units that balance A.

        A relative change of A of this size explains A_bd. Couplings between small states that were lost in the rounding
        of large ones count in full.
        """
        if isinstance(self.transformation, ImplicitTransformation):
            return self.residual
        units = balancing_units(self.original)
        scale = units / units[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            difference = np.abs((self.original - self.T @ self.A @ self.T_inv) * scale).sum(axis=0)
            size = float(np.max(np.abs(self.original * scale).sum(axis=0), initial=0.0))
            error = float(np.max(difference, initial=0.0))
        if error == 0.0:
            return 0.0
        return error / size if np.isfinite(error) and size > 0.0 else np.inf

    @cached_property
    def separation(self) -> float:
        """Smallest distance between eigenvalues of different blocks; infinite for a single block."""
        values = np.concatenate([*self.eigenvalues, np.empty(0, complex)])
        block = np.repeat(np.arange(self.n_blocks), self.block_sizes)
        order = np.argsort(values.real)
        values, block = values[order], block[order]
        smallest = np.inf
        for shift in range(
            1, len(values)
        ):  # neighbors in Re λ: stop when the gap in Re λ exceeds the smallest distance
            gap = values.real[shift:] - values.real[:-shift]
            if np.min(gap) >= smallest:
                break
            distance = np.where(block[shift:] != block[:-shift], np.abs(values[shift:] - values[:-shift]), np.inf)
            smallest = min(smallest, float(np.min(distance)))
        return smallest

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Decisions, and the reason why each block of several neurons was not split."""
        if self.budget is None:
            return self.decisions
        return self.decisions + tuple(
            f"block {index}: {explain_block(self.block(index), self.budget)}"
            for index, count in enumerate(self.neurons_per_block)
            if count > 1
        )

    @property
    def plot(self) -> BlockDiagonalPlots:
        """Plots: `form.plot.tradeoff()`, `.spectrum()`, `.sparsity()`; they require matplotlib."""
        return BlockDiagonalPlots(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        arrays = [matrix for matrix in (self.A, self.original) if isinstance(matrix, np.ndarray)]
        for array in (*arrays, self.scaling, *self.eigenvalues):
            array.setflags(write=False)  # NumPy unpickles and copies arrays as writeable

    def block(self, index: int) -> Matrix:
        """Return the diagonal block A_l.

        Parameters
        ----------
        index : int
            Number of the block, counted from zero.

        Returns
        -------
        ndarray
            The block, n_l×n_l.
        """
        start = sum(self.block_sizes[:index])
        stop = start + self.block_sizes[index]
        return self.A[start:stop, start:stop]

    def __dir__(self) -> list[str]:
        return dir_without(self, "transformation")

    def __repr__(self) -> str:
        return (
            f"BlockDiagonalForm(n_states={len(self.A)}, n_blocks={self.n_blocks}, n_connections={self.n_connections}, "
            f"condition={self.condition:.4g})"
        )

    def __str__(self) -> str:
        return "\n".join(_summary_lines(self))


def form_from_differences(form: BlockDiagonalForm, A: Matrix) -> BlockDiagonalForm:
    """Return the form of A from that of A − I: T is the same, and blocks and eigenvalues are larger by one.

    The matrix A of a difference equation is decomposed as x[k+1] − x[k] = (A − I) x[k] + B u[k] (the delta operator of
    Middleton and Goodwin 1990). With fast sampling A − I is small, and graded as the matrix of the differential equation
    is: errors of the decomposition are relative to A − I, and slow modes keep digits that ‖A‖ ≈ 1 would hide. A − I is
    formed without rounding where entries of the diagonal are between ½ and 2 (Sterbenz).
    """
    eigenvalues = tuple(values + 1.0 for values in form.eigenvalues)
    for values in eigenvalues:
        values.setflags(write=False)
    return replace(form, A=make_read_only(form.A + np.eye(len(A))), eigenvalues=eigenvalues, original=A)


def explain_block(block: Matrix, budget: float) -> str:
    """Explain why a quasi-triangular block was not split: the cond(T) that moving one neuron out of it requires."""
    schur = SchurForm(block, np.eye(len(block)))
    n_neurons = len(schur.sizes)
    if not np.any(block):
        return f"{n_neurons} neurons with eigenvalue zero, not connected: the kernel of A"
    if not coupling_pattern(block, int(np.count_nonzero(schur.sizes == 1))).any():
        return f"{n_neurons} neurons, not connected"
    atoms = Atoms(neuron_bases(schur).basis, schur.starts, np.ones(n_neurons, dtype=np.intp), schur.eigenvalues)
    bound = float(np.min(separation_bounds(atoms, tuple(range(n_neurons)))))
    center = complex(np.mean(schur.eigenvalues.real), np.mean(schur.eigenvalues.imag))
    if bound > budget:
        return f"{n_neurons} neurons around {center:.4g}; taking any one out needs cond(T) ≥ {bound:.2g}"
    return f"{n_neurons} neurons around {center:.4g}; no split was found with cond(T) ≤ {budget:g}"


def _summary_lines(form: BlockDiagonalForm) -> list[str]:
    n_real = sum(form.reals_per_block)
    n_pairs = (len(form.A) - n_real) // 2
    n_neurons = n_real + n_pairs
    largest = sorted(form.neurons_per_block, reverse=True)[:5]
    lines = [
        f"block-diagonal form of a {len(form.A)} × {len(form.A)} matrix",
        f"  eigenvalues        {n_real} real, {format_count(n_pairs, 'complex pair')}",
        f"  blocks             {form.n_blocks} (most neurons in one: {', '.join(map(str, largest)) or '–'})",
        f"  connections        {form.n_connections} of {n_neurons * (n_neurons - 1) // 2} possible",
        f"  cond(T)            {form.condition:.4g} balanced, {form.condition_raw:.4g} as given",
        f"  residual           {form.residual:.2e}  (‖A T − T A_bd‖ / ‖A‖‖T‖)",
        f"  separation         {form.separation:.4g}",
    ]
    shown = form.notes[:4]
    lines += [f"  note               {note}" for note in shown]
    if len(form.notes) > len(shown):
        lines.append(f"  note               … and {len(form.notes) - len(shown)} more in .notes")
    return lines
