"""Hypothesis: what simulated records without noise tell of a system comes back, poles and response to 1e-8.

Real systems are truncated to what their records can show at all, Hankel values above 1e-4 of the largest; an integrator
is kept. The truth is the truncated system itself: its poles, and its response by one solution for every frequency.
Records are those of the exact difference equation of held inputs.
"""

import numpy as np
import pytest
from scipy import linalg, optimize

import ltinet

LIMIT = 1e-8
SMALLEST = 1e-4  # of the largest Hankel value
STEP = 2.5  # |λ| dt of the fastest pole
N_SAMPLES = 6000
SYSTEMS = (
    "building", "heat", "pde", "mr_demo", "j100_jet_engine", "lf10_beam_descriptor", "drum_boiler", "helicopter_v73",
)  # fmt: skip


def integrator_apart(A, B, C):
    """The slowest mode by itself, and the rest, as two triples."""
    slow = np.abs(np.linalg.eigvals(A)).min()
    S, Z, count = linalg.schur(A, sort=lambda re, im=0.0: np.hypot(re, im) < 2.0 * slow)
    assert count == 1
    X = linalg.solve_sylvester(S[:1, :1], -S[1:, 1:], -S[:1, 1:])
    into = np.vstack([np.hstack([np.eye(1), -X]), np.eye(len(A))[1:]]) @ Z.T
    out = Z @ np.vstack([np.hstack([np.eye(1), X]), np.eye(len(A))[1:]])
    B, C = into @ B, C @ out
    return (S[:1, :1], B[:1], C[:, :1]), (S[1:, 1:], B[1:], C[:, 1:])


def truncated(A, B, C):
    """Balanced, without states whose Hankel values are small, by square roots of both Gramians."""
    P, Q = root(linalg.solve_continuous_lyapunov(A, -B @ B.T)), root(linalg.solve_continuous_lyapunov(A.T, -C.T @ C))
    U, values, Vt = np.linalg.svd(Q.T @ P)
    kept = int((values > SMALLEST * values[0]).sum())
    into = (Q @ U[:, :kept] / np.sqrt(values[:kept])).T
    out = P @ Vt[:kept].T / np.sqrt(values[:kept])
    return into @ A @ out, into @ B, C @ out


def root(gramian):
    values, vectors = np.linalg.eigh(0.5 * (gramian + gramian.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def held_run(A, B, C, D, u, dt):
    """Outputs of held inputs from rest, one step after the other."""
    n, m = B.shape
    step = linalg.expm(dt * np.vstack([np.hstack([A, B]), np.zeros((m, n + m))]))
    x, y = np.zeros(n), np.empty((len(u), len(C)))
    for k, own in enumerate(u):
        y[k], x = C @ x + D @ own, step[:n, :n] @ x + step[:n, n:] @ own
    return y


@pytest.fixture(scope="module", params=SYSTEMS)
def case(request, data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    extra = {"C": np.eye(28)[:4]} if request.param == "helicopter_v73" else {}
    system = ltinet.load_system(data_dir / f"{request.param}.mat", **extra)
    A, B, C, D = (np.asarray(getattr(system, name), dtype=float) for name in "ABCD")
    if request.param == "drum_boiler":
        slow, rest = integrator_apart(A, B, C)
        A, B, C = truncated(*rest)
        A, B, C = linalg.block_diag(slow[0], A), np.vstack([slow[1], B]), np.hstack([slow[2], C])
    else:
        A, B, C = truncated(A, B, C)
    dt = STEP / np.abs(np.linalg.eigvals(A)).max()
    u = np.random.default_rng(0).standard_normal((N_SAMPLES, B.shape[1]))
    found = ltinet.identify(u, held_run(A, B, C, D, u, dt), dt=dt, order=len(A), trend="none")
    return (A, B, C, D), dt, found


@pytest.mark.default_cases(2)
def test_poles(case):
    (A, *_), dt, found = case
    true, poles = np.linalg.eigvals(A), found.poles()
    apart = np.abs(true[:, None] - poles) / (np.abs(true) + 1.0 / (N_SAMPLES * dt))[:, None]
    assert len(poles) == len(true)
    assert apart[optimize.linear_sum_assignment(apart)].max() <= LIMIT


@pytest.mark.slow
def test_response_of_every_channel(case):
    (A, B, C, D), dt, found = case
    omega = np.geomspace(1.0 / (N_SAMPLES * dt), np.pi / dt, 200)
    true = np.array([C @ np.linalg.solve(1j * own * np.eye(len(A)) - A, B) + D for own in omega])
    error = np.abs(found.system.frequency_response(omega) - true)
    assert np.all(error.max(axis=0) <= LIMIT * np.abs(true).max(axis=0))
    # At every frequency all channels together, however small the response is there.
    together = np.linalg.norm(error, axis=(1, 2)) / np.linalg.norm(true, axis=(1, 2))
    assert together.max() <= LIMIT


def test_nothing_warns(case):
    assert case[2].warnings == ()
