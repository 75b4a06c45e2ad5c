"""The system that parameters stand for, as tensors: z' = A z + B u, y = C z + D u, its states packed as in `packed`."""

from typing import NamedTuple

import torch
from torch import Tensor


class System(NamedTuple):
    """Pairs, reals and coupled blocks in continuous time; all tensors of one type."""

    pair_rates: Tensor
    """Re λ of the pairs, `(n_pairs,)`."""
    frequencies: Tensor
    """Im λ of the pairs."""
    real_rates: Tensor
    blocks: tuple[Tensor, ...]
    """Coupled blocks, `(count, k, k)` for each size k."""
    B: Tensor
    C: Tensor
    D: Tensor

    @property
    def scalar_rates(self) -> Tensor:
        """Re λ of pairs and reals together."""
        return torch.cat([self.pair_rates, self.real_rates], -1)

    @property
    def scalar_frequencies(self) -> Tensor:
        """Im λ of both, zero for reals."""
        return torch.cat([self.frequencies, torch.zeros_like(self.real_rates)], -1)

    @property
    def layout(self) -> "Layout":
        """Where each part of the states stands."""
        return Layout(
            self.pair_rates.shape[-1], self.real_rates.shape[-1], tuple(own.shape[-3:-1] for own in self.blocks)
        )

    @property
    def block_inputs(self) -> tuple[Tensor, ...]:
        """The rows of B of the coupled blocks, `(count, k, m)` for each size."""
        return tuple(own.movedim(-3, -1) for own in self.layout.split(self.B.mT)[3])


class Layout(NamedTuple):
    """How many states of each kind there are, in their order."""

    n_pairs: int
    n_reals: int
    groups: tuple[tuple[int, int], ...]
    """Number and size of the coupled blocks of each size."""

    @property
    def sizes(self) -> list[int]:
        """The lengths of all parts."""
        return [self.n_pairs, self.n_pairs, self.n_reals, *(count * size for count, size in self.groups)]

    @property
    def n_states(self) -> int:
        """All of them."""
        return sum(self.sizes)

    def split(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...]]:
        """Views of the parts along the last axis: Re and Im of pairs, reals, and blocks as `(…, count, k)`."""
        re, im, reals, *dense = torch.split(states, self.sizes, dim=-1)
        shaped = (own.unflatten(-1, group) for own, group in zip(dense, self.groups, strict=True))
        return re, im, reals, tuple(shaped)

    @staticmethod
    def join(re: Tensor, im: Tensor, reals: Tensor, blocks: tuple[Tensor, ...]) -> Tensor:
        """The parts side by side again, along the last axis."""
        return torch.cat([re, im, reals, *(own.flatten(-2) for own in blocks)], dim=-1)
