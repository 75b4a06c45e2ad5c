"""From a measured frequency response to a continuous-time system: `identify_frequency`, and what it found."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.identification.from_frequency.fit import fit_response
from ltinet.identification.from_frequency.orders import TriedOrder
from ltinet.model.names import NamesLike
from ltinet.networks import construct
from ltinet.once import cached_property
from ltinet.shown import shown_first
from ltinet.state_space import StateSpace


@final
@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedResponse:
    """A continuous-time system whose frequency response is near a measured one, with the evidence for it."""

    system: StateSpace
    relative_errors: Array
    """Of each channel, (p, m): root mean square of the error over that of the data."""
    tried: tuple[TriedOrder, ...]
    """Orders that were compared, with their errors on frequencies held out; empty where one was asked for."""
    warnings: tuple[str, ...]

    @property
    def order(self) -> int:
        """Number of states."""
        return self.system.n_states

    @cached_property
    def net(self) -> DynamicNetwork:
        """The network of the system."""
        return construct(self.system)

    def poles(self) -> NDArray[np.complex128]:
        """The poles, rad/s."""
        return self.system.poles()

    def __repr__(self) -> str:
        return f"IdentifiedResponse(order={self.order}, relative error up to {self.relative_errors.max():.2g})"

    def __str__(self) -> str:
        names, errors = self.system.output_names, self.relative_errors
        lines = [f"system of order {self.order} from a frequency response"]
        lines += [
            f"  error              {errors[i].max():.2g} of {name}, all inputs" for i, name in enumerate(names[:8])
        ]
        lines.append(f"  poles              {shown_first([f'{pole:.4g}' for pole in self.poles().tolist()])}")
        return "\n".join([*lines, *(f"  warning            {warning}" for warning in self.warnings)])


def identify_frequency(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    order: int | range | None = None,
    stable: bool | Literal["auto"] = "auto",
    feedthrough: bool = True,
    weights: ArrayLike | None = None,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
) -> IdentifiedResponse:
    """Find the continuous-time system behind a measured frequency response.

    Vector fitting gives poles that all channels share, Gramians over the measured range cut the model to its order, and
    a refinement brings it as close as it can come.

    Args:
        omega: frequencies `(K,)` in rad/s, 0 and above.
        H: the response, `(K,)` for one input and output, else `(K, outputs, inputs)`.
        order: number of states, or a range of them; the smallest that predicts frequencies held out if left out.
        stable: True mirrors poles that grow, False keeps them; "auto" keeps them where a stable model is worse by more
            than 5 %, with a warning.
        feedthrough: whether inputs may act on outputs at once.
        weights: how much each frequency counts, `(K,)` or as H: 1/|H| for noise that is a share of the response.
        inputs: names of the inputs.
        outputs: names of the outputs.

    Raises:
        InvalidSignalError: the data cannot be used; the message says why.
    """
    found = fit_response(omega, H, order=order, stable=stable, feedthrough=feedthrough, weights=weights)
    system = StateSpace(found.A, found.B, found.C, found.D, inputs=inputs, outputs=outputs)
    return IdentifiedResponse(system, found.relative_errors, found.tried, found.warnings)
