"""PyTorch module of a network with delays and an operating point.

With whole numbers of samples d_j for inputs and e_i for outputs the output is a sum over the different delays d,

    y_i[k] = y0_i + Σ_d w_i^(d)[k − d − e_i],

where w^(d) is the run of the core for the inputs of delay d alone, u_j − u0_j from their first sample on. All these
runs form one batch. Unlike a shift of the inputs, this keeps the beginning of a linear hold: the input is zero until
its first sample arrives, and no line leads there. x0 belongs to the inputs without a delay.
"""

from typing import Any, Generic, TypeVar, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidSignalError, InvalidSystemError
from ltinet.simulation.delayed_stepper import delays_in_samples
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.validation import preserve_dtype, validate_input, validate_states

# MERGED ltinet.torch.delayed_network
# A network with delays and an operating point as a PyTorch module: `LinearNetwork` with shifted inputs and outputs.
#
# With whole numbers of samples d_j for inputs and e_i for outputs the output is a sum over the different delays d,
#
#     y_i[k] = y0_i + Σ_d w_i^(d)[k − d − e_i],
#
# where w^(d) is the run of the core for the inputs of delay d alone, u_j − u0_j from their first sample on. All these
# runs are one batch. Unlike a shift of the inputs, this leaves the beginning of a linear hold as it is: the input is zero
# until its first sample arrives, and no line leads there. x0 belongs to the inputs without a delay.

NetworkType = TypeVar("NetworkType")


@final
class DelayedNetwork(nn.Module, Generic[NetworkType]):
    """A network that learns, with delays of whole samples and an operating point; it is used as `LinearNetwork` is.

    `net.to_torch(dt)` makes one of a model that has them. Delays and the buffers `u0` and `y0` are not trained.

    Raises
    ------
    InvalidSystemError
        A delay is no multiple of dt.
    """

    u0: Tensor
    y0: Tensor

    def __init__(self, network: LinearNetwork[NetworkType]) -> None:
        super().__init__()
        self.network = network
        settings, m, p = network.signal_settings, network.n_inputs, network.n_outputs
        self.register_buffer("u0", torch.from_numpy(settings.array("u0", m)))
        self.register_buffer("y0", torch.from_numpy(settings.array("y0", p)))
        self.input_steps = _delays_in_samples(settings, "input_delay", m, network.dt)
        self.output_steps = _delays_in_samples(settings, "output_delay", p, network.dt)

    @property
    def dt(self) -> float:
        """Time between samples."""
        return self.network.dt

    @property
    def hold(self) -> str:
        """What inputs do between samples."""
        return self.network.hold

    @property
    def names(self) -> SignalNames:
        """Names of inputs and outputs."""
        return self.network.names

    @property
    def signal_settings(self) -> SignalSettings:
        """Delays, operating point, hold and sample time."""
        return self.network.signal_settings

    @property
    def n_inputs(self) -> int:
        """Number of inputs, m."""
        return self.network.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs, p."""
        return self.network.n_outputs

    @property
    def n_states(self) -> int:
        """Dimension of the system."""
        return self.network.n_states

    @property
    def trainable(self) -> tuple[str, ...]:
        """The parts that are trained."""
        return self.network.trainable

    def at(self, dt: float) -> "DelayedNetwork[NetworkType]":
        """Return the same network with another time step; both share their parameters."""
        return DelayedNetwork(self.network.at(dt))

    def to_network(self) -> NetworkType:
        """Return the network that the parameters stand for now, with its delays and operating point."""
        return self.network.to_network()

    def forward(
        self,
        u: Tensor,
        *,
        times: Tensor | None = None,
        state: Tensor | None = None,
        x0: Tensor | None = None,
        return_state: bool = False,
    ) -> Any:
        """Return outputs `(…, T, p)` for samples `(…, T, m)` that are `dt` apart.

        Parameters
        ----------
        u : Tensor
            Samples as they are measured.
        times : Tensor, optional
            Times of samples that are not `dt` apart, for models without delays.
        state : Tensor, optional
            What a run before this one gave back; outputs that are on their way are in it.
        x0 : Tensor, optional
            State of the core at the first sample, in the user's coordinates, instead of `state`.
        return_state : bool
            Give back a pair, the outputs and the state that awaits the next sample.

        Raises
        ------
        InvalidSignalError
            u or a state has another shape, type or device, or numbers that are not finite; or times are given to a
            model with delays.
        """
        if torch.compiler.is_compiling():  # as `LinearNetwork`
            run: Any = torch.compiler.disable(self._evaluated)
            return run(u, times, state, x0, return_state)
        return self._evaluated(u, times, state, x0, return_state)

    def _evaluated(
        self, u: Tensor, times: Tensor | None, state: Tensor | None, x0: Tensor | None, return_state: bool
    ) -> Any:
        u = validate_input(u, n_inputs=self.n_inputs, device=self.u0.device)
        # Offsets are often large beside what happens around them: the difference is rounded once.
        v = (u.to(self.u0.dtype) - self.u0).to(u.dtype)
        if not any(self.input_steps) and not any(self.output_steps):
            found = self.network(v, times=times, state=state, x0=x0, return_state=return_state)
            y, end = found if return_state else (found, None)
            y = (y.to(self.y0.dtype) + self.y0).to(u.dtype)
            return (y, end) if return_state else y
        if times is not None:
            raise InvalidSignalError(
                "times are given to a model with delays, whose delays are whole samples; leave times out, or run "
                "model.to_network().simulate(u, times)"
            )
        y, end = self._delayed(v, state, x0)
        y = (y.to(self.y0.dtype) + self.y0).to(u.dtype)
        return (y, end) if return_state else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the output at one sample `(…, m)` and the state that awaits the next."""
        y, end = self(u.unsqueeze(-2), state=state, x0=x0, return_state=True)
        return y.squeeze(-2), end

    def _delayed(self, v: Tensor, state: Tensor | None, x0: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the core once for all different delays, and add what arrives."""
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give the one that the run is to begin in")
        batch, n, steps = tuple(v.shape[:-2]), self.n_states, v.shape[-2]
        delays = self._delays(x0, state)
        lags = [[d + e for e in self.output_steps] for d in delays]
        steps_of_inputs = torch.tensor(self.input_steps, device=v.device)
        runs = torch.stack([v * (steps_of_inputs == d) for d in delays])
        waiting: list[Tensor] = []
        begun = None
        if state is not None:
            size = len(delays) * n + sum(map(sum, lags))
            given = validate_states(state, self.u0, n=size, batch=batch, name="state").reshape(*batch, size)
            begun = torch.stack(given[..., : len(delays) * n].split(n, -1)) if n else None
            waiting = list(given[..., len(delays) * n :].split([lag for own in lags for lag in own], -1))
        start = None
        if x0 is not None and n:
            x = validate_states(x0, self.u0, n=n, batch=batch, name="x0").reshape(1, *batch, n)
            start = torch.cat([x, x.new_zeros(len(delays) - 1, *batch, n)])
        w, ends = self.network(runs, state=begun, x0=start, return_state=True)
        arrived = [w.new_zeros(*batch, steps) for _ in self.output_steps]
        kept = []
        for group, own in enumerate(lags):
            for i, lag in enumerate(own):
                before = waiting[group * len(own) + i].to(w.dtype) if waiting else w.new_zeros(*batch, lag)
                line = torch.cat([before, w[group, ..., i]], -1)
                arrived[i] = arrived[i] + line[..., :steps]
                kept.append(line[..., steps:].to(ends.dtype))
        y = torch.stack(arrived, -1) if arrived else w.new_zeros(*batch, steps, 0)
        return y, torch.cat([*ends.unbind(0), *kept], -1)

    def _delays(self, x0: Tensor | None, state: Tensor | None) -> list[int]:
        """Return the different delays of inputs, with a run from x0 where no input is there at once."""
        delays = sorted(set(self.input_steps)) or [0]
        if delays[0] == 0:
            return delays
        with_start = [0, *delays]
        size = len(with_start) * self.n_states + sum(d + e for d in with_start for e in self.output_steps)
        from_start = state is not None and isinstance(state, Tensor) and state.dim() > 0 and state.shape[-1] == size
        return with_start if x0 is not None or from_start else delays

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move to devices, but keep float64."""
        return super()._apply(preserve_dtype(fn), recurse)


def _delays_in_samples(settings: SignalSettings, name: str, count: int, dt: float) -> list[int]:
    late = delays_in_samples(settings.array(name, count), dt)
    if late.rest.any():
        raise InvalidSystemError(
            f"{name} is {list(getattr(settings, name))}, but a PyTorch module knows samples alone, dt = {dt:g} apart; "
            f"choose a dt that divides the delays, or leave them out: net.with_signal_settings({name}=0).to_torch(dt)"
        )
    return [int(own) for own in late.whole]
