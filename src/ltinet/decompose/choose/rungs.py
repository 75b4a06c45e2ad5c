"""All forms that some bound on the condition number would choose, found together: nothing here depends on a bound.

A search for one bound after the other may find more connections with more room. Of rungs that are known before anyone
asks, the sparsest within a bound is taken, and a larger bound never has more connections. There are two kinds:

- frontiers of partitions up to rising limits, judged by angles between invariant subspaces (`frontier`);
- blocks split one neuron at a time to full precision (`splitting`), where angles are rounding errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.choose.by_condition import inseparable
from ltinet.decompose.choose.frontier import frontier
from ltinet.decompose.choose.splitting import split_one_by_one
from ltinet.decompose.coupling import GRAM_LIMIT, Partition
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import Separation, separate, separate_neurons, with_kernel_together
from ltinet.once import cached_property
from ltinet.tolerances import EPS, rounding

# Condition numbers up to which angles are looked at. Two bases at an angle below that span a plane that is known to few
# digits only; the lower the limit, the more of them are put together before anything is compared with them.
_LIMITS = (1e4, 1e6, 1e9, 1e13)

# Eigenvalues this close, relative to the largest entry of the Schur form, have vectors that swaps may change.
_CLOSE = 1e-6

_LARGEST = 1.0 / EPS  # a T with a larger condition number has no inverse in double precision


@dataclass(frozen=True, eq=False)
class Rung:
    """A group number for every neuron of a Schur form: which neurons share a block, what that costs and saves."""

    schur: SchurForm
    groups: NDArray[np.intp]
    condition: float
    """cond₂(T), measured on angles or estimated."""

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Neurons of each block."""
        return np.bincount(self.groups)

    @property
    def pairs(self) -> int:
        """Pairs of neurons that share a block: connections, unless some are zero."""
        return int((self.counts * (self.counts - 1) // 2).sum())

    @cached_property
    def separation(self) -> Separation:
        """The bases of all blocks, with the kernel of A as one block where it stands alone."""
        return with_kernel_together(separate(self.schur, self.groups))

    @property
    def measured(self) -> "Rung":
        """The same with cond₂ of the T that comes out, infinite where that has no inverse or is no solution."""
        rung = replace(self, condition=_condition(self.separation))
        rung.__dict__["separation"] = self.separation  # computed once
        return rung


def _condition(separation: Separation) -> float:
    """cond₂(T); infinite for vectors that are parallel, or that swaps of nearly equal eigenvalues have spoiled."""
    R, bases = separation.schur.R, separation.bases
    allowed = rounding(len(R), float(np.linalg.norm(R) * np.linalg.norm(bases.basis)))
    if not np.linalg.norm(R @ bases.basis - bases.basis @ bases.blocks) <= allowed:
        return np.inf
    try:
        return separation.condition if np.isfinite(separation.inverse).all() else np.inf
    except np.linalg.LinAlgError:
        return np.inf


def rungs_of(schur: SchurForm, *, up_to: float = np.inf) -> list[Rung]:
    """Every form that no other one beats, by rising condition number and falling connections; few beyond `up_to`."""
    return _Knowledge(schur, up_to).all()


class _Knowledge:
    """What is known of one Schur form, kind by kind."""

    def __init__(self, schur: SchurForm, up_to: float) -> None:
        self.apart = separate_neurons(schur)
        least = self.apart.condition * (1.0 + np.sqrt(EPS))  # with all neurons apart nothing is left to win
        self.limits = list(dict.fromkeys(min(limit, up_to, least) for limit in _LIMITS))

    def all(self) -> list[Rung]:
        """Every rung that no other one beats, by rising condition number; measured on their T where angles may lie."""
        by_angles = list(self._by_angles())
        known = _unbeaten([*by_angles, *self._by_splitting(by_angles)])
        trusted = 0.0 if self.is_uncertain else GRAM_LIMIT
        return _unbeaten([rung if rung.condition <= trusted else rung.measured for rung in known])

    @cached_property
    def is_uncertain(self) -> bool:
        """Whether angles may lie: vectors are nearly dependent, or eigenvalues nearly coincide.

        The joint span of nearly dependent vectors is known to few digits from them, and which vectors belong to nearly
        equal eigenvalues may hang on their order in the Schur form.
        """
        if not self.apart.is_within(GRAM_LIMIT):
            return True
        values = np.sort_complex(self.apart.schur.eigenvalues)
        size = float(np.abs(self.apart.schur.R).max(initial=0.0))
        by_imaginary = values[np.argsort(values.imag)]
        return any(bool((np.abs(np.diff(own)) <= _CLOSE * size).any()) for own in (values, by_imaginary))

    def _by_angles(self) -> Iterator[Rung]:
        """Frontiers up to one limit after the other, until all neurons stand apart.

        Neurons that no bound up to a limit can tell apart are treated as one, and their joint span computed anew. Where
        that leaves the same atoms as the next limit, its frontier says it all.
        """
        if self.apart.is_within(_LARGEST):
            yield _as_it_is(self.apart)
        bases = [_distinguishable(self.apart, limit) for limit in self.limits]
        for place, (base, limit) in enumerate(zip(bases, self.limits, strict=True)):
            if [own.n_blocks for own in bases[place + 1 : place + 2]] != [base.n_blocks]:
                found = frontier(base.atoms, limit=limit)
                for partition, condition in zip(found.partitions, found.conditions, strict=True):
                    yield _rung(base, partition, condition)

    def _by_splitting(self, known: list[Rung]) -> Iterator[Rung]:
        """Blocks split one neuron at a time: one block where angles may lie, and the sparsest within each of 1e6 on."""
        for limit in [1.0] * self.is_uncertain + [own for own in self.limits if own >= GRAM_LIMIT]:
            start = min((rung for rung in known if rung.condition <= limit), key=lambda rung: rung.pairs)
            if start.pairs > _as_it_is(self.apart).pairs and np.isfinite(_condition(start.separation)):
                for split in split_one_by_one(start.separation):
                    yield Rung(start.separation.schur, *split)


def _unbeaten(known: list[Rung]) -> list[Rung]:
    best: list[Rung] = []
    for rung in sorted(known, key=lambda own: (own.condition, own.pairs)):
        if rung.condition <= _LARGEST and (not best or rung.pairs < best[-1].pairs):
            best.append(rung)
    return best


def _distinguishable(separation: Separation, max_condition: float) -> Separation:
    """Atoms whose angle is below a bound put together, and their joint span computed anew, until none is left."""
    while separation.n_blocks > 1:
        partition = inseparable(separation.atoms, max_condition)
        if len(partition) == separation.n_blocks:
            break
        separation = separation.merged(partition)
    return separation


def _rung(base: Separation, partition: Partition, condition: float) -> Rung:
    groups = np.empty(base.n_blocks, dtype=np.intp)
    for number, group in enumerate(partition):
        groups[list(group)] = number
    return Rung(base.schur, np.repeat(groups, base.neurons), condition)


def _as_it_is(separation: Separation) -> Rung:
    return Rung(separation.schur, np.repeat(np.arange(separation.n_blocks), separation.neurons), separation.condition)
