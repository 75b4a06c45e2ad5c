"""An object of another library becomes a system with the same frequency response, or is refused with a way out."""

from types import SimpleNamespace

import control
import mpmath
import numpy as np
import pytest
from scipy import signal, sparse

from ltinet._util.floating_point import EPS
from ltinet.conversion import as_state_space
from ltinet.errors import InvalidSystemError
from ltinet.state_space import StateSpace

A = np.array([[-1.0, 2.0], [-3.0, -1.0]])
B = np.array([[1.0, 0.0], [0.0, 2.0]])
C = np.array([[1.0, 1.0]])
D = np.array([[0.0, 0.5]])
POINTS = np.array([0.0, 0.3j, 1j, 7j, 2.0 + 1j])


def response(system, s):
    return system.C @ np.linalg.solve(s * np.eye(system.n_states) - system.A, system.B) + system.D


def assert_same_response(system, transfer_function, rtol=1e-12):
    for s in POINTS:
        np.testing.assert_allclose(response(system, s), transfer_function(s), rtol=rtol, atol=1e-300)


def ratio(num, den):
    return lambda s: np.array([[np.polyval(num, s) / np.polyval(den, s)]])


def test_a_state_space_is_returned_as_it_is():
    system = StateSpace(A, B, C, D)
    assert as_state_space(system) is system


@pytest.mark.parametrize("kind", [tuple, list])
def test_matrices_in_a_sequence(kind):
    assert as_state_space(kind([A, B, C])) == StateSpace(A, B, C)
    assert as_state_space(kind([A.tolist(), B, C, D])) == StateSpace(A, B, C, D)
    assert as_state_space(kind([sparse.csc_array(A), B, C, None, 2 * np.eye(2)])) == StateSpace(A / 2, B / 2, C)
    assert as_state_space(kind([-1, 1, 1, 0])) == StateSpace(-1, 1, 1)


def test_state_space_objects_of_scipy_and_control_keep_their_states():
    assert as_state_space(signal.StateSpace(A, B, C, D)) == StateSpace(A, B, C, D)
    assert as_state_space(signal.lti(A, B, C, D)) == StateSpace(A, B, C, D)
    assert as_state_space(control.ss(A, B, C, D)) == StateSpace(A, B, C, D)
    assert as_state_space(control.ss(A, B, C, D, dt=None)) == StateSpace(A, B, C, D)
    assert as_state_space(control.ss([], [], [], [[1, 2]])) == StateSpace([], [], [], [[1, 2]])


@pytest.mark.parametrize(
    ("num", "den"),
    [
        ([1.0], [1.0, 2.0]),
        ([3.0, 1.0], [2.0, 4.0, 6.0]),
        ([5.0, 1.0, 2.0], [2.0, 4.0, 6.0]),  # feedthrough
        ([4.0], [2.0]),  # a static gain
        ([0.0], [1.0, 1.0]),
        ([0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 3.0, 5.0, 7.0]),
        ([1e-20, 3e-20], [1.0, 1.0]),  # SciPy's tf2ss drops the leading 1e-20
    ],
)
def test_one_input_transfer_functions_agree_with_their_polynomials(num, den):
    system = as_state_space((num, den))
    assert_same_response(system, ratio(num, den))
    assert system.n_states == len(np.trim_zeros(den, "f")) - 1


def test_transfer_function_objects_of_scipy_and_control():
    num, den = [3.0, 1.0], [2.0, 4.0, 6.0]
    assert_same_response(as_state_space(signal.TransferFunction(num, den)), ratio(num, den))
    assert_same_response(as_state_space(control.tf(num, den)), ratio(num, den))
    assert_same_response(as_state_space(control.tf(num, den, dt=None)), ratio(num, den))
    outputs = signal.TransferFunction([[1.0, 2.0], [3.0, 4.0]], [1.0, 5.0, 6.0])
    system = as_state_space(outputs)
    assert (system.n_states, system.n_outputs, system.n_inputs) == (2, 2, 1)
    assert_same_response(system, lambda s: np.array([[s + 2], [3 * s + 4]]) / (s * s + 5 * s + 6))


def test_a_transfer_matrix_agrees_with_its_entries_and_shares_states_within_a_column():
    num = [[[1.0], [1.0, 2.0], [7.0]], [[3.0], [1.0], [1.0, 0.0]]]
    den = [[[1.0, 2.0], [1.0, 3.0], [2.0]], [[1.0, 2.0], [1.0, 4.0, 1.0], [1.0, 1.0]]]

    def entries(s):
        return np.array(
            [
                [np.polyval(n, s) / np.polyval(d, s) for n, d in zip(*row, strict=True)]
                for row in zip(num, den, strict=True)
            ]
        )

    system = as_state_space(control.tf(num, den))
    assert (system.n_outputs, system.n_inputs) == (2, 3)
    assert system.n_states == 1 + (1 + 2) + (0 + 1)  # the first column has one denominator
    assert_same_response(system, entries)


def test_zeros_poles_and_gain_agree_with_their_product():
    zeros, poles, gain = [-1.0, -2 + 3j, -2 - 3j], [-4.0, -5.0, -0.1 + 9j, -0.1 - 9j, -6.0], 2.5
    system = as_state_space(signal.ZerosPolesGain(zeros, poles, gain))
    assert system.n_states == 5
    assert_same_response(
        system, lambda s: np.array([[gain * np.prod(s - np.array(zeros)) / np.prod(s - np.array(poles))]])
    )
    np.testing.assert_array_equal(as_state_space(signal.ZerosPolesGain([], [], 3.0)).D, [[3.0]])


def test_thirty_close_poles_survive_without_multiplying_out_the_polynomial():
    poles = -np.arange(1.0, 31.0)
    system = as_state_space(signal.ZerosPolesGain([], poles, 1.0))
    computed = np.sort(np.linalg.eigvals(system.A).real)[::-1]
    np.testing.assert_allclose(computed, poles, rtol=1e-12)  # the companion matrix of the product loses every digit
    with mpmath.workdps(50):
        exact = float(1 / mpmath.fprod(2 - mpmath.mpf(pole) for pole in poles))
    np.testing.assert_allclose(response(system, 2.0), [[exact]], rtol=1e3 * EPS)


def test_conjugates_need_only_agree_to_rounding():
    poles = np.array([-1 + 2j, np.nextafter(-1, 0) - 2j, -3 + 1e-17j])
    assert as_state_space(signal.ZerosPolesGain([], poles, 1.0)).n_states == 3


@pytest.mark.parametrize("step", [None, 0, 0.0, np.array(0), False])
def test_a_time_step_of_zero_is_continuous_time(step):
    assert as_state_space(SimpleNamespace(A=A, B=B, C=C, dt=step, Ts=step)) == StateSpace(A, B, C)


def test_a_descriptor_matrix_of_one_state_is_no_time_step():
    assert as_state_space(([[-1.0]], [[1.0]], [[1.0]], [[0.0]], [[0.5]])) == StateSpace(-2.0, 2.0, 1.0)


def test_objects_known_only_by_their_attributes_are_accepted():
    system = as_state_space(SimpleNamespace(A=A, B=B, C=C, E=2 * np.eye(2)))
    assert system == StateSpace(A / 2, B / 2, C)
    model = SimpleNamespace(to_matrices=lambda: (A, B, C, None, None), sampling_time=0, parameters={})
    assert as_state_space(model) == StateSpace(A, B, C)


def test_pymor_models():
    iosys = pytest.importorskip("pymor.models.iosys", reason="pyMOR is not installed")
    descriptor = iosys.LTIModel.from_matrices(sparse.csc_matrix(A), B, C, D, 2 * np.eye(2))
    assert as_state_space(descriptor) == StateSpace(A, B, C, D, 2 * np.eye(2))
    assert as_state_space(iosys.LTIModel.from_matrices(A, B, C)) == StateSpace(A, B, C)
    K = np.array([[2.0, -1.0], [-1.0, 2.0]])
    second_order = iosys.SecondOrderModel.from_matrices(2 * np.eye(2), 0.1 * K, K, B, C)
    np.testing.assert_array_equal(as_state_space(second_order).A[2:], np.hstack([-K, -0.1 * K]) / 2)
    assert as_state_space(iosys.LTIModel.from_matrices(A, B, C, sampling_time=0.1)) == StateSpace(A, B, C, dt=0.1)


@pytest.mark.parametrize(
    ("sampled", "expected"),
    [
        (signal.StateSpace(A, B, C, D, dt=0.1), StateSpace(A, B, C, D, dt=0.1)),
        (signal.ZerosPolesGain([], [0.5], 1.0, dt=0.5), StateSpace(0.5, 1.0, 1.0, dt=0.5)),
        (control.ss(A, B, C, D, dt=0.1), StateSpace(A, B, C, D, dt=0.1)),
        (control.tf([1.0], [1.0, 2.0], dt=2.0), StateSpace(-2.0, 1.0, 1.0, dt=2.0)),
        (signal.dlti([1.0], [1.0, 0.5], dt=0.1), StateSpace(-0.5, 1.0, 1.0, dt=0.1)),
        (
            SimpleNamespace(to_matrices=lambda: (A, B, C, None, None), sampling_time=0.1),
            StateSpace(A, B, C, dt=0.1),
        ),
        *(
            (SimpleNamespace(A=A, B=B, C=C, **{name: 0.1}), StateSpace(A, B, C, dt=0.1))
            for name in ("dt", "Ts", "ts", "sample_time")
        ),
        (SimpleNamespace(A=A, B=B, C=C, dt=np.array([0.1])), StateSpace(A, B, C, dt=0.1)),
    ],
    ids=lambda obj: f"{type(obj).__module__}.{type(obj).__name__}",
)
def test_sampled_systems_keep_their_time_step(sampled, expected):
    assert as_state_space(sampled) == expected
    assert as_state_space(sampled).dt == expected.dt


@pytest.mark.parametrize(
    "sampled",
    [
        signal.TransferFunction([1.0], [1.0, 2.0], dt=True),
        control.ss(A, B, C, D, dt=True),
        signal.dlti(A, B, C, D),
        signal.StateSpace(A, B, C, D, dt=0),  # scipy makes a dlti of it
        *(SimpleNamespace(A=A, B=B, C=C, dt=dt) for dt in (-1, np.nan, "0.1", [], True)),
    ],
    ids=lambda obj: f"{type(obj).__module__}.{type(obj).__name__}",
)
def test_a_time_step_without_a_length_is_refused_with_a_way_out(sampled):
    with pytest.raises(InvalidSystemError, match=r"discrete in time.*no time step.*StateSpace\(A, B, C, D, dt=0\.1\)"):
        as_state_space(sampled)


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (([1.0, 2.0, 3.0], [1.0, 1.0]), r"improper: num has degree 2, den only 1.*pass a proper one"),
        (([1.0], [0.0, 0.0]), r"den is zero"),
        (([1.0], [[1.0, 2.0], [3.0, 4.0]]), r"den has shape \(2, 2\)"),
        (([1j], [1.0, 2.0]), r"num is complex"),
        (([1.0], [5e-324, 1.0]), r"C has entries that are not finite|A has entries that are not finite"),
        (SimpleNamespace(num=[[[1.0], [1.0, 0.0]]], den=[[[1.0, 1.0], [1.0]]]), r"input 1: .*improper"),
        (signal.ZerosPolesGain([-1, -2], [-3], 1.0), r"improper: 2 zeros but 1 poles"),
        (signal.ZerosPolesGain([], [-1 + 2j, -1 - 3j], 1.0), r"poles has complex entries without their conjugates"),
        (signal.ZerosPolesGain([], [-1 - 2j], 1.0), r"poles has complex entries without"),
        (signal.ZerosPolesGain([2j], [-1, -2], 1.0), r"zeros has complex entries without"),
        (signal.ZerosPolesGain([[-1], [-2]], [-3, -4], [1.0, 2.0]), r"zeros and poles must be 1-D"),
        (([-1.0], [-2.0, -3.0], 1.0), r"\(A, B, C\) or \(zeros, poles, gain\).*ZerosPolesGain"),
        ((-1, 1, 1), r"\(A, B, C\) or \(zeros, poles, gain\)"),
        (([[1], [2, 3]], B, C), r"the first part cannot be read"),
        ([[1.0], [1.0, 2.0]], r"a list of 2 parts is not a system; accepted are ltinet\.StateSpace; tuples"),
        ((A,), r"a tuple of 1 parts is not a system; accepted"),
        (
            ([[-1.0]], [[1.0]], [[1.0]], [[0.0]], 0.1),
            r"fifth part is a number, 0\.1, as in .*\(A, B, C, D, dt\).*discrete",
        ),
        (signal.cont2discrete((A, B, C, D), 0.1), r"scipy.signal; pass ltinet\.StateSpace\(A, B, C, D, dt="),
        (np.eye(3), r"numpy\.ndarray is not a system.*accepted are .*control.*pyMOR LTIModel"),
        (None, r"NoneType is not a system"),
        (control.frd([1.0, 2.0], [1.0, 2.0]), r"FrequencyResponseData is not a system"),
        (SimpleNamespace(to_matrices=None, parameters={"k": 1}), r"depends on parameters \(k\).*to_matrices\(mu=mu\)"),
        (SimpleNamespace(to_matrices=lambda: (A, B, C)), r"gives 3 matrices, not A, B, C, D, E"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_a_way_out(obj, message):
    with pytest.raises(InvalidSystemError, match=message):
        as_state_space(obj)
