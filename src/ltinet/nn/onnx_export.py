"""Export of models to ONNX.

A model without feedback, that is networks and static maps in series, becomes one graph, as `net.export_onnx` writes
that of a single network.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ltinet._util.floating_point import Array
from ltinet.errors import InvalidNetworkError, InvalidSignalError
from ltinet.export.manifest import Export
from ltinet.export.onnx.export import MapPart, NetworkPart, write_onnx, write_stack
from ltinet.export.onnx.static_maps import MapNodes, MonotoneMap, PolynomialMap, SplineMap, TanhMap
from ltinet.export.step_model import Precision, issue_warnings, validate_settings
from ltinet.nn.feedback import Feedback
from ltinet.nn.maps import MLP, Monotone, Polynomial, Spline
from ltinet.nn.serialization import model_checksum
from ltinet.nn.stack import Stack
from ltinet.nn.triangular import Triangular
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.systems.signal_settings import NO_SETTINGS
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork, rebuild_network

# MERGED ltinet.nn.onnx_export
# Models as ONNX: networks and maps in a row become one graph, as `net.export_onnx` writes that of a network.

_MAX_SPLIT_CONDITION = (
    10.0  # condition of T from which on states stay coupled: single precision is to lose a digit at most
)

Start: TypeAlias = ArrayLike | Tensor | None


def export_onnx(
    model: nn.Module,
    path: str | PathLike[str],
    *,
    dtype: Precision = "double",
    x0: Start | Sequence[Start] = None,
) -> Export:
    """Write a model without feedback as an ONNX file: u (batch, time, m) and state in, y and next_state out.

    Step and hold are those of the model; another step: `network.at(dt)`. The state is those of all networks side by
    side, the first one first, as `net.export_onnx` has them: zeros begin at rest, `manifest["initial state"]` in x0,
    and `next_state` goes on with the samples that follow. Needs onnx to write, and anything that runs ONNX to run.

    Args:
        model: a network (`net.to_torch(dt)`), or a `Stack` of networks and maps.
        path: the file, which ends in .onnx; one of that name is replaced.
        dtype: "double" or "float", of inputs, outputs and all arithmetic.
        x0: the initial state in the user's coordinates, zero if left out; of a stack one for each part, None for maps.

    Raises:
        MissingDependencyError: onnx is not installed.
        InvalidNetworkError: a part has no form in ONNX, as feedback has none, or time steps differ.
        FileFormatError: the file cannot be written, or a number does not fit the precision.
        InvalidSignalError: x0 cannot be used.
    """
    parts = _parts(model, x0, dtype)
    if isinstance(parts[0], NetworkPart) and len(parts) == 1:
        own = parts[0]
        written = write_onnx(own.context, path, settings=own.settings, engine=own.engine)
    else:
        written = write_stack(parts, path, dtype=dtype, checksum=model_checksum(model))
    issue_warnings(written.notes)
    return written


def _parts(model: nn.Module, x0: Any, dtype: Precision) -> list[NetworkPart | MapPart]:
    """The networks and maps of a model, in their order; stacks in stacks are opened."""
    if isinstance(model, Stack):
        starts = [None] * len(model.parts) if x0 is None else x0
        if isinstance(starts, Tensor | np.ndarray) or not hasattr(starts, "__len__") or len(starts) != len(model.parts):
            raise InvalidSignalError(
                f"x0 is no list of {len(model.parts)}; give one entry for each part, None for maps and for rest"
            )
        both = zip(model.parts, starts, strict=True)
        return [own for part, start in both for own in _parts(part, start, dtype)]
    if isinstance(model, LinearNetwork | DelayedNetwork):
        signals = model.signal_settings if isinstance(model, DelayedNetwork) else NO_SETTINGS
        settings = validate_settings(model.dt, hold=model.hold, dtype=dtype, x0=_state_array(x0), signals=signals)
        network = model.network if isinstance(model, DelayedNetwork) else model
        return [NetworkPart(model.to_network()._context, settings, _prepared_network(network))]
    part = _map_part(model)
    if x0 is not None:
        raise InvalidSignalError(f"x0 has an entry for a map, and a {part.kind} has no state; give None there")
    return [part]


def _prepared_network(model: LinearNetwork[Any]) -> SimulationContext:
    """The network in the blocks of the model."""
    maps = {"to_user": model.to_user, "from_user": model.from_user}
    made = rebuild_network(model.system(), **maps, names=model.names, max_condition=_MAX_SPLIT_CONDITION)
    return SimulationContext(NetworkParts(made.network, made.form, made.blocks))


def _map_part(model: nn.Module) -> MapPart:
    if isinstance(model, Feedback):
        raise InvalidNetworkError(
            "a Feedback solves an equation at every sample, for which ONNX has no node; export what has no feedback, "
            "or its linear part: model.to_network().export_onnx(path, dt)"
        )
    if isinstance(model, Triangular):
        raise InvalidNetworkError(
            "a Triangular has no graph in ONNX; export its linear part: model.to_network().export_onnx(path, dt)"
        )
    for kind, read in _MAP_CONVERTERS.items():
        if type(model) is kind:
            return MapPart(kind.__name__, read(model), model.n_inputs, model.n_outputs)
    raise InvalidNetworkError(
        f"a {type(model).__name__} is no module of ltinet.nn that ONNX is written for; give "
        f"networks and {', '.join(kind.__name__ for kind in _MAP_CONVERTERS)}"
    )


def _polynomial(model: Any) -> MapNodes:
    return PolynomialMap(_to_array(model.weights), model.scale)


def _spline(model: Any) -> MapNodes:
    return SplineMap(_to_array(model.slope), _to_array(model.weights), model.low, model.high)


def _mlp(model: Any) -> MapNodes:
    return TanhMap(*(_to_array(own) for own in (model.line, model.W, model.b, model.V)))


def _monotone(model: Any) -> MapNodes:
    at_zero = (model.grown(model.offset.new_zeros(model.n_inputs)) * model.slopes).sum(-1)
    low, high = np.array(model.low), np.array(model.high)
    return MonotoneMap(_to_array(model.offset - at_zero), _to_array(model.slopes), low, high)


_MAP_CONVERTERS: dict[type[nn.Module], Callable[[Any], MapNodes]] = {
    Polynomial: _polynomial,
    Spline: _spline,
    MLP: _mlp,
    Monotone: _monotone,
}


def _to_array(tensor: Tensor) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _state_array(given: Any) -> Any:
    return given.detach().cpu().numpy() if isinstance(given, Tensor) else given
