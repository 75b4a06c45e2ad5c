"""The two kinds of array that numbers come in here, by name."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
