"""Networks with a static map in their own loop, as a cubic spring in the equation of its neuron."""

from typing import Any, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError, InvalidSignalError, SimulationError
from ltinet.learn.checks import checked_input, checked_states, computing_type, is_finite
from ltinet.learn.linear_network import LinearNetwork
from ltinet.learn.loops import Loop, advanced, linearised, loop_of, outputs, seen_by_map, solved
from ltinet.learn.trajectories import Trajectory, find_states
from ltinet.learn.varying_scan import scan_varying

_WINDOW = 1024


@final
class Feedback(nn.Module):
    """A network whose last inputs are a map of its last outputs: ξ̈ + c ξ̇ + k ξ = u + φ(ξ) for a neuron of second order.

    `network` has m + q inputs and p + r outputs, `map` takes r numbers to q. The model has the m inputs and p outputs
    that are left. What is fed back is held as the network holds its inputs. Solved by Newton's method on windows of
    `window` samples, parallel in time, damped where it would explode, and one by one where that does not converge
    either or where `window` is 0; `last_run` says which. Derivatives are those of the solution and not of the
    iterations; the work is in float64.
    """

    def __init__(self, network: nn.Module, map: nn.Module, *, window: int = _WINDOW) -> None:
        super().__init__()
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

    def forward(
        self, u: Tensor, *, state: Tensor | None = None, x0: Tensor | None = None, return_state: bool = False
    ) -> Any:
        """Outputs `(…, T, p)` for samples `(…, T, m)`; `state`, `x0` and `return_state` as those of a network.

        Raises:
            InvalidSignalError: u or a state has another shape, type or device, or numbers that are not finite.
            SimulationError: states exceed the largest floating-point number.
        """
        u = checked_input(u, n_inputs=self.n_inputs, device=self.network.B.device)
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
                start = self.start(loop, samples[:, 0], batch, state, x0)
                run = find_states(loop, samples, start.detach(), self.map, window=self.window)
                self.last_run = run._replace(states=run.states[:, :0])
                y, end = self._with_derivatives(loop, samples, start, run.states.detach())
        y = y.reshape(*batch, steps, self.n_outputs).to(computing_type(u.dtype)).to(u.dtype)
        return (y, end.reshape(*batch, self.network.n_states)) if return_state else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output at one sample `(…, m)` and the state that awaits the next."""
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """The linear part: the network with all its inputs and outputs, those of the loop included."""
        return self.network.to_network()

    def loop(self) -> Loop:
        """The matrices of a step, split into what comes from outside and what is fed back."""
        return loop_of(self.network.one_step(), fed_back=self.map.n_outputs, seen=self.map.n_inputs)

    def start(
        self, loop: Loop, first: Tensor, batch: tuple[int, ...], state: Tensor | None, x0: Tensor | None
    ) -> Tensor:
        """The state that awaits the first sample: that given, or w = z − G₁ (u, v) with v what the map makes of z."""
        network = self.network
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give the one that the run is to begin in")
        if state is not None:
            return checked_states(state, network.B, n=network.n_states, batch=batch, name="state")
        z = first.new_zeros(len(first), network.n_states)
        if x0 is not None:
            x = checked_states(x0, network.B, n=network.n_states, batch=batch, name="x0")
            z = x @ network.from_user.mT
        D = network.D[self.n_outputs :]
        xi = solved(z @ loop.C_xi.mT + first @ D[:, : self.n_inputs].mT, D[:, self.n_inputs :], self.map)
        return z - torch.cat([first, self.map(xi)], -1) @ network.one_step().G1.mT

    def _with_derivatives(self, loop: Loop, u: Tensor, start: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and last state: the states as they were found, with the derivatives of one more Newton pass.

        What that pass adds is zero but for its derivatives.
        """
        with torch.no_grad():
            A = linearised(loop, seen_by_map(loop, states, u, self.map), self.map).detach()
        after = advanced(loop, states, u, self.map(seen_by_map(loop, states, u, self.map)))
        moved, moved_end = scan_varying(A, after - after.detach(), start - start.detach())
        w, end = states + moved, after[:, -1].detach() + moved_end
        y = outputs(loop, w, u, self.map(seen_by_map(loop, w, u, self.map)))
        if not is_finite(y):
            raise SimulationError(
                "the outputs of a feedback network exceed the largest floating-point number; take shorter steps, "
                "smaller inputs, or a map that grows less"
            )
        return y, end
