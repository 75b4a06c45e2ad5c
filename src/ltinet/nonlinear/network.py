"""Networks of models with products: `NonlinearNetwork`.

    z' = F z + G v + W_out π,    y = C z + D v + V_out π,    π = products of states, inputs and scheduling signals.

The layers are those of the linear part, block-diagonal and without training; product neurons (`product_neurons`) feed
them. A model without products gives the linear network.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without, html_properties
from ltinet._util.floating_point import Array, balancing_units
from ltinet._util.text import format_count, format_rows, sanitize
from ltinet.blockdiag.partition import BlockChoice
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError, SimulationError
from ltinet.network.layer import HorizontalLayer
from ltinet.network_builder import DEFAULT_MAX_CONDITION, construct_network
from ltinet.nonlinear.exact_steps import HeldStepper
from ltinet.nonlinear.exponential_collocation import CollocationSystem
from ltinet.nonlinear.files import write_product_network
from ltinet.nonlinear.models import NonlinearModel, missing_attribute_message
from ltinet.nonlinear.product_neurons import ProductNeurons, build_product_neurons
from ltinet.nonlinear.simulation import Preparation, is_quadratic, simulate_products
from ltinet.plotting.plots import ProductNetworkPlots
from ltinet.signals.arrays import as_real_array
from ltinet.signals.sampled import Hold
from ltinet.signals.times import as_time_step
from ltinet.simulation.coordinates import network_coordinates
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_settings import ModelSignals, SignalSettings
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

_MAX_LISTED = 6  # product neurons that `print` lists


@final
@dataclass(frozen=True, eq=False, repr=False)
class NonlinearNetwork(ModelSignals):
    """Network with product neurons: linear layers of a block-diagonal form, fed by products of signals.

    Networks are created by `construct` from a `Bilinear`, `LPV` or `QuadraticBilinear` model, and by
    `ltinet.load`.

    Parameters
    ----------
    model : NonlinearModel
        Model that the network was constructed from.
    linear : DynamicNetwork
        Network of the part without products.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> model = ltinet.Bilinear([[-1.0, 0.5], [0.0, -3.0]], [1, 1], [1, 0], N=[[[0, 0], [0.3, 0]]])
    >>> net = ltinet.construct(model)
    >>> net.n_neurons, net.n_products
    (2, 1)
    >>> t = np.linspace(0.0, 10.0, 101)
    >>> bool(net.simulate(np.sin(t), t).error_estimate < 1e-7)
    True
    """

    model: NonlinearModel
    linear: DynamicNetwork
    products: ProductNeurons = field(init=False)

    def __post_init__(self) -> None:
        form = self.linear.form
        if form is None:
            raise InvalidSystemError("a network with products needs the block-diagonal form of its linear part")
        terms, model = self.model.terms, self.model
        neurons = build_product_neurons(terms, form.T, form.T_inv, model.n_inputs, model.n_outputs)
        object.__setattr__(self, "products", neurons)

    @property
    def dt(self) -> None:
        """Time step, None: networks with products are continuous in time."""
        return None

    @property
    def signal_settings(self) -> SignalSettings:  # type: ignore[override] # read only, as in a frozen dataclass
        """Delays, operating point, hold and sample time."""
        return self.model.signal_settings

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; u1, u2, … by default."""
        return self.model.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; y1, y2, … by default."""
        return self.model.output_names

    @property
    def layers(self) -> tuple[HorizontalLayer, ...]:
        """Horizontal layers of the linear part."""
        return self.linear.layers

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.linear.n_states

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return self.linear.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.linear.n_outputs

    @property
    def n_scheduling(self) -> int:
        """Number of scheduling signals."""
        return self.model.n_scheduling

    @property
    def n_layers(self) -> int:
        """Number of layers of the linear part."""
        return self.linear.n_layers

    @property
    def n_neurons(self) -> int:
        """Number of neurons in the layers."""
        return self.linear.n_neurons

    @property
    def n_products(self) -> int:
        """Number of product neurons."""
        return self.products.n_neurons

    def simulate(
        self,
        u: Any,
        t: ArrayLike | None = None,
        *,
        p: Any = None,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        tol: float = 1e-8,
        method: str | None = None,
        **options: Any,
    ) -> Solution:
        """Simulate the network: compute its outputs at given times.

        The method follows from the model and the signals: exact steps for bilinear and LPV models whose signals are all
        held between samples, otherwise exponential collocation for up to 500 states whose blocks have at most 32, and
        solvers of SciPy for all others. A run by collocation continues with LSODA from the time at which the products are
        too stiff for it. `solution.stats["method"]` shows the method.

        Parameters
        ----------
        u : array_like, callable, Signal, mapping, Table, DataFrame or None
            Input, as for `DynamicNetwork.simulate`.
        t : array_like, shape (T,)
            Ascending times; a time that occurs twice marks a jump.
        p : float, array_like, callable, Signal, mapping, Table or DataFrame, optional
            Scheduling signals of an LPV model, in the forms of u; a number, or one for each signal, is constant.
        x0 : array_like, shape (n,) or (batch, n), optional
            State at t[0]; zero by default. Batches of u, p and x0 are broadcast.
        hold : {"linear", "zero"}, optional
            Interpolation of samples of u and p; by default that of the model, "linear" if it has none.
        tol : float, optional
            Tolerance of collocation and solvers relative to the largest values, between 1e-11 and 1e-2.
        method : {"exact_steps", "collocation", "LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23"}, optional
            Method, instead of the one that follows from the model.
        **options
            Not supported: options of linear networks, such as `engine`, are refused with a message.

        Returns
        -------
        Solution
            Outputs `y`, shape (..., T, n_outputs), which can be evaluated at other times. `error_estimate` is that at the
            times t, computed on first use by a second, more accurate run; between them errors may be larger.
            `error_bound` bounds the rounding of exact steps at the times t, and is infinite for all other methods.

        Raises
        ------
        InvalidSignalError
            If the input, the scheduling signals, the times or the initial state are not valid.
        SimulationError
            If an option is not valid, or the states grow without bound; the message has the time.
        """
        if options:
            raise SimulationError(
                f"simulate of a network with products has no option {', '.join(map(sanitize, options))}; its options are p, "
                "x0, hold, tol and method"
            )
        if (
            not self.n_products
            and p is None
            and method is None
            and not self.n_scheduling
            and (x0 is None or np.ndim(x0) < 2)
        ):
            return self.linear.simulate(u, t, x0=x0, hold=hold)
        return simulate_products(self._prepared, u, t=t, p=p, x0=x0, hold=hold, tol=tol, method=method)

    def stepper(self, dt: float, *, x0: ArrayLike | None = None) -> HeldStepper:
        """Create a streaming simulation with held inputs: `y = stepper.step(u, p)`.

        Parameters
        ----------
        dt : float
            Time step, for which u and p are constant.
        x0 : array_like, shape (n,), optional
            Initial state; zero by default.

        Returns
        -------
        HeldStepper
            Simulation that starts at the initial state.

        Raises
        ------
        InvalidSystemError
            If the model has products of two states, or delays.
        """
        model = self.model
        if is_quadratic(model):
            raise InvalidSystemError(
                "stepper(dt) is exact for bilinear and LPV models only, and this one has products of two states. Use "
                "simulate(u, t)."
            )
        if model.linear.signal_settings.has_delays:
            raise InvalidSystemError(
                "stepper(dt) of models with products does not support delays. Remove them with "
                "model.with_signal_settings(input_delay=0, output_delay=0), and delay the signals."
            )
        x = np.zeros(model.n_states) if x0 is None else as_real_array(x0, "x0")
        if x.shape != (model.n_states,):
            raise InvalidSystemError(
                f"x0 has shape {x.shape}; it must have {format_count(model.n_states, 'entry', 'entries')}"
            )
        return HeldStepper(model, as_time_step(dt, "dt"), np.array(x, dtype=np.float64))

    def save(self, path: str | Path) -> None:
        """Write the network to a safetensors file atomically; `ltinet.load` restores every bit.

        Parameters
        ----------
        path : str or path-like
            File to write, with the suffix .safetensors or none; an existing file is replaced.

        Raises
        ------
        FileFormatError
            If the suffix is another one, or the file cannot be written.
        """
        write_product_network(self.model, self.linear, path)

    @property
    def plot(self) -> ProductNetworkPlots:
        """Plots of the network: `net.plot.architecture()`; needs matplotlib."""
        return ProductNetworkPlots(self)

    @cached_property
    def _prepared(self) -> Preparation:
        linear, form = self.linear, self.linear.form
        if form is None:  # refused in __post_init__
            raise InvalidSystemError("the network has no form")
        blocks, coordinates = network_coordinates(linear.network, form, linear.blocks)
        units = balancing_units(self.model.A)
        system = CollocationSystem(blocks, self.products, form.T, form.T_inv, units)

        def neurons_from_user(x: Array, v: Array) -> NDArray[np.float64]:
            z = coordinates.blocks_from_user(x)
            return np.asarray(coordinates.neurons_from_blocks(z) + v @ coordinates.J.T)

        return Preparation(self.model, system, units, neurons_from_user)

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "linear": self.linear, "products": self.products}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NonlinearNetwork):
            return NotImplemented
        return self.model == other.model and self.linear == other.linear

    def __hash__(self) -> int:
        return hash(self.linear)

    def __dir__(self) -> list[str]:
        return dir_without(self)

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(missing_attribute_message(self, name, owner="net"), name=name, obj=self)

    def __repr__(self) -> str:
        sizes = [f"{name}={getattr(self, name)}" for name in ("n_layers", "n_neurons", "n_products")]
        return f"NonlinearNetwork({type(self.model).__name__}, {', '.join(sizes)})"

    def __str__(self) -> str:
        return format_rows(f"{self.linear}\nwith product neurons", self._product_rows())

    def _repr_html_(self) -> str:
        return self.linear._repr_html_() + html_properties("product neurons", self._product_rows())

    def _product_rows(self) -> list[tuple[str, str]]:
        counts = [f"{count} {kind}" for kind, count in self.products.counts().items() if count]
        rows = [("products", f"{self.n_products}: {', '.join(counts)}" if counts else "none, a linear network")]
        for index in range(min(self.n_products, _MAX_LISTED)):
            names = self.input_names, self.model.scheduling_names
            rows.append((f"  π{index + 1}", self.products.describe(index, *names)))
        if self.n_products > _MAX_LISTED:
            rows.append(("  …", f"{self.n_products - _MAX_LISTED} more in net.products"))
        return rows


def build_network(
    model: NonlinearModel, choice: BlockChoice | None = None, *, balance: bool | None = None
) -> NonlinearNetwork:
    """Return the network of a model; the choice of blocks and `balance` are those of `ltinet.construct`."""
    if model.n_states > MAX_DENSE_STATES:
        raise InvalidSystemError(
            f"a network with products needs T as an array, for at most {MAX_DENSE_STATES} states; the model has "
            f"{model.n_states}. Use a coarser grid."
        )
    choice = BlockChoice(DEFAULT_MAX_CONDITION) if choice is None else choice
    with limit_blas_threads(model.n_states):
        result = construct_network(model.linear.matrices, choice, balance=balance)
    return NonlinearNetwork(model, DynamicNetwork(result.network, result.form, model.linear, result.blocks))
