"""Matrices of a linear time-invariant system, validated once and immutable.

    x' = A x + B u  or  x[k+1] = A x[k] + B u[k],    y = C x + D u.

An E of a descriptor system E x' = A x + B u is eliminated at construction and kept in `descriptor`. A sparse A stays
sparse, and dense A and B are computed on first use. The module also validates the time step of a system in discrete
time, where None and 0 stand for continuous time, and summarises a system as plain data (`system_facts`).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict, final

import numpy as np
from scipy import sparse
from scipy.sparse import issparse

from ltinet._util.cache import cached_property
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.descriptor import RegularDescriptor, eliminate_descriptor, solve_algebraic_rows
from ltinet.systems.matrices import (
    Matrix,
    MatrixLike,
    as_real_matrix,
    as_sparse_matrix,
    as_square_matrix,
    is_symmetric,
    make_read_only,
    shape_of,
    sparse_equal,
    triangle_of,
)
from ltinet.systems.signal_names import UNNAMED, Names, SignalNames, names_from_dataframes, names_or_defaults
from ltinet.systems.sparse_descriptor import SparseDescriptor


class HasTimeStep(Protocol):
    """System in continuous or discrete time."""

    @property
    def dt(self) -> float | None:
        """Time step; None in continuous time."""


def validate_time_step(dt: Any) -> float | None:
    """Return a time step as a positive finite float, or None for continuous time, which 0 also stands for.

    Raises InvalidSystemError for other values, such as True, the unspecified time step of other libraries.
    """
    if dt is None:
        return None
    try:
        value = np.asarray(dt)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; arrays of other libraries
        value = np.asarray(None)
    is_number = value.size == 1 and value.ndim <= 2 and value.dtype.kind in "iuf"
    step = float(value.reshape(())) if is_number else np.nan
    if step == 0.0:
        return None
    if not 0.0 < step < np.inf:
        text = "True, an unspecified time step" if dt is True else sanitize(repr(dt))
        raise InvalidSystemError(f"dt must be a positive number, or None or 0 for continuous time, got {text}")
    return step


def require_continuous_time(system: HasTimeStep, call: str) -> None:
    """Raise InvalidSystemError for a system in discrete time.

    `call` is the call that needs continuous time, with the argument or the object `system`, or the object `net`; the
    message shows it with the conversion, `system.to_continuous()`.
    """
    if system.dt is None:
        return
    converted = call.replace("system", "system.to_continuous()", 1)
    if call.startswith("net."):
        converted = f"ltinet.construct(system.to_continuous()){call.removeprefix('net')}"
    raise InvalidSystemError(
        f"the system is discrete in time (dt = {system.dt:g}), and {call.partition('(')[0].rpartition('.')[2]} "
        f"works with x' = A x + B u; convert it first: {converted}; the "
        'methods are "zoh" (the default), "foh" and "tustin"'
    )


_MAX_SPARSE_INPUTS = 100  # a larger sparse square B or C was most likely meant as K of M, K, f, or as M
_MAX_UNSUSPICIOUS_STATES = 100  # small matrices are triangular for many reasons


class Descriptor(NamedTuple):
    """Matrices of E x' = A x + B u as passed by the user.

    Parameters
    ----------
    E, A : ndarray, shape (n, n)
        Descriptor matrix and state matrix.
    B : ndarray, shape (n, m)
        Input matrix.
    """

    E: Matrix
    A: Matrix
    B: Matrix


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SystemMatrices:
    """A, B, C and D of a real system as read-only float64 copies; the arguments are those of `ltinet.StateSpace`.

    A sparse A is kept in `sparse`; `A`, `B` and `descriptor` are computed from it on first use. Raises
    InvalidSystemError if a matrix is complex, not finite or of the wrong shape, or E is singular.
    """

    C: Matrix
    D: Matrix
    sparse: SparseDescriptor | None
    """A, E and B of a model with sparse A; None for any other."""
    dt: float | None
    """Time step of a system in discrete time; None in continuous time."""
    names: SignalNames
    """Names of inputs, outputs and states; not compared."""

    def __init__(
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        D: MatrixLike | None = None,
        E: MatrixLike | None = None,
        *,
        dt: float | None = None,
        names: SignalNames = UNNAMED,
    ) -> None:
        names = names.with_defaults(names_from_dataframes(A, B, C, D, E))
        state, mass = _state_matrices(A, E)
        n = state.shape[0]
        _refuse_swapped_arguments(B, C, n)
        B, C = _edge_matrix(B, "B", n, D), _edge_matrix(C, "C", n, D)
        D = _feedthrough(D, n_outputs=C.shape[0], n_inputs=B.shape[1])
        is_sparse = not isinstance(state, np.ndarray)
        if is_sparse and validate_time_step(dt) is None:
            _report_half_stored(state, mass)
        object.__setattr__(self, "sparse", SparseDescriptor(state, mass, B) if is_sparse else None)
        if not is_sparse:
            self._set_arrays(state, B, mass)
        object.__setattr__(self, "C", C)
        object.__setattr__(self, "D", D)
        object.__setattr__(self, "dt", validate_time_step(dt))
        object.__setattr__(self, "names", self._validate_names(names))

    def _set_arrays(self, A: Matrix, B: Matrix, E: Matrix | None) -> None:
        descriptor = None if E is None else Descriptor(E, A, B)
        if E is not None:
            AB, n = eliminate_descriptor(E, np.hstack([A, B])), len(A)
            A, B = as_real_matrix(AB[:, :n], "A"), as_real_matrix(AB[:, n:], "B")
        for name, value in (("A", A), ("B", B), ("descriptor", descriptor)):
            object.__setattr__(self, name, value)

    @cached_property
    def A(self) -> Matrix:
        """State matrix as an array, n×n; InvalidSystemError for a large sparse model."""
        self._fill_in("A as an array")
        return self.A

    @cached_property
    def B(self) -> Matrix:
        """Input matrix, n×m."""
        pencil = self.sparse
        if pencil is not None and (pencil.mass is None or pencil.is_large) and pencil.explicit_B is not None:
            return pencil.explicit_B
        self._fill_in("E⁻¹B")
        return self.B

    @cached_property
    def descriptor(self) -> Descriptor | None:
        """E, A and B as passed by the user, if there was an E; error bounds include the rounding of E⁻¹A."""
        if self.sparse is not None and self.sparse.mass is None:
            return None
        self._fill_in("E and A as arrays")
        return self.descriptor

    def _fill_in(self, operation: str) -> None:
        pencil: Any = self.sparse  # dense models have their arrays from the beginning
        if pencil.is_large:
            raise pencil.size_error(operation)
        A, E = pencil.state, pencil.mass
        self._set_arrays(as_square_matrix(A, "A"), pencil.B, None if E is None else as_square_matrix(E, "E"))

    @property
    def difference_matrix(self) -> Matrix:
        """A of ẋ = A x + B u, or A − I of x[k+1] − x[k] = (A − I) x[k] + B u[k] in discrete time: zero for integrators."""
        return self.A if self.dt is None else make_read_only(self.A - np.eye(self.n_states))

    @property
    def state_equation(self) -> tuple[Any, Any, Any]:
        """E, A and B as passed by the user, sparse or dense; E is None for the identity."""
        if self.sparse is not None:
            return self.sparse.mass, self.sparse.state, self.sparse.B
        return (None, self.A, self.B) if self.descriptor is None else self.descriptor

    def with_time_step(self, dt: float | None) -> "SystemMatrices":
        """Return the same matrices with another time step; None or 0 for continuous time."""
        step = validate_time_step(dt)
        return self if step == self.dt else self._with("dt", step)

    def with_names(self, names: SignalNames) -> "SystemMatrices":
        """Return the same system with these names; raise InvalidSystemError if their numbers do not fit."""
        return self if names == self.names else self._with("names", self._validate_names(names))

    def _validate_names(self, names: SignalNames) -> SignalNames:
        return names.validate_for(n_inputs=self.n_inputs, n_outputs=self.n_outputs, n_states=self.n_states)

    def _with(self, field: str, value: Any) -> "SystemMatrices":
        other = SystemMatrices.__new__(SystemMatrices)
        for name, attribute in vars(self).items():
            object.__setattr__(other, name, attribute)
        object.__setattr__(other, field, value)
        return other

    @property
    def n_states(self) -> int:
        """Number of states n."""
        return int(self.C.shape[1])

    @property
    def n_inputs(self) -> int:
        """Number of inputs m."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs p."""
        return len(self.C)

    @property
    def input_names(self) -> Names:
        """Names of the inputs; u1, u2, … by default."""
        return names_or_defaults(self.names.inputs, "inputs", self.n_inputs)

    @property
    def output_names(self) -> Names:
        """Names of the outputs; y1, y2, … by default."""
        return names_or_defaults(self.names.outputs, "outputs", self.n_outputs)

    @property
    def state_names(self) -> Names:
        """Names of the states; x1, x2, … by default."""
        return names_or_defaults(self.names.states, "states", self.n_states)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SystemMatrices):
            return NotImplemented
        is_equal = self.dt == other.dt and np.array_equal(self.C, other.C) and np.array_equal(self.D, other.D)
        return is_equal and _state_equations_equal(self, other)

    def __hash__(self) -> int:
        # Validation leaves no −0.0 and no NaN, so equal matrices have equal bytes. A may be sparse and is not hashed.
        return hash((self.dt, *((matrix.shape, matrix.tobytes()) for matrix in (self.C, self.D))))

    def __repr__(self) -> str:
        return f"SystemMatrices(n_states={self.n_states}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs})"

    def __reduce__(self) -> tuple[Callable[..., "SystemMatrices"], tuple[Any, ...]]:
        # NumPy unpickles arrays as writeable; the constructor makes them read-only.
        E, A, B = self.state_equation
        return _rebuild, (A, B, self.C, self.D, E, self.dt, self.names)


def _rebuild(*parts: Any) -> SystemMatrices:
    *matrices, dt, names = parts
    return SystemMatrices(*matrices, dt=dt, names=names)


def _state_matrices(A: MatrixLike, E: MatrixLike | None) -> tuple[Any, Any]:
    """Return validated A and E, both sparse if A is, else arrays."""
    convert: Callable[[MatrixLike, str], Any] = as_sparse_matrix if issparse(A) else as_square_matrix
    state, mass = convert(A, "A"), None if E is None else convert(E, "E")
    if mass is not None and mass.shape != state.shape:
        n, size = state.shape[0], mass.shape[0]
        raise InvalidSystemError(f"E is {size}×{size} but A is {n}×{n}; E and A must have the same size")
    return state, mass


def _state_equations_equal(one: SystemMatrices, other: SystemMatrices) -> bool:
    """Return True if A and B are equal after elimination of E; large models are compared without elimination."""
    if one.sparse is not None and other.sparse is not None and one.sparse.equals(other.sparse):
        return True
    large = [system.sparse for system in (one, other) if system.sparse is not None and system.sparse.is_large]
    if not large:
        return np.array_equal(one.A, other.A) and np.array_equal(one.B, other.B)
    dense = [system for system in (one, other) if system.sparse is None]
    if not dense or large[0].mass is not None or dense[0].n_states != large[0].n_states:
        return False
    return np.array_equal(one.B, other.B) and sparse_equal(as_sparse_matrix(dense[0].A, "A"), large[0].state)


def _refuse_swapped_arguments(B: MatrixLike, C: MatrixLike, n: int) -> None:
    """Refuse a sparse B or C that does not fit before it is converted to an array of n² numbers.

    Raises InvalidSystemError if B or C does not fit A, or if one is a large square matrix: B as if M, K, f had been
    passed, C as if K, f, M had.
    """
    if issparse(C) and shape_of(C, "C") == (n, n) and n > _MAX_SPARSE_INPUTS:
        raise InvalidSystemError(
            f"C is a sparse {n}×{n} matrix, one output per state; the order of arguments is StateSpace(A, B, C, D, E). "
            "Write StateSpace(-K, f, C, E=M) for M x' + K x = f u, with outputs=[0, 7] instead of C for values at these "
            "degrees of freedom; pass C.toarray() if C has so many outputs"
        )
    if not issparse(B):
        return
    shape = shape_of(B, "B")
    if shape[0] != n:
        raise shape_error("B", shape, n)
    C_shape = shape_of(C, "C")
    if len(C_shape) == 2 and C_shape[1] != n:
        raise shape_error("C", C_shape, n)
    if shape[1] == n and n > _MAX_SPARSE_INPUTS:
        raise InvalidSystemError(
            f"B is a sparse {n}×{n} matrix, one input per state; the order of arguments is StateSpace(A, B, C, D, E). "
            "Write StateSpace(-K, f, C, E=M) for M x' + K x = f u, or SecondOrder(M, D, K, B, C) for a mechanical "
            "model; pass B.toarray() if B has so many inputs"
        )


def shape_error(
    name: str, shape: tuple[int, ...], n: int, *, first: str = "A", state: str = "state"
) -> InvalidSystemError:
    """Return the error for a B or C that does not fit the `first` matrix, n×n."""
    line, other, size = ("row", "columns", f"{n}×(number of inputs)")
    if name == "C":
        line, other, size = ("column", "rows", f"(number of outputs)×{n}")
    turned = f": pass {name}.T if its {state}s run along the {other}" if len(shape) == 2 and n in shape else ""
    return InvalidSystemError(
        f"{name} has shape {shape} but {first} is {n}×{n}; {name} needs one {line} per {state}, so {size}{turned}"
    )


def _report_half_stored(A: Any, E: Any) -> None:
    """Report sparse matrices of which only one triangle seems to be stored, as some programs do with symmetric ones.

    A triangular A beside a diagonal E is a cascade of states, which is possible: it is a warning. A triangular E beside
    an A that is symmetric or triangular, each with entries off the diagonal, is an error.

    Raises
    ------
    InvalidSystemError
        If E is.
    """
    n = A.shape[0]
    if n <= _MAX_UNSUSPICIOUS_STATES:
        return
    hint = "if only half of a symmetric matrix is stored, pass X + X.T - sparse.diags(X.diagonal()) for X = "
    A_triangle, E_triangle = triangle_of(A), None if E is None else triangle_of(E)
    if E_triangle is not None and (A_triangle is not None or (A.nnz > n and is_symmetric(A))):
        both = "A and E are" if A_triangle is not None else "E is"
        raise InvalidSystemError(f"{both} triangular; {hint}{'A and X = E' if A_triangle is not None else 'E'}")
    if A_triangle is not None:
        warnings.warn(
            f"A is {A_triangle} triangular, so that its states are a cascade; {hint}A", UserWarning, stacklevel=5
        )


def _edge_matrix(value: MatrixLike, name: str, n: int, D: MatrixLike | None) -> Matrix:
    """Return B or C; that of a static gain may be [], since D has its size."""
    matrix = as_real_matrix(value, name, vector="column" if name == "B" else "row")
    shape = shape_of(value, name)
    if n == 0 and len(shape) == 1 and matrix.size == 0:
        if D is None:
            size = "(0, n_inputs)" if name == "B" else "(n_outputs, 0)"
            raise InvalidSystemError(
                f"{name} is an empty list and D is missing, so the size of the static gain is unknown; pass D, or {name} "
                f"as np.zeros({size})"
            )
        n_outputs, n_inputs = as_real_matrix(D, "D").shape
        return as_real_matrix(np.zeros((0, n_inputs) if name == "B" else (n_outputs, 0)), name)
    if matrix.shape[0 if name == "B" else 1] != n:
        raise shape_error(name, shape, n)
    return matrix


def _feedthrough(D: MatrixLike | None, *, n_outputs: int, n_inputs: int) -> Matrix:
    shape = (n_outputs, n_inputs)
    if D is None:
        return as_real_matrix(np.zeros(shape), "D")
    matrix = as_real_matrix(D, "D", vector="column" if n_inputs == 1 else "row" if n_outputs == 1 else None)
    if shape_of(D, "D") == () and matrix[0, 0] == 0.0:
        return as_real_matrix(np.zeros(shape), "D")
    if matrix.shape != shape:
        raise InvalidSystemError(
            f"D has shape {shape_of(D, 'D')} but C has {n_outputs} rows and B {n_inputs} columns; D needs one row per "
            f"output and one column per input, so {n_outputs}×{n_inputs}; leave it out if there is no feedthrough"
        )
    return matrix


# Algebraic equations.


def eliminate_algebraic_rows(system: SystemMatrices) -> SystemMatrices:
    """Eliminate the algebraic equations of a sparse system, zero rows and columns of E; without any, return the system."""
    pencil = system.sparse
    if pencil is None or pencil.mass is None:
        return system
    regular = solve_algebraic_rows(pencil.mass, pencil.state, pencil.B, system.C, system.D)
    return system if regular is None else without_algebraic(system, regular)


def without_algebraic(system: SystemMatrices, regular: RegularDescriptor) -> SystemMatrices:
    """Return the matrices of a regular descriptor with the names of the system that it was made from."""
    n = regular.A.shape[0]
    identity: Any = np.eye(n) if isinstance(regular.E, np.ndarray) else sparse.eye_array(n)
    E = None if n == 0 or abs(regular.E - identity).max() == 0.0 else regular.E
    states = None
    if regular.variables is not None and system.names.states is not None:
        states = tuple(system.names.states[index] for index in regular.variables)
    matrices = SystemMatrices(regular.A, regular.B, regular.C, regular.D, E)
    return matrices.with_names(SignalNames(system.names.inputs, system.names.outputs, states))


class SystemFacts(TypedDict):
    """Summary of a system; every value is valid in JSON."""

    kind: str
    n_states: int
    n_inputs: int
    n_outputs: int
    nonzeros_of_A: int
    has_feedthrough: bool
    is_sparse: bool
    n_real_eigenvalues: int | None
    n_complex_pairs: int | None
    real_parts: list[float] | None


def system_facts(system: SystemMatrices) -> SystemFacts:
    """Summarize a system: sizes, numbers of real eigenvalues and complex pairs, smallest and largest real part.

    Values that depend on eigenvalues are None for large sparse models; real parts are None without states.
    """
    pencil = system.sparse
    n_real = n_pairs = real_parts = None
    if pencil is None or not pencil.is_large:
        eigenvalues = np.linalg.eigvals(system.A)
        n_real = int(np.count_nonzero(eigenvalues.imag == 0.0))
        n_pairs = (system.n_states - n_real) // 2
        if system.n_states:
            real_parts = [float(eigenvalues.real.min()), float(eigenvalues.real.max())]
    return {
        "kind": "system",
        "n_states": system.n_states,
        "n_inputs": system.n_inputs,
        "n_outputs": system.n_outputs,
        "nonzeros_of_A": int(np.count_nonzero(system.A)) if pencil is None else pencil.n_nonzeros,
        "has_feedthrough": bool(np.any(system.D)),
        "is_sparse": pencil is not None,
        "n_real_eigenvalues": n_real,
        "n_complex_pairs": n_pairs,
        "real_parts": real_parts,
    }
