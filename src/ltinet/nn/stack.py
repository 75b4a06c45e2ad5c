"""Series connections of networks and static maps: Hammerstein, Wiener and Wiener–Hammerstein models and longer ones.

Between two networks signals are samples again, held as the next network holds its inputs. Only parts with states take
and return states.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, final

import torch
from torch import Tensor, nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.nn.feedback import Feedback
from ltinet.nn.triangular import Triangular
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.validation import all_finite, validate_input

# MERGED ltinet.nn.stack
# Parts with states: what a stack hands states to, and takes them from.

_DYNAMIC_TYPES = (LinearNetwork, DelayedNetwork, Feedback, Triangular)


def has_states(part: nn.Module) -> bool:
    """Whether a part has states; others are maps from samples to samples."""
    return isinstance(part, _DYNAMIC_TYPES)


def underlying_network(part: nn.Module) -> LinearNetwork[Any] | None:
    """The network whose states are those of a part, None for a map."""
    if isinstance(part, DelayedNetwork | Feedback | Triangular):
        return part.network
    return part if isinstance(part, LinearNetwork) else None


# MERGED ltinet.nn.stack
# Networks and static maps in a row: Hammerstein, Wiener, Wiener–Hammerstein and longer ones, parallel in time.
#
# Between two networks signals are samples again, held as the next network holds its inputs.

States = tuple[Tensor | None, ...]


@final
class Stack(nn.Module):
    """Parts in a row: networks (`net.to_torch(dt)`), `Triangular`, `Feedback`, and maps from samples to samples.

    `stack(u)` takes `(…, T, m)` to `(…, T, p)`. States are tuples with one entry for each part, None for maps.
    """

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        if not parts:
            raise InvalidNetworkError("a stack has no parts; give networks and maps, the first one first")
        for number, (one, other) in enumerate(pairwise(parts)):
            if one.n_outputs != other.n_inputs:
                raise InvalidNetworkError(
                    f"part {number} has {one.n_outputs} outputs but part {number + 1} takes {other.n_inputs} inputs; "
                    "they must be equal"
                )
        self.parts = nn.ModuleList(parts)

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the first part."""
        return int(self.parts[0].n_inputs)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the last part."""
        return int(self.parts[-1].n_outputs)

    def forward(
        self,
        u: Tensor,
        *,
        state: States | None = None,
        x0: Sequence[Tensor | None] | None = None,
        return_state: bool = False,
    ) -> Any:
        """Outputs for samples, and with `return_state` the states that await the next one.

        Raises:
            InvalidSignalError: u or a state has another shape, type or device, or numbers that are not finite.
            SimulationError: a part gives numbers that are not finite.
        """
        states = self._for_each(state, "state")
        starts = self._for_each(x0, "x0")
        signal, ends = self._checked(u, "(…, T, {})"), []
        for number, (part, own, start) in enumerate(zip(self.parts, states, starts, strict=True)):
            end = None
            if has_states(part):
                signal = part(signal, state=own, x0=start, return_state=return_state)
                signal, end = signal if return_state else (signal, None)
            else:
                signal = part(signal)
            self._require_finite(signal, number)
            ends.append(end)
        return (signal, tuple(ends)) if return_state else signal

    def step(self, u: Tensor, state: States | None = None) -> tuple[Tensor, States]:
        """The output at one sample `(…, m)` and the states that await the next."""
        signal, ends = self._checked(u, "(…, {})"), []
        for number, (part, own) in enumerate(zip(self.parts, self._for_each(state, "state"), strict=True)):
            signal, end = part.step(signal, own) if has_states(part) else (part(signal), None)
            self._require_finite(signal, number)
            ends.append(end)
        return signal, tuple(ends)

    def to_networks(self) -> dict[str, "DynamicNetwork | nn.Module"]:
        """The parts by name (part0, part1, …): networks as `DynamicNetwork`, maps as they are."""
        return {
            f"part{number}": part.to_network() if has_states(part) else part for number, part in enumerate(self.parts)
        }

    def _checked(self, u: Tensor, axes: str) -> Tensor:
        """The input, checked here where its first part is a map, which does not look at it."""
        if has_states(self.parts[0]):
            return u
        where = next(self.parameters(), u)
        device = where.device if isinstance(where, Tensor) else torch.device("cpu")
        return validate_input(u, n_inputs=self.n_inputs, device=device, axes=axes)

    def _require_finite(self, signal: Tensor, number: int) -> None:
        """Name the part whose outputs overflowed, before the next one refuses them; a last network may give them."""
        part = self.parts[number]
        if (number + 1 < len(self.parts) or not has_states(part)) and not all_finite(signal):
            raise SimulationError(
                f"the outputs of part {number}, a {type(part).__name__}, are not finite: they exceed the largest "
                f"number of {signal.dtype}; give smaller inputs, or a map that grows less"
            )

    def _for_each(self, given: Sequence[Tensor | None] | None, name: str) -> Sequence[Tensor | None]:
        if given is None:
            return [None] * len(self.parts)
        if isinstance(given, Tensor) or len(given) != len(self.parts):
            raise InvalidSignalError(
                f"{name} is no tuple of {len(self.parts)}; give one entry for each part, None for maps and for rest"
            )
        return given


def hammerstein(before: nn.Module, network: nn.Module) -> Stack:
    """A map, then a network."""
    return Stack(before, network)


def wiener(network: nn.Module, after: nn.Module) -> Stack:
    """A network, then a map."""
    return Stack(network, after)


def wiener_hammerstein(first: nn.Module, between: nn.Module, last: nn.Module) -> Stack:
    """A network, a map, a network."""
    return Stack(first, between, last)
