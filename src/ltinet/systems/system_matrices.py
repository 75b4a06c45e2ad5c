"""Matrices of a linear time-invariant system, validated once and immutable.

    x' = A x + B u  or  x[k+1] = A x[k] + B u[k],    y = C x + D u.

An E of a descriptor system E x' = A x + B u is eliminated at construction and kept in `descriptor`. A sparse A stays
sparse, and dense A and B are computed on first use. The module also validates the time step of a system in discrete
time, where None and 0 stand for continuous time, and summarises a system as plain data (`system_facts`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict, final

import numpy as np
from scipy.sparse import issparse

from ltinet._util.cache import cached_property
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSystemError
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.matrices import (
    Matrix,
    MatrixLike,
    as_real_matrix,
    as_sparse_matrix,
    as_square_matrix,
    make_read_only,
    shape_of,
    sparse_equal,
)
from ltinet.systems.signal_names import UNNAMED, Names, SignalNames, names_from_dataframes, names_or_defaults
from ltinet.systems.sparse_descriptor import SparseDescriptor

# MERGED ltinet.systems.system_matrices
# The step of a model in discrete time: what may be given for it, and what is said where continuous time is needed.


class HasTimeStep(Protocol):
    """A system that knows whether it is discrete in time."""

    @property
    def dt(self) -> float | None:
        """Its time step, None in continuous time."""
        ...


def validate_time_step(dt: Any) -> float | None:
    """A positive, finite time step; None and 0 stand for continuous time.

    Raises:
        InvalidSystemError: it is something else, such as True, by which other libraries mean a step nobody named.
    """
    if dt is None:
        return None
    try:
        given = np.asarray(dt)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; other libraries' arrays that refuse
        given = np.asarray(None)
    is_number = given.size == 1 and given.ndim <= 2 and given.dtype.kind in "iuf"
    step = float(given.reshape(())) if is_number else np.nan
    if step == 0.0:
        return None
    if not 0.0 < step < np.inf:
        what = "True, a step that nobody named" if dt is True else sanitize(repr(dt))
        raise InvalidSystemError(
            f"dt is {what}; give the time step of a model in discrete time as a positive number, None or 0 for "
            "continuous time"
        )
    return step


def require_continuous_time(system: HasTimeStep, call: str) -> None:
    """Refuse a system in discrete time, with the call that converts it; `call` is what was called on `system`.

    Raises:
        InvalidSystemError: it has a time step.
    """
    if system.dt is not None:
        raise InvalidSystemError(
            f"the system is discrete in time (dt = {system.dt:g}), and {call.partition('(')[0].rpartition('.')[2]} "
            f"works with x' = A x + B u; convert it first: {call.replace('system', 'system.to_continuous()', 1)}; the "
            'methods are "zoh" (the default), "foh" and "tustin"'
        )


# MERGED ltinet.systems.system_matrices
# What a system is made of: x' = A x + B u (or x⁺ = A x + B u), y = C x + D u, validated once, then immutable.

_MAX_SPARSE_INPUTS = 100  # up to which a sparse square B is filled in; beyond it was most likely meant as K


class Descriptor(NamedTuple):
    """E x' = A x + B u as it was given."""

    E: Matrix
    A: Matrix
    B: Matrix


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SystemMatrices:
    """A, B, C and D of a real system as read-only float64 copies; `ltinet.StateSpace` says what may be given for each.

    A sparse A stays so, in `sparse`; `A`, `B` and `descriptor` are filled in from it when somebody asks for them.

    Raises:
        InvalidSystemError: a matrix is complex, not finite or of the wrong shape, or E is singular.
    """

    C: Matrix
    D: Matrix
    sparse: SparseDescriptor | None
    """E, A and B of a model whose A was given as a sparse matrix."""
    dt: float | None
    """The time step of a system in discrete time, x[k+1] = A x[k] + B u[k]; None in continuous time."""
    names: SignalNames
    """How inputs, outputs and states are called, where they were given names; not part of equality."""

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
        own_A, own_E = _state_matrices(A, E)
        n = own_A.shape[0]
        _refuse_swapped_arguments(B, C, n)
        B = _input_matrix(B, n, D)
        C = _output_matrix(C, n, D)
        D = _feedthrough(D, n_outputs=C.shape[0], n_inputs=B.shape[1])
        is_sparse = not isinstance(own_A, np.ndarray)
        object.__setattr__(self, "sparse", SparseDescriptor(own_A, own_E, B) if is_sparse else None)
        if not is_sparse:
            self._keep_arrays(own_A, B, own_E)
        object.__setattr__(self, "C", C)
        object.__setattr__(self, "D", D)
        object.__setattr__(self, "dt", validate_time_step(dt))
        object.__setattr__(self, "names", self._fitting(names))

    def _keep_arrays(self, A: Matrix, B: Matrix, E: Matrix | None) -> None:
        descriptor = None if E is None else Descriptor(E, A, B)
        if E is not None:
            AB, n = eliminate_descriptor(E, np.hstack([A, B])), len(A)
            A, B = as_real_matrix(AB[:, :n], "A"), as_real_matrix(AB[:, n:], "B")
        for name, value in (("A", A), ("B", B), ("descriptor", descriptor)):
            object.__setattr__(self, name, value)

    @cached_property
    def A(self) -> Matrix:
        """The state matrix, n×n, as an array; a sparse one is filled in, unless it is too large (see `sparse`)."""
        self._fill_in("A as an array")
        return self.A

    @cached_property
    def B(self) -> Matrix:
        """The input matrix, n×m."""
        pencil = self.sparse
        if pencil is not None and (pencil.mass is None or pencil.is_large) and pencil.explicit_B is not None:
            return pencil.explicit_B
        self._fill_in("E⁻¹B")
        return self.B

    @cached_property
    def descriptor(self) -> Descriptor | None:
        """E, A and B as they were given, where there was an E: E⁻¹A is rounded, and error bounds count that."""
        if self.sparse is not None and self.sparse.mass is None:
            return None
        self._fill_in("E and A as arrays")
        return self.descriptor

    def _fill_in(self, what: str) -> None:
        pencil: Any = self.sparse  # arrays of a dense model are there from the beginning
        pencil.require_small(what)
        A, E = pencil.state, pencil.mass
        self._keep_arrays(as_square_matrix(A, "A"), pencil.B, None if E is None else as_square_matrix(E, "E"))

    def with_time_step(self, dt: float | None) -> "SystemMatrices":
        """The same matrices as a system in discrete time with this step; None or 0 for continuous time."""
        step = validate_time_step(dt)
        return self if step == self.dt else self._with("dt", step)

    def with_names(self, names: SignalNames) -> "SystemMatrices":
        """The same system, its inputs, outputs and states called by these names and no others.

        Raises:
            InvalidSystemError: there are more or fewer than the system has.
        """
        return self if names == self.names else self._with("names", self._fitting(names))

    @property
    def states_as_outputs(self) -> "SystemMatrices":
        """The same states, all of them outputs."""
        n, m = self.n_states, self.n_inputs
        watched = self.with_names(UNNAMED)._with("C", make_read_only(np.eye(n)))
        return watched._with("D", make_read_only(np.zeros((n, m))))

    def _fitting(self, names: SignalNames) -> SignalNames:
        return names.validate_for(n_inputs=self.n_inputs, n_outputs=self.n_outputs, n_states=self.n_states)

    def _with(self, field: str, value: Any) -> "SystemMatrices":
        other = SystemMatrices.__new__(SystemMatrices)
        for name, own in vars(self).items():
            object.__setattr__(other, name, own)
        object.__setattr__(other, field, value)
        return other

    @property
    def n_states(self) -> int:
        """The number of states, n."""
        return int(self.C.shape[1])

    @property
    def n_inputs(self) -> int:
        """The number of inputs, m."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of outputs, p."""
        return len(self.C)

    @property
    def input_names(self) -> Names:
        """How the inputs are called; u1, u2, … where nobody gave names."""
        return names_or_defaults(self.names.inputs, "inputs", self.n_inputs)

    @property
    def output_names(self) -> Names:
        """How the outputs are called; y1, y2, … where nobody gave names."""
        return names_or_defaults(self.names.outputs, "outputs", self.n_outputs)

    @property
    def state_names(self) -> Names:
        """How the states are called; x1, x2, … where nobody gave names."""
        return names_or_defaults(self.names.states, "states", self.n_states)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SystemMatrices):
            return NotImplemented
        pairs = ((self.C, other.C), (self.D, other.D))
        if self.dt != other.dt or not all(np.array_equal(mine, theirs) for mine, theirs in pairs):
            return False
        return _state_equations_equal(self, other)

    def __hash__(self) -> int:
        # The door leaves no −0.0 and no NaN, so equal matrices have equal bytes; of A, which may be sparse, none is
        # looked at.
        return hash((self.dt, *((matrix.shape, matrix.tobytes()) for matrix in (self.C, self.D))))

    def __repr__(self) -> str:
        return f"SystemMatrices(n_states={self.n_states}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs})"

    def __reduce__(self) -> tuple[Callable[..., "SystemMatrices"], tuple[Any, ...]]:
        # NumPy unpickles arrays writeable; going through the door again makes them read-only.
        if self.sparse is not None:
            given: tuple[Any, ...] = (self.sparse.mass, self.sparse.state, self.sparse.B)
        else:
            given = (None, self.A, self.B) if self.descriptor is None else self.descriptor
        E, A, B = given
        return _rebuild, (A, B, self.C, self.D, E, self.dt, self.names)


def _rebuild(*parts: Any) -> SystemMatrices:
    *matrices, dt, names = parts
    return SystemMatrices(*matrices, dt=dt, names=names)


def _state_matrices(A: MatrixLike, E: MatrixLike | None) -> tuple[Any, Any]:
    """A and E, checked: sparse ones if A is, else arrays."""
    checked: Callable[[MatrixLike, str], Any] = as_sparse_matrix if issparse(A) else as_square_matrix
    own_A, own_E = checked(A, "A"), None if E is None else checked(E, "E")
    if own_E is not None and own_E.shape != own_A.shape:
        n, other = own_A.shape[0], own_E.shape[0]
        raise InvalidSystemError(f"E is {other}×{other} but A is {n}×{n}; E x' = A x + B u needs both of the same size")
    return own_A, own_E


def _state_equations_equal(one: SystemMatrices, other: SystemMatrices) -> bool:
    """Whether A and B are equal, after E was eliminated where that can be done; as they were given where it cannot."""
    if one.sparse is not None and other.sparse is not None and one.sparse.equals(other.sparse):
        return True
    large = [own.sparse for own in (one, other) if own.sparse is not None and own.sparse.is_large]
    if not large:
        return np.array_equal(one.A, other.A) and np.array_equal(one.B, other.B)
    dense = [own for own in (one, other) if own.sparse is None]
    if not dense or large[0].mass is not None or dense[0].n_states != large[0].n_states:
        return False
    return np.array_equal(one.B, other.B) and sparse_equal(as_sparse_matrix(dense[0].A, "A"), large[0].state)


def _refuse_swapped_arguments(B: MatrixLike, C: MatrixLike, n: int) -> None:
    """Refuse sparse matrices in an impossible order before they are filled in, n² numbers.

    Raises:
        InvalidSystemError: B or C does not fit A, or B is a sparse square matrix, as M, K and f in this order would be.
    """
    if not issparse(B):
        return
    shape = shape_of(B, "B")
    if shape[0] != n:
        raise _b_rows_error(shape, n)
    of_C = shape_of(C, "C")
    if len(of_C) == 2 and of_C[1] != n:
        raise _c_columns_error(of_C, n)
    if shape[1] == n and n > _MAX_SPARSE_INPUTS:
        raise InvalidSystemError(
            f"B is a sparse {n}×{n} matrix, so every state would have an input of its own and B be filled in; the "
            "order is StateSpace(A, B, C, D, E). Write StateSpace(-K, f, C, E=M) for M x' + K x = f u, or "
            "SecondOrder(M, D, K, B, C) for a mechanical model; pass B.toarray() if so many inputs are meant"
        )


def _b_rows_error(shape: tuple[int, ...], n: int) -> InvalidSystemError:
    return InvalidSystemError(
        f"B has shape {shape} but A is {n}×{n}; B needs one row per state, so {n}×(number of inputs): pass B.T if its "
        "states run along the columns"
    )


def _c_columns_error(shape: tuple[int, ...], n: int) -> InvalidSystemError:
    return InvalidSystemError(
        f"C has shape {shape} but A is {n}×{n}; C needs one column per state, so (number of outputs)×{n}: pass C.T if "
        "its states run along the rows"
    )


def _input_matrix(B: MatrixLike, n: int, D: MatrixLike | None) -> Matrix:
    matrix = as_real_matrix(B, "B", vector="column")
    if (
        n == 0 and len(shape_of(B, "B")) == 1 and matrix.size == 0
    ):  # [] for a static gain: only D knows how many inputs there are
        return as_real_matrix(np.zeros((0, _static_gain(D, "B").shape[1])), "B")
    if len(matrix) != n:
        raise _b_rows_error(shape_of(B, "B"), n)
    return matrix


def _output_matrix(C: MatrixLike, n: int, D: MatrixLike | None) -> Matrix:
    matrix = as_real_matrix(C, "C", vector="row")
    if n == 0 and len(shape_of(C, "C")) == 1 and matrix.size == 0:
        return as_real_matrix(np.zeros((_static_gain(D, "C").shape[0], 0)), "C")
    if matrix.shape[1] != n:
        raise _c_columns_error(shape_of(C, "C"), n)
    return matrix


def _static_gain(D: MatrixLike | None, empty: str) -> Matrix:
    if D is None:
        shape = "(0, n_inputs)" if empty == "B" else "(n_outputs, 0)"
        raise InvalidSystemError(
            f"{empty} is an empty list and there is no D to tell the size of this static gain; pass D, or {empty} as "
            f"np.zeros({shape})"
        )
    return as_real_matrix(D, "D")


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


# MERGED ltinet.systems.system_matrices
# What a system says of itself, as plain data.


class SystemFacts(TypedDict):
    """A system; every value passes as JSON."""

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
    """Sizes, and where the eigenvalues lie: the smallest and the largest real part, None without states.

    Of a large sparse model nobody knows all eigenvalues, and None stands for what they would tell.
    """
    pencil = system.sparse
    spectrum = _UNKNOWN_SPECTRUM if pencil is not None and pencil.is_large else _spectrum(system)
    return {
        "kind": "system",
        "n_states": system.n_states,
        "n_inputs": system.n_inputs,
        "n_outputs": system.n_outputs,
        "nonzeros_of_A": int(np.count_nonzero(system.A)) if pencil is None else pencil.n_nonzeros,
        "has_feedthrough": bool(np.any(system.D)),
        "is_sparse": pencil is not None,
        "n_real_eigenvalues": spectrum.n_real,
        "n_complex_pairs": spectrum.n_pairs,
        "real_parts": spectrum.real_parts,
    }


class _Spectrum(NamedTuple):
    n_real: int | None
    n_pairs: int | None
    real_parts: list[float] | None


_UNKNOWN_SPECTRUM = _Spectrum(None, None, None)


def _spectrum(system: SystemMatrices) -> _Spectrum:
    eigenvalues = np.linalg.eigvals(system.A)
    n_real = int(np.count_nonzero(eigenvalues.imag == 0.0))
    ends = [float(eigenvalues.real.min()), float(eigenvalues.real.max())] if system.n_states else None
    return _Spectrum(n_real, (system.n_states - n_real) // 2, ends)
