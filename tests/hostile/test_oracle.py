"""The oracle itself: its radii hold against closed forms, against mpmath, and against itself with more bits."""

import mpmath
import numpy as np
import pytest

import ball_oracle
from ball_oracle import respond

EPS = float(np.finfo(float).eps)


def random_run(seed, *, n, m, p, T, even, batch=()):
    """A rotating, slowly decaying system: plain products of balls would widen by half a bit a step."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, n))
    A = S - S.T - 0.1 * np.eye(n)
    steps = np.full(T - 1, 0.125) if even else rng.choice([0.0, 0.125, 0.3, 0.5, 1e-9], T - 1)
    system = A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    run = {
        "u": rng.standard_normal((*batch, T, m)),
        "t": 3.75 + np.concatenate([[0.0], np.cumsum(steps)]),
        "x0": rng.standard_normal((*batch, n)),
    }
    return system, run


def by_mpmath(system, run, *, hold, E=None):
    """The same by mpmath at 60 digits: a Taylor series of the augmented matrix for every step, nothing shared."""
    with mpmath.workdps(60):
        A, B, C, D = (mpmath.matrix(own.tolist()) for own in system)
        n = B.rows
        if E is not None:
            E = mpmath.matrix(np.asarray(E).tolist())
            A, B = mpmath.inverse(E) * A, mpmath.inverse(E) * B
        x, y = mpmath.matrix(run["x0"].tolist()), []
        u = [mpmath.matrix(row.tolist()) for row in run["u"]]
        t = [mpmath.mpf(float(time)) for time in run["t"]]
        for k in range(len(t)):
            y.append(list(C * x + D * u[k]))
            if k + 1 == len(t) or t[k + 1] == t[k]:
                continue
            h = t[k + 1] - t[k]
            augmented = mpmath.zeros(n + 2)
            forced, rise = B * u[k], (B * (u[k + 1] - u[k])) / h if hold == "linear" else mpmath.zeros(n, 1)
            augmented[:n, :n], augmented[:n, n], augmented[:n, n + 1] = A, forced, rise
            augmented[n + 1, n] = 1  # s′ = 1: time since the sample
            x = mpmath.expm(augmented * h, method="taylor")[:n, :] * mpmath.matrix([*x, 1, 0])
        return y


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("descriptor", [True, False])
def test_balls_hold_what_mpmath_gives(hold, even, descriptor):
    system, run = random_run(1, n=3, m=2, p=2, T=40, even=even)
    E = np.array([[1.0, 2.0, 0.0], [1.0, 2.0 + 1e-9, 1.0], [0.0, 0.0, 3.0]]) if descriptor else None
    if descriptor:  # x' = E⁻¹A x stays bounded
        system = (np.round(E, 12) @ system[0], *system[1:])
    found = respond(*system, E, hold=hold, **run)
    truth = by_mpmath(system, run, hold=hold, E=E)
    for k, row in enumerate(truth):
        for output, value in enumerate(row):
            with mpmath.workdps(60):
                off = abs(value - mpmath.mpf(found.y.mid[k, output]) - mpmath.mpf(found.y.low[k, output]))
            assert off <= found.y.radius[k, output]
    assert np.all(found.y.radius <= 1e-19 * found.y.peak)


@pytest.mark.parametrize("rate", [-1.0, -1e6, 1e-3, 0.0])
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_scalar_systems_have_closed_forms(rate, hold):
    """From rest, a ramp t or a step 1 through x' = λ x + u; for λ = 0 their integrals, which are exact."""
    t = np.arange(300) * 0.25
    u = t if hold == "linear" else np.ones(300)
    found = respond([[rate]], [[1.0]], [[1.0]], u=u, t=t, hold=hold).y
    with mpmath.workdps(50):
        for k, time in enumerate(t.tolist()):
            s, decay = mpmath.mpf(time), mpmath.mpf(rate)
            if rate == 0.0:
                truth = s * s / 2 if hold == "linear" else s
            else:
                truth = (mpmath.expm1(decay * s) / decay - (s if hold == "linear" else 0)) / (
                    decay if hold == "linear" else 1
                )
            assert abs(truth - found.mid[k, 0] - mpmath.mpf(found.low[k, 0])) <= found.radius[k, 0]


@pytest.mark.parametrize("even", [True, False])
def test_radii_hold_the_difference_between_precisions(even, monkeypatch):
    system, run = random_run(2, n=5, m=2, p=2, T=700, even=even, batch=(2,))
    coarse = respond(*system, **run, states=True)
    monkeypatch.setattr(ball_oracle, "_FIRST_BITS", 1024)
    fine = respond(*system, **run, states=True)
    assert fine.bits > coarse.bits
    for a, b in ((coarse.y, fine.y), (coarse.x, fine.x)):
        # mid may differ by a bit where low changes sides
        assert np.all(np.abs((a.mid - b.mid) + (a.low - b.low)) <= a.radius + b.radius)
        assert np.all(np.abs(a.low) <= EPS * np.abs(a.mid) + a.radius)


def test_radii_of_few_bits_are_wide_and_hold(monkeypatch):
    """A careless radius would be found here: at 80 bits over 700 steps most of what is computed is lost."""
    system, run = random_run(3, n=5, m=2, p=2, T=700, even=True)
    fine = respond(*system, **run).y
    monkeypatch.setattr(ball_oracle, "_FIRST_BITS", 80)
    monkeypatch.setattr(ball_oracle, "_WANTED", 1e10)
    coarse = respond(*system, **run)
    assert coarse.bits == 80
    assert np.all(np.abs((coarse.y.mid - fine.mid) + (coarse.y.low - fine.low)) <= coarse.y.radius + fine.radius)
    assert np.max(coarse.y.radius) > 1e3 * np.max(fine.radius)


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("even", [True, False])
def test_a_step_in_halves_is_the_same_step(hold, even):
    """Outputs at any times: those between samples are those of a finer grid with the same input."""
    system, run = random_run(4, n=4, m=2, p=2, T=60, even=even)
    t, u = run["t"], run["u"]
    halves = t[:-1] + 0.5 * np.diff(t)
    moved = np.diff(t) > 0.0
    found = respond(*system, **run, hold=hold, at=halves).between
    order = np.argsort(np.concatenate([t, halves[moved]]), kind="stable")
    middle = 0.5 * (u[:-1] + u[1:]) if hold == "linear" else u[:-1]
    finer = respond(
        *system, u=np.concatenate([u, middle[moved]])[order], t=np.concatenate([t, halves[moved]])[order], hold=hold,
        x0=run["x0"],
    ).y  # fmt: skip
    where = np.flatnonzero(order >= len(t))
    # The middle value of u is rounded, and with an offset the middle time as well: both at the level of eps.
    assert np.max(np.abs(found.mid[moved] - finer.mid[where])) <= 64 * EPS * np.max(finer.peak)


def test_times_are_taken_as_the_doubles_that_they_are():
    """An offset rounds times; the oracle follows the rounded ones, and exact ones give the same to the last bit."""
    system, run = random_run(5, n=3, m=1, p=1, T=50, even=True)
    t = np.arange(50) * 0.125
    plain = respond(*system, u=run["u"], t=t).y
    shifted = respond(*system, u=run["u"], t=1.7e9 + t).y
    rounded = respond(*system, u=run["u"], t=1.7e9 + 0.1 * np.arange(50)).y
    tenths = respond(*system, u=run["u"], t=np.arange(50) * 0.1).y
    assert np.array_equal(plain.mid, shifted.mid)
    assert 1e-9 < np.max(np.abs(rounded.mid - tenths.mid)) / tenths.peak[0] < 1e-4


def test_what_no_double_holds_is_refused():
    with pytest.raises(OverflowError):
        respond([[1.0]], [[1.0]], [[1.0]], u=np.ones(100), t=np.arange(100) * 16.0)
