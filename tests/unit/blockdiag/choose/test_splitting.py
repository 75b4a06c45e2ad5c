"""Hypothesis: neurons leave their blocks one by one, and T is as well conditioned as the one computed from scratch."""

import numpy as np
import pytest

from hard_matrices import clusters_in_triangle, random_dense
from ltinet.blockdiag.schur import real_schur
from ltinet.blockdiag.separation import separate
from ltinet.blockdiag.tradeoff_forms import _largest_singular_value, split_greedily


@pytest.mark.parametrize("A", [random_dense(14, 3), clusters_in_triangle(12)], ids=["dense", "triangle"])
def test_each_step_has_the_condition_of_its_groups(A):
    schur = real_schur(A)
    start = separate(schur, np.zeros(len(schur.sizes), dtype=np.intp))
    splits = list(split_greedily(start))
    assert len(splits) == len(schur.sizes) - 1
    for split in splits:
        # Both are computed to eps·cond(T) relative to T.
        expected = separate(start.schur, split.groups).condition
        assert split.condition == pytest.approx(expected, rel=max(1e-8, 1e-14 * expected))


def test_each_step_has_one_block_more_and_keeps_the_others():
    schur = real_schur(random_dense(12, 5))
    before = np.zeros(len(schur.sizes), dtype=np.intp)
    for split in split_greedily(separate(schur, before)):
        assert len(np.unique(split.groups)) == len(np.unique(before)) + 1
        together = split.groups[:, None] == split.groups
        assert not (together & (before[:, None] != before)).any()
        before = split.groups


def test_the_largest_singular_value():
    matrix = np.diag([3.0, 1e-3, 1.0]) @ np.linalg.qr(random_dense(3, 1))[0]
    assert _largest_singular_value(matrix) == pytest.approx(3.0, rel=1e-9)
