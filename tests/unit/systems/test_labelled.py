"""Hypothesis: the labels of DataFrames are the names of what they label, and never tell two stories."""

import numpy as np
import pytest

import ltinet
from ltinet.errors import InvalidSystemError
from named_signals import GIVEN, NAMES, A, B, C, named, names_of

pd = pytest.importorskip("pandas")


def frames():
    states = NAMES["states"]
    return (
        pd.DataFrame(A, index=states, columns=states),
        pd.DataFrame(B, index=states, columns=NAMES["inputs"]),
        pd.DataFrame(C, index=NAMES["outputs"], columns=states),
    )


def test_labels_of_frames_are_names():
    assert names_of(ltinet.StateSpace(*frames())) == GIVEN
    assert names_of(ltinet.as_state_space(frames())) == GIVEN
    assert ltinet.StateSpace(*frames()) == named()
    renamed = ltinet.StateSpace(*frames(), outputs=["y"])
    assert names_of(renamed) == (GIVEN[0], ("y",), GIVEN[2])
    unlabelled = ltinet.StateSpace(*(pd.DataFrame(matrix) for matrix in (A, B, C)))
    assert names_of(unlabelled) == (("u1", "u2"), ("y1",), ("x1", "x2"))


def test_frames_with_states_in_another_order_are_refused():
    F, G, H = frames()
    with pytest.raises(InvalidSystemError, match="rows of B; reorder them"):
        ltinet.StateSpace(F, G.iloc[::-1], H)
    with pytest.raises(InvalidSystemError, match="columns of A"):
        ltinet.StateSpace(F[F.columns[::-1]], G, H)
    with pytest.raises(InvalidSystemError, match="columns of C"):
        ltinet.StateSpace(F, G, H[H.columns[::-1]], **NAMES)


def test_rows_beside_a_descriptor_are_equations_not_states():
    F, G, H = frames()
    equations = ["kinematics", "balance of forces"]
    E = pd.DataFrame(2.0 * np.eye(2), index=equations, columns=F.columns)
    system = ltinet.StateSpace(F.set_axis(equations), G.set_axis(equations), H, E=E)
    assert names_of(system) == GIVEN
