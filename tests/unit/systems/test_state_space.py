"""A system is validated once, never changes afterwards, and every shape that has one meaning is accepted."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.state_space import StateSpace

A = np.array([[-1.0, 2.0], [0.0, -3.0]])
B = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]])
C = np.array([[1.0, 1.0]])
D = np.array([[0.5, 0.0, -0.5]])


def test_holds_the_matrices_and_counts_what_they_connect():
    system = StateSpace(A, B, C, D)
    for name, value in {"A": A, "B": B, "C": C, "D": D}.items():
        np.testing.assert_array_equal(getattr(system, name), value)
    assert (system.n_states, system.n_inputs, system.n_outputs) == (2, 3, 1)
    assert repr(system) == "StateSpace(n_states=2, n_inputs=3, n_outputs=1)"


def test_feedthrough_left_out_or_zero_is_a_zero_matrix():
    for system in (StateSpace(A, B, C), StateSpace(A, B, C, 0), StateSpace(A, B, C, np.float32(0.0))):
        np.testing.assert_array_equal(system.D, np.zeros((1, 3)))


def test_integer_and_sparse_matrices_are_cast():
    system = StateSpace(sparse.csc_array(A), B.astype(int), [[1, 1]])
    assert system == StateSpace(A, B, C)
    assert system.A.dtype == system.B.dtype == system.C.dtype == np.float64


def test_a_later_change_of_the_users_arrays_changes_nothing():
    mine = A.copy()
    system = StateSpace(mine, B, C)
    mine[:] = 7.0
    np.testing.assert_array_equal(system.A, A)


@pytest.mark.parametrize(
    "duplicate",
    [lambda s: s, copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))],  # noqa: S301
)
def test_is_immutable_and_stays_so_when_copied_and_pickled(duplicate):
    original = StateSpace(A, B, C, D)
    system = duplicate(original)
    assert system == original
    for matrix in (system.A, system.B, system.C, system.D):
        assert not matrix.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        system.A = A


def test_equality_compares_every_entry_and_the_hash_agrees():
    system = StateSpace(A, B, C, D)
    assert system == StateSpace(A.tolist(), B, C, D)
    assert hash(system) == hash(StateSpace(A + -0.0, B, C, D))
    assert hash(StateSpace(-0.0, 1, 1)) == hash(StateSpace(0.0, 1, 1))
    for other in (
        StateSpace(np.nextafter(A, 0), B, C, D),
        StateSpace(A, 2 * B, C, D),
        StateSpace(A, B, -C, D),
        StateSpace(A, B, C),
    ):
        assert system != other
    assert system != "a system"
    assert StateSpace(A, B[:, :0], C) != StateSpace(A, B[:, :1], C)


def test_static_gains_and_systems_without_inputs_or_outputs_keep_their_axes():
    gain = StateSpace(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((3, 0)), np.ones((3, 2)))
    assert (gain.n_states, gain.n_inputs, gain.n_outputs) == (0, 2, 3)
    assert StateSpace([], [], [], np.ones((3, 2))) == gain
    assert StateSpace([], [], [], 5).D.shape == (1, 1)
    assert StateSpace(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((3, 0))).D.shape == (3, 2)
    assert StateSpace(A, np.zeros((2, 0)), C).D.shape == (1, 0)
    assert StateSpace(A, B, np.zeros((0, 2))).D.shape == (0, 3)
    assert pickle.loads(pickle.dumps(gain)) == gain  # noqa: S301


def test_vectors_and_numbers_are_read_where_only_one_reading_exists():
    system = StateSpace(A, [1, 2], [3, 4], 5)
    np.testing.assert_array_equal(system.B, [[1.0], [2.0]])
    np.testing.assert_array_equal(system.C, [[3.0, 4.0]])
    np.testing.assert_array_equal(system.D, [[5.0]])
    np.testing.assert_array_equal(StateSpace(A, B, C, [1, 2, 3]).D, [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(StateSpace(A, [1, 2], np.eye(2), [7, 8]).D, [[7.0], [8.0]])
    assert StateSpace(-1, 1, 1, 0).A.shape == (1, 1)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ((np.ones((2, 3)), B, C), r"A is 2×3; it must be square"),
        ((A * 1j, B, C), r"A is complex.*A\.real"),
        ((A, B.T, C), r"B has shape \(3, 2\) but A is 2×2.*pass B\.T"),
        ((A, [1, 2, 3], C), r"B has shape \(3,\) but A is 2×2"),
        ((-1, [1, 2], 1), r"B has shape \(2,\) but A is 1×1"),
        ((A, B, C.T), r"C has shape \(2, 1\) but A is 2×2.*outputs\)×2: pass C\.T"),
        ((A, B, [1, 2, 3]), r"C has shape \(3,\)"),
        ((A, B, C, D.T), r"D has shape \(3, 1\) but C has 1 rows and B 3 columns.*1×3.*leave it out"),
        ((A, B, C, 5), r"D has shape \(\) but"),
        ((A, B, np.eye(2), [1, 2]), r"D has 1 axis"),
        ((A, B, C, D * np.nan), r"D\[0, 0\] = nan"),
        (([], [], [[]]), r"B is an empty list and D is missing.*np\.zeros\(\(0, n_inputs\)\)"),
        (([], np.zeros((0, 2)), []), r"C is an empty list and D is missing.*np\.zeros\(\(n_outputs, 0\)\)"),
        ((A, B, C, D, np.eye(3)), r"E is 3×3 but A is 2×2"),
        ((A, B, C, D, np.ones((2, 3))), r"E is 2×3; it must be square"),
    ],
)
def test_a_matrix_that_does_not_fit_is_named_with_a_way_out(matrices, message):
    with pytest.raises(InvalidSystemError, match=message):
        StateSpace(*matrices)
