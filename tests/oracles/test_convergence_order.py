"""Hypothesis (Theorem 2): with steps of length h the error of the network falls as O(h^p), as that of its solvers does.

The network is one coupled layer of first- and second-order neurons, the input smooth with u(0) ≠ 0. Sines and cosines
obey linear equations themselves: system and input together are an autonomous system, known here to proven digits.
"""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from hard_matrices import pair
from ltinet import FunctionSignal
from network_examples import pattern_block

END = 2.0
FINEST = 128  # steps of the finest grid; the reference has four times as many
X0 = np.linspace(-1.0, 1.0, 7)
# Numbers of steps between the coarsest, where higher powers of h still matter, and rounding.
STEPS = {"RK23": (32, 64, 128), "RK45": (32, 64, 128), "DOP853": (4, 8, 16)}
ORDERS = {"RK23": 3.0, "RK45": 5.0, "DOP853": 8.0}
SINGLE_STEPS = {"RK23": (32, 64, 128), "RK45": (32, 64, 128), "DOP853": (8, 16, 32)}  # of length END / this
# The interpolants of one step: a cubic, a quartic and a polynomial of degree 7 that reproduce the solution to their
# degree. Inside a step they are off by h⁴, h⁵ and h⁸, of which none is below the order of the steps themselves.
DEGREES = {"RK23": 3, "RK45": 4, "DOP853": 7}


@pytest.fixture(scope="module")
def system():
    rng = np.random.default_rng(0)
    return pattern_block(3, 2), rng.standard_normal((7, 2)), rng.standard_normal((2, 7)), rng.standard_normal((2, 2))


@pytest.fixture(scope="module")
def net(system):
    net = ltinet.construct(system, n_layers=1)
    assert net.layers[0].kind == "mixed"
    assert len(net.layers[0].edges) == 10  # every neuron feeds every earlier one
    return net


@pytest.fixture(scope="module")
def u():
    return FunctionSignal(
        lambda t: [np.cos(t), np.sin(2.0 * t)], n_inputs=2, derivative=lambda t: [-np.sin(t), 2.0 * np.cos(2.0 * t)]
    )


@pytest.fixture(scope="module")
def truth(system):
    """Outputs at 4·FINEST + 1 times."""
    A, B, C, D = system
    select = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    generator = np.block([[pair(0.0, 1.0), np.zeros((2, 2))], [np.zeros((2, 2)), pair(0.0, 2.0)]])
    whole = np.block([[A, B @ select], [np.zeros((4, 7)), generator]])
    together = whole, np.zeros((11, 1)), np.hstack([C, D @ select])  # nothing comes in
    start = np.concatenate([X0, [1.0, 0.0, 0.0, 1.0]])
    times = np.linspace(0.0, END, 4 * FINEST + 1)
    return respond(*together, u=np.zeros(len(times)), t=times, x0=start).y.mid


def _run(net, u, stop, n_steps, method, engine="per_neuron"):
    h = stop / n_steps
    options = {"method": method, "rtol": 1e6, "atol": 1e6, "first_step": h, "max_step": h}
    t = [0.0, stop] if n_steps == 1 else [0.0, 0.5 * stop, stop]  # Algorithm A.1 has two intervals then
    sol = net.simulate(u, t, x0=X0, engine=engine, **options)
    assert set(sol.stats["steps"][0]) == {n_steps}
    return sol


def _slope(steps, errors):
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


def _errors(sol, truth, n_steps):
    """Largest errors at the ends of steps, and at a quarter, a half and three quarters of them."""
    every = 4 * FINEST // n_steps
    places = np.arange(0, 4 * FINEST + 1, every // 4)
    off = np.abs(sol(END / (4 * FINEST) * places) - truth[places]).max(axis=1)
    at_end = places % every == 0
    return off[at_end].max(), off[~at_end].max()


def _assert_order(method, slope):
    if method == "DOP853":
        assert slope >= 7.5
    else:
        assert abs(slope - ORDERS[method]) <= 0.3


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("method", ORDERS)
def test_the_error_falls_with_the_order_of_the_method(net, u, truth, method, engine):
    errors = [_errors(_run(net, u, END, n, method, engine), truth, n) for n in STEPS[method]]
    at_ends, inside = np.transpose(errors)
    _assert_order(method, _slope(STEPS[method], at_ends))
    # Over many steps the dense output has the order of the method, for it starts from the ends of steps and adds
    # h^(degree + 1), which is h⁴, h⁵ and h⁸.
    _assert_order(method, _slope(STEPS[method], inside))


@pytest.mark.parametrize("method", ORDERS)
def test_within_one_step_dense_output_has_the_order_of_its_interpolant(net, u, truth, method):
    errors = []
    for parts in SINGLE_STEPS[method]:
        places = FINEST // parts * np.arange(1, 4)
        sol = _run(net, u, END / parts, 1, method)
        errors.append(np.abs(sol(END / (4 * FINEST) * places) - truth[places]).max())
    assert abs(_slope(SINGLE_STEPS[method], errors) - (DEGREES[method] + 1)) <= 0.3


@pytest.mark.slow
def test_the_error_falls_on_a_long_horizon_too(net):
    steps = (64, 128, 256)
    u = FunctionSignal(lambda _: [1.0, 1.0], n_inputs=2, derivative=lambda _: [0.0, 0.0])
    exact = net.simulate(u, [0.0, 8.0], x0=X0).y[-1]
    errors = [np.abs(_run(net, u, 8.0, n, "RK45").y[-1] - exact).max() for n in steps]
    _assert_order("RK45", _slope(steps, errors))
