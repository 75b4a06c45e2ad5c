"""Series connections of networks and static maps: Hammerstein, Wiener and Wiener–Hammerstein models and longer ones.

Between two networks signals are samples again, held as the next network holds its inputs. Only parts with states take
and return states. Modules of PyTorch are static maps if they treat every sample alike: those that act along time would
give other outputs sample by sample than for a whole record.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.nn.feedback import Feedback
from ltinet.nn.state_space_layer import StateSpaceLayer
from ltinet.nn.triangular import Triangular
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.validation import all_finite, validate_input

States = tuple[Any, ...]
_ELEMENTWISE = (
    *(nn.CELU, nn.ELU, nn.GELU, nn.Hardshrink, nn.Hardsigmoid, nn.Hardswish, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid),
    *(nn.Mish, nn.ReLU, nn.RReLU, nn.SELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanh),
    *(nn.Tanhshrink, nn.Threshold, nn.Identity, nn.Dropout, nn.AlphaDropout),
)
"""Modules of PyTorch that map each number by itself."""


def has_states(part: nn.Module) -> bool:
    """Return True for networks and models with a network, False for static maps."""
    return isinstance(part, LinearNetwork | DelayedNetwork | Feedback | Triangular | StateSpaceLayer | Stack)


def underlying_network(part: nn.Module) -> LinearNetwork[Any] | None:
    """Return the network whose states are those of a part, None for a map."""
    if isinstance(part, DelayedNetwork | Feedback | Triangular):
        return part.network
    return part if isinstance(part, LinearNetwork) else None


def _flatten(parts: Iterable[nn.Module]) -> Iterator[nn.Module]:
    """Yield the parts, those of a `torch.nn.Sequential` one by one."""
    for part in parts:
        if isinstance(part, nn.Sequential):
            yield from _flatten(part)
        else:
            yield part


def _count_channels(parts: Sequence[nn.Module]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs of a series connection; raise InvalidNetworkError if parts do not match."""
    n_inputs, n_channels, halvings = None, None, 0
    for number, part in enumerate(parts):
        expected, produced = _part_channels(part, number, n_channels)
        if n_channels is None and expected is not None:
            n_inputs = expected * 2**halvings
        elif n_channels is not None and expected not in (None, n_channels):
            raise InvalidNetworkError(
                f"part {number - 1} has {n_channels} outputs but part {number} takes {expected} inputs; they must be equal"
            )
        halvings += isinstance(part, nn.GLU)
        n_channels = produced
    if n_inputs is None or n_channels is None:
        raise InvalidNetworkError(
            "the number of channels is not known; give at least one part that has one, such as a network"
        )
    return n_inputs, n_channels


def _part_channels(part: Any, number: int, n_channels: int | None) -> tuple[int | None, int | None]:
    """Return the numbers of inputs and outputs of a part after one with `n_channels` outputs; None if any is accepted."""
    if hasattr(part, "n_inputs") and hasattr(part, "n_outputs"):
        return int(part.n_inputs), int(part.n_outputs)
    if isinstance(part, nn.Linear):
        return int(part.in_features), int(part.out_features)
    if isinstance(part, nn.LayerNorm | nn.RMSNorm) and len(part.normalized_shape) == 1:
        return int(part.normalized_shape[0]), int(part.normalized_shape[0])
    if isinstance(part, nn.GLU) and part.dim == -1 and (n_channels is None or n_channels % 2 == 0):
        return None, None if n_channels is None else n_channels // 2
    if isinstance(part, _ELEMENTWISE):
        return None, n_channels
    raise InvalidNetworkError(
        f"part {number} is a {type(part).__name__}, which is not known to treat every sample of "
        f"{'its' if n_channels is None else n_channels} channels alike; give parts of ltinet.nn, torch.nn.Linear, LayerNorm, "
        "RMSNorm, GLU(-1), Dropout or an activation, or a module with n_inputs and n_outputs"
    )


@final
class Stack(nn.Module):
    """Series connection of networks (`net.to_torch(dt)`), layers, `Triangular`, `Feedback`, stacks and static maps.

    Static maps are those of this package, modules of PyTorch that treat every sample alike (`Linear`, `LayerNorm`,
    `RMSNorm`, `GLU`, `Dropout` and activations), and modules with attributes `n_inputs` and `n_outputs`. The parts of a
    `torch.nn.Sequential` become parts of the stack. States are tuples with one entry for each part, None for maps.

    Parameters
    ----------
    *parts : nn.Module
        Parts, the one that takes the input first.
    residual : bool
        Add the input to the output.

    Raises
    ------
    InvalidNetworkError
        There are no parts, the outputs of one do not match the inputs of the next, or a part is not a static map.

    Examples
    --------
    >>> import ltinet, torch
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    >>> nn.Stack(nn.Polynomial(1), net.to_torch(0.1))(torch.ones(20, 1)).shape
    torch.Size([20, 1])
    """

    def __init__(self, *parts: nn.Module, residual: bool = False) -> None:
        super().__init__()
        if not parts:
            raise InvalidNetworkError("Stack requires at least one part; give networks and maps, the first one first.")
        for number, part in enumerate(parts):
            if not isinstance(part, nn.Module):
                raise InvalidNetworkError(
                    f"part {number} is a {type(part).__name__}; give modules one by one: nn.Stack(*parts)"
                )
        self.parts, self.residual = nn.ModuleList(_flatten(parts)), residual
        self.n_inputs, self.n_outputs = _count_channels(list(self.parts))
        if residual and self.n_inputs != self.n_outputs:
            raise InvalidNetworkError(
                f"the stack has {self.n_inputs} inputs and {self.n_outputs} outputs; with residual=True they must be equal"
            )

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
                options = {} if part_x0 is None else {"x0": part_x0}
                result = part(signal, state=part_state, return_state=return_state, **options)
                signal, end = result if return_state else (result, None)
            else:
                signal, end = part(signal), None
            self._require_finite(signal, number)
            end_states.append(end)
        signal = u + signal if self.residual else signal
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
        return u + signal if self.residual else signal, tuple(end_states)

    def to_networks(self) -> dict[str, "DynamicNetwork | nn.Module"]:
        """Convert the parts with states back to networks.

        Returns
        -------
        dict
            `DynamicNetwork`, or the part itself if it has none, by name: part0, part1, ….
        """
        parts = enumerate(self.parts)
        return {f"part{number}": part.to_network() if underlying_network(part) else part for number, part in parts}

    def extra_repr(self) -> str:
        """Return the numbers of channels for `print`.

        Returns
        -------
        str
            Text within the parentheses of the printed module.
        """
        sizes = f"{self.n_inputs} → {self.n_outputs} channels"
        return f"{sizes}, residual" if self.residual else sizes

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

    def _per_part(self, states: Sequence[Any] | None, name: str) -> Sequence[Any]:
        if states is None:
            return [None] * len(self.parts)
        if isinstance(states, Tensor) or len(states) != len(self.parts):
            raise InvalidSignalError(
                f"{name} must be a tuple of {len(self.parts)}; give one entry for each part, None for maps and for rest"
            )
        if name == "x0":
            for number, (part, values) in enumerate(zip(self.parts, states, strict=True)):
                if values is not None and isinstance(part, StateSpaceLayer):
                    raise InvalidSignalError(
                        f"x0[{number}] is for a StateSpaceLayer, which begins at rest; give None there"
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
    _require_order("hammerstein(map, network)", network=network, map=before)
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
    _require_order("wiener(network, map)", network=network, map=after)
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
    for network in (first, last):
        _require_order("wiener_hammerstein(network, map, network)", network=network, map=between)
    return Stack(first, between, last)


def _require_order(call: str, *, network: nn.Module, map: nn.Module) -> None:
    """Raise InvalidNetworkError unless the network has states and the map has none."""
    if not has_states(network) or has_states(map):
        raise InvalidNetworkError(
            f"got a {type(network).__name__} for the network and a {type(map).__name__} for the map; the order is nn.{call}, "
            "others are an nn.Stack(…)"
        )
