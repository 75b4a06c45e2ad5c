"""The one kind of array that numbers come in here, by name."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
