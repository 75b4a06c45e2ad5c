"""Methods of conversion between continuous and discrete time: names, difference rules, prewarping, matched poles."""

import numpy as np
import pytest
from scipy import linalg, signal

import ltinet
from ltinet.errors import InvalidSystemError


def plant() -> ltinet.StateSpace:
    A = np.array([[0.0, 1.0, 0.0], [-4.0, -0.8, 1.0], [0.0, 0.0, -3.0]])
    return ltinet.StateSpace(A, [[0.0], [1.0], [2.0]], [[1.0, 0.5, 0.0]], [[0.1]])


@pytest.mark.parametrize(
    ("typed", "method"),
    [
        ("zero", "zoh"), ("ZOH", "zoh"), ("zero-order hold", "zoh"), ("linear", "foh"), ("FOH", "foh"),
        ("bilinear", "tustin"), ("Tustin", "tustin"), ("trapezoidal", "tustin"), ("forward_diff", "euler"),
        ("backward_diff", "backward"), ("backward Euler", "backward"),
    ],
)  # fmt: skip
def test_names_as_people_type_them(typed: str, method: str) -> None:
    system = plant()
    assert system.to_discrete(0.1, typed) == system.to_discrete(dt=0.1, method=method)
    discrete = system.to_discrete(0.1, method)
    assert discrete.to_continuous(typed) == discrete.to_continuous(method=method)


@pytest.mark.parametrize("method", ["zoh", "foh", "tustin", "euler", "backward"])
def test_conversions_equal_scipy_and_return(method: str) -> None:
    system = plant()
    names = {"tustin": "bilinear", "backward": "backward_diff"}
    A, B, C, D, _ = signal.cont2discrete(
        (system.A, system.B, system.C, system.D), 0.1, method=names.get(method, method)
    )
    discrete = system.to_discrete(0.1, method)
    omega = np.linspace(0.1, 30.0, 20)
    expected = ltinet.StateSpace(A, B, C, D, dt=0.1).frequency_response(omega)
    assert np.allclose(discrete.frequency_response(omega), expected, rtol=1e-11)
    back = discrete.to_continuous(method)
    assert np.allclose(back.frequency_response(omega), system.frequency_response(omega), rtol=1e-9)


def test_tustin_is_exact_at_its_prewarping_frequency() -> None:
    system, omega = plant(), 12.0
    discrete = system.to_discrete(0.1, "tustin", prewarp_frequency=omega)
    H, exact = discrete.frequency_response([omega]), system.frequency_response([omega])
    assert np.allclose(H, exact, rtol=1e-12)
    assert not np.allclose(system.to_discrete(0.1, "tustin").frequency_response([omega]), exact, rtol=1e-3)
    back = discrete.to_continuous("tustin", prewarp_frequency=omega)
    assert np.allclose(back.frequency_response([1.0, 20.0]), system.frequency_response([1.0, 20.0]), rtol=1e-11)
    with pytest.raises(InvalidSystemError, match="between 0 and π/dt"):
        system.to_discrete(0.1, "tustin", prewarp_frequency=40.0)
    with pytest.raises(InvalidSystemError, match="prewarp_frequency is for"):
        system.to_discrete(0.1, "zoh", prewarp_frequency=1.0)


def test_matched_maps_poles_and_zeros_and_keeps_the_gain() -> None:
    system = ltinet.StateSpace(plant().A, [[0.0], [1.0], [2.0]], [[1.0, 0.5, 0.0]])
    discrete = system.to_discrete(0.1, "matched")
    assert np.allclose(np.sort_complex(discrete.poles()), np.sort_complex(np.exp(0.1 * system.poles())), rtol=1e-12)
    zeros = np.exp(0.1 * system.zeros())
    found = np.sort_complex(discrete.zeros())
    n_more = len(system.poles()) - len(zeros) - 1
    assert np.allclose(found, np.sort_complex(np.concatenate([zeros, np.full(n_more, -1.0)])), atol=1e-7)
    assert np.allclose(discrete.dcgain(), system.dcgain(), rtol=1e-11)
    back = discrete.to_continuous("matched")
    omega = np.linspace(0.1, 20.0, 9)
    assert np.allclose(back.frequency_response(omega), system.frequency_response(omega), rtol=1e-7)


def test_matched_keeps_the_ramp_of_an_integrator() -> None:
    system = ltinet.StateSpace([[0.0, 1.0], [0.0, -2.0]], [[0.0], [2.0]], [[1.0, 0.0]])  # 2/(s (s + 2))
    discrete = system.to_discrete(0.1, "matched")
    z = np.exp(1e-6 * 0.1)
    H = discrete.C @ np.linalg.solve(z * np.eye(2) - discrete.A, discrete.B) + discrete.D
    assert float(H[0, 0]) * (z - 1.0) / 0.1 == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(InvalidSystemError, match="one input and one output"):
        ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2)).to_discrete(0.1, "matched")


def test_equal_pairs_of_negative_eigenvalues_have_a_real_logarithm() -> None:
    rng = np.random.default_rng(0)
    T = np.eye(5) + 0.3 * rng.standard_normal((5, 5))
    A = T @ np.diag([-0.6, -0.6, 0.9, 0.5, 0.3]) @ np.linalg.inv(T)
    discrete = ltinet.StateSpace(A, rng.standard_normal((5, 2)), rng.standard_normal((2, 5)), dt=0.1)
    for method in ("zoh", "foh"):
        continuous = discrete.to_continuous(method)
        assert np.isrealobj(continuous.A)
        assert np.allclose(linalg.expm(0.1 * continuous.A), A, rtol=0, atol=1e-9)
        pair = continuous.poles()[np.abs(continuous.poles().imag) > 1.0]
        assert np.allclose(np.sort(pair.imag), [-np.pi / 0.1, np.pi / 0.1], rtol=1e-6)
        again = continuous.to_discrete(0.1, method)
        omega = np.linspace(0.0, 30.0, 7)
        assert np.allclose(again.frequency_response(omega), discrete.frequency_response(omega), rtol=1e-6)


@pytest.mark.parametrize(
    ("A", "reason"),
    [
        (np.diag([-0.43, 0.5]), "negative real eigenvalue -0.43"),
        (np.diag([-0.6, -0.5]), "whose other state is missing"),
        (np.array([[-0.6, 1.0], [0.0, -0.6]]), "single eigenvector|logarithm of A is inaccurate"),
        (np.diag([0.0, 0.5]), "zero to working precision"),
    ],
)
def test_systems_without_a_real_logarithm_are_refused(A: np.ndarray, reason: str) -> None:
    discrete = ltinet.StateSpace(A, np.ones((2, 1)), np.ones((1, 2)), dt=0.1)
    with pytest.raises(InvalidSystemError, match=reason):
        discrete.to_continuous()
    with pytest.raises(InvalidSystemError, match=reason):
        discrete.to_continuous("matched")
    # Tustin needs an eigenvalue other than −1 only.
    back = discrete.to_continuous("tustin").to_discrete(0.1, "tustin")
    assert np.allclose(back.frequency_response([1.0, 30.0]), discrete.frequency_response([1.0, 30.0]), rtol=1e-10)


def test_pid_with_filter_by_tustin_is_simulated() -> None:
    """The pole of its filter is at −0.43: the step response is that of the difference equation."""
    filtered = ltinet.StateSpace([[0.0, 0.0], [0.0, -50.0]], [[1.0], [1.0]], [[0.5, -100.0]], [[4.0]])
    discrete = filtered.to_discrete(0.1, "tustin")
    assert discrete.poles().real.min() == pytest.approx(-3.0 / 7.0, rel=1e-12)
    _, (y,) = signal.dstep((discrete.A, discrete.B, discrete.C, discrete.D, 0.1), n=50)
    assert np.allclose(discrete.step_response(50).y[0], y, rtol=0, atol=1e-13)
    assert np.allclose(ltinet.construct(discrete).step_response(50).y[0], y, rtol=0, atol=1e-13)
