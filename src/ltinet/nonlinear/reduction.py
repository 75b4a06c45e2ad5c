"""Reduction of models with products: balanced truncation by truncated Gramians, and POD–Galerkin.

Balanced truncation (Benner, Goyal and Gugercin 2018, H2-quasi-optimal model order reduction for quadratic-bilinear control
systems) takes the first two terms of the Volterra series of the Gramians. With N_k, A_l and S multiplied by a factor γ,

    A P₁ + P₁ Aᵀ + B Bᵀ = 0,    A P₂ + P₂ Aᵀ + Σ N_k P₁ N_kᵀ + S [(J P₁ Jᵀ) ∘ (K P₁ Kᵀ)] Sᵀ = 0,

symmetrised in J and K, P = P₁ + P₂, and Q likewise for the outputs. Small γ suits small signals. POD takes the leading left
singular vectors of the states of training runs, in balanced units, and projects orthogonally.

There is no bound for these methods. The error is measured by running both models on inputs that the basis has not seen,
and is an estimate for other inputs.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse

from ltinet._util.floating_point import Array, balancing_units
from ltinet._util.text import format_rows, sanitize
from ltinet.errors import InvalidSystemError
from ltinet.nonlinear.models import Bilinear, NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork, build_network
from ltinet.nonlinear.product_terms import ProductTerms, QuadraticFactors, as_quadratic_factors
from ltinet.signals.sampled import Hold
from ltinet.simulation.options import validate_positive
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.systems.converters import is_pymor_bilinear
from ltinet.systems.named_systems import validate_count
from ltinet.systems.system_matrices import SystemMatrices

_MAX_STATES = 1000  # Lyapunov equations cost about 25 n³


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProductReduction:
    """Reduced model with products, x ≈ V x_r and x_r′ = Wᵀ f(V x_r).

    Parameters
    ----------
    model : NonlinearModel
        Reduced model, of the class of the full-order model.
    full_order_model : NonlinearModel
        Model that was reduced.
    V, W : ndarray, shape (n, r)
        Bases with Wᵀ V = I.
    singular_values : ndarray
        Singular values of the Gramians, or of the snapshots for POD.
    method : str
        "balanced" or "pod".
    """

    model: NonlinearModel
    full_order_model: NonlinearModel = field(repr=False)
    V: NDArray[np.float64] = field(repr=False)
    W: NDArray[np.float64] = field(repr=False)
    singular_values: NDArray[np.float64] = field(repr=False)
    method: str

    @property
    def order(self) -> int:
        """Number of states of the reduced model."""
        return self.model.n_states

    def measure_error(
        self,
        u: Any,
        t: ArrayLike,
        *,
        p: Any = None,
        x0: ArrayLike | None = None,
        hold: Hold | None = None,
        tol: float = 1e-9,
    ) -> NDArray[np.float64]:
        """Run both models on an input and return the largest error of each output relative to its peak.

        It is an estimate of the error for other inputs. The input should not be one that the basis was computed from.

        Parameters
        ----------
        u, t, p, x0, hold, tol
            Run, as for `NonlinearNetwork.simulate`; x0 is a state of the full-order model.

        Returns
        -------
        ndarray, shape (..., n_outputs)
            Largest |y − y_r| divided by the largest |y|.
        """
        full = build_network(self.full_order_model).simulate(u, t, p=p, x0=x0, hold=hold, tol=tol)
        start = None if x0 is None else np.asarray(x0, dtype=np.float64) @ self.W
        small = build_network(self.model).simulate(u, t, p=p, x0=start, hold=hold, tol=tol)
        peak = np.abs(full.y).max(axis=-2)
        error = np.abs(full.y - small.y).max(axis=-2)
        return np.asarray(error / np.where(peak > 0.0, peak, 1.0))

    def lift(self, sol: Solution) -> NDArray[np.float64]:
        """Return the states of the full-order model, V x_r, of a solution of the reduced one.

        Parameters
        ----------
        sol : Solution
            Solution of the network of `model`.

        Returns
        -------
        ndarray, shape (..., T, n)
            Approximate states.
        """
        return np.asarray(sol.states @ self.V.T)

    def __repr__(self) -> str:
        return f"ProductReduction({self.model!r}, method={self.method!r})"

    def __str__(self) -> str:
        full, values = self.full_order_model, self.singular_values
        tail = float(values[self.order :].sum() / values.sum()) if values.sum() > 0.0 else 0.0
        return format_rows(repr(self), [
            ("order", f"{self.order} of {full.n_states}"),
            ("singular values", f"{tail:.1e} of their sum left out; no bound"),
            ("error", "measured by measure_error(u, t)"),
        ])  # fmt: skip


def reduce_products(
    model: Any,
    *,
    order: int | None = None,
    method: Literal["balanced", "pod"] = "balanced",
    scale: float = 1.0,
    training: Solution | None = None,
    **options: Any,
) -> ProductReduction:
    """Reduce a bilinear, LPV or quadratic-bilinear model of up to 1,000 states.

    Parameters
    ----------
    model : Bilinear, LPV or QuadraticBilinear
        Model, its network, or a `BilinearModel` of pyMOR; for "balanced" all eigenvalues of A must have negative real parts.
    order : int
        Number of states of the reduced model. It must be given: there is no error bound that could choose it.
    method : {"balanced", "pod"}, optional
        Balanced truncation by truncated Gramians, or proper orthogonal decomposition of `training`.
    scale : float, optional
        Factor γ on the products in the Gramians; values below 1 suit small signals.
    training : Solution, optional
        Solution of the network of the model, whose states POD takes. Needed for "pod".
    **options
        Not supported: options of `ltinet.reduce`, such as `tolerance`, are refused with a message.

    Returns
    -------
    ProductReduction
        Reduced model; `measure_error` runs it beside the full one. There is no error bound.

    Raises
    ------
    InvalidSystemError
        If an option is not valid, the model is not stable or too large, or the reduced model is unstable.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> model = ltinet.named_system("burgers", n_states=50)
    >>> reduced = ltinet.reduce_products(model, order=16)
    >>> t = np.linspace(0.0, 2.0, 201)
    >>> bool(reduced.measure_error(np.sin(3.0 * t) ** 2, t) < 1e-3)
    True
    """
    if options or order is None:
        problem = f"has no option {', '.join(map(sanitize, options))}" if options else "needs order=…"
        raise InvalidSystemError(
            f"reduce_products {problem}; give the number of states, order=…, and check it with measure_error, since there "
            "is no error bound"
        )
    if is_pymor_bilinear(model):
        model = Bilinear.from_pymor(model)
    if isinstance(model, NonlinearNetwork):
        model = model.model
    if not isinstance(model, NonlinearModel):
        raise InvalidSystemError(
            "reduce_products is for models with products; use ltinet.reduce(system) for linear ones"
        )
    n = model.n_states
    order = validate_count(order, "order")
    if order >= n or n > _MAX_STATES:
        raise InvalidSystemError(
            f"order must be below the {n} states of the model, which must have at most {_MAX_STATES}"
        )
    if method == "balanced":
        V, W, values = _balancing_bases(model, order, validate_positive(scale, "scale"))
    elif method == "pod":
        if training is None:
            raise InvalidSystemError('method="pod" needs training, a solution: construct(model).simulate(u, t)')
        V, W, values = _pod_basis(model, order, training)
    else:
        raise InvalidSystemError(f'method must be "balanced" or "pod", got {sanitize(repr(method))}')
    reduced = _project(model, V, W)
    growth = float(np.linalg.eigvals(reduced.A).real.max())
    if growth >= 0.0 > float(np.linalg.eigvals(model.A).real.max()):
        raise InvalidSystemError(
            f"the reduced model of order {order} is unstable (an eigenvalue of A has the real part {growth:.2g}); choose "
            "another order or method"
        )
    return ProductReduction(reduced, model, V, W, values, method)


def _balancing_bases(model: NonlinearModel, order: int, scale: float) -> tuple[Array, Array, Array]:
    if float(np.linalg.eigvals(model.A).real.max()) >= 0.0:
        raise InvalidSystemError('method="balanced" needs a stable A, with all eigenvalues left of the axis; use "pod"')
    P, Q = truncated_gramians(model, scale)
    R, L = _factor(P), _factor(Q)
    U, values, Vt = np.linalg.svd(L.T @ R)
    if values[order - 1] <= np.finfo(float).eps * values[0]:
        raise InvalidSystemError(
            f"only {int(np.sum(values > np.finfo(float).eps * values[0]))} states are reached and observed; choose a lower "
            "order"
        )
    weights = 1.0 / np.sqrt(values[:order])
    return R @ Vt[:order].T * weights, L @ U[:, :order] * weights, values


def truncated_gramians(model: NonlinearModel, scale: float) -> tuple[Array, Array]:
    """Return the truncated Gramians P and Q, with all products multiplied by `scale`."""
    A, B, C = model.A, model.B, model.C
    P = linalg.solve_continuous_lyapunov(A, -B @ B.T)
    Q = linalg.solve_continuous_lyapunov(A.T, -C.T @ C)
    P_source, Q_source = np.zeros_like(A), np.zeros_like(A)
    for matrix in (*model.terms.N, *model.terms.A_p):
        P_source += matrix @ (matrix @ P).T
        Q_source += matrix.T @ (matrix.T @ Q).T
    if model.terms.H is not None:
        S, J, K = (part.toarray() for part in model.terms.H)
        a, b, c = J @ P @ J.T, K @ P @ K.T, J @ P @ K.T
        G = S.T @ Q @ S
        # x ⊗ x is symmetric: each of the factors (J, K) and (K, J) has half of the product.
        P_source += S @ (0.5 * (a * b + c * c.T)) @ S.T
        Q_source += 0.25 * (J.T @ (G * b) @ J + K.T @ (G * a) @ K + J.T @ (G * c.T) @ K + K.T @ (G * c) @ J)
    P = P + linalg.solve_continuous_lyapunov(A, -(scale**2) * P_source)
    Q = Q + linalg.solve_continuous_lyapunov(A.T, -(scale**2) * Q_source)
    return np.asarray(P, dtype=np.float64), np.asarray(Q, dtype=np.float64)


def _factor(P: Array) -> Array:
    """Return R with R Rᵀ = P, without eigenvalues that rounding made negative."""
    values, vectors = np.linalg.eigh(0.5 * (P + P.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _pod_basis(model: NonlinearModel, order: int, training: Solution) -> tuple[Array, Array, Array]:
    states = training.states.reshape(-1, training.states.shape[-1])
    if states.shape[1] != model.n_states:
        raise InvalidSystemError(f"training has {states.shape[1]} states, but the model {model.n_states}")
    units = balancing_units(model.A)
    U, values, _ = np.linalg.svd((states / units).T, full_matrices=False)
    if len(values) < order or values[order - 1] <= np.finfo(float).eps * values[0]:
        raise InvalidSystemError(f"the states of training span fewer than {order} dimensions; use more inputs or times")
    return U[:, :order] * units[:, None], U[:, :order] / units[:, None], values


def _project(model: NonlinearModel, V: Array, W: Array) -> NonlinearModel:
    """Return the model of x_r with x = V x_r."""
    terms, r = model.terms, V.shape[1]
    names = model.linear.matrices.names.without_states
    matrices = SystemMatrices(W.T @ model.A @ V, W.T @ model.B, model.C @ V, model.D, names=names)
    linear = StateSpace.of(matrices, settings=model.linear.signal_settings)
    H = None
    if terms.H is not None:
        S, J, K = W.T @ terms.H.S.toarray(), terms.H.J @ V, terms.H.K @ V
        if len(J) > r * (r + 1) // 2:  # fewer products of single states
            H = as_quadratic_factors(np.einsum("iq,qj,qk->ijk", S, J, K, optimize=True).reshape(r, r * r), r)
        else:
            H = QuadraticFactors(*(sparse.csr_array(part) for part in (S, J, K)))
    projected = ProductTerms(
        N=tuple(sparse.csr_array(W.T @ (N @ V)) for N in terms.N),
        A_p=tuple(sparse.csr_array(W.T @ (A @ V)) for A in terms.A_p),
        B_p=tuple(W.T @ B for B in terms.B_p),
        C_p=tuple(C @ V for C in terms.C_p),
        D_p=terms.D_p,
        H=H,
    )
    return type(model).of(linear, projected, model.scheduling_names)
