"""What a result asks of the data that it was found in, whether these are records or a frequency response."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.identification.covariance import ParameterCovariance
from ltinet.identification.residual_tests import ResidualTests

Values = NDArray[np.float64] | NDArray[np.complex128]


class Compared(NamedTuple):
    """Measured values beside those of the model, both of one shape; of a record rows are samples."""

    places: Array
    """Times from 0 on, or frequencies."""
    measured: Values
    modelled: Values


class Tried(NamedTuple):
    """One line of the evidence: a model and its error on data that it had not seen, relative to their size."""

    order: int
    method: str
    block_rows: int
    """0 for methods that have none."""
    refined: bool
    whitened: bool
    error: float


class Evidence(Protocol):
    """Data, and what they say of the model.

    `first` and `second` are u and y, or omega and H; None for both are those that the model was found in, of long
    records their beginnings.
    """

    def covariance(self) -> ParameterCovariance | None:
        """Of the parameters of the model; None where the data do not tell."""
        ...

    def doubts(self) -> tuple[str, ...]:
        """Warnings that need a look at what the model leaves over."""
        ...

    def fit(self, first: Any, second: Any) -> Array:
        """How well the model explains these data, in % for each output, `(p,)`."""
        ...

    def residuals(self, first: Any, second: Any) -> ResidualTests:
        """What the model leaves over of these data, with its correlations."""
        ...

    def compared(self, first: Any, second: Any) -> tuple[Compared, ...]:
        """These data and the model, experiment by experiment."""
        ...
