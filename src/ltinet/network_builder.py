"""Algorithms 1 and 2 in sequence: from the matrices of a system to its network.

Algorithm 1 brings A to a block-diagonal form T⁻¹AT, Algorithm 2 turns the transformed system into neurons and layers.
Where the user leaves the choice open, states are balanced or not by the following rule: the sparser form is taken,
unless its cond(T) in the user's units exceeds 1e-9/eps and that of the other form does not. Rounding takes about a
tenth of eps·cond(T) of the outputs, here 1e-10. Large sparse models are accepted only if they have a structure from
which the form follows without filling in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import EPS
from ltinet.blockdiag.block_diagonalization import candidate_forms, describe_units
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.partition import BlockChoice
from ltinet.blockdiag.structured_form import find_structured_form
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.network.block_system import BlockSystem, align_pairs, to_block_coordinates
from ltinet.network.network import Network
from ltinet.network.synthesis import synthesise
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import explain_memory_error
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time

# MERGED ltinet.network_builder
# Algorithms 1 and 2 in a row: from the matrices of a system to its network, in the units that keep its digits.

# Rounding takes about a tenth of eps·cond(T) of the outputs, T in the user's units of the states: here 1e-10.
_MAX_RAW_CONDITION = 1e-9 / EPS
_MAX_BACKWARD_ERROR = 1e-11  # of a form that is to have more digits
_DEFAULT_MAX_CONDITION = 1e4  # what `construct` takes without being told


@dataclass(frozen=True, eq=False)
class ConstructionResult:
    """A network and all that it was made from."""

    network: Network
    form: BlockDiagonalForm
    system: SystemMatrices
    blocks: BlockSystem

    @property
    def parts(self) -> NetworkParts:
        """What a prepared network needs."""
        return NetworkParts(self.network, self.form, self.blocks)


def construct_network(system: SystemMatrices, wanted: BlockChoice, *, balance: bool | None) -> ConstructionResult:
    """The network of a system, its layers chosen as wanted, its states balanced or not as `ltinet.construct` says.

    Raises:
        PartitionError: the layers asked for do not exist.
        InvalidSystemError: the system is discrete in time.
    """
    require_continuous_time(system, "construct(system)")
    if system.sparse is not None and system.sparse.is_large:
        with explain_memory_error(system.n_states, system.sparse.n_nonzeros):
            return network_from_form(_structured_form_of_large(system.sparse, wanted), system)
    forms = candidate_forms(system.A, wanted, balance=balance)
    is_free = balance is None and wanted.clustering is None
    return network_from_form(_more_accurate_form(forms, system.A, wanted, is_free=is_free), system)


def _structured_form_of_large(pencil: SparseDescriptor, wanted: BlockChoice) -> BlockDiagonalForm:
    """The form of a large sparse model that has a structure.

    Raises:
        InvalidSystemError: it has none, or its layers were to be chosen, for which it would have to be filled in.
    """
    if not wanted.is_free:
        raise pencil.size_error("a choice of layers")
    form = find_structured_form(pencil, max_condition=wanted.max_condition)
    if form is None:
        raise pencil.size_error(
            "construct(system) found none of the structures that large models are built by (parts without connections, "
            "diagonal, tridiagonal, circulant, Kronecker sum), and"
        )
    return form


def prepare_system(system: SystemMatrices) -> SimulationContext:
    """A system prepared to run; its network, by the defaults of `ltinet.construct`, is made when something needs it."""
    return SimulationContext(partial(_default_parts, system), origin=system)


def _default_parts(system: SystemMatrices) -> NetworkParts:
    with limit_blas_threads(system.n_states):
        return construct_network(system, BlockChoice(_DEFAULT_MAX_CONDITION), balance=None).parts


def require_single_system(system: Any, others: Sequence[Any]) -> Any:
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


def network_from_form(form: BlockDiagonalForm, system: SystemMatrices) -> ConstructionResult:
    """The network of a system in a block-diagonal form of its A (Algorithm 2)."""
    form = align_pairs(form, B=system.B, C=system.C)
    blocks = to_block_coordinates(system, form)
    return ConstructionResult(synthesise(blocks), form, system, blocks)


def _more_accurate_form(
    forms: Sequence[BlockDiagonalForm], A: Matrix, wanted: BlockChoice, *, is_free: bool
) -> BlockDiagonalForm:
    """The sparser form, unless its T costs digits in the user's units and that in other units does not.

    Without connections T has the eigenvectors in any units, and there is nothing to choose.
    """
    first = forms[0]
    if not is_free or not first.n_connections or first.condition_raw <= _MAX_RAW_CONDITION:
        return first
    try:
        other = forms[1] if len(forms) > 1 else candidate_forms(A, wanted, balance=not (first.scaling != 1.0).any())[0]
    except (InvalidSystemError, PartitionError):  # there is none in those units
        return first
    if other.condition_raw > _MAX_RAW_CONDITION or other.backward_error > _MAX_BACKWARD_ERROR:
        return first
    reason = (
        f"{describe_units(other)}, for more digits: cond(T) as given is {other.condition_raw:.1e}, "
        f"{first.condition_raw:.1e} otherwise"
    )
    return replace(other, decisions=(*other.decisions, reason))
