"""Linear equations that have no answer where a conversion has none, told in the words of the conversion."""

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.descriptor import eliminate_descriptor
from ltinet.model.matrices import Matrix


def solved(matrix: Matrix, right_hand_side: Matrix, told: str) -> Matrix:
    """matrix⁻¹ times a right-hand side, rows and columns scaled first.

    Raises:
        InvalidSystemError: the matrix is singular to working precision; the message is `told`.
    """
    try:
        return eliminate_descriptor(np.ascontiguousarray(matrix), right_hand_side)
    except InvalidSystemError:
        raise InvalidSystemError(told) from None
