"""Algorithms 1 and 2 in sequence: from the matrices of a system to its network.

Algorithm 1 brings A to a block-diagonal form T⁻¹AT, Algorithm 2 turns the transformed system into neurons and layers.
Where the user leaves the choice open, states are balanced or not by the following rule: the sparser form is taken,
unless its cond(T) in the user's units exceeds 1e-9/eps and that of the other form does not. Rounding takes about a
tenth of eps·cond(T) of the outputs, here 1e-10. Large sparse models are accepted only if they have a structure from
which the form follows without filling in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import EPS
from ltinet.blockdiag.block_diagonalization import candidate_forms, describe_units
from ltinet.blockdiag.form import BlockDiagonalForm, form_from_differences
from ltinet.blockdiag.partition import BlockChoice
from ltinet.blockdiag.structured_form import find_structured_form
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.network.block_system import BlockSystem, align_pairs, to_block_coordinates
from ltinet.network.network import Network
from ltinet.network.synthesis import synthesize
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import explain_memory_error
from ltinet.systems.system_matrices import SystemMatrices

# Limit on cond(T) in the user's units: rounding errors of the outputs are about eps·cond(T)/10, here 1e-10.
_MAX_RAW_CONDITION = 1e-9 / EPS
_MAX_BACKWARD_ERROR = 1e-11  # relative backward error of a form that is preferred for its accuracy; empirical
DEFAULT_MAX_CONDITION = 1e4  # default of `construct`


@dataclass(frozen=True, eq=False)
class ConstructionResult:
    """Network with the system, the form and the block coordinates that it was built from."""

    network: Network
    form: BlockDiagonalForm
    system: SystemMatrices
    blocks: BlockSystem

    @property
    def parts(self) -> NetworkParts:
        """Parts of the simulation context."""
        return NetworkParts(self.network, self.form, self.blocks)


def construct_network(system: SystemMatrices, choice: BlockChoice, *, balance: bool | None) -> ConstructionResult:
    """Construct the network of a system; the options are those of `ltinet.construct`.

    A network of a system in discrete time consists of difference equations: where the neurons of a network in continuous
    time have derivatives ξ̇ and ξ̈, they have ξ[k+1] and ξ[k+2], and the algebra is the same.

    Raises PartitionError if the requested layers do not exist.
    """
    if system.sparse is not None and system.sparse.is_large:
        with explain_memory_error(system.n_states, system.sparse.n_nonzeros):
            return network_from_form(_structured_form(system.sparse, choice), system)
    A = system.difference_matrix
    forms = candidate_forms(A, choice, balance=balance)
    form = forms[0]
    if balance is None and choice.clustering is None:
        form = _more_accurate_form(forms, A, choice)
    if system.dt is not None:
        form = form_from_differences(form, system.A)
    return network_from_form(form, system)


def _structured_form(pencil: SparseDescriptor, choice: BlockChoice) -> BlockDiagonalForm:
    """Find the form of a large sparse model from its structure, without filling in.

    Raises InvalidSystemError if the model has no known structure, or if layers are prescribed.
    """
    if not choice.is_free:
        raise pencil.size_error("a choice of layers")
    form = find_structured_form(pencil, max_condition=choice.max_condition)
    if form is None:
        raise pencil.size_error(
            "construct(system) found no known structure (disconnected parts, diagonal, tridiagonal, circulant, Kronecker "
            "sum), and"
        )
    return form


def prepare_system(system: SystemMatrices) -> SimulationContext:
    """Return the simulation context of a system; its network is constructed, with default options, on first use."""
    return SimulationContext(prepare_parts(system), origin=system)


def prepare_parts(system: SystemMatrices) -> Callable[[], NetworkParts]:
    """Return a function that constructs the network of a system with default options."""

    def construct_parts() -> NetworkParts:
        with limit_blas_threads(system.n_states):
            return construct_network(system, BlockChoice(DEFAULT_MAX_CONDITION), balance=None).parts

    return construct_parts


def require_single_system(system: Any, others: Sequence[Any]) -> Any:
    """Return the system; raise InvalidSystemError if it was passed as several arguments instead of one tuple."""
    if not others:
        return system
    names = ", ".join("ABCDE"[: len(others) + 1]) if len(others) < 5 else "A, B, C, …"
    raise InvalidSystemError(
        f"construct takes one system, got {len(others) + 1} positional arguments; put matrices into a tuple, "
        f"construct(({names})), and pass options by name, as in max_condition=100"
    )


def network_from_form(form: BlockDiagonalForm, system: SystemMatrices) -> ConstructionResult:
    """Build the network of a system from a block-diagonal form of its A (Algorithm 2)."""
    form = align_pairs(form, B=system.B, C=system.C)
    blocks = to_block_coordinates(system, form)
    return ConstructionResult(synthesize(blocks), form, system, blocks)


def _more_accurate_form(forms: Sequence[BlockDiagonalForm], A: Matrix, choice: BlockChoice) -> BlockDiagonalForm:
    """Return the sparser form, unless its cond(T) in the user's units is too large and that of the other form is not.

    Without connections the columns of T are the eigenvectors in any units, and both forms are equally accurate.
    """
    first = forms[0]
    if not first.n_connections or first.condition_raw <= _MAX_RAW_CONDITION:
        return first
    try:
        other = forms[1] if len(forms) > 1 else candidate_forms(A, choice, balance=not (first.scaling != 1.0).any())[0]
    except (InvalidSystemError, PartitionError):  # no form exists in those units
        return first
    if other.condition_raw > _MAX_RAW_CONDITION or other.backward_error > _MAX_BACKWARD_ERROR:
        return first
    reason = (
        f"{describe_units(other)}, for accuracy: cond(T) as given is {other.condition_raw:.1e}, "
        f"{first.condition_raw:.1e} otherwise"
    )
    return replace(other, decisions=(*other.decisions, reason))
