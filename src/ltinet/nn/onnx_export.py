"""Export of models to ONNX.

A model without feedback, that is networks and static maps in series, becomes one graph, as `net.export_onnx` writes
that of a single network.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError, InvalidSignalError
from ltinet.export.manifest import Export, with_warnings
from ltinet.export.onnx.export import MapPart, NetworkPart, write_onnx, write_stack
from ltinet.export.onnx.static_maps import MapNodes, MonotoneMap, PolynomialMap, SplineMap, TanhMap
from ltinet.export.step_model import Precision, validate_settings
from ltinet.nn.feedback import Feedback
from ltinet.nn.maps import MLP, Monotone, Polynomial, Spline
from ltinet.nn.serialization import model_checksum
from ltinet.nn.stack import Stack
from ltinet.nn.triangular import Triangular
from ltinet.simulation.context import NetworkParts, SimulationContext
from ltinet.systems.signal_settings import NO_SETTINGS
from ltinet.torch.delayed_network import DelayedNetwork
from ltinet.torch.linear_network import LinearNetwork, rebuild_network, to_array

# Limit of cond(T) up to which blocks are split further: single precision then loses one digit at most.
_MAX_SPLIT_CONDITION = 10.0

InitialStates: TypeAlias = ArrayLike | Tensor | None


def export_onnx(
    model: nn.Module,
    path: str | PathLike[str],
    *,
    dtype: Precision = "double",
    x0: InitialStates | Sequence[InitialStates] = None,
) -> Export:
    """Write a model without feedback as an ONNX file.

    The graph maps u `(batch, time, m)` and state to y and next_state. Time step and hold are those of the model;
    `network.at(dt)` changes the step. The state consists of the states of all networks side by side, in the order of
    the parts, as `net.export_onnx` has them: zeros are rest, `manifest["initial state"]` is x0, and `next_state`
    continues with the samples that follow. Writing requires onnx.

    Parameters
    ----------
    model : nn.Module
        Network (`net.to_torch(dt)`), or `Stack` of networks and maps.
    path : str or PathLike
        File, which ends in .onnx; an existing one is replaced.
    dtype : {"double", "float"}
        Precision of inputs, outputs and all arithmetic.
    x0 : array_like or Tensor, or a sequence of these, optional
        Initial state in the user's coordinates, zero by default; for a stack one entry for each part, None for maps.

    Returns
    -------
    Export
        The file and its manifest.

    Raises
    ------
    MissingDependencyError
        onnx is not installed.
    InvalidNetworkError
        A part, such as feedback, has no form in ONNX, or time steps differ.
    FileFormatError
        The file cannot be written, or a number exceeds the range of the precision.
    InvalidSignalError
        x0 does not match the model.

    Examples
    --------
    >>> import ltinet
    >>> from ltinet import nn
    >>> model = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).to_torch(0.1)
    >>> export = nn.export_onnx(model, "model.onnx")
    """
    parts = _export_parts(model, x0, dtype)
    if isinstance(parts[0], NetworkPart) and len(parts) == 1:
        export = write_onnx(parts[0].context, path, settings=parts[0].settings, engine=parts[0].engine)
    else:
        export = write_stack(parts, path, dtype=dtype, checksum=model_checksum(model))
    return with_warnings(export)


def _export_parts(model: nn.Module, x0: Any, dtype: Precision) -> list[NetworkPart | MapPart]:
    """Return the networks and maps of a model in their order; nested stacks are flattened."""
    if isinstance(model, Stack):
        if model.residual:
            raise InvalidNetworkError(
                "a Stack with residual=True cannot be exported to ONNX; export its parts one by one"
            )
        states = [None] * len(model.parts) if x0 is None else x0
        if isinstance(states, Tensor | np.ndarray) or not hasattr(states, "__len__") or len(states) != len(model.parts):
            raise InvalidSignalError(
                f"x0 must be a list of {len(model.parts)}; give one entry for each part, None for maps and for rest"
            )
        pairs = zip(model.parts, states, strict=True)
        return [exported for part, state in pairs for exported in _export_parts(part, state, dtype)]
    if isinstance(model, LinearNetwork | DelayedNetwork):
        signals = model.signal_settings if isinstance(model, DelayedNetwork) else NO_SETTINGS
        x0 = x0.detach().cpu().numpy() if isinstance(x0, Tensor) else x0
        settings = validate_settings(model.dt, hold=model.hold, dtype=dtype, x0=x0, signals=signals)
        network = model.network if isinstance(model, DelayedNetwork) else model
        maps = {"to_user": network.to_user, "from_user": network.from_user}
        rebuilt = rebuild_network(network.system(), **maps, names=network.names, max_condition=_MAX_SPLIT_CONDITION)
        in_blocks = SimulationContext(NetworkParts(rebuilt.network, rebuilt.form, rebuilt.blocks))
        return [NetworkPart(model.to_network()._context, settings, in_blocks)]
    part = _map_part(model)
    if x0 is not None:
        raise InvalidSignalError(f"x0 has an entry for a map, and a {part.kind} has no state; give None there")
    return [part]


def _map_part(model: nn.Module) -> MapPart:
    nodes: MapNodes
    match model:
        case Feedback():
            raise InvalidNetworkError(
                "a Feedback solves an equation at every sample, for which ONNX has no node; export a model without "
                "feedback, or its linear part: model.to_network().export_onnx(path, dt)"
            )
        case Triangular():
            raise InvalidNetworkError(
                "a Triangular has no graph in ONNX; export its linear part: model.to_network().export_onnx(path, dt)"
            )
        case Polynomial():
            nodes = PolynomialMap(to_array(model.weights), model.scale)
        case Spline():
            nodes = SplineMap(to_array(model.slope), to_array(model.weights), model.low, model.high)
        case MLP():
            nodes = TanhMap(*(to_array(weights) for weights in (model.line, model.W, model.b, model.V)))
        case Monotone():
            at_zero = (model.hat_integrals(model.offset.new_zeros(model.n_inputs)) * model.slopes).sum(-1)
            low, high = np.array(model.low), np.array(model.high)
            nodes = MonotoneMap(to_array(model.offset - at_zero), to_array(model.slopes), low, high)
        case _:
            raise InvalidNetworkError(
                f"a {type(model).__name__} cannot be exported to ONNX; give networks and Polynomial, Spline, MLP, "
                "Monotone"
            )
    return MapPart(type(model).__name__, nodes, model.n_inputs, model.n_outputs)
