"""A graph of ONNX in the making: nodes, tables and names, in one precision."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import MissingDependencyError

OPSET = 17
IR_VERSION = 8


def imported() -> Any:
    """The library.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingDependencyError('onnx is not installed; install it with pip install "ltinet[onnx]"') from error
    return onnx


class GraphBuilder:
    """Collects what a graph is made of; every value has a name."""

    def __init__(self, precision: type[np.floating[Any]], *, called: str = "") -> None:
        self._onnx = imported()
        self._precision = precision
        self._type = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
        self._nodes: list[Any] = []
        self._tables: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._known: dict[tuple[Any, ...], str] = {}
        self._whole: dict[tuple[Any, ...], str] = {}
        self._count, self._called = 0, called

    def inner(self) -> "GraphBuilder":
        """A graph for the body of a loop, whose names are none of the graph around it."""
        return GraphBuilder(self._precision, called=f"{self._new('loop')}_")

    def declare(self, name: str, shape: Sequence[Any]) -> None:
        """An input; its shape has numbers, names and None for what is free."""
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def result(self, name: str, shape: Sequence[Any]) -> None:
        """An output."""
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type, list(shape)))

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """A node with one output; its name. Equal nodes are kept once."""
        key = (kind, inputs, repr(attributes))
        if name is None and key in self._known:
            return self._known[key]
        output = name or self._new(kind.lower())
        # Named: onnxruntime 1.20 calls what it fuses after its nodes, and refuses two that are called alike.
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        self._known[key] = output
        return output

    def scan(self, body: "GraphBuilder", first: str, rows: str) -> str:
        """A loop over rows with one state; the rows that it gives."""
        last, given = self._new("last"), self._new("rows")
        graph = body.graph("round")
        self._nodes.append(
            self._onnx.helper.make_node("Scan", [first, rows], [last, given], name=last, body=graph, num_scan_inputs=1)
        )
        return given

    def cast(self, whole: str) -> str:
        """Whole numbers as numbers of the graph."""
        return self.op("Cast", whole, to=self._type)

    def table(self, values: NDArray[Any]) -> str:
        """Numbers in the precision of the graph."""
        return self._constant(np.ascontiguousarray(values, dtype=self._precision))

    def whole(self, values: Any) -> str:
        """Whole numbers, for shapes and places; equal ones are kept once."""
        array = np.asarray(values, dtype=np.int64)
        key = (array.shape, *array.ravel().tolist())
        if key not in self._whole:
            self._whole[key] = self._constant(array)
        return self._whole[key]

    def graph(self, name: str) -> Any:
        """What was collected."""
        return self._onnx.helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._tables)

    def _constant(self, array: NDArray[Any]) -> str:
        name = self._new("table")
        self._tables.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _new(self, kind: str) -> str:
        self._count += 1
        return f"{self._called}{kind}_{self._count}"
