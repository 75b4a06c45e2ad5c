"""Networks with a static map in their own loop, such as a cubic spring in the equation of a neuron.

The last inputs of a linear network are v = φ(ξ), a map of its last outputs: for a neuron of second order,
ξ̈ + c ξ̇ + k ξ = u + φ(ξ). The trajectory is found by Newton's method on windows of time (`ltinet.torch.newton`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

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
from ltinet.torch.planner import InitialState
from ltinet.torch.validation import all_finite, compute_dtype, validate_input

_WINDOW_STEPS = 1024  # samples that Newton's method solves together


@final
class Feedback(nn.Module):
    """A network whose last inputs are a static map of its last outputs.

    A network with m + q inputs and p + r outputs and a map from r to q channels give a model with m inputs and p
    outputs. What is fed back is held as the network holds its inputs. Windows of time are solved by Newton's method,
    parallel in time, damped where it diverges, and step by step where that does not converge either; `last_run` has
    the counts. Derivatives are those of the solution and not of the iterations. Computation is in float64.

    Parameters
    ----------
    network : LinearNetwork
        Network without delays and operating point.
    map : nn.Module
        Static map with `n_inputs` and `n_outputs`.
    window : int
        Samples in a window; 0 solves all steps one by one.

    Raises
    ------
    InvalidNetworkError
        `network` is not a `LinearNetwork`, or has no inputs or outputs besides those of the map.

    Examples
    --------
    >>> import ltinet, torch
    >>> from ltinet import nn
    >>> net = ltinet.construct(([[0.0, 1.0], [-1.0, -0.1]], [[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]))
    >>> model = nn.Feedback(net.to_torch(0.1), nn.Polynomial(1, 3, start="zero"))
    >>> model(torch.ones(50, 1)).shape
    torch.Size([50, 1])
    """

    def __init__(self, network: nn.Module, map: nn.Module, *, window: int = _WINDOW_STEPS) -> None:
        super().__init__()
        if isinstance(network, DelayedNetwork):
            raise InvalidNetworkError(
                "Feedback does not support delays and operating points, which its map would see; leave them out with "
                "net.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0).to_torch(dt)"
            )
        if not isinstance(network, LinearNetwork):
            raise InvalidNetworkError(f"network is a {type(network).__name__}; give a network: net.to_torch(dt)")
        self.network, self.map, self.window = network, map, window
        self.n_inputs, self.n_outputs = network.n_inputs - map.n_outputs, network.n_outputs - map.n_inputs
        if self.n_inputs < 1 or self.n_outputs < 1:
            raise InvalidNetworkError(
                f"the network has {network.n_inputs} inputs and {network.n_outputs} outputs, but the last {map.n_outputs} "
                f"inputs and {map.n_inputs} outputs are those of the map; give a network with further inputs and outputs, "
                "which are those of the model, before them"
            )
        self.last_run: Trajectory | None = None
        self._solution_cache: SolutionCache | None = None

    def forward(
        self, u: Tensor, *, state: Tensor | None = None, x0: Tensor | None = None, return_state: bool = False
    ) -> Any:
        """Run the model on samples.

        Parameters
        ----------
        u : Tensor
            Samples `(…, T, m)`.
        state : Tensor, optional
            Final state of a previous run, to continue it.
        x0 : Tensor, optional
            State at the first sample in the user's coordinates, instead of `state`; at rest by default.
        return_state : bool
            Return the outputs and the final state.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, p)`, with `return_state` a pair of the outputs and the state.

        Raises
        ------
        InvalidSignalError
            u or a state has a wrong shape, type or device, or numbers that are not finite.
        SimulationError
            States or outputs overflow.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.network.B.device)
        if torch._C._functorch.is_batchedtensor(u):
            raise InvalidSignalError(
                "u is batched by torch.func.vmap, inside which convergence cannot be tested; give the batch as an axis "
                "of u"
            )
        batch, steps = tuple(u.shape[:-2]), u.shape[-2]
        with torch.autocast(u.device.type, enabled=False):
            samples = u.to(self.network.B.dtype).reshape(-1, steps, self.n_inputs)
            loop = self.loop()
            if not len(samples):  # an empty batch: the linear part has its shapes
                y, end = samples @ loop.y_u.mT, samples.new_zeros(0, self.network.n_states)
            else:
                initial = self.network.initial_state(batch, state, x0)
                solution = self._solve(loop, samples, initial)
                w = self._first_w(loop, samples, initial, solution.first)
                y, end = run_linearized(solution, loop, samples, w, self.map)
                if not all_finite(y):
                    raise SimulationError(
                        "the outputs of a feedback network overflow; take shorter steps, smaller inputs, or a map that "
                        "grows less"
                    )
        y = y.reshape(*batch, steps, self.n_outputs).to(compute_dtype(u.dtype)).to(u.dtype)
        return (y, end.reshape(*batch, self.network.n_states)) if return_state else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the model on one sample.

        Parameters
        ----------
        u : Tensor
            Sample `(…, m)`.
        state : Tensor, optional
            State from the previous step.
        x0 : Tensor, optional
            State at the sample in the user's coordinates, instead of `state`; at rest by default.

        Returns
        -------
        y : Tensor
            Output `(…, p)`.
        state : Tensor
            State for the next step.
        """
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def to_network(self) -> Any:
        """Convert the linear part back to a network, with the inputs and outputs of the loop.

        Returns
        -------
        DynamicNetwork
            The network.
        """
        return self.network.to_network()

    def loop(self) -> FeedbackLoop:
        """Split the matrices of a step into those of external and of fed-back signals.

        Returns
        -------
        FeedbackLoop
            The matrices.
        """
        return split_feedback(self.network.one_step(), n_map_inputs=self.map.n_inputs, n_map_outputs=self.map.n_outputs)

    def rest_state(self, loop: FeedbackLoop, u: Tensor) -> Tensor:
        """Compute the state w = z − G₁ (u, v) before the first sample of a run from rest, without derivatives.

        Parameters
        ----------
        loop : FeedbackLoop
            Matrices of a step.
        u : Tensor
            Samples `(B, T, m)`.

        Returns
        -------
        Tensor
            State w `(B, n)`.
        """
        with no_derivatives():
            return self._first_w(loop, u, InitialState(), self._linearize_first(loop, u, InitialState()))

    def _solve(self, loop: FeedbackLoop, u: Tensor, initial: InitialState) -> LoopSolution:
        """Return the trajectory and its linearization, from the cache where it was solved before."""
        if self._solution_cache is not None and self._solution_cache.is_complete:
            return self._solution_cache.next()
        with no_derivatives():
            first = self._linearize_first(loop, u, initial)
            run = solve_trajectory(loop, u, self._first_w(loop, u, initial, first), self.map, window=self.window)
            self.last_run = run._replace(states=run.states[:, :0])
            solution = linearize_trajectory(loop, u, run.states, self.map, first=first)
        if self._solution_cache is not None:
            self._solution_cache.solutions.append(solution)
        return solution

    def _linearize_first(self, loop: FeedbackLoop, u: Tensor, initial: InitialState) -> LoopLinearization | None:
        """Linearize the map input at the first sample, where a run begins in a state z."""
        return None if initial.w is not None else linearize_map_input(*self._first_equation(loop, u, initial), self.map)

    def _first_equation(self, loop: FeedbackLoop, u: Tensor, initial: InitialState) -> tuple[Tensor, Tensor]:
        """Return c and d_v of ξ = c + d_v φ(ξ) at the first sample, which no held input precedes."""
        D = self.network.D[self.n_outputs :]
        c = u[:, 0] @ D[:, : self.n_inputs].mT
        return c if initial.z is None else initial.z @ loop.C_xi.mT + c, D[:, self.n_inputs :]

    def _first_w(self, loop: FeedbackLoop, u: Tensor, initial: InitialState, first: LoopLinearization | None) -> Tensor:
        """Return the state before the first sample: the given w, or w = z − G₁ (u, v) with v = φ(ξ) at the sample."""
        if initial.w is not None:
            return initial.w
        assert first is not None  # noqa: S101 - `_linearize_first` gives one for runs that begin in z
        v = self.map(first.evaluate(*self._first_equation(loop, u, initial), self.map))
        drive = torch.cat([u[:, 0], v], -1) @ self.network.one_step().G1.mT
        return -drive if initial.z is None else initial.z - drive


@contextmanager
def reuse_solutions(model: nn.Module) -> Iterator[Callable[[], None]]:
    """Solve the loops of a model at its first evaluation only.

    Yields a function to call before every later evaluation. All evaluations must have the inputs and parameters of the
    first; only derivatives may differ.
    """
    loops = [module for module in model.modules() if isinstance(module, Feedback)]
    caches = [SolutionCache() for _ in loops]

    def rewind() -> None:
        for cache in caches:
            cache.rewind()

    for loop, cache in zip(loops, caches, strict=True):
        loop._solution_cache = cache
    try:
        yield rewind
    finally:
        for loop in loops:
            loop._solution_cache = None
