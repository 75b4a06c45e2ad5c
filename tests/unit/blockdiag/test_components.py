"""Hypothesis: the pieces of a graph are those that SciPy finds, whatever the numbering of its nodes."""

import numpy as np
import pytest
from scipy.sparse import csgraph

from ltinet.blockdiag.schur import graph_components


def expected(edges):
    """The same pieces by SciPy, as sets."""
    _, labels = csgraph.connected_components(edges, directed=True, connection="weak")
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def as_sets(pieces):
    return {frozenset(piece.tolist()) for piece in pieces}


@pytest.mark.parametrize("share", [0.0, 0.01, 0.02, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 2, 30, 101])
def test_random_graphs(n, share):
    rng = np.random.default_rng(n)
    for _ in range(10):
        edges = rng.random((n, n)) < share
        pieces = graph_components(edges)
        assert as_sets(pieces) == expected(edges)
        assert sorted(np.concatenate(pieces).tolist()) == list(range(n))


def test_a_chain_in_any_order():
    order = np.random.default_rng(0).permutation(200)
    edges = np.zeros((200, 200), dtype=bool)
    edges[order[:-1], order[1:]] = True
    assert len(graph_components(edges)) == 1
    edges[order[99], order[100]] = False
    assert as_sets(graph_components(edges)) == {frozenset(order[:100].tolist()), frozenset(order[100:].tolist())}


def test_pieces_stand_in_order_of_their_first_nodes():
    edges = np.zeros((5, 5), dtype=bool)
    edges[4, 0] = edges[2, 3] = True
    assert [piece.tolist() for piece in graph_components(edges)] == [[0, 4], [1], [2, 3]]
    assert edges.sum() == 2  # what was given is left alone


def test_nothing():
    assert [piece.tolist() for piece in graph_components(np.zeros((0, 0), dtype=bool))] == [[]]
