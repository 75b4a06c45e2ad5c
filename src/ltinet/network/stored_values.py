"""What the numbers of a network file must be, so that whatever is done with the network later is done with numbers."""

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.matrices import Matrix
from ltinet.network.network import Network
from ltinet.network.own_blocks import own_blocks, recovered_blocks
from ltinet.network.stored_tensors import Tensors
from ltinet.tolerances import rounding


def require_finite(tensors: Tensors) -> None:
    """Refuse NaN and infinities anywhere.

    Raises:
        ValueError: a tensor has one.
    """
    for name, array in tensors.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has entries that are not finite")


def require_solvable(network: Network) -> None:
    """Refuse neurons whose equation cannot be solved for its highest derivative within double precision.

    Raises:
        ValueError: m or, of a first-order neuron, c is so small that dividing by it overflows.
    """
    for index, layer in enumerate(network.layers):
        leading = np.where(layer.is_second_order, layer.M.diagonal(), layer.C.diagonal())
        with np.errstate(over="ignore"):
            unit = np.ones((len(leading), 1))
            solved = [matrix / leading[:, None] for matrix in (unit, layer.C, layer.K, layer.E, layer.V)]
        if not all(np.isfinite(matrix).all() for matrix in solved):
            raise ValueError(f"a neuron of layer {index} has m or c too small for the equation to be divided by it")


def require_own_blocks(network: Network, form: BlockDiagonalForm | None) -> None:
    """Refuse a network that cannot be run in block coordinates, where a file does not hold these but they follow.

    Raises:
        ValueError: they overflow.
    """
    try:
        with np.errstate(all="ignore"):
            system = own_blocks(network).system if form is None else recovered_blocks(network, form)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"its blocks cannot be computed: {error}") from None
    if not all(np.isfinite(matrix).all() for matrix in (system.A, system.B, system.C, system.D)):
        raise ValueError("its blocks are not finite")


def require_form(tensors: Tensors) -> None:
    """Refuse a form whose parts contradict each other.

    Raises:
        ValueError: scaling is not by powers of two, complex eigenvalues lack their partners, or T_inv is not T⁻¹.
    """
    scaling: NDArray[np.float64] = tensors["form.scaling"]
    mantissas, _ = np.frexp(scaling)
    if not np.all(mantissas == 0.5):
        raise ValueError("form.scaling has entries that are not powers of two")
    imaginary = np.split(tensors["form.eigenvalues"][:, 1], np.cumsum(tensors["form.block_sizes"])[:-1])
    if any(np.count_nonzero(part > 0.0) != np.count_nonzero(part < 0.0) for part in imaginary):
        raise ValueError("form.eigenvalues has complex numbers without their conjugates")
    with np.errstate(over="ignore"):
        T, inverse = tensors["form.T"] / scaling[:, None], tensors["form.T_inv"] * scaling
    if not (np.isfinite(T).all() and np.isfinite(inverse).all()):
        raise ValueError("form.T divided by form.scaling is not finite")
    if not _is_inverse(T, inverse):
        raise ValueError("form.T_inv is not the inverse of form.T")


def _is_inverse(T: Matrix, inverse: Matrix) -> bool:
    """Whether T · inverse maps one vector to itself as far as rounding lets it, by a few products with a vector.

    An inverse that was computed stably has an error of n·eps·|T⁻¹||T||T⁻¹|, which T multiplies once more. Of a T so
    ill-conditioned that this exceeds the vector itself nothing is refused.
    """
    vector = np.cos(np.arange(len(T)))  # no entry is zero, and no two are equal
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.linalg.norm(T @ (inverse @ vector) - vector)
        growth = np.abs(vector)
        for matrix in (inverse, T, inverse, T):
            growth = np.abs(matrix) @ growth
        return not error > rounding(len(T), float(np.linalg.norm(growth)))
