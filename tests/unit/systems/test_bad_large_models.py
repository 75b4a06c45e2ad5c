"""What is wrong with a large model is one clear error, or no problem at all."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from ltinet import InvalidSystemError, SimulationError, StateSpace, construct
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

N = MAX_DENSE_STATES + 100
T = np.linspace(0.0, 2.0, 5)


def chain(diagonal=-2.0):
    return sparse.csr_array(sparse.diags_array([1.0, diagonal, 1.0], offsets=[-1, 0, 1], shape=(N, N)))


def insulated():
    """A rod without loss: A is singular, constants stay."""
    A = chain().tolil()
    A[0, 0] = A[-1, -1] = -1.0
    return A


def test_a_singular_A_runs_and_says_so_where_it_matters():
    system = StateSpace(insulated(), np.full((N, 1), 1.0 / N), np.ones((1, N)))
    run = system.simulate(np.ones((5, 1)), T, tolerance=1e-6)
    assert np.abs(run.y[:, 0] - T).max() <= run.error_estimate[0] + 1e-9  # what comes in stays in
    with pytest.raises(InvalidSystemError, match="A is singular to working precision"):
        system.dcgain()
    net = construct(StateSpace(sparse.csr_array((N, N)), np.ones((N, 1)), np.ones((1, N))))  # all states integrate
    assert np.abs(net.simulate(np.ones((5, 1)), T).y[:, 0] - N * T).max() <= 1e-9 * N


def test_an_indefinite_E_is_no_obstacle_but_to_stability():
    E = sparse.diags_array(np.where(np.arange(N) % 2, 1.0, -1.0))
    system = StateSpace(-sparse.eye_array(N), np.ones((N, 1)), np.eye(2, N), E=E)
    H = system.frequency_response([0.0, 1.0])[:, :, 0]
    assert np.allclose(H, [[1.0, 1.0], [1.0 / (1.0 - 1.0j), 1.0 / (1.0 + 1.0j)]], rtol=1e-14)
    run = system.simulate(None, T, x0=np.ones(N), tolerance=1e-6)
    assert np.all(np.abs(run.y - np.exp(np.outer(T, [1.0, -1.0]))) <= run.error_estimate)
    assert construct(system).n_neurons == N  # E is diagonal


def test_a_matrix_that_rounding_made_unsymmetric_is_told_apart():
    A = chain()
    A.data[1::7] *= 1.0 + np.finfo(float).eps
    system = StateSpace(A, np.ones((N, 1)), np.ones((1, N)))
    assert not system.sparse.is_symmetric
    assert 0.0 < system.sparse.asymmetry < 1e-15
    assert StateSpace(chain(), np.ones((N, 1)), np.ones((1, N))).sparse.asymmetry == 0.0


def test_a_model_in_two_parts_answers_for_both():
    both = sparse.block_diag([chain()[:2000, :2000], chain(-3.0)[2000:, 2000:]])
    system = StateSpace(both, np.eye(N, 1), np.eye(1, N, N - 1))
    assert np.array_equal(system.frequency_response([0.5]), [[[0.0]]])
    assert np.array_equal(construct(system).frequency_response([0.5]), [[[0.0]]])


@pytest.mark.parametrize(("B", "C"), [(np.zeros((N, 1)), np.ones((1, N))), (np.ones((N, 1)), np.zeros((1, N)))])
def test_no_input_or_no_output_is_a_gain_of_zero(B, C):
    system = StateSpace(chain(), B, C)
    net = construct(system)
    for thing in (system, net):
        assert np.array_equal(thing.frequency_response([0.0, 1.0]), np.zeros((2, 1, 1)))
        assert np.array_equal(thing.simulate(np.ones((5, 1)), T).y, np.zeros((5, 1)))
    none = StateSpace(chain(), np.zeros((N, 0)), np.zeros((0, N)))
    assert none.frequency_response([1.0]).shape == (1, 0, 0)


def test_an_E_that_no_step_can_be_taken_with_is_named():
    E = sparse.diags_array(np.r_[np.ones(N - 1), 0.0])
    with pytest.raises(SimulationError, match="E is singular: the model has algebraic equations"):
        StateSpace(chain(), np.ones((N, 1)), np.ones((1, N)), E=E).simulate(None, T, x0=np.ones(N))


SHORT_OF_MEMORY = """
import resource
import numpy as np
import ltinet
system = ltinet.named_system("heat_plate", n=90_000)
import scipy.sparse.linalg
np.linalg.solve(np.eye(400), np.ones(400)), scipy.linalg.solve(np.eye(400), np.ones(400))  # BLAS has its buffers now
size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + 40_000_000, size + 40_000_000))
for call in (lambda: system.frequency_response([1.0]), lambda: system.simulate(np.ones((3, 2)), [0.0, 1.0, 2.0])):
    try:
        call()
    except ltinet.InvalidSystemError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_too_little_memory_is_told():
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SHORT_OF_MEMORY], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.count("there is not enough memory to work with a sparse matrix of 90000×90000") == 2, done.stderr


def test_a_sparse_square_b_is_refused_before_it_is_filled_in():
    n = 50_176  # whose squares would take 20 GB
    M, f = sparse.eye_array(n, format="csr"), np.ones(n)
    with pytest.raises(InvalidSystemError, match=r"StateSpace\(-K, f, C, E=M\)"):
        StateSpace(M, M, f)
    with pytest.raises(InvalidSystemError, match="C has shape"):
        StateSpace(M, M, f[:, None])
    with pytest.raises(InvalidSystemError, match="B has shape"):
        StateSpace(M, sparse.csr_array((n - 1, n)), f)


def test_few_states_may_each_have_a_sparse_input():
    assert StateSpace(-sparse.eye_array(50), sparse.eye_array(50), np.ones(50)).n_inputs == 50
