"""Algorithms 1 and 2 in a row: from the matrices of a system to its network, in the units that keep its digits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ltinet.decompose.block_diagonal import candidate_forms, units_of
from ltinet.decompose.choose.choice import BlockChoice
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.structured_form import structured_form
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.model.matrices import Matrix
from ltinet.model.memory import told_if_short
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import require_continuous_time
from ltinet.network.alignment import align_pairs
from ltinet.network.block_system import BlockSystem, in_block_coordinates
from ltinet.network.network import Network
from ltinet.network.synthesis import synthesise
from ltinet.solve.prepared import NetworkParts, PreparedNetwork
from ltinet.threads import threads_for
from ltinet.tolerances import EPS

# Rounding takes about a tenth of eps·cond(T) of the outputs, T in the user's units of the states: here 1e-10.
_COSTLY_CONDITION = 1e-9 / EPS
_LARGEST_BACKWARD_ERROR = 1e-11  # of a form that is to have more digits
_MAX_CONDITION = 1e4  # what `construct` takes without being told


@dataclass(frozen=True, eq=False)
class Construction:
    """A network and all that it was made from."""

    network: Network
    form: BlockDiagonalForm
    system: SystemMatrices
    blocks: BlockSystem

    @property
    def parts(self) -> NetworkParts:
        """What a prepared network needs."""
        return NetworkParts(self.network, self.form, self.blocks)


def construct_network(system: SystemMatrices, wanted: BlockChoice, *, balance: bool | None) -> Construction:
    """The network of a system, its layers chosen as wanted, its states balanced or not as `ltinet.construct` says.

    Raises:
        PartitionError: the layers asked for do not exist.
        InvalidSystemError: the system is discrete in time.
    """
    require_continuous_time(system, "construct(system)")
    if system.sparse is not None and system.sparse.is_large:
        with told_if_short(system.n_states, system.sparse.n_nonzeros):
            return network_in(_form_of_large(system.sparse, wanted), system)
    forms = candidate_forms(system.A, wanted, balance=balance)
    is_free = balance is None and wanted.clustering is None
    return network_in(_better_form(forms, system.A, wanted, is_free=is_free), system)


def _form_of_large(pencil: SparsePencil, wanted: BlockChoice) -> BlockDiagonalForm:
    """The form of a large sparse model that has a structure.

    Raises:
        InvalidSystemError: it has none, or its layers were to be chosen, for which it would have to be filled in.
    """
    if not wanted.is_free:
        raise pencil.too_large("a choice of layers")
    form = structured_form(pencil, max_condition=wanted.max_condition)
    if form is None:
        raise pencil.too_large(
            "construct(system) found none of the structures that large models are built by (parts without connections, "
            "diagonal, tridiagonal, circulant, Kronecker sum), and"
        )
    return form


def network_of(system: SystemMatrices) -> PreparedNetwork:
    """A system prepared to run; its network, by the defaults of `ltinet.construct`, is made when something needs it."""
    return PreparedNetwork(partial(_default_parts, system), origin=system)


def _default_parts(system: SystemMatrices) -> NetworkParts:
    with threads_for(system.n_states):
        return construct_network(system, BlockChoice(_MAX_CONDITION), balance=None).parts


def the_only_one(system: Any, others: Sequence[Any]) -> Any:
    """The system, which is one argument: a tuple where it is given by matrices.

    Raises:
        InvalidSystemError: there are others beside it.
    """
    if not others:
        return system
    names = ", ".join("ABCDE"[: len(others) + 1]) if len(others) < 5 else "A, B, C, …"
    raise InvalidSystemError(
        f"construct takes one system, and {len(others) + 1} arguments came; put matrices into a tuple: "
        f"construct(({names})); all options are given by name, as in max_condition=100"
    )


def network_in(form: BlockDiagonalForm, system: SystemMatrices) -> Construction:
    """The network of a system in a block-diagonal form of its A (Algorithm 2)."""
    form = align_pairs(form, B=system.B, C=system.C)
    blocks = in_block_coordinates(system, form)
    return Construction(synthesise(blocks), form, system, blocks)


def _better_form(
    forms: Sequence[BlockDiagonalForm], A: Matrix, wanted: BlockChoice, *, is_free: bool
) -> BlockDiagonalForm:
    """The sparser form, unless its T costs digits in the user's units and that in other units does not.

    Without connections T has the eigenvectors in any units, and there is nothing to choose.
    """
    first = forms[0]
    if not is_free or not first.n_connections or first.condition_raw <= _COSTLY_CONDITION:
        return first
    try:
        other = forms[1] if len(forms) > 1 else candidate_forms(A, wanted, balance=not (first.scaling != 1.0).any())[0]
    except (InvalidSystemError, PartitionError):  # there is none in those units
        return first
    if other.condition_raw > _COSTLY_CONDITION or other.backward_error > _LARGEST_BACKWARD_ERROR:
        return first
    reason = (
        f"{units_of(other)}, for more digits: cond(T) as given is {other.condition_raw:.1e}, "
        f"{first.condition_raw:.1e} otherwise"
    )
    return replace(other, remarks=(*other.remarks, reason))
