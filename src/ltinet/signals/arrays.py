"""Shapes that signals speak in: times `(T,)`, values `(..., T, n_inputs)` with batches in front."""

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Values = NDArray[np.float64]
