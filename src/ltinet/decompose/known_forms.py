"""Every form of a matrix that is worth having: from one block with cond(T) = 1 to the fewest connections of all."""

from dataclasses import dataclass

import numpy as np

from ltinet.decompose.balance import BalancedMatrix
from ltinet.decompose.balance import balance as balance_matrix
from ltinet.decompose.choose.choice import Found, require_choice_of_units
from ltinet.decompose.choose.rungs import Rung, rungs_of
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.pipeline import already_decoupled, assemble, schur_form
from ltinet.decompose.repeated import with_repeated_together
from ltinet.decompose.schur import is_decoupled, is_symmetric
from ltinet.decompose.separate import Separation
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.threads import threads_for


@dataclass(frozen=True, eq=False)
class KnownForm:
    """A form that is known by its numbers; T and the blocks are computed when someone asks for them."""

    condition: float
    """cond₂(T) in the units in which the form was found."""
    n_blocks: int
    n_connections: int
    """Pairs of neurons that share a block; the form may turn out to have zeros among them."""
    matrix: Matrix
    units: BalancedMatrix
    found: Rung | Separation

    @cached_property
    def form(self) -> BlockDiagonalForm:
        """The form itself, assembled on first use."""
        separation = self.found.separation if isinstance(self.found, Rung) else self.found
        with threads_for(len(self.matrix)):
            return assemble(self.matrix, self.units, Found(separation), budget=self.condition)


def known_forms(A: Matrix, *, balance: bool | None) -> list[KnownForm]:
    """All forms that are known of a matrix and that no other one beats, by rising condition number.

    With `balance` None states are balanced and, where that changes them, taken as given as well.
    """
    require_choice_of_units(balance)
    with threads_for(len(A)):
        units = [balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))]
        if balance is None and (units[0].scaling != 1.0).any():
            units.append(balance_matrix(A, rescale_states=False))
        found = _in_units(A, units[0])
        if len(units) > 1 and found[-1].condition > 1.0:
            # Where no connections are left, more room wins nothing.
            found += _in_units(A, units[1], up_to=found[-1].condition if found[-1].n_connections == 0 else np.inf)
    best: list[KnownForm] = []
    for known in sorted(found, key=lambda own: (own.condition, own.n_connections)):
        if not best or known.n_connections < best[-1].n_connections:
            best.append(known)
    return best


def _in_units(A: Matrix, units: BalancedMatrix, *, up_to: float = np.inf) -> list[KnownForm]:
    schur = schur_form(units.matrix)
    if is_decoupled(schur, units.matrix):
        decoupled = already_decoupled(schur).separation
        return [KnownForm(1.0, decoupled.n_blocks, 0, A, units, decoupled)]
    rungs = rungs_of(with_repeated_together(schur, units.matrix), up_to=up_to)
    return [KnownForm(rung.condition, _n_blocks(rung), rung.pairs, A, units, rung) for rung in rungs]


def _n_blocks(rung: Rung) -> int:
    """Blocks of a rung, with neurons of eigenvalue zero that stand alone as one."""
    is_alone = rung.counts[rung.groups] == 1
    n_zeros = int(np.count_nonzero(is_alone & (rung.schur.eigenvalues == 0.0)))
    return len(rung.counts) - max(n_zeros - 1, 0)
