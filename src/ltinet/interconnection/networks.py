"""Sums and products of networks that reuse their blocks.

For two networks with block-diagonal forms A_i T_i = T_i Λ_i the connection of their systems is known in block
coordinates, T = blkdiag(T₁, T₂). In parallel A = blkdiag(A₁, A₂) is block-diagonal already: the network is wider. In
series, first into second,

    T⁻¹ A T = [[Λ₁, 0], [N, Λ₂]],    N = T₂⁻¹ B₂ C₁ T₁,

and the Sylvester equation Λ₂ Y − Y Λ₁ = −N, which separates into one of a few unknowns for each pair of blocks, removes
N: the columns of [[T₁, 0], [T₂ Y, T₂]] give blkdiag(Λ₁, Λ₂). No Schur form and no search for blocks is needed.

Y is large where eigenvalues of both systems nearly coincide. If the condition number of T then exceeds the limit that
the operands were constructed with, the network is constructed anew, which puts such eigenvalues into one block.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import block_diag, lapack, schur

from ltinet._util.blas_threads import limit_blas_threads
from ltinet.blockdiag.block_diagonalization import split_by_block
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.transformation import DenseTransformation, ImplicitTransformation
from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network_builder import network_from_form
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix, make_read_only

_DEFAULT_LIMIT = 1e4  # on cond(T) where an operand was constructed by another rule; the default of `construct`


def parallel_networks(first: DynamicNetwork, second: DynamicNetwork, system: StateSpace) -> DynamicNetwork:
    """Return the network of the sum of two networks, `system`: the neurons of both, side by side."""
    errors = [net.reduction_error for net in (first, second) if net.reduction_error is not None]
    return _combined(first, second, system, None, reduction_error=sum(errors) if errors else None)


def series_networks(first: DynamicNetwork, second: DynamicNetwork, system: StateSpace) -> DynamicNetwork:
    """Return the network of two networks in series, `system`; the states of the first come first."""
    # The error of a product depends on the H∞ norm of the other factor, which is not known here.
    is_reduced = first.reduction_error is not None or second.reduction_error is not None
    return _combined(first, second, system, decouple_series, reduction_error=np.inf if is_reduced else None)


def with_system(net: DynamicNetwork, system: StateSpace, *, error_factor: float = 1.0) -> DynamicNetwork:
    """Return the network of a system that differs from that of a network in B, C and D only, from the same blocks."""
    error = None if net.reduction_error is None else net.reduction_error * error_factor
    form = _form(net)
    if form is None or system.n_states != net.n_states:
        return _constructed(system, error)
    return _assembled(form, system, error)


Coupling: TypeAlias = Callable[[BlockDiagonalForm, BlockDiagonalForm, Matrix], Matrix]
"""Function that returns Y from both forms and N."""


def _combined(
    first: DynamicNetwork,
    second: DynamicNetwork,
    system: StateSpace,
    coupling: Coupling | None,
    *,
    reduction_error: float | None,
) -> DynamicNetwork:
    forms = _form(first), _form(second)
    if forms[0] is None or forms[1] is None or system.n_states != first.n_states + second.n_states:
        return _constructed(system, reduction_error)
    limit = max(form.budget or _DEFAULT_LIMIT for form in forms if form is not None)
    with limit_blas_threads(system.n_states):
        Y = np.zeros((second.n_states, first.n_states))
        if coupling is not None:
            n = first.n_states
            N = forms[1].transformation.to_blocks(forms[0].transformation.from_blocks(system.A[n:, :n]))
            Y = coupling(forms[0], forms[1], N)
        form = _joined_form(forms[0], forms[1], system, Y) if np.isfinite(Y).all() else None
    if form is None or form.condition > limit:
        return _constructed(system, reduction_error)
    return _assembled(form, system, reduction_error)


def _form(net: DynamicNetwork) -> BlockDiagonalForm | None:
    """Return the form of a network that may be reused; None for one without, or with T as an operator."""
    is_usable = net.form is not None and net.system is not None
    return net.form if is_usable and not isinstance(net.form.transformation, ImplicitTransformation) else None  # type: ignore[union-attr]


def _constructed(system: StateSpace, reduction_error: float | None) -> DynamicNetwork:
    net = construct(system)
    return DynamicNetwork(net.network, net.form, net.system, net.blocks, reduction_error)


def _assembled(form: BlockDiagonalForm, system: StateSpace, reduction_error: float | None) -> DynamicNetwork:
    with limit_blas_threads(system.n_states):
        result = network_from_form(form, system.matrices)
    return DynamicNetwork(result.network, result.form, system, result.blocks, reduction_error)


def decouple_series(first: BlockDiagonalForm, second: BlockDiagonalForm, N: Matrix) -> Matrix:
    """Return Y with Λ₂ Y − Y Λ₁ = −N.

    The real Schur forms of block-diagonal matrices rotate inside blocks only; LAPACK `trsyl` then solves one equation
    for each pair of their blocks. Entries that overflow, where eigenvalues coincide, are infinite.
    """
    R2, U2 = schur(second.A, output="real", check_finite=False)
    R1, U1 = schur(first.A, output="real", check_finite=False)
    solution, scale, _ = lapack.dtrsyl(R2, R1, -(U2.T @ N @ U1), isgn=-1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.asarray(U2 @ (solution / scale) @ U1.T)


def _joined_form(
    first: BlockDiagonalForm, second: BlockDiagonalForm, system: StateSpace, Y: Matrix
) -> BlockDiagonalForm:
    """Return the form with T = [[T₁, 0], [T₂ Y, T₂]] and T⁻¹ = [[T₁⁻¹, 0], [−Y T₁⁻¹, T₂⁻¹]], its blocks sorted.

    The columns of each block are scaled by a power of two to norms of about 1 in the units of the forms, which keeps
    cond(T) small; a factor that is the same for a whole block does not change Λ.
    """
    n = first.A.shape[0]
    T, T_inv = block_diag(first.T, second.T), block_diag(first.T_inv, second.T_inv)
    T[n:, :n], T_inv[n:, :n] = second.T @ Y, -(Y @ first.T_inv)
    scaling = np.concatenate([first.scaling, second.scaling])
    sizes = np.array([*first.block_sizes, *second.block_sizes], dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    norms = np.linalg.norm(T / scaling[:, None], axis=0)
    factors = (
        np.repeat(np.exp2(-np.round(np.log2(np.maximum.reduceat(norms, starts)))), sizes) if n else np.ones(len(T))
    )
    T, T_inv = T * factors, T_inv / factors[:, None]
    values = np.concatenate([*first.eigenvalues, *second.eigenvalues, np.empty(0, np.complex128)])
    largest = np.maximum.reduceat(values.real, starts) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    columns = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    A_bd = block_diag(np.asarray(first.A), np.asarray(second.A))[np.ix_(columns, columns)]
    budgets = [form.budget for form in (first, second) if form.budget is not None]
    return BlockDiagonalForm(
        A=make_read_only(A_bd),
        transformation=DenseTransformation(T[:, columns], T_inv[columns]),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=split_by_block(values[columns], sizes[order]),
        scaling=make_read_only(scaling),
        original=system.A,
        budget=max(budgets) if len(budgets) == 2 else None,
        decisions=("the blocks of two networks were reused",),
    )
