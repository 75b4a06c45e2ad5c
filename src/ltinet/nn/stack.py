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

States = tuple[Tensor | None, ...]


def has_states(part: nn.Module) -> bool:
    """Return True for networks and models with a network, False for static maps."""
    return isinstance(part, LinearNetwork | DelayedNetwork | Feedback | Triangular)


def underlying_network(part: nn.Module) -> LinearNetwork[Any] | None:
    """Return the network whose states are those of a part, None for a map."""
    if isinstance(part, DelayedNetwork | Feedback | Triangular):
        return part.network
    return part if isinstance(part, LinearNetwork) else None


@final
class Stack(nn.Module):
    """Series connection of networks (`net.to_torch(dt)`), `Triangular`, `Feedback` and static maps.

    States are tuples with one entry for each part, None for maps.

    Parameters
    ----------
    *parts : nn.Module
        Parts, the one that takes the input first.

    Raises
    ------
    InvalidNetworkError
        There are no parts, or the outputs of one do not match the inputs of the next.

    Examples
    --------
    >>> import ltinet, torch
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> nn.Stack(nn.Polynomial(1), net.to_torch(0.1))(torch.ones(20, 1)).shape
    torch.Size([20, 1])
    """

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        if not parts:
            raise InvalidNetworkError("Stack requires at least one part; give networks and maps, the first one first.")
        for number, (part, following) in enumerate(pairwise(parts)):
            if part.n_outputs != following.n_inputs:
                raise InvalidNetworkError(
                    f"part {number} has {part.n_outputs} outputs but part {number + 1} takes {following.n_inputs} "
                    "inputs; they must be equal"
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
        """Run the parts on samples, one after the other.

        Parameters
        ----------
        u : Tensor
            Samples `(…, T, m)`.
        state : tuple of Tensor or None, optional
            Final states of a previous run, to continue it.
        x0 : sequence of Tensor or None, optional
            Initial state of each part in the user's coordinates, instead of `state`; at rest by default.
        return_state : bool
            Return the outputs and the final states.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, p)`, with `return_state` a pair of the outputs and the states.

        Raises
        ------
        InvalidSignalError
            u or a state has a wrong shape, type or device, or numbers that are not finite.
        SimulationError
            The outputs of a part are not finite.
        """
        states = self._per_part(state, "state")
        initial_states = self._per_part(x0, "x0")
        signal, end_states = self._validated(u, "(…, T, {})"), []
        for number, (part, part_state, part_x0) in enumerate(zip(self.parts, states, initial_states, strict=True)):
            if has_states(part):
                result = part(signal, state=part_state, x0=part_x0, return_state=return_state)
                signal, end = result if return_state else (result, None)
            else:
                signal, end = part(signal), None
            self._require_finite(signal, number)
            end_states.append(end)
        return (signal, tuple(end_states)) if return_state else signal

    def step(self, u: Tensor, state: States | None = None) -> tuple[Tensor, States]:
        """Run the parts on one sample.

        Parameters
        ----------
        u : Tensor
            Sample `(…, m)`.
        state : tuple of Tensor or None, optional
            States from the previous step; at rest by default.

        Returns
        -------
        y : Tensor
            Output `(…, p)`.
        state : tuple of Tensor or None
            States for the next step.
        """
        signal, end_states = self._validated(u, "(…, {})"), []
        for number, (part, part_state) in enumerate(zip(self.parts, self._per_part(state, "state"), strict=True)):
            signal, end = part.step(signal, part_state) if has_states(part) else (part(signal), None)
            self._require_finite(signal, number)
            end_states.append(end)
        return signal, tuple(end_states)

    def to_networks(self) -> dict[str, "DynamicNetwork | nn.Module"]:
        """Convert the parts with states back to networks.

        Returns
        -------
        dict
            `DynamicNetwork` or map by name: part0, part1, ….
        """
        parts = enumerate(self.parts)
        return {f"part{number}": part.to_network() if has_states(part) else part for number, part in parts}

    def _validated(self, u: Tensor, axes: str) -> Tensor:
        """Validate the input where the first part is a map, which does not; networks validate it themselves."""
        if has_states(self.parts[0]):
            return u
        parameter = next(self.parameters(), u)
        device = parameter.device if isinstance(parameter, Tensor) else torch.device("cpu")
        return validate_input(u, n_inputs=self.n_inputs, device=device, axes=axes)

    def _require_finite(self, signal: Tensor, number: int) -> None:
        """Name the part whose outputs overflowed, before the next part rejects them.

        Outputs of a network at the end are returned as they are.
        """
        part = self.parts[number]
        if (number + 1 < len(self.parts) or not has_states(part)) and not all_finite(signal):
            raise SimulationError(
                f"the outputs of part {number}, a {type(part).__name__}, are not finite: they exceed the largest "
                f"number of {signal.dtype}; give smaller inputs, or a map that grows less"
            )

    def _per_part(self, states: Sequence[Tensor | None] | None, name: str) -> Sequence[Tensor | None]:
        if states is None:
            return [None] * len(self.parts)
        if isinstance(states, Tensor) or len(states) != len(self.parts):
            raise InvalidSignalError(
                f"{name} must be a tuple of {len(self.parts)}; give one entry for each part, None for maps and for rest"
            )
        return states


def hammerstein(before: nn.Module, network: nn.Module) -> Stack:
    """Connect a map and a network in series.

    Parameters
    ----------
    before : nn.Module
        Static map of the input.
    network : nn.Module
        Network.

    Returns
    -------
    Stack
        The series connection.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> nn.hammerstein(nn.Spline(1), net.to_torch(0.1)).n_outputs
    1
    """
    return Stack(before, network)


def wiener(network: nn.Module, after: nn.Module) -> Stack:
    """Connect a network and a map in series.

    Parameters
    ----------
    network : nn.Module
        Network.
    after : nn.Module
        Static map of the output.

    Returns
    -------
    Stack
        The series connection.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> nn.wiener(net.to_torch(0.1), nn.Polynomial(1)).n_inputs
    1
    """
    return Stack(network, after)


def wiener_hammerstein(first: nn.Module, between: nn.Module, last: nn.Module) -> Stack:
    """Connect a network, a map and a network in series.

    Parameters
    ----------
    first : nn.Module
        Network that takes the input.
    between : nn.Module
        Static map between the networks.
    last : nn.Module
        Network that gives the output.

    Returns
    -------
    Stack
        The series connection.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> len(nn.wiener_hammerstein(net.to_torch(0.1), nn.Monotone(1), net.to_torch(0.1)).parts)
    3
    """
    return Stack(first, between, last)
