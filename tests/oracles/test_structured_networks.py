"""Networks of a hundred thousand neurons answer as closed forms and sparse solves do, without arrays of n² numbers."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from ltinet import FileFormatError, InvalidSystemError, SimulationError, StateSpace, construct, named_system

N = 100_000
OMEGA = np.array([0.0, 1e-9, 1e-6, 1e-3, 0.1, 3.0])


def ends(n, seed=0):
    """Two inputs and two outputs, one of each point-like."""
    rng = np.random.default_rng(seed)
    B, C = np.zeros((n, 2)), np.zeros((2, n))
    B[: n // 2, 0], B[rng.integers(n), 1] = 1.0, 1.0
    C[0, n // 3 :], C[1, rng.integers(n)] = 1.0 / n, 1.0
    return B, C


def chain(n, diagonal=-2.0):
    return sparse.diags_array([1.0, diagonal, 1.0], offsets=[-1, 0, 1], shape=(n, n))


def ring(n, entries):
    place = np.arange(n)
    columns = [
        sparse.coo_array((np.full(n, own), ((place + k) % n, place)), shape=(n, n)) for k, own in entries.items()
    ]
    return sparse.csr_array(sum(columns[1:], start=columns[0]))


def uneven(n, seed=3):
    rng = np.random.default_rng(seed)
    beside = rng.uniform(0.5, 2.0, n - 1)
    return sparse.diags_array([beside, -4.1 - rng.random(n), beside], offsets=[-1, 0, 1])


def grid(first, second):
    eye = sparse.eye_array
    return sparse.kron(eye(second.shape[0]), first) + sparse.kron(second, eye(first.shape[0]))


LARGE = {
    "chain": chain(N),
    "chain with a drift": sparse.diags_array([1.0, -2.0, 1.0 + 1e-4], offsets=[-1, 0, 1], shape=(N, N)),
    "ring": ring(N, {0: -2.0001, 1: 1.2, -1: 0.8}),
    "symmetric ring": ring(N // 5 - 1, {0: -3.0, 1: 1.0, -1: 1.0, 2: 0.25, -2: 0.25}),
    "uneven grid": grid(uneven(317), uneven(316)),
    "diagonal": sparse.diags_array(-np.linspace(1e-3, 1e3, N // 5)),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", LARGE)
def test_responses_are_those_of_sparse_solves(name):
    system = StateSpace(LARGE[name], *ends(LARGE[name].shape[0]))
    net = construct(system)
    assert net.n_states == system.n_states
    assert net.n_connections == 0
    omega = OMEGA[[0, 4]] if "grid" in name else OMEGA[[0, 2, 4]]  # a factorisation each
    H, expected = net.frequency_response(omega), system.frequency_response(omega)
    assert np.abs(H - expected).max() <= (1e-10 if "grid" in name else 1e-8) * np.abs(expected).max()


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_answers_by_its_closed_form():
    # The last entry of the first column of (s − A)⁻¹ is sinh θ / sinh (n + 1)θ with cosh θ = 1 + s/2.
    system = StateSpace(chain(N), np.eye(N, 1), np.eye(1, N, N - 1))
    omega = np.array([1e-10, 1e-9, 1e-8])
    theta = np.arccosh(1.0 + 0.5j * omega)
    expected = np.sinh(theta) / np.sinh((N + 1) * theta)
    H = construct(system).frequency_response(omega)[:, 0, 0]
    assert np.abs(H - expected).max() <= 1e-8 * np.abs(expected).max()


@pytest.mark.slow
def test_the_heat_plate_runs_exactly_as_an_implicit_solver_does_nearly():
    system = named_system("heat_plate", n=4_000)
    net = construct(system)
    t = np.linspace(0.0, 0.2, 11)
    u = np.random.default_rng(5).standard_normal((11, 2))
    exact, run = net.simulate(u, t), system.simulate(u, t, tolerance=1e-3)
    assert np.all(np.abs(exact.y - run.y).max(axis=0) <= run.error_estimate)
    x0 = np.random.default_rng(6).standard_normal(system.n_states)
    free = net.simulate(None, t[:3], x0=x0)
    assert np.abs(free.states[0] - x0).max() <= 1e-12
    assert np.abs(free.y[0] - system.C @ x0).max() <= 1e-11


def test_pairs_of_a_ring_run_as_its_exponential():
    # x(t) of a ring is a convolution: by Fourier transforms of the state at the start.
    n = 4001
    system = StateSpace(ring(n, {0: -1.0, 1: 0.9, -1: 0.1}), np.zeros((n, 1)), np.eye(3, n))
    x0, t = np.random.default_rng(2).standard_normal(n), np.array([0.0, 0.5, 3.0])
    net = construct(system)
    rates = np.fft.fft(np.r_[-1.0, 0.9, np.zeros(n - 3), 0.1])
    expected = np.fft.ifft(np.fft.fft(x0) * np.exp(np.outer(t, rates)), axis=1).real
    run = net.simulate(None, t, x0=x0)
    assert np.abs(run.y - expected[:, :3]).max() <= 1e-11
    assert np.abs(run.states - expected).max() <= 1e-11
    assert net.n_second_order == 2000


def test_parts_without_connections_of_all_kinds():
    rng = np.random.default_rng(9)
    small = rng.standard_normal((20, 20)) - 8.0 * np.eye(20)
    A = sparse.block_diag([chain(4000), ring(300, {0: -3.0, 1: 1.0}), [[-1.0]], small, grid(chain(70), chain(60))])
    system = StateSpace(A, *ends(A.shape[0]))
    net = construct(system)
    H, expected = net.frequency_response(OMEGA), system.frequency_response(OMEGA)
    assert np.abs(H - expected).max() <= 1e-8 * np.abs(expected).max()
    assert "5 parts without connections" in str(net.form)


@pytest.mark.slow
def test_no_array_is_larger_than_a_few_vectors():
    system = StateSpace(grid(uneven(120), uneven(100)), *ends(12_000))
    n = system.n_states
    tracemalloc.start()
    net = construct(system)
    _, peak = tracemalloc.get_traced_memory()
    arrays = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
    tracemalloc.stop()
    largest = max(trace.size for trace in arrays.traces)
    assert largest <= 8 * n * (system.n_inputs + system.n_outputs + 10)
    assert peak <= 8 * n * 400  # the objects of all layers included
    assert net.n_layers == n


def test_a_tridiagonal_matrix_of_five_thousand():
    system = StateSpace(uneven(5000), *ends(5000))
    net = construct(system)
    H, expected = net.frequency_response(OMEGA), system.frequency_response(OMEGA)
    assert np.abs(H - expected).max() <= 1e-8 * np.abs(expected).max()
    with pytest.raises(InvalidSystemError, match=r"found no known structure.*tridiagonal.*ltinet\.reduce\(system"):
        construct(StateSpace(uneven(5001), *ends(5001)))


def test_what_needs_arrays_is_refused_with_what_there_is_instead(tmp_path):
    net = construct(StateSpace(chain(4000, -2.5), *ends(4000)))
    with pytest.raises(InvalidSystemError, match="is an operator"):
        _ = net.form.T
    with pytest.raises(FileFormatError, match=r"save_system\(net\.system, path\)"):
        net.save(tmp_path / "net.safetensors")
    with pytest.raises(SimulationError, match=r"error bounds need T as a dense matrix"):
        net.certificate(horizon=1.0)
    assert np.isinf(net.simulate(np.ones((3, 2)), [0.0, 1.0, 2.0]).error_bound()).all()
    with pytest.raises(InvalidSystemError, match="a choice of layers would fill in"):
        construct(net.system, n_layers=3)
