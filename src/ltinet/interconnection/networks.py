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

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import summation_tolerance
from ltinet.blockdiag.block_diagonalization import split_by_block
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.transformation import ImplicitTransformation, JoinedTransformation
from ltinet.construction import construct
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network.block_system import BlockSystem, align_pairs
from ltinet.network.maps import TermMagnitudes, drop_rounding
from ltinet.network.network import Network
from ltinet.network.synthesis import synthesize
from ltinet.network_builder import network_from_form
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix, make_read_only

_DEFAULT_LIMIT = 1e4  # on cond(T) where an operand was constructed by another rule; the default of `construct`


def parallel_networks(first: DynamicNetwork, second: DynamicNetwork, system: StateSpace) -> DynamicNetwork:
    """Return the network of the sum of two networks, `system`: the layers of both, side by side."""
    errors = [net.reduction_error for net in (first, second) if net.reduction_error is not None]
    reduction_error = sum(errors) if errors else None
    forms = _form(first), _form(second)
    if forms[0] is None or forms[1] is None or not _is_sum(first, second, system):
        return _constructed(system, reduction_error)
    form, order = _joined_form(forms[0], forms[1], system, np.zeros((second.n_states, first.n_states)))
    layers = [*first.network.layers, *second.network.layers]
    Phi = [*first.network.Phi, *second.network.Phi]
    Psi = make_read_only(first.network.Psi + second.network.Psi)
    network = Network.trusted([layers[index] for index in order], [Phi[index] for index in order], Psi)
    return DynamicNetwork(
        network, form, system, _joined_blocks(first, second, system, form, is_series=False), reduction_error
    )


def series_networks(first: DynamicNetwork, second: DynamicNetwork, system: StateSpace) -> DynamicNetwork:
    """Return the network of two networks in series, `system`; the states of the first come first."""
    # The error of a product depends on the H∞ norm of the other factor, which is not known here.
    is_reduced = first.reduction_error is not None or second.reduction_error is not None
    reduction_error = np.inf if is_reduced else None
    forms = _form(first), _form(second)
    if forms[0] is None or forms[1] is None or not _is_sum(first, second, system):
        return _constructed(system, reduction_error)
    with limit_blas_threads(system.n_states):
        Y = decouple_series(forms[0], forms[1], _with_magnitudes(second.blocks).B @ _with_magnitudes(first.blocks).C)
        limit = max(forms[0].budget or _DEFAULT_LIMIT, forms[1].budget or _DEFAULT_LIMIT)
        if not np.isfinite(Y).all():
            return _constructed(system, reduction_error)
        form, _ = _joined_form(forms[0], forms[1], system, Y)
        if _condition_bound(forms[0], forms[1], Y) > limit and form.condition > limit:
            return _constructed(system, reduction_error)
        form = align_pairs(form, B=system.B, C=system.C)
        blocks = _joined_blocks(first, second, system, form, is_series=True)
        return DynamicNetwork(synthesize(blocks), form, system, blocks, reduction_error)


def with_system(net: DynamicNetwork, system: StateSpace, *, error_factor: float = 1.0) -> DynamicNetwork:
    """Return the network of a system that differs from that of a network in B, C and D only, from the same blocks."""
    error = None if net.reduction_error is None else net.reduction_error * error_factor
    form = _form(net)
    if form is None or system.n_states != net.n_states:
        return _constructed(system, error)
    return _assembled(form, system, error)


def _form(net: DynamicNetwork) -> BlockDiagonalForm | None:
    """Return the form of a network that may be reused; None for one without, or with T as an operator."""
    is_usable = net.form is not None and net.system is not None and net.blocks is not None
    return net.form if is_usable and not isinstance(net.form.transformation, ImplicitTransformation) else None  # type: ignore[union-attr]


def _constructed(system: StateSpace, reduction_error: float | None) -> DynamicNetwork:
    net = construct(system)
    return DynamicNetwork(net.network, net.form, net.system, net.blocks, reduction_error)


def _assembled(form: BlockDiagonalForm, system: StateSpace, reduction_error: float | None) -> DynamicNetwork:
    with limit_blas_threads(system.n_states):
        result = network_from_form(form, system.matrices)
    return DynamicNetwork(result.network, result.form, system, result.blocks, reduction_error)


def _is_sum(first: DynamicNetwork, second: DynamicNetwork, system: StateSpace) -> bool:
    """Return whether the states of a system are those of two networks; shift registers add states."""
    return system.n_states == first.n_states + second.n_states > 0


def decouple_series(first: BlockDiagonalForm, second: BlockDiagonalForm, N: Matrix) -> Matrix:
    """Return Y with Λ₂ Y − Y Λ₁ = −N.

    Blocks are quasi-triangular, with real eigenvalues first, so that LAPACK `trsyl` takes Λ₁ and Λ₂ as they are; it
    solves one equation for each pair of their neurons. Diagonal Λ₁ and Λ₂ need a division for each entry only. Entries
    that overflow, where eigenvalues coincide, are infinite.
    """
    if max((*first.block_sizes, *second.block_sizes), default=1) == 1:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.asarray(N / (first.A.diagonal() - second.A.diagonal()[:, None]))
    solution, scale, _ = lapack.dtrsyl(second.A, first.A, -N, isgn=-1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.asarray(solution / scale)


def _condition_bound(first: BlockDiagonalForm, second: BlockDiagonalForm, Y: Matrix) -> float:
    """Return an upper bound on cond(T) of two systems in series, in the units of their forms.

    cond(T) ≤ cond(blkdiag(T₁, T₂)) · cond([[I, 0], [Y, I]]). The columns of T₁ and T₂ have norms of about 1, so that their
    singular values lie between 1/cond(T_i) and √n_i; with y = ‖Y‖ the second factor is ((y + √(y² + 4))/2)².
    """
    size = np.sqrt(float(np.linalg.norm(Y, 1)) * float(np.linalg.norm(Y, np.inf))) if Y.size else 0.0
    sizes = [np.sqrt(sum(form.block_sizes)) for form in (first, second)]
    block_diagonal = max(sizes) * max(first.condition, second.condition)
    return float(block_diagonal * (0.5 * (size + np.hypot(size, 2.0))) ** 2)


def _joined_form(
    first: BlockDiagonalForm, second: BlockDiagonalForm, system: StateSpace, Y: Matrix
) -> tuple[BlockDiagonalForm, list[int]]:
    """Return the form with T = [[T₁, 0], [T₂ Y, T₂]], its blocks sorted, and the order of the blocks.

    Each block of the first system is scaled by a power of two to columns of norms of about 1, which keeps cond(T) small;
    a factor that is the same for a whole block does not change Λ.
    """
    sizes = np.array([*first.block_sizes, *second.block_sizes], dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    norms = np.concatenate([np.hypot(1.0, np.linalg.norm(Y, axis=0)), np.ones(len(Y))])
    factors = np.repeat(np.exp2(-np.round(np.log2(np.maximum.reduceat(norms, starts)))), sizes)
    values = np.concatenate([*first.eigenvalues, *second.eigenvalues])
    order = np.argsort(-np.maximum.reduceat(values.real, starts), kind="stable")
    columns = _columns(sizes, order)
    A_bd = np.zeros((len(columns), len(columns)))
    n = Y.shape[1]
    A_bd[:n, :n], A_bd[n:, n:] = first.A, second.A
    budgets = [form.budget for form in (first, second) if form.budget is not None]
    form = BlockDiagonalForm(
        A=make_read_only(A_bd[columns][:, columns]),
        transformation=JoinedTransformation(first.transformation, second.transformation, Y, factors, columns),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=split_by_block(values[columns], sizes[order]),
        scaling=make_read_only(np.concatenate([first.scaling, second.scaling])),
        original=system.A,
        budget=max(budgets) if len(budgets) == 2 else None,
        decisions=("the blocks of two networks were reused",),
    )
    return form, order.tolist()


def _columns(sizes: NDArray[np.intp], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the states in the order of their blocks."""
    return np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")


def _joined_blocks(
    first: DynamicNetwork, second: DynamicNetwork, system: StateSpace, form: BlockDiagonalForm, *, is_series: bool
) -> BlockSystem:
    """Return two systems in parallel or in series in the coordinates of their joined form.

    With T of the form, T⁻¹B = [B₁; B₂ − Y B₁] and C T = [C₁ + C₂ Y, C₂] for the B and C of the connection in the block
    coordinates of the parts: in series B₂ is B₂ D₁ and C₁ is D₂ C₁. Entries are known relative to the same sums of sizes.
    """
    T: Any = form.transformation
    one, other = _with_magnitudes(first.blocks), _with_magnitudes(second.blocks)
    sizes = one.magnitudes, other.magnitudes
    parts = []
    for (B1, C1), (B2, C2), D1, D2, Y, sign in (
        ((one.B, one.C), (other.B, other.C), one.D, other.D, T.coupling, -1.0),
        (sizes[0], sizes[1], np.abs(one.D), np.abs(other.D), np.abs(T.coupling), 1.0),
    ):
        late, early = (B2 @ D1, D2 @ C1) if is_series else (B2, C1)
        B = np.vstack([B1, late + sign * (Y @ B1)]) / T.factors[:, None]
        C = np.hstack([early + C2 @ Y, C2]) * T.factors
        parts.append((B[T.order], C[:, T.order]))
    (B, C), (B_terms, C_terms) = parts
    if T.rotations is not None:
        rotations = T.rotations.magnitudes
        B, C = T.rotations.rotate_rows(B), T.rotations.rotate_columns(C)
        B_terms, C_terms = rotations.rotate_rows(B_terms), rotations.rotate_columns(C_terms)
    noise = summation_tolerance(system.n_states)
    B, C = drop_rounding(B, noise * B_terms), drop_rounding(C, noise * C_terms)
    return BlockSystem(
        form.A, make_read_only(B), make_read_only(C), system.D, form.block_sizes, form.reals_per_block,
        TermMagnitudes(B_terms, C_terms),
    )  # fmt: skip


def _with_magnitudes(blocks: Any) -> Any:
    return replace(blocks, magnitudes=blocks.magnitudes or TermMagnitudes(np.abs(blocks.B), np.abs(blocks.C)))
