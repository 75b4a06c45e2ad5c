"""Networks with a static map in their own loop, such as a cubic spring in the equation of a neuron.

The last inputs of a linear network are v = φ(ξ), a map of its last outputs: for a neuron of second order,
ξ̈ + c ξ̇ + k ξ = u + φ(ξ). The trajectory is found by Newton's method on windows of time (`ltinet.torch.newton`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.feedback_loop import (
    FeedbackLoop,
    LoopLinearization,
    LoopSolution,
    SolutionCache,
    linearize_map_input,
    linearize_trajectory,
    no_derivatives,
    run_linearized,
    split_feedback,
)
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.newton import Trajectory, solve_trajectory
from ltinet.torch.validation import all_finite, compute_dtype, validate_input, validate_states

# MERGED ltinet.nn.feedback
# Networks with a static map in their own loop, as a cubic spring in the equation of its neuron.

_WINDOW_STEPS = 1024


class _FeedbackState(NamedTuple):
    """A state in the coordinates of the network: the one that awaits the first sample, or the one at it."""

    z: Tensor
    awaits: bool


@final
class Feedback(nn.Module):
    """A network whose last inputs are a map of its last outputs: ξ̈ + c ξ̇ + k ξ = u + φ(ξ) for a neuron of second order.

    `network` has m + q inputs and p + r outputs, `map` takes r numbers to q. The model has the m inputs and p outputs
    that are left. What is fed back is held as the network holds its inputs. Solved by Newton's method on windows of
    `window` samples, parallel in time, damped where it would explode, and one by one where that does not converge
    either or where `window` is 0; `last_run` says which. Derivatives are those of the solution and not of the
    iterations; the work is in float64.
    """

    def __init__(self, network: nn.Module, map: nn.Module, *, window: int = _WINDOW_STEPS) -> None:
        super().__init__()
        if isinstance(network, DelayedNetwork):
            raise InvalidNetworkError(
                "network has delays or an operating point, which Feedback does not support: its map would see them; "
                "leave them out with net.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0).to_torch(dt)"
            )
        if not isinstance(network, LinearNetwork):
            raise InvalidNetworkError(f"network is a {type(network).__name__}; give a network: net.to_torch(dt)")
        self.network, self.map, self.window = network, map, window
        self.n_inputs, self.n_outputs = network.n_inputs - map.n_outputs, network.n_outputs - map.n_inputs
        if self.n_inputs < 0 or self.n_outputs < 0:
            raise InvalidNetworkError(
                f"the map takes {map.n_inputs} of {network.n_outputs} outputs to {map.n_outputs} of {network.n_inputs} "
                "inputs; the network needs at least as many"
            )
        self.last_run: Trajectory | None = None
        self._kept: SolutionCache | None = None

    def forward(
        self, u: Tensor, *, state: Tensor | None = None, x0: Tensor | None = None, return_state: bool = False
    ) -> Any:
        """Outputs `(…, T, p)` for samples `(…, T, m)`; `state`, `x0` and `return_state` as those of a network.

        Raises:
            InvalidSignalError: u or a state has another shape, type or device, or numbers that are not finite.
            SimulationError: states exceed the largest floating-point number.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.network.B.device)
        if torch._C._functorch.is_batchedtensor(u):
            raise InvalidSignalError(
                "u is batched by torch.func.vmap, where a loop cannot look whether it has settled; give the batch as "
                "an axis of u"
            )
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(self.network.B.dtype).reshape(-1, steps, self.n_inputs)
            loop = self.loop()
            if not len(samples):  # a batch of nothing: the linear part has its shapes
                y, end = samples @ loop.y_u.mT, samples.new_zeros(0, self.network.n_states)
            else:
                begun = self._begun(samples, batch, state, x0)
                found = self._solution(loop, samples, begun)
                start = self._awaiting(loop, samples[:, 0], begun, found.first)
                y, end = run_linearized(found, loop, samples, start, self.map)
                _require_finite(y)
        y = y.reshape(*batch, steps, self.n_outputs).to(compute_dtype(u.dtype)).to(u.dtype)
        return (y, end.reshape(*batch, self.network.n_states)) if return_state else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output at one sample `(…, m)` and the state that awaits the next."""
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """The linear part: the network with all its inputs and outputs, those of the loop included."""
        return self.network.to_network()

    def loop(self) -> FeedbackLoop:
        """The matrices of a step, split into what comes from outside and what is fed back."""
        return split_feedback(self.network.one_step(), fed_back=self.map.n_outputs, seen=self.map.n_inputs)

    def start(self, loop: FeedbackLoop, u: Tensor) -> Tensor:
        """The state that awaits the first of some samples `(batch, T, m)` from rest, without derivatives."""
        begun = self._begun(u, (len(u),), None, None)
        with no_derivatives():
            return self._awaiting(loop, u[:, 0], begun, self._seen_first(loop, u, begun))

    def _begun(
        self, samples: Tensor, batch: tuple[int, ...], state: Tensor | None, x0: Tensor | None
    ) -> _FeedbackState:
        network = self.network
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give the one that the run is to begin in")
        if state is not None:
            return _FeedbackState(
                validate_states(state, network.B, n=network.n_states, batch=batch, name="state"), True
            )
        if x0 is None:
            return _FeedbackState(samples.new_zeros(len(samples), network.n_states), False)
        x = validate_states(x0, network.B, n=network.n_states, batch=batch, name="x0")
        return _FeedbackState(x @ network.from_user.mT, False)

    def _solution(self, loop: FeedbackLoop, u: Tensor, begun: _FeedbackState) -> LoopSolution:
        """The states of a run: kept ones, where derivatives are taken of a run that was solved before."""
        if self._kept is not None and self._kept.is_complete:
            return self._kept.next()
        with no_derivatives():
            first = self._seen_first(loop, u, begun)
            start = self._awaiting(loop, u[:, 0], begun, first)
            run = solve_trajectory(loop, u, start, self.map, window=self.window)
            self.last_run = run._replace(states=run.states[:, :0])
            found = linearize_trajectory(loop, u, run.states, self.map, first=first)
        if self._kept is not None:
            self._kept.found.append(found)
        return found

    def _seen_first(self, loop: FeedbackLoop, u: Tensor, begun: _FeedbackState) -> LoopLinearization | None:
        """What the map sees at x0, where a run begins in one."""
        return None if begun.awaits else linearize_map_input(*self._at_first(loop, u[:, 0], begun.z), self.map)

    def _at_first(self, loop: FeedbackLoop, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """The c and d_v of ξ = c + d_v φ(ξ) at the first sample, where no hold lies behind."""
        D = self.network.D[self.n_outputs :]
        return z @ loop.C_xi.mT + first @ D[:, : self.n_inputs].mT, D[:, self.n_inputs :]

    def _awaiting(
        self, loop: FeedbackLoop, first: Tensor, begun: _FeedbackState, at: LoopLinearization | None
    ) -> Tensor:
        """The state that awaits the first sample: that given, or w = z − G₁ (u, v) with v what the map makes of z."""
        if at is None:
            return begun.z
        v = self.map(at.at(*self._at_first(loop, first, begun.z), self.map))
        return begun.z - torch.cat([first, v], -1) @ self.network.one_step().G1.mT


@contextmanager
def reuse_solutions(model: nn.Module) -> Iterator[Callable[[], None]]:
    """Within it, the loops in a model are solved at its first evaluation and never again.

    What comes is to be called before every evaluation but the first. All must have the inputs and parameters of the
    first: derivatives are what may differ.
    """
    loops = [own for own in model.modules() if isinstance(own, Feedback)]
    kept = [SolutionCache() for _ in loops]

    def again() -> None:
        for own in kept:
            own.rewind()

    for own, each in zip(loops, kept, strict=True):
        own._kept = each
    try:
        yield again
    finally:
        for own in loops:
            own._kept = None


def _require_finite(y: Tensor) -> None:
    if not all_finite(y):
        raise SimulationError(
            "the outputs of a feedback network exceed the largest floating-point number; take shorter steps, smaller "
            "inputs, or a map that grows less"
        )
