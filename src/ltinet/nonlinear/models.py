"""Models with products: `Bilinear`, `LPV` and `QuadraticBilinear`.

    x' = A x + B v + Σ_k v_k N_k x + Σ_l p_l (A_l x + B_l v) + H (x ⊗ x),
    y  = C x + D v + Σ_l p_l (C_l x + D_l v),

with inputs v, scheduling signals p, and v = u − u0, y − y0 instead of u and y where the model has an operating point.
The classes differ in the terms that they have. `linear` is the part without products, with names, delays and operating
point. `ltinet.construct(model)` gives the network that simulates the model.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_rows
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.nonlinear.product_terms import (
    ProductTerms,
    QuadraticFactors,
    as_matrix_list,
    as_quadratic_factors,
    quadratic_matrix,
)
from ltinet.signals.arrays import as_real_array
from ltinet.signals.sampled import Hold
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix, MatrixLike, SparseMatrix
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import ModelSignals, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_MAX_NEWTON_STEPS = 50  # Newton's method doubles the digits in a step; more steps mean that there is no equilibrium
# Derivative of a state, relative to the sum of the sizes of its terms, up to which a state counts as an equilibrium: one
# that is given with seven digits.
_EQUILIBRIUM_TOLERANCE = 1e-6
_INSTEAD = {
    "simulate": "ltinet.construct(model).simulate(u, t)",
    "stepper": "ltinet.construct(model).stepper(dt)",
    "save": "ltinet.save_system(model, path)",
    "reduce": "ltinet.reduce_products(model, order=…)",
    "explore": "ltinet.explore(model)",
}
"""Names that a user may try → call that exists."""
_LATER = {
    "learning": ("to_torch", "fit"), "export": ("export_c", "export_fmu", "export_onnx"),
    "analysis": ("bode", "step", "impulse", "nyquist", "margin", "norm", "poles", "zeros", "tf"),
}  # fmt: skip


def missing_attribute_message(obj: object, name: str, *, owner: str) -> str:
    """Return the message for an attribute that linear models have and models with products lack, one sentence on it.

    `owner` is the name of the object in the advice, "model" or "net".
    """
    text = f"{type(obj).__name__!r} object has no attribute {name!r}"
    if name in _INSTEAD:
        return f"{text}; use {_INSTEAD[name]}"
    topic = next((topic for topic, names in _LATER.items() if name in names), None)
    if name == "system" and owner == "net":
        return f"{text}; use net.model"
    is_linear = hasattr(StateSpace, name) or hasattr(DynamicNetwork, name)
    if name.startswith("_") or (topic is None and not is_linear):
        return text
    reason = f"{topic} of models with products is not supported" if topic else f"{name} belongs to linear models"
    return f"{text}: {reason}; use {owner}.linear, which leaves the products out, or model.linearize(x0, u0)"


@dataclass(frozen=True, eq=False, repr=False)
class NonlinearModel(ModelSignals):
    """Base class of models with products; users create `Bilinear`, `LPV` and `QuadraticBilinear`.

    Parameters
    ----------
    linear : StateSpace
        Part without products.
    terms : ProductTerms
        Matrices of the products.
    scheduling_names : tuple of str
        Name of each scheduling signal.
    """

    linear: StateSpace
    terms: ProductTerms
    scheduling_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, linear: StateSpace, terms: ProductTerms, scheduling_names: tuple[str, ...] = ()) -> Self:
        """Create a model from validated parts.

        Parameters
        ----------
        linear : StateSpace
            Part without products.
        terms : ProductTerms
            Matrices of the products that this class has.
        scheduling_names : tuple of str, optional
            Name of each scheduling signal.

        Returns
        -------
        NonlinearModel
            Model of this class.
        """
        model = cls.__new__(cls)
        NonlinearModel.__init__(model, linear, terms, scheduling_names)
        return model

    def __post_init__(self) -> None:
        if self.linear.dt is not None:
            raise InvalidSystemError(
                f"models with products are continuous in time, but the linear part has dt = {self.linear.dt:g}"
            )
        if self.linear.sparse is not None and self.linear.sparse.mass is not None:
            raise InvalidSystemError(
                "models with products have no E; multiply all matrices of the states by its inverse"
            )

    @property
    def A(self) -> Matrix:
        """State matrix of the linear part, n×n."""
        return self.linear.A

    @property
    def B(self) -> Matrix:
        """Input matrix of the linear part, n×m."""
        return self.linear.B

    @property
    def C(self) -> Matrix:
        """Output matrix of the linear part, p×n."""
        return self.linear.C

    @property
    def D(self) -> Matrix:
        """Feedthrough of the linear part, p×m."""
        return self.linear.D

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return self.linear.n_states

    @property
    def n_inputs(self) -> int:
        """Number of inputs m."""
        return self.linear.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.linear.n_outputs

    @property
    def n_scheduling(self) -> int:
        """Number of scheduling signals."""
        return len(self.scheduling_names)

    @property
    def dt(self) -> None:
        """Time step, None: models with products are continuous in time."""
        return None

    @property
    def signal_settings(self) -> SignalSettings:  # type: ignore[override] # read only, as in a frozen dataclass
        """Delays, operating point, hold and sample time."""
        return self.linear.signal_settings

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs; u1, u2, … by default."""
        return self.linear.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs; y1, y2, … by default."""
        return self.linear.output_names

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states; x1, x2, … by default."""
        return self.linear.state_names

    def with_names(self, inputs: NamesLike = None, outputs: NamesLike = None, states: NamesLike = None) -> Self:
        """Return the same model with other names.

        Parameters
        ----------
        inputs, outputs, states : sequence of str, optional
            Names, as for `StateSpace.with_names`.

        Returns
        -------
        NonlinearModel
            Model of the same class.
        """
        return self.of(self.linear.with_names(inputs, outputs, states), self.terms, self.scheduling_names)

    def with_signal_settings(self, **changes: Any) -> Self:
        """Return the same model with other delays, operating point, hold or sample time.

        Parameters
        ----------
        **changes
            Settings to replace, as for `StateSpace.with_signal_settings`.

        Returns
        -------
        NonlinearModel
            Model of the same class.
        """
        return self.of(self.linear.with_signal_settings(**changes), self.terms, self.scheduling_names)

    def derivative(self, x: ArrayLike, u: ArrayLike | None = None, p: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return x' of the undelayed model at one state.

        Parameters
        ----------
        x : array_like, shape (n,)
            State.
        u : array_like, shape (m,), optional
            Input; the operating point by default.
        p : array_like, shape (l,), optional
            Scheduling signals; zero by default.

        Returns
        -------
        ndarray, shape (n,)
            Derivative of the state.
        """
        x, v, p = self._point(x, u, p)
        return self.evaluate(x, v, p)

    def jacobian(self, x: ArrayLike, u: ArrayLike | None = None, p: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the derivative of x' by the state, n×n.

        Parameters
        ----------
        x, u, p : array_like
            State, input and scheduling signals, as for `derivative`.

        Returns
        -------
        ndarray, shape (n, n)
            A + Σ v_k N_k + Σ p_l A_l + S (diag(K x) J + diag(J x) K).
        """
        x, v, p = self._point(x, u, p)
        return np.asarray(self.evaluate_jacobian(x, v, p).toarray())

    def linearize(
        self, x0: ArrayLike | None = None, u0: ArrayLike | None = None, p0: ArrayLike | None = None
    ) -> StateSpace:
        """Linearize the model at an equilibrium.

        Parameters
        ----------
        x0 : array_like, shape (n,), optional
            Equilibrium; by default it is computed by Newton's method from zero.
        u0 : array_like, shape (m,), optional
            Input of the equilibrium; by default the operating point of the model, or zero.
        p0 : array_like, shape (l,), optional
            Scheduling signals, which are frozen; zero by default.

        Returns
        -------
        StateSpace
            System whose states are x − x0, with the operating point (u0, y0) and the delays of the model.

        Raises
        ------
        InvalidSystemError
            If x' is not zero at (x0, u0, p0), or Newton's method finds no equilibrium.
        """
        x, v, p = self._point(np.zeros(self.n_states) if x0 is None else x0, u0, p0)
        x = self._equilibrium(x, v, p) if x0 is None else self._require_equilibrium(x, v, p)
        terms = self.terms
        B = terms.scheduled("B_p", self.B, p)
        if terms.N:
            B = B + np.column_stack([N @ x for N in terms.N])
        C, D = terms.scheduled("C_p", self.C, p), terms.scheduled("D_p", self.D, p)
        jacobian: Any = self.evaluate_jacobian(x, v, p)
        A = jacobian if self.linear.sparse is not None else jacobian.toarray()
        names = self.linear.matrices.names
        system = StateSpace(A, B, C, D, inputs=names.inputs, outputs=names.outputs, states=names.states)
        settings = self.linear.signal_settings
        return StateSpace.of(system.matrices, settings=settings).with_signal_settings(
            u0=v + self.u0, y0=C @ x + D @ v + self.y0
        )

    def _point(self, x: ArrayLike, u: ArrayLike | None, p: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Return x, v = u − u0 and p as validated vectors."""
        defaults = (None, self.u0, np.zeros(self.n_scheduling))
        sizes = (self.n_states, self.n_inputs, self.n_scheduling)
        vectors = []
        for value, default, size, name in zip((x, u, p), defaults, sizes, "xup", strict=True):
            vector = np.atleast_1d(np.asarray(default if value is None else as_real_array(value, name)))
            if vector.shape != (size,):
                raise InvalidSystemError(
                    f"{name} has shape {vector.shape}; it must have {format_count(size, 'entry', 'entries')}"
                )
            vectors.append(np.asarray(vector, dtype=np.float64))
        return vectors[0], vectors[1] - self.u0, vectors[2]

    def evaluate(self, x: Array, v: Array, p: Array) -> NDArray[np.float64]:
        """Return x' for validated vectors x, v = u − u0 and p.

        Parameters
        ----------
        x, v, p : ndarray
            State, input beyond the operating point, and scheduling signals.

        Returns
        -------
        ndarray, shape (n,)
            Derivative of the state.
        """
        result = self.state_matrix @ x + self.terms.scheduled("B_p", self.B, p) @ v
        matrices = (*(self.terms.N or (None,) * len(v)), *self.terms.A_p)
        for factor, matrix in zip((*v.tolist(), *p.tolist()), matrices, strict=True):
            if matrix is not None and factor:
                result = result + factor * (matrix @ x)
        if self.terms.H is not None:
            S, J, K = self.terms.H
            result = result + S @ ((J @ x) * (K @ x))
        return np.asarray(result)

    def evaluate_jacobian(self, x: Array, v: Array, p: Array) -> SparseMatrix:
        """Return the derivative of x' by the state for validated vectors, as a sparse matrix.

        Parameters
        ----------
        x, v, p : ndarray
            Vectors, as for `evaluate`.

        Returns
        -------
        sparse array, shape (n, n)
            Derivative.
        """
        A = self.terms.state_matrix(sparse.csr_array(self.state_matrix), v, p)
        if self.terms.H is not None:
            S, J, K = self.terms.H
            A = A + S @ (sparse.diags_array(K @ x) @ J) + S @ (sparse.diags_array(J @ x) @ K)
        return sparse.csr_array(A)

    @property
    def state_matrix(self) -> Any:
        """A, sparse where the user gave it so."""
        return self.linear.A if self.linear.sparse is None else self.linear.sparse.state

    def _require_equilibrium(self, x: Array, v: Array, p: Array) -> Array:
        size = abs(self.evaluate_jacobian(x, v, p)) @ np.abs(x) + np.abs(self.B) @ np.abs(v)
        excess = np.abs(self.evaluate(x, v, p)) - _EQUILIBRIUM_TOLERANCE * size
        if np.any(excess > 0.0):
            worst = int(np.argmax(excess))
            raise InvalidSystemError(
                f"x0 is not an equilibrium: the derivative of state {worst + 1} is {self.evaluate(x, v, p)[worst]:.3g} at "
                "(x0, u0, p0). Omit x0 to compute the equilibrium near zero."
            )
        return x

    def _equilibrium(self, x: Array, v: Array, p: Array) -> Array:
        for _ in range(_MAX_NEWTON_STEPS):
            derivative = self.evaluate(x, v, p)
            if not derivative.any():
                return x
            with np.errstate(all="ignore"):
                try:
                    step = np.linalg.solve(self.evaluate_jacobian(x, v, p).toarray(), derivative)
                except np.linalg.LinAlgError:
                    break
                x = x - step
            if not np.isfinite(x).all():
                break
            if np.linalg.norm(step) <= 1e-14 * np.linalg.norm(x):
                return self._require_equilibrium(x, v, p)
        raise InvalidSystemError(
            "no equilibrium was found for these inputs by Newton's method from zero; give x0, the state to linearize at"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NonlinearModel):
            return NotImplemented
        mine, others = self.terms.arrays(), other.terms.arrays()
        return type(self) is type(other) and self.linear == other.linear and mine.keys() == others.keys() and all(
            matrix.shape == others[name].shape and not np.any(_dense(matrix != others[name]))
            for name, matrix in mine.items()
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.linear)

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(missing_attribute_message(self, name, owner="model"), name=name, obj=self)

    def __repr__(self) -> str:
        sizes = [f"{name}={getattr(self, name)}" for name in ("n_states", "n_inputs", "n_outputs")]
        sizes += [f"n_scheduling={self.n_scheduling}"] if self.n_scheduling else []
        return f"{type(self).__name__}({', '.join(sizes)}{self.signal_settings.repr_suffix})"

    def __str__(self) -> str:
        names = self.linear.matrices.names.rows
        scheduling = [("scheduling", ", ".join(self.scheduling_names))] if self.n_scheduling else []
        return format_rows(repr(self), [*self._term_rows(), *names, *scheduling, *self.signal_settings.rows])

    def _term_rows(self) -> list[tuple[str, str]]:
        terms, rows = self.terms, []
        for name, matrices in (("N", terms.N), ("A_p", terms.A_p)):
            if matrices:
                rows.append((name, f"{len(matrices)} of {self.n_states}×{self.n_states}, "
                            f"{format_count(sum(m.nnz for m in matrices), 'non-zero')}"))  # fmt: skip
        if terms.H is not None:
            rows.append(("H", f"{format_count(terms.H.S.shape[1], 'product')} of two states"))
        return rows or [("products", "none")]


class Bilinear(NonlinearModel):
    """Bilinear system x' = A x + B u + Σ_k u_k N_k x, y = C x + D u.

    Parameters
    ----------
    A, B, C, D : array_like or sparse matrix
        Matrices of the linear part, as for `StateSpace`.
    N : sequence of array_like or sparse matrix, shape (n, n)
        One matrix for each input, None where it is zero; a single matrix for a single input.
    inputs, outputs, states : sequence of str, optional
        Names, as for `StateSpace`.
    input_delay, output_delay, u0, y0, hold, sample_time : optional
        Delays, operating point, hold and sample time, as for `StateSpace`. With an operating point the products are those
        of u − u0.

    Raises
    ------
    InvalidSystemError
        If a matrix is not real, not finite or of the wrong shape.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> model = ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[0.5]]])  # x' = −x + u + 0.5 u x
    >>> t = np.linspace(0.0, 4.0, 101)
    >>> ltinet.construct(model).simulate(np.sin(t), t).y.shape
    (101, 1)
    """

    def __init__(  # noqa: PLR0913
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        D: MatrixLike | None = None,
        N: Any = None,
        *,
        inputs: NamesLike = None,
        outputs: NamesLike = None,
        states: NamesLike = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        linear = StateSpace(
            A, B, C, D, inputs=inputs, outputs=outputs, states=states, input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        super().__init__(linear, ProductTerms(_input_matrices(N, linear), (), (), (), (), None))

    @classmethod
    def from_pymor(cls, model: Any) -> Self:
        """Convert a `BilinearModel` of pyMOR, also with an invertible E.

        Parameters
        ----------
        model : pymor.models.iosys.BilinearModel
            Model in continuous time without parameters.

        Returns
        -------
        Bilinear
            The same model, with matrices in place of operators.

        Raises
        ------
        InvalidSystemError
            If the model depends on parameters, is in discrete time, or E is singular.
        """
        if getattr(model, "parameters", None):
            raise InvalidSystemError(
                f"the BilinearModel depends on parameters ({', '.join(model.parameters)}); fix them first, operator by "
                "operator: model.A.assemble(mu)"
            )
        from pymor.algorithms.to_matrix import to_matrix  # the model is of pyMOR, which is therefore installed
        from pymor.operators.constructions import IdentityOperator

        A, B, C, D = (to_matrix(operator) for operator in (model.A, model.B, model.C, model.D))
        E = None if isinstance(model.E, IdentityOperator) else to_matrix(model.E)
        linear = StateSpace(A, _dense(B), _dense(C), _dense(D), E=E, dt=model.sampling_time)
        terms = ProductTerms(_input_matrices([to_matrix(N) for N in model.N], linear), (), (), (), (), None)
        return cls.of(*without_mass(linear, terms))

    @property
    def N(self) -> tuple[SparseMatrix, ...]:
        """One sparse n×n matrix for each input; () if there are none."""
        return self.terms.N


class LPV(NonlinearModel):
    """Linear parameter-varying system, affine in the scheduling signals p(t).

        x' = (A + Σ p_l A_l) x + (B + Σ p_l B_l) u,    y = (C + Σ p_l C_l) x + (D + Σ p_l D_l) u.

    Parameters
    ----------
    A, B, C, D : array_like or sparse matrix
        Matrices for p = 0, as for `StateSpace`.
    A_p, B_p, C_p, D_p : sequence of array_like, optional
        Change of each matrix per unit of each scheduling signal, None where it is zero; a single matrix for a single signal.
    scheduling : sequence of str, optional
        Names of the scheduling signals; p1, p2, … by default.
    inputs, outputs, states : sequence of str, optional
        Names, as for `StateSpace`.
    input_delay, output_delay, u0, y0, hold, sample_time : optional
        Delays, operating point, hold and sample time, as for `StateSpace`. Scheduling signals are not delayed.

    Raises
    ------
    InvalidSystemError
        If a matrix is not real, not finite or of the wrong shape, or there are no scheduling signals.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> A, A_p = [[0, 1], [-4, -0.1]], [[0, 0], [0, -0.4]]  # damping 0.1 + 0.4 p
    >>> model = ltinet.LPV(A, [0, 1], [1, 0], A_p=[A_p], scheduling=["valve"])
    >>> t = np.linspace(0.0, 10.0, 201)
    >>> ltinet.construct(model).simulate(np.sin(2 * t), t, p=t > 5.0, hold="zero").y.shape
    (201, 1)
    """

    def __init__(  # noqa: PLR0913
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        D: MatrixLike | None = None,
        A_p: Any = None,
        B_p: Any = None,
        C_p: Any = None,
        D_p: Any = None,
        *,
        scheduling: NamesLike = None,
        inputs: NamesLike = None,
        outputs: NamesLike = None,
        states: NamesLike = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        linear = StateSpace(
            A, B, C, D, inputs=inputs, outputs=outputs, states=states, input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        n, m, p = linear.n_states, linear.n_inputs, linear.n_outputs
        given = {"A_p": (A_p, (n, n)), "B_p": (B_p, (n, m)), "C_p": (C_p, (p, n)), "D_p": (D_p, (p, m))}
        count = max(_count_matrices(values) for values, _ in given.values())
        if not count:
            raise InvalidSystemError("an LPV model needs at least one scheduling signal; give A_p, B_p, C_p or D_p")
        zero = {"B_p": np.zeros((n, m)), "C_p": np.zeros((p, n)), "D_p": np.zeros((p, m))}
        lists: dict[str, Any] = {}
        for name, (values, shape) in given.items():
            needs = f"as {name[0]} has"
            matrices = as_matrix_list(
                values, name, shape, count=count, noun="scheduling signal", needs=needs, is_sparse=name == "A_p"
            )
            lists[name] = matrices or ((sparse.csr_array((n, n)),) if name == "A_p" else (zero[name],)) * count
        names = tuple(f"p{index + 1}" for index in range(count)) if scheduling is None else tuple(scheduling)
        SignalNames.of(names, None, None)  # raises an error for names that are not valid
        if len(names) != count:
            raise InvalidSystemError(
                f"scheduling has {format_count(len(names), 'name')}, but the model has "
                f"{format_count(count, 'scheduling signal')}; give one name for each"
            )
        super().__init__(linear, ProductTerms((), **lists, H=None), names)

    @property
    def A_p(self) -> tuple[SparseMatrix, ...]:
        """Change of A per unit of each scheduling signal."""
        return self.terms.A_p

    @property
    def B_p(self) -> tuple[Matrix, ...]:
        """Change of B per unit of each scheduling signal."""
        return self.terms.B_p

    @property
    def C_p(self) -> tuple[Matrix, ...]:
        """Change of C per unit of each scheduling signal."""
        return self.terms.C_p

    @property
    def D_p(self) -> tuple[Matrix, ...]:
        """Change of D per unit of each scheduling signal."""
        return self.terms.D_p


class QuadraticBilinear(NonlinearModel):
    """Quadratic-bilinear system x' = A x + B u + Σ_k u_k N_k x + H (x ⊗ x), y = C x + D u.

    Parameters
    ----------
    A, B, C, D : array_like or sparse matrix
        Matrices of the linear part, as for `StateSpace`.
    N : sequence of array_like or sparse matrix, shape (n, n), optional
        One matrix for each input, as for `Bilinear`.
    H : array_like or sparse matrix, shape (n, n²), or tuple (S, J, K)
        Quadratic term, needed without N; column j n + k multiplies x_j x_k, both counted from 0. Only its symmetric part
        matters. Or factors, S (n, q) and J, K (q, n), of H (x ⊗ x) = S ((J x) ∘ (K x)).
    inputs, outputs, states : sequence of str, optional
        Names, as for `StateSpace`.
    input_delay, output_delay, u0, y0, hold, sample_time : optional
        Delays, operating point, hold and sample time, as for `Bilinear`.

    Raises
    ------
    InvalidSystemError
        If neither N nor H is given, or a matrix is not real, not finite or of the wrong shape.

    Examples
    --------
    >>> import numpy as np, ltinet
    >>> model = ltinet.QuadraticBilinear(-1.0, 1.0, 1.0, H=-2.0)  # x' = −x + u − 2 x²
    >>> t = np.linspace(0.0, 4.0, 101)
    >>> ltinet.construct(model).simulate(np.sin(t), t).y.shape
    (101, 1)
    """

    def __init__(  # noqa: PLR0913
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        D: MatrixLike | None = None,
        N: Any = None,
        H: Any = None,
        *,
        inputs: NamesLike = None,
        outputs: NamesLike = None,
        states: NamesLike = None,
        input_delay: ArrayLike | None = None,
        output_delay: ArrayLike | None = None,
        u0: ArrayLike | None = None,
        y0: ArrayLike | None = None,
        hold: Hold | None = None,
        sample_time: float | None = None,
    ) -> None:
        if N is None and H is None:
            raise InvalidSystemError(
                "H and N are missing; pass H=… or N=… by name, since the fourth argument is D, or use StateSpace for a model "
                "without products"
            )
        linear = StateSpace(
            A, B, C, D, inputs=inputs, outputs=outputs, states=states, input_delay=input_delay,
            output_delay=output_delay, u0=u0, y0=y0, hold=hold, sample_time=sample_time,
        )  # fmt: skip
        n = linear.n_states
        factors = as_quadratic_factors(np.zeros((n, n * n)) if H is None else H, n)
        super().__init__(linear, ProductTerms(_input_matrices(N, linear), (), (), (), (), factors))

    @property
    def N(self) -> tuple[SparseMatrix, ...]:
        """One sparse n×n matrix for each input; () if there are none."""
        return self.terms.N

    @property
    def factors(self) -> QuadraticFactors:
        """Factors S, J, K of the quadratic term."""
        H = self.terms.H
        return H if H is not None else as_quadratic_factors(np.zeros((self.n_states, self.n_states**2)), self.n_states)

    @property
    def H(self) -> SparseMatrix:
        """Symmetrised quadratic term as a sparse n×n² matrix; the factors are stored."""
        return quadratic_matrix(self.factors)


def without_mass(linear: StateSpace, terms: ProductTerms) -> tuple[StateSpace, ProductTerms]:
    """Return the linear part and the products of E x' = … after multiplication by E⁻¹; both unchanged without an E."""
    E = linear.matrices.state_equation[0]
    if E is None:
        return linear, terms

    def solve(matrix: Any) -> Any:
        return np.linalg.solve(_dense(E), _dense(matrix))

    def solve_sparse(matrix: Any) -> SparseMatrix:
        return sparse.csr_array(solve(matrix))

    matrices = SystemMatrices(linear.A, linear.B, linear.C, linear.D, dt=linear.dt, names=linear.matrices.names)
    explicit = replace(
        terms,
        N=tuple(map(solve_sparse, terms.N)),
        A_p=tuple(map(solve_sparse, terms.A_p)),
        B_p=tuple(map(solve, terms.B_p)),
        H=None if terms.H is None else terms.H._replace(S=solve_sparse(terms.H.S)),
    )
    return StateSpace.of(matrices, settings=linear.signal_settings), explicit


def _input_matrices(N: Any, linear: StateSpace) -> tuple[SparseMatrix, ...]:
    n = linear.n_states
    return as_matrix_list(N, "N", (n, n), count=linear.n_inputs, noun="input", needs="as A has")


def _count_matrices(values: Any) -> int:
    """Return the number of matrices in a list; a single matrix counts as one."""
    if values is None:
        return 0
    return 1 if sparse.issparse(values) or (isinstance(values, np.ndarray) and values.ndim == 2) else len(values)


def _dense(matrix: Any) -> Any:
    """Return a sparse or dense matrix as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix
