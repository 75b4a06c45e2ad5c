"""PyTorch module of a network with delays and an operating point.

With whole numbers of samples d_j for inputs and e_i for outputs the output is a sum over the different delays d,

    y_i[k] = y0_i + Σ_d w_i^(d)[k − d − e_i],

where w^(d) is the run of the core for the inputs of delay d alone, u_j − u0_j from their first sample on. All these
runs form one batch. Unlike a shift of the inputs, this keeps the beginning of a linear hold: the input is zero until
its first sample arrives, and no line leads there. x0 belongs to the inputs without a delay.
"""

from typing import Any, Generic, TypeVar, final

import torch
from torch import Tensor

from ltinet.errors import InvalidSignalError, InvalidSystemError
from ltinet.simulation.delayed_stepper import delays_in_samples
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.validation import DoublePrecisionModule, outside_compiled_graphs, validate_input, validate_states

NetworkType = TypeVar("NetworkType")


@final
class DelayedNetwork(DoublePrecisionModule, Generic[NetworkType]):
    """Trainable network with delays of whole samples and an operating point, used as `LinearNetwork`.

    `net.to_torch(dt)` constructs one from a network with these settings. Delays and the buffers `u0` and `y0` are not
    trained.

    Parameters
    ----------
    network : LinearNetwork
        Network whose signal settings have the delays and the operating point.

    Raises
    ------
    InvalidSystemError
        A delay is not a multiple of dt.

    Examples
    --------
    >>> import ltinet, torch
    >>> net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).with_signal_settings(input_delay=0.3)
    >>> model = net.to_torch(0.1)
    >>> model.input_steps, model(torch.ones(20, 1)).shape
    ([3], torch.Size([20, 1]))
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
        """Inputs between samples: "linear" for straight lines, "zero" for steps."""
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
        """Names of the trained parts."""
        return self.network.trainable

    def at(self, dt: float) -> "DelayedNetwork[NetworkType]":
        """Return a model with another time step that shares the parameters.

        Parameters
        ----------
        dt : float
            Time between samples.

        Returns
        -------
        DelayedNetwork
            The model.
        """
        return DelayedNetwork(self.network.at(dt))

    def to_network(self) -> NetworkType:
        """Convert the current parameters back to a network with the delays and the operating point.

        Returns
        -------
        DynamicNetwork
            The network.
        """
        return self.network.to_network()

    @outside_compiled_graphs
    def forward(
        self,
        u: Tensor,
        *,
        times: Tensor | None = None,
        state: Tensor | None = None,
        x0: Tensor | None = None,
        return_state: bool = False,
    ) -> Any:
        """Run the network on samples.

        Parameters
        ----------
        u : Tensor
            Measured samples `(…, T, m)`.
        times : Tensor, optional
            Times of samples that are not `dt` apart, for models without delays.
        state : Tensor, optional
            Final state of a previous run, which includes the delayed outputs, to continue it.
        x0 : Tensor, optional
            State of the core at the first sample in the user's coordinates, instead of `state`; at rest by default.
        return_state : bool
            Return the outputs and the final state.

        Returns
        -------
        Tensor or tuple
            Outputs `(…, T, p)`, with `return_state` a pair of the outputs and the state.

        Raises
        ------
        InvalidSignalError
            u or a state has a wrong shape, type or device, or numbers that are not finite; or times are given to a
            model with delays.
        """
        u = validate_input(u, n_inputs=self.n_inputs, device=self.u0.device)
        # Offsets are often large relative to the deviations from them: subtract in float64, then round once.
        v = (u.to(self.u0.dtype) - self.u0).to(u.dtype)
        if not any(self.input_steps) and not any(self.output_steps):
            result = self.network(v, times=times, state=state, x0=x0, return_state=return_state)
            y, end = result if return_state else (result, None)
        elif times is not None:
            raise InvalidSignalError(
                "times cannot be given to a model with delays, which are whole samples; leave times out, or run "
                "model.to_network().simulate(u, times)"
            )
        else:
            y, end = self._run_delayed(v, state, x0)
        y = (y.to(self.y0.dtype) + self.y0).to(u.dtype)
        return (y, end) if return_state else y

    def step(self, u: Tensor, state: Tensor | None = None, *, x0: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the network on one sample.

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

    def _run_delayed(self, v: Tensor, state: Tensor | None, x0: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the core once for all different delays, and add the delayed outputs.

        The state consists of the core states of all runs, then, for each run and output, the outputs that have been
        computed but not yet returned.
        """
        if state is not None and x0 is not None:
            raise InvalidSignalError("both state and x0 are given; give one of them")
        batch, n, steps = tuple(v.shape[:-2]), self.n_states, v.shape[-2]
        delays = self._delays(x0, state)
        lags = [[d + e for e in self.output_steps] for d in delays]
        input_steps = torch.tensor(self.input_steps, device=v.device)
        runs = torch.stack([v * (input_steps == d) for d in delays])
        pending: list[Tensor] = []
        core_states = None
        if state is not None:
            size = len(delays) * n + sum(map(sum, lags))
            rows = validate_states(state, self.u0, n=size, batch=batch, name="state").reshape(*batch, size)
            core_states = torch.stack(rows[..., : len(delays) * n].split(n, -1)) if n else None
            pending = list(rows[..., len(delays) * n :].split([lag for run_lags in lags for lag in run_lags], -1))
        core_x0 = None
        if x0 is not None and n:
            x = validate_states(x0, self.u0, n=n, batch=batch, name="x0").reshape(1, *batch, n)
            core_x0 = torch.cat([x, x.new_zeros(len(delays) - 1, *batch, n)])
        w, ends = self.network(runs, state=core_states, x0=core_x0, return_state=True)
        outputs = [w.new_zeros(*batch, steps) for _ in self.output_steps]
        new_pending = []
        for run, run_lags in enumerate(lags):
            for i, lag in enumerate(run_lags):
                earlier = pending[run * len(run_lags) + i].to(w.dtype) if pending else w.new_zeros(*batch, lag)
                delayed = torch.cat([earlier, w[run, ..., i]], -1)
                outputs[i] = outputs[i] + delayed[..., :steps]
                new_pending.append(delayed[..., steps:].to(ends.dtype))
        y = torch.stack(outputs, -1) if outputs else w.new_zeros(*batch, steps, 0)
        return y, torch.cat([*ends.unbind(0), *new_pending], -1)

    def _delays(self, x0: Tensor | None, state: Tensor | None) -> list[int]:
        """Return the different delays of inputs, and a delay 0 for the response to x0, which a state may contain."""
        delays = sorted(set(self.input_steps)) or [0]
        if delays[0] == 0:
            return delays
        with_zero = [0, *delays]
        size = len(with_zero) * self.n_states + sum(d + e for d in with_zero for e in self.output_steps)
        has_zero = isinstance(state, Tensor) and state.dim() > 0 and state.shape[-1] == size
        return with_zero if x0 is not None or has_zero else delays


def _delays_in_samples(settings: SignalSettings, name: str, count: int, dt: float) -> list[int]:
    delays = delays_in_samples(settings.array(name, count), dt)
    if delays.remainder.any():
        raise InvalidSystemError(
            f"{name} is {list(getattr(settings, name))}, but a PyTorch module supports whole samples only, dt = {dt:g}; "
            f"choose a dt that divides the delays, or leave them out: net.with_signal_settings({name}=0).to_torch(dt)"
        )
    return [int(count) for count in delays.whole]
