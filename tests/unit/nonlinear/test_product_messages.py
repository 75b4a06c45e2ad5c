"""Error messages of models with products, and scheduling signals that are constant."""

import warnings

import numpy as np
import pytest

import ltinet

T = np.linspace(0.0, 1.0, 11)
U = np.sin(T)


def lpv(count):
    return ltinet.construct(ltinet.LPV(-np.eye(2), [1, 1], [1, 1], A_p=[np.eye(2), np.diag([0.0, 1.0])][:count]))


def bilinear():
    return ltinet.construct(ltinet.Bilinear(-1.0, 1.0, 1.0, N=[[[1.0]]]))


@pytest.mark.parametrize(
    ("count", "p", "message"),
    [
        (2, U, r"^p has shape \(11,\), but there are 11 times and 2 scheduling signals"),
        (1, U[:5], r"^p has shape \(5,\), but there are 11 times and 1 scheduling signal;"),
        (1, np.nan, "^p has entries that are not finite"),
        (1, U * np.nan, "^p has entries that are not finite"),
        (2, lambda _: 1.0, r"^p returned shape \(\) at t = 0\.0; it must return one number per scheduling signal, 2"),
        (1, lambda _: 1.0 / 0, r"^p is not finite at t = 0\.0: .*division"),
        (1, lambda _: np.nan, r"^p is not finite at t = 0\.0"),
        (2, {"a": U}, "^p has the names a; it must have those of the scheduling signals, p1, p2"),
        (1, "x", "^p is text"),
    ],
)
def test_messages_about_scheduling_signals_name_p(count, p, message):
    with pytest.raises(ltinet.errors.InvalidSignalError, match=message):
        lpv(count).simulate(U, T, p=p)


@pytest.mark.parametrize(("count", "p"), [(1, 0.5), (1, [0.5]), (2, 0.5), (2, [0.5, -1.0])])
def test_constant_scheduling_is_a_frozen_parameter(count, p):
    net = lpv(count)
    frozen = net.model.linearize(p0=np.broadcast_to(p, count))
    expected = frozen.simulate(U, T).y
    assert np.abs(net.simulate(U, T, p=p, tol=1e-10).y - expected).max() <= 1e-9
    assert np.abs(net.simulate(U, T, p=lambda _: np.broadcast_to(p, count), tol=1e-10).y - expected).max() <= 1e-9


def test_as_many_constants_as_times():
    y = lpv(2).simulate(U[:2], T[:2], p=[0.5, -1.0]).y
    np.testing.assert_array_equal(y, lpv(2).simulate(U[:2], T[:2], p=[[0.5, -1.0]] * 2).y)


def test_options_of_linear_networks_are_refused_in_one_sentence():
    with pytest.raises(ltinet.errors.SimulationError, match="has no option engine; its options are p, x0, hold, tol"):
        bilinear().simulate(U, T, engine="exact")
    with pytest.raises(ltinet.errors.SimulationError, match="tolerances_for is for networks of linear models"):
        ltinet.tolerances_for(bilinear(), 1e-6, u=U, t=T)
    with pytest.raises(ltinet.errors.InvalidSystemError, match="has no option tolerance; give the number of states"):
        ltinet.reduce_products(bilinear().model, tolerance=1e-3)


@pytest.mark.parametrize("D", [None, np.ones((2, 4))])
def test_quadratic_models_need_products(D):
    with pytest.raises(ltinet.errors.InvalidSystemError, match="H and N are missing; pass H=…"):
        ltinet.QuadraticBilinear(-np.eye(2), [1, 1], [1, 1], D)


@pytest.mark.slow  # LSODA takes 2 s to find the time of the overflow
def test_overflow_is_an_error_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ltinet.errors.SimulationError, match="grow without bound"):
            bilinear().simulate(np.full(11, 900.0), T)


def test_counts_and_advice():
    net = lpv(1)
    for call, message in (
        (lambda: bilinear().model.derivative([1.0], p=[1.0]), "it must have 0 entries"),
        (lambda: ltinet.Bilinear(-1.0, [[1, 1]], 1.0, N=[[[1.0]]]), "N has 1 matrix, but the model has 2 inputs"),
        (lambda: net.stepper(0.1).step(1.0), r"p is missing; .* step\(u, p\)"),
        (lambda: net.stepper(0.1).step([1.0, 2.0], 0.0), "u must have 1 finite number, got"),
    ):
        with pytest.raises(ltinet.errors.LtinetError, match=message):
            call()
    with pytest.raises(AttributeError, match=r"use net\.model"):
        _ = net.system
