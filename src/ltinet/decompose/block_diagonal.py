"""The door to Algorithm 1: what is asked for, and in which units of the states it is looked for."""

from dataclasses import replace

import numpy as np

from ltinet.decompose.balance import balance as balance_matrix
from ltinet.decompose.choose.choice import BlockChoice, ClusteringAlgorithm, require_choice_of_units
from ltinet.decompose.coupling import condition_number
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.partition import NotSparserError
from ltinet.decompose.pipeline import decompose
from ltinet.decompose.schur import is_symmetric
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.model.matrices import Matrix, MatrixLike, as_square_matrix
from ltinet.threads import threads_for


def block_diagonalize(
    A: MatrixLike,
    *,
    max_condition: float = 1e4,
    n_blocks: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
) -> BlockDiagonalForm:
    """Block-diagonalise a real square matrix with a well-conditioned transformation (Algorithm 1).

    The blocks are chosen in one of three ways: by default the sparsest form found with cond(T) ≤ `max_condition`; or
    `n_blocks` blocks; or the clusters of `clustering`, any object with scikit-learn's `fit_predict`, which sees one
    point (Re λ, |Im λ|) per real eigenvalue or pair. The last two ignore `max_condition`. A symmetric or normal A, or
    one that falls apart into neurons by itself, needs an orthogonal T only, and has a block for each neuron.

    The units of the states decide what is found, and in which cond(T) is measured: with `balance` rows and columns of A
    are brought to one size by powers of two, without it they are as given. None tries balanced states first and, where
    they differ from the given ones and leave connections, those as well; it takes the form with fewer connections, then
    the smaller cond(T). Clusters are looked for once, with balanced states.

    Cost: one real Schur form, ~25 n³ flops, and a third as much again where all neurons can stand apart; a tight
    budget on a large matrix without structure searches for several times as long. Twice that where both units are
    tried. Raises InvalidSystemError if A is not a finite real square matrix, PartitionError if the blocks asked for do
    not exist.
    """
    wanted = BlockChoice(max_condition, n_blocks, clustering)
    return candidate_forms(as_square_matrix(A, "A"), wanted, balance=balance)[0]


def candidate_forms(A: Matrix, wanted: BlockChoice, *, balance: bool | None) -> tuple[BlockDiagonalForm, ...]:
    """The form that `block_diagonalize` returns and, where it was close, the one in other units of the states."""
    _check(wanted)
    require_choice_of_units(balance)
    with threads_for(len(A)):
        # Of a symmetric matrix rows and columns have equal norms, and balancing leaves it alone.
        units = balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))
        if balance is not None or wanted.clustering is not None or not (units.scaling != 1.0).any():
            return (decompose(A, units, wanted),)
        as_given = balance_matrix(A, rescale_states=False)
        try:
            balanced = decompose(A, units, wanted)
        except PartitionError:  # those blocks do not exist in these units
            return (_with_remark(decompose(A, as_given, wanted), "there are no such blocks with states balanced"),)
        if balanced.n_connections == 0:
            # None is sparser, and T as well conditioned as any: vectors are best of one size (van der Sluis 1969).
            return (_with_remark(balanced, "no connections are left"),)
        try:
            other = decompose(A, as_given, wanted, fewer_than=balanced.n_connections)
        except NotSparserError:
            return (_with_remark(balanced, "there would be more connections with states as given"),)
        except PartitionError:
            return (_with_remark(balanced, "there are no such blocks with states as given"),)
        except InvalidSystemError:
            return (_with_remark(balanced, "entries differ by too many decades with states as given"),)
    return _compared(balanced, other)


def _compared(balanced: BlockDiagonalForm, as_given: BlockDiagonalForm) -> tuple[BlockDiagonalForm, ...]:
    """Both forms, the better one first, each with a remark on how they compare."""
    counts = balanced.n_connections, as_given.n_connections
    if counts[0] != counts[1]:
        told = f"{counts[0]} connections with states balanced, {counts[1]} as given"
        is_better = counts[1] < counts[0]
    else:  # in the units in which rounding errors are of one size
        conditions = balanced.condition, condition_number(as_given.T / balanced.scaling[:, None])
        told = f"cond(T) is {conditions[0]:.3g} with states balanced, {conditions[1]:.3g} as given"
        is_better = conditions[1] < conditions[0]
    forms = (as_given, balanced) if is_better else (balanced, as_given)
    return tuple(_with_remark(form, told) for form in forms)


def _with_remark(form: BlockDiagonalForm, remark: str) -> BlockDiagonalForm:
    return replace(form, remarks=(*form.remarks, f"{units_of(form)}: {remark}"))


def units_of(form: BlockDiagonalForm) -> str:
    """In which units of the states a form was looked for, in words."""
    return "states balanced" if (form.scaling != 1.0).any() else "states as given"


def _check(wanted: BlockChoice) -> None:
    max_condition, n_blocks, clustering = wanted.max_condition, wanted.n_blocks, wanted.clustering
    if not isinstance(max_condition, (int, float, np.integer, np.floating)) or not max_condition >= 1.0:
        raise PartitionError(f"max_condition is {max_condition!r}; a condition number is at least 1, so give 1 or more")
    if n_blocks is not None and clustering is not None:
        raise PartitionError(f"both {wanted.called} and clustering were given; choose the blocks in one way")
    if n_blocks is not None and (
        not isinstance(n_blocks, (int, np.integer)) or isinstance(n_blocks, bool) or n_blocks < 1
    ):
        raise PartitionError(f"{wanted.called} is {n_blocks!r}; give a whole number of at least 1")
    if clustering is not None and not hasattr(clustering, "fit_predict"):
        raise PartitionError(
            f"clustering is a {type(clustering).__name__} without fit_predict; give an object like sklearn's KMeans(6)"
        )
