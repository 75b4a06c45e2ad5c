"""Algorithms 1 and 2 in a row: from the matrices of a system to its network, in the units that keep its digits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ltinet.decompose.block_diagonal import candidate_forms, units_of
from ltinet.decompose.choose.choice import BlockChoice
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.structured_form import structured_form
from ltinet.errors import InvalidSystemError
from ltinet.model.memory import told_if_short
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.model.system_matrices import SystemMatrices
from ltinet.model.time_step import require_continuous_time
from ltinet.network.alignment import align_pairs
from ltinet.network.block_system import BlockSystem, in_block_coordinates
from ltinet.network.network import Network
from ltinet.network.synthesis import synthesise
from ltinet.once import cached_property
from ltinet.solve.exact.digits import certified_error, surely_below
from ltinet.solve.prepared import PreparedNetwork
from ltinet.threads import threads_for
from ltinet.tolerances import EPS

# A relative error of outputs that nobody notices: up to here the sparser network is preferred.
_UNNOTICED = 1e-10
_MAX_CONDITION = 1e4  # what `construct` takes without being told


@dataclass(frozen=True, eq=False)
class Construction:
    """A network and all that it was made from."""

    network: Network
    form: BlockDiagonalForm
    system: SystemMatrices
    blocks: BlockSystem

    @cached_property
    def prepared(self) -> PreparedNetwork:
        """The network prepared to run, which certificates ask for."""
        return PreparedNetwork(self.network, self.form, origin=self.system, blocks=self.blocks)


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
    found = network_in(forms[0], system)
    has_no_rival = balance is not None or wanted.clustering is not None
    if has_no_rival or _keeps_digits(found, is_sparser_as_given=len(forms) > 1):
        return found
    return _with_more_digits(found, forms[1:], wanted)


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
    """The network of a system as `ltinet.construct` makes it without being told anything, prepared to run."""
    with threads_for(system.n_states):
        return construct_network(system, BlockChoice(_MAX_CONDITION), balance=None).prepared


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


def _keeps_digits(found: Construction, *, is_sparser_as_given: bool) -> bool:
    """Whether a network surely errs by less than anybody notices; if not, a certificate must tell, which takes longer.

    With balanced states rounding takes a fraction of eps·cond(T) in the given units. What badly scaled states take,
    where those as given are sparser, nobody knows before.
    """
    form = found.form
    if not (form.scaling != 1.0).any():
        return not is_sparser_as_given
    ratio = float(form.scaling.max() / form.scaling.min())
    limit = 10.0 * _UNNOTICED / EPS
    if form.budget is not None and form.budget * ratio <= limit:
        return True
    return form.condition_raw <= limit or surely_below(found.prepared, _UNNOTICED)


def _with_more_digits(found: Construction, others: Sequence[BlockDiagonalForm], wanted: BlockChoice) -> Construction:
    """The network of the same system in other units of its states, if it is certified to have more digits."""
    error = certified_error(found.prepared)
    if error <= _UNNOTICED:
        return found
    try:
        form = others[0] if others else candidate_forms(found.system.A, wanted, balance=False)[0]
    except InvalidSystemError:  # its entries differ by too many decades in those units
        return found
    rival = network_in(form, found.system)
    rival_error = certified_error(rival.prepared)
    if not error > 10.0 * rival_error:
        return found
    reason = f"{units_of(rival.form)}, for more digits: certified error {rival_error:.0e}, otherwise {error:.0e}"
    return replace(rival, form=replace(rival.form, remarks=(*rival.form.remarks, reason)))
