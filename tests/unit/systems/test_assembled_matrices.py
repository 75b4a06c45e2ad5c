"""Mistakes with assembled matrices M x' + K x = f u: wrong sign, half of a matrix, prescribed degrees of freedom."""

import mpmath
import numpy as np
import pytest
from scipy import sparse

import ltinet
from ltinet import InvalidSystemError, SecondOrder, StateSpace
from ltinet.reduction.dissipative_pencil import prove_definite

EDGE = 58
N = EDGE**2
T = np.linspace(0.0, 0.4, 9)


def assemble(edge=EDGE):
    """Bilinear elements on a square without boundary conditions: M, K, and the inner nodes."""
    h = 1.0 / (edge - 1)
    stiff = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(edge, edge), format="lil") / h
    mass = sparse.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(edge, edge), format="lil") * (h / 6.0)
    for at in (0, edge - 1):
        stiff[at, at] *= 0.5
        mass[at, at] *= 0.5
    inner = np.arange(edge * edge).reshape(edge, edge)[1:-1, 1:-1].ravel()
    K, M = sparse.kron(stiff, mass) + sparse.kron(mass, stiff), sparse.kron(mass, mass)
    return sparse.csr_array(0.5 * (M + M.T)), sparse.csr_array(0.5 * (K + K.T)), inner


@pytest.fixture(scope="module")
def plate():
    return assemble()


def test_a_wrong_sign_of_K_is_refused_everywhere(plate):
    M, K, inner = plate
    system = StateSpace(K[inner][:, inner], np.ones(len(inner)), E=M[inner][:, inner], outputs=[70])
    calls = [
        lambda: ltinet.reduce(system, tolerance=1e-3),
        lambda: system.step_response(T),
        lambda: system.simulate(np.ones(9), T),
        lambda: system.plot.bode(),
    ]
    for call in calls:
        with pytest.raises(InvalidSystemError, match=r"all modes grow.*StateSpace\(-K, f, E=M\)"):
            call()


def test_symmetric_models_that_partly_grow_keep_their_growing_states(plate):
    M, K, inner = plate
    A = -K[inner][:, inner] + 60.0 * M[inner][:, inner]  # four modes are slower than 60
    system = StateSpace(A, np.ones(len(inner)), E=M[inner][:, inner], outputs=[70])
    red = ltinet.reduce(system, tolerance=1e-3)
    assert np.sum(red.system.poles().real > 0.0) == 2  # the other two of the four are not seen from these ends
    omega = np.array([0.0, 1.0, 30.0])
    errors, gains = red.errors(omega)
    assert np.all(errors < 1e-2 * gains)


def test_half_stored_matrices_are_reported(plate):
    M, K, inner = plate
    M, K, f = M[inner][:, inner], K[inner][:, inner], np.ones(len(inner))
    for half in (sparse.triu, sparse.tril):
        for A, E, message in ((-half(K), half(M), "A and E are triangular"), (-K, half(M), "E is triangular")):
            with pytest.raises(InvalidSystemError, match=message):
                StateSpace(A, f, E=E, outputs=[70])
        with pytest.warns(UserWarning, match=r"A is (upper|lower) triangular"):
            StateSpace(-half(K), f, E=M, outputs=[70])
        for matrices, name in (((half(M), K, K), "M"), ((M, K, half(K)), "K")):
            with pytest.raises(InvalidSystemError, match=f"{name} is triangular"):
                SecondOrder(*matrices, f, outputs=[70])


def test_small_and_diagonal_triangles_are_no_mistake():
    E = sparse.csr_array([[2.0, 1.0], [0.0, 1.0]])
    assert StateSpace(-E, np.ones(2), np.ones(2), E=E).n_states == 2
    eye = sparse.eye_array(200, format="csr")
    assert SecondOrder(eye, eye, eye, inputs=[0], outputs=[0]).n_positions == 200


def test_a_sparse_square_C_is_refused(plate):
    M, K, _ = plate
    with pytest.raises(InvalidSystemError, match=r"C is a sparse.*E=M"):
        StateSpace(-K, np.ones(N), M)


def unit_rows(plate):
    """Equations with 0 = −x in the rows of the edge, and columns as they were."""
    M, K, inner = plate
    free = sparse.diags_array(np.isin(np.arange(N), inner).astype(float))
    return free @ M, free @ K + sparse.eye_array(N) - free, inner


def test_unit_rows_remove_their_states(plate):
    M, K, inner = plate
    f = np.zeros(N)
    f[inner] = 1.0 + np.arange(len(inner)) / N
    rows, edge_rows, _ = unit_rows(plate)
    system = StateSpace(-edge_rows, f, E=rows, outputs=[inner[70], 0])
    reference = StateSpace(-K[inner][:, inner], f[inner], np.eye(1, len(inner), 70), E=M[inner][:, inner])
    for method in ("step_response", "simulate"):
        options = (T,) if method == "step_response" else (np.ones(9), T)
        y, expected = getattr(system, method)(*options).y, getattr(reference, method)(*options).y
        assert np.allclose(y[..., 0], expected[..., 0], rtol=1e-9, atol=0.0)
        assert not y[..., 1].any()
    regular = ltinet.eliminate_algebraic(system)
    assert regular.n_states == len(inner)
    assert abs(regular.sparse.A + K[inner][:, inner]).max() == 0.0


def test_prescribed_states_with_an_input_are_refused(plate):
    rows, edge_rows, inner = unit_rows(plate)
    system = StateSpace(-edge_rows, np.ones(N), E=rows, outputs=[inner[70]])
    with pytest.raises(InvalidSystemError, match=r"derivative of the input.*K\[free\]\[:, free\]"):
        ltinet.eliminate_algebraic(system)


def test_penalties_are_no_singular_matrices(plate):
    M, K, inner = plate
    edge = ~np.isin(np.arange(N), inner)
    f = np.where(edge, 0.0, 1.0 / N)
    system = StateSpace(-(K + sparse.diags_array(1e10 * edge)), f, E=M, outputs=[inner[70]])
    reference = StateSpace(-K[inner][:, inner], f[inner], E=M[inner][:, inner], outputs=[70])
    assert np.allclose(system.dcgain(), reference.dcgain(), rtol=1e-7)
    step, expected = system.step_response(T), reference.step_response(T)
    assert np.abs(step.y - expected.y).max() < 1e-4 * expected.y.max()


def test_missing_methods_of_mechanical_models_name_the_first_order_form():
    model = SecondOrder(np.eye(1), np.eye(1), np.eye(1), 1.0, 1.0)
    for name in ("damping", "dcgain", "poles", "isstable"):
        with pytest.raises(AttributeError, match=rf"use system\.{name}\(\) with system = model\.to_state_space\(\)"):
            getattr(model, name)


def test_named_degrees_of_freedom_and_masks_are_answered(plate):
    M, K, _ = plate
    with pytest.raises(InvalidSystemError, match="with_names"):
        StateSpace(-K, np.ones(N), E=M, outputs={"tip": 5})
    with pytest.raises(InvalidSystemError, match="flatnonzero"):
        SecondOrder(M, K, K, np.ones(N), outputs=np.arange(N) == 5)
    with pytest.raises(InvalidSystemError, match=r"so 3364×\(number of inputs\)$"):
        StateSpace(-K, np.ones(N + 1), E=M, outputs=[5])
    with pytest.raises(InvalidSystemError, match="is_certified"):
        StateSpace(-K, np.ones(N), E=M, outputs=[5]).isstable()


def beam(n_elements):
    """Cantilever of cubic beam elements with translations and rotations: M and K."""
    h, n = 1.0 / n_elements, 2 * n_elements + 2
    k = np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h * h, -6 * h, 2 * h * h],
                  [-12, -6 * h, 12, -6 * h], [6 * h, 2 * h * h, -6 * h, 4 * h * h]]) / h**3  # fmt: skip
    m = np.array([[156, 22 * h, 54, -13 * h], [22 * h, 4 * h * h, 13 * h, -3 * h * h],
                  [54, 13 * h, 156, -22 * h], [-13 * h, -3 * h * h, -22 * h, 4 * h * h]]) * h / 420  # fmt: skip
    K, M = np.zeros((n, n)), np.zeros((n, n))
    for element in range(n_elements):
        at = slice(2 * element, 2 * element + 4)
        K[at, at] += k
        M[at, at] += m
    return sparse.csc_array(M[2:, 2:]), sparse.csc_array(K[2:, 2:])


def least_pivot(X):
    """Least pivot of L D Lᵀ of a matrix with five diagonals, with 60 digits."""
    with mpmath.workdps(60):
        n, pivots = len(X), []
        for i in range(n):
            pivots.append(X[i][i])
            for j in range(i + 1, min(i + 4, n)):
                factor = X[j][i] / X[i][i]
                for column in range(i, min(i + 4, n)):
                    X[j][column] -= factor * X[i][column]
        return min(pivots)


@pytest.mark.parametrize("kind", ["beam", "penalty"])
def test_definiteness_is_proven_for_entries_of_all_sizes(kind):
    _, K = beam(100)
    if kind == "penalty":
        K = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(150, 150), format="csc")
        K[0, 0] = K[-1, -1] = 1e14
    proof = prove_definite(K)
    assert proof is not None
    n = K.shape[0]
    for factor, is_below in ((1.0, True), (4.0, False)):
        with mpmath.workdps(60):
            shift = mpmath.mpf(proof.smallest) * factor
            X = [[mpmath.mpf(float(v)) - (shift if i == j else 0) for j, v in enumerate(row)]
                 for i, row in enumerate(K.toarray())]  # fmt: skip
        assert (least_pivot(X) > 0) == is_below
    assert proof.solve(np.eye(n, 1)).shape == (n, 1)


def test_fine_beams_are_reduced_without_coupling():
    M, K = beam(150)
    n = M.shape[0]
    red = ltinet.reduce(SecondOrder(M, 1.0 * M + 1e-5 * K, K, inputs=[n - 2], outputs=[n - 2]), tolerance=1e-4)
    assert red.order <= 40
    assert "rounding" in red.notes[0]
    errors, _ = red.errors(np.geomspace(0.1, 1e3, 20))
    assert errors.max() < 1e-4 * red.gain
