"""Lists of degrees of freedom in place of B and C."""

import numpy as np
import pytest
from scipy import sparse

from ltinet import InvalidSystemError, SecondOrder, StateSpace

N = 6
A = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(N, N))
EYE = np.eye(N)


@pytest.mark.parametrize("dofs", [[4, 1], (4, 1), np.array([4, 1]), range(4, 0, -3)])
def test_lists_of_integers_select_rows_and_columns(dofs):
    system = StateSpace(A, inputs=dofs, outputs=dofs)
    assert np.array_equal(system.sparse.B, EYE[:, [4, 1]])
    assert np.array_equal(system.C, EYE[[4, 1]])
    assert system.output_names == ("y1", "y2")


def test_states_select_outputs_that_outputs_may_name():
    system = StateSpace(A, EYE[:, 0], states=[5, 2], outputs=["Tip", "Middle"])
    assert np.array_equal(system.C, EYE[[5, 2]])
    assert system.output_names == ("Tip", "Middle")


def test_outputs_are_called_like_the_states_that_they_are():
    names = [f"T{index}" for index in range(N)]
    assert StateSpace(A, EYE[:, 0], outputs=[5, 2], states=names).output_names == ("T5", "T2")


def test_second_order_models_have_positions_as_outputs():
    model = SecondOrder(EYE, EYE, A, inputs=[3], outputs=[0, 5])
    assert np.array_equal(model.B, EYE[:, [3]])
    assert np.array_equal(model.C, EYE[[0, 5]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": [0, 6]}, "outputs has the degree of freedom 6.*the last is 5"),
        ({"outputs": [-1]}, "outputs has the degree of freedom -1"),
        ({"outputs": [2, 2]}, "2 twice"),
        ({"states": [7]}, "the degree of freedom 7"),
        ({"outputs": [1], "states": [2]}, "both degrees of freedom"),
        ({"outputs": [1], "C": EYE[:1]}, "both C and outputs"),
        ({}, r"C is missing; pass the matrix C, or outputs=\[0, 7\]"),
        ({"outputs": [1.5]}, "C is missing"),
        ({"outputs": np.array([True, False])}, "C is missing"),
    ],
)
def test_wrong_lists_are_one_clear_error(arguments, message):
    with pytest.raises(InvalidSystemError, match=message):
        StateSpace(A, EYE[:, 0], **arguments)


@pytest.mark.parametrize("dofs", [["Tip"], [True], 3, [9], "q"])
def test_second_order_models_take_integers_only(dofs):
    with pytest.raises(InvalidSystemError, match=r"outputs (must be a list of degrees|has the degree)"):
        SecondOrder(EYE, EYE, A, EYE[:, 0], outputs=dofs)


def test_a_missing_B_is_named():
    with pytest.raises(InvalidSystemError, match="B is missing"):
        StateSpace(A, C=EYE[:1])
