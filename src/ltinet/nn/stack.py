"""Networks and static maps in a row: Hammerstein, Wiener, Wiener–Hammerstein and longer ones, parallel in time.

Between two networks signals are samples again, held as the next network holds its inputs.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, final

from torch import Tensor, nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError
from ltinet.learn.linear_network import LinearNetwork
from ltinet.nn.feedback import Feedback

States = tuple[Tensor | None, ...]


@final
class Stack(nn.Module):
    """Parts in a row, each a network (`net.to_torch(dt)`), a feedback network, or a map from samples to samples.

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
        """Outputs for samples, and with `return_state` the states that await the next one."""
        states = self._for_each(state, "state")
        starts = self._for_each(x0, "x0")
        signal, ends = u, []
        for part, own, start in zip(self.parts, states, starts, strict=True):
            if isinstance(part, LinearNetwork | Feedback):
                signal = part(signal, state=own, x0=start, return_state=return_state)
                signal, end = signal if return_state else (signal, None)
                ends.append(end)
            else:
                signal = part(signal)
                ends.append(None)
        return (signal, tuple(ends)) if return_state else signal

    def step(self, u: Tensor, state: States | None = None) -> tuple[Tensor, States]:
        """The output at one sample `(…, m)` and the states that await the next."""
        signal, ends = u, []
        for part, own in zip(self.parts, self._for_each(state, "state"), strict=True):
            if isinstance(part, LinearNetwork | Feedback):
                signal, end = part.step(signal, own)
                ends.append(end)
            else:
                signal = part(signal)
                ends.append(None)
        return signal, tuple(ends)

    def to_networks(self) -> dict[str, "DynamicNetwork | nn.Module"]:
        """The parts by name (part0, part1, …): networks as `DynamicNetwork`, maps as they are."""
        return {
            f"part{number}": part.to_network() if isinstance(part, LinearNetwork | Feedback) else part
            for number, part in enumerate(self.parts)
        }

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
