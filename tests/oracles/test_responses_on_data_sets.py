"""Hypothesis: responses, gains and frequency responses of real systems are as right as python-control's, or more.

Truth comes from ball arithmetic, from the matrices as they were given, E included.
"""

import re

import control
import numpy as np
import pytest
from flint import acb, acb_mat, arb_mat, ctx
from scipy import linalg

import ltinet
from ball_oracle import respond
from data_sets import DATA_SETS
from ltinet._util.floating_point import EPS

N_TIMES = 65
ROUNDING = 1e-12  # of the peak: a dozen digits of every output, whatever its system


@pytest.fixture(scope="module", params=DATA_SETS)
def system(request, data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    extra = {"C": np.eye(28)} if request.param == "helicopter_v73" else {}
    return ltinet.load_system(data_dir / f"{request.param}.mat", **extra)


def given(system):
    """E, A and B as they came."""
    return (np.eye(system.n_states), system.A, system.B) if system.descriptor is None else system.descriptor


def peer(system):
    return control.ss(system.A, system.B, system.C, system.D)


def peers(system):
    return [control.ss(A, B, system.C, system.D) for A, B in in_the_last_digit(system.A, system.B)]


def in_the_last_digit(A, B):
    """A and B as they are, and changed in their last digit: a peer's error with them is none by good luck."""
    rng = np.random.default_rng(11)
    yield A, B
    for _ in range(3 if len(A) <= 100 else 1):
        yield tuple(own * (1.0 + EPS * rng.choice([-1.0, 1.0], own.shape)) for own in (A, B))


def even_times(system):
    """Times of which every one is exact, over one time constant of the slowest mode that has one."""
    values = np.linalg.eigvals(system.A)
    rates = np.abs(values.real)
    slowest = np.min(rates[rates > 1e-8 * np.max(np.abs(values))])
    return float(2.0 ** np.round(np.log2(1.0 / slowest / N_TIMES))) * np.arange(N_TIMES)


def assert_as_right(ours, theirs, truth, *, axes):
    """Errors relative to the peak of each output, ten times python-control's at most, or rounding."""
    peak = np.abs(truth).max(axis=axes, keepdims=True)
    limit = 10.0 * np.max([np.abs(own - truth).max(axis=axes, keepdims=True) for own in theirs], axis=0)
    limit += ROUNDING * peak
    assert np.all(np.abs(ours - truth) <= limit)


@pytest.mark.slow
@pytest.mark.timeout(900)  # an exponential of 349 rows in balls, for beam, takes a minute on an idle machine
def test_responses(system):
    # All in one batch: a second exponential in balls would take as long as everything else.
    E, A, B = given(system)
    t, m, n = even_times(system), system.n_inputs, system.n_states
    start = np.random.default_rng(3).standard_normal(n)
    u = np.zeros((2 * m + 1, N_TIMES, m))
    u[:m] = np.eye(m)[:, None, :]
    x0 = np.concatenate([np.zeros((m, n)), system.B.T, start[None]])
    E = None if system.descriptor is None else E
    truth = respond(A, B, system.C, system.D, E, u=u, t=t, x0=x0, hold="zero").y
    theirs = [
        np.concatenate(
            [
                control.step_response(one, t, squeeze=False).outputs.transpose(1, 2, 0),
                *(control.initial_response(one, t, own, squeeze=False).outputs.T[None] for own in x0[m:]),
            ]
        )
        for one in peers(system)
    ]
    for own in (system, ltinet.construct(system)):
        step, impulse, initial = own.step_response(t), own.impulse_response(t), own.initial_response(start, t)
        assert step.y.shape == impulse.y.shape == (m, N_TIMES, system.n_outputs)
        y = np.concatenate([step.y, impulse.y, initial.y[None]])
        assert_as_right(y, theirs, truth.mid, axes=1)
        bounds = np.concatenate([step.error_bound(), impulse.error_bound(), initial.error_bound()[None]])
        assert np.all(truth.distance(y) <= bounds[:, None, :])


@pytest.mark.default_cases(4)
def test_gain_at_rest(system):
    _, A, B = given(system)
    with ctx.workprec(400):
        X = arb_mat(A.tolist()).solve(arb_mat(B.tolist()))
        exact = arb_mat(system.D.tolist()) - arb_mat(system.C.tolist()) * X
        truth = np.array([[float(exact[i, j].mid()) for j in range(system.n_inputs)] for i in range(system.n_outputs)])
    theirs = np.max([np.abs(np.atleast_2d(control.dcgain(one)) - truth) for one in peers(system)], axis=0)
    terms = np.abs(system.C) @ np.abs(np.linalg.solve(A, B)) + np.abs(system.D)
    for own in (system, ltinet.construct(system)):
        assert np.all(np.abs(own.dcgain() - truth) <= 10.0 * theirs + ROUNDING * terms)


def test_damping(system):
    table = system.damping()
    _, ratios, _ = control.damp(peer(system), doprint=False)
    poles = control.poles(peer(system))
    order = np.lexsort((-poles.imag, np.abs(poles)))
    assert len(table) == system.n_states == len(ratios)
    # Both compute eigenvalues backward stably: they differ by rounding of A times the condition of the eigenvalue.
    _, left, right = linalg.eig(system.A, left=True, right=True)
    condition = np.max(1.0 / np.abs(np.einsum("ij,ij->j", left.conj(), right)))
    near = np.abs(table.poles - poles[order])
    assert near.max() <= 1e-12 * condition * np.linalg.norm(system.A, 2)


@pytest.mark.default_cases(3)
def test_frequency_response(system, request):
    E, A, B = given(system)
    sizes = np.abs(system.poles())
    omega = np.geomspace(sizes[sizes > 0.0].min() / 10.0, sizes.max() * 10.0, 1000)
    H = system.frequency_response(omega)
    peak = np.abs(H).max(axis=0)
    every = 250 if system.n_states < 100 else 400 if system.n_states < 250 else 700
    looked_at = omega[every // 2 :: every]
    truth = np.array([exact_response(system, w) for w in looked_at])
    dense = [
        np.abs([system.C @ np.linalg.solve(1j * w * E - A, B) + system.D for w in looked_at] - truth).max(axis=0)
        for A, B in in_the_last_digit(A, B)
    ]
    ours = H[every // 2 :: every]
    if system.n_outputs == 28:
        # Outputs of the helicopter are six decades apart for one input: residuals in double precision, formed for all
        # of them together, leave up to 1.4e-12 of the smallest one, by the kernel of BLAS.
        request.applymarker(pytest.mark.xfail(reason="1.4e-12 of the peak of one entry on some kernels", strict=False))
    limit = np.maximum(1e-12 * peak, 10.0 * np.max(dense, axis=0))
    assert np.all(np.abs(ours - truth) <= limit)


def exact_response(system, omega):
    E, A, B = given(system)
    with ctx.workprec(192):
        s = acb(0, float(omega))
        pencil = s * acb_mat(E.tolist()) - acb_mat(A.tolist())
        H = acb_mat(system.C.tolist()) * pencil.solve(acb_mat(B.tolist())) + acb_mat(system.D.tolist())
        return np.array([[complex(H[i, j]) for j in range(system.n_inputs)] for i in range(system.n_outputs)])


@pytest.mark.slow
def test_chosen_times_end_when_the_response_has_settled(system):
    sol = system.step_response()
    assert len(sol.t) <= 5000
    assert sol.t[0] == 0.0
    if max(system.poles().real) > 0.0:
        assert "grows without bound" in sol.notes[0]
        return
    # 5,000 times may be too few for the longest of many oscillations; a note of that must be true.
    for note in sol.notes:
        told = re.search(r"do not follow an oscillation of ([\d.e+-]+) rad", note)
        assert told is not None
        assert float(told[1]) * np.diff(sol.t).max() > 1.0  # fewer than six in a period
    final, peak = system.dcgain().T, np.abs(sol.y).max(axis=1)
    reference = np.where(np.abs(final) > 1e-9 * peak, np.abs(final), peak)
    late = sol(np.linspace(0.9 * sol.t[-1], sol.t[-1], 300))
    assert np.all(np.abs(late - final[:, None, :]) <= 0.02 * reference[:, None, :])
