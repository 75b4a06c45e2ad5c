"""Which way a mechanical model is reduced."""

from ltinet.errors import InvalidSystemError
from ltinet.model.memory import told_if_short
from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.model.sparse_pencil import LARGEST_FILLED_IN
from ltinet.reduction.galerkin import Told
from ltinet.reduction.mechanical.large import MechanicalMethod, reduce_large_model
from ltinet.reduction.mechanical.small import reduce_small
from ltinet.reduction.outcome import Outcome
from ltinet.threads import one_blas_thread


def reduce_model(
    model: SecondOrderMatrices,
    *,
    order: int | None,
    tolerance: float | None,
    method: MechanicalMethod | None,
    n_jobs: int,
    told: Told,
) -> Outcome:
    """All modes of a model that can be filled in; of a larger one Krylov spaces, or its slowest modes if asked.

    Raises:
        InvalidSystemError: the model has no modes to choose from, or there is nothing to reduce.
    """
    for name, matrix, what in (("B", model.B, "no input pushes anything"), ("C", model.C, "no output sees anything")):
        if not matrix.any():
            raise InvalidSystemError(f"{name} is zero: {what}, and there is nothing to reduce; the outputs are zero")
    n = model.n_positions
    with told_if_short(n, model.n_nonzeros):
        if 2 * n <= LARGEST_FILLED_IN and method != "krylov":
            return reduce_small(model, order=order, tolerance=tolerance)
        with one_blas_thread():
            return reduce_large_model(
                model, order=order, tolerance=tolerance, method=method or "krylov", n_jobs=n_jobs, told=told
            )
