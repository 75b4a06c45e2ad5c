"""A sparse A stays sparse, is checked without being filled in, and equals the same numbers given as arrays."""

import copy

import numpy as np
import pytest
from scipy import sparse

from ltinet import InvalidSystemError, StateSpace, as_state_space, construct
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
LARGE = MAX_DENSE_STATES + 1


def chain(n, dtype=float):
    return sparse.diags_array([1, -2, 1], offsets=[-1, 0, 1], shape=(n, n), dtype=dtype)


def large_system(**others):
    return StateSpace(chain(LARGE), np.ones((LARGE, 1)), np.ones((2, LARGE)), **others)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool, np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_and_type_keeps_its_numbers(format, dtype, kind):
    dense = (np.random.default_rng(5).integers(0, 9, (6, 6)) * (np.arange(36) % 4 == 0).reshape(6, 6)).astype(dtype)
    A = getattr(sparse, f"{format}_{kind}")(dense)
    system = StateSpace(A, np.ones((6, 1)), np.ones((1, 6)))
    assert system.sparse.A.format == "csr"
    assert system.sparse.A.dtype == np.float64
    assert np.array_equal(system.sparse.A.toarray(), dense.astype(float))
    assert np.array_equal(system.A, dense.astype(float))
    assert system == StateSpace(dense, np.ones((6, 1)), np.ones((1, 6)))
    assert hash(system) == hash(StateSpace(dense, np.ones((6, 1)), np.ones((1, 6))))


def test_entries_of_one_place_are_summed_after_the_cast_and_zeros_left_out():
    data, places = np.array([100, 100, 7, -7], dtype=np.int8), ([0, 0, 1, 1], [1, 1, 0, 0])
    system = StateSpace(sparse.coo_array((data, places), shape=(2, 2)), [1, 1], [1, 1])
    assert system.sparse.n_nonzeros == 1
    assert system.A.tolist() == [[0.0, 200.0], [0.0, 0.0]]


def test_what_was_given_and_what_is_given_out_can_change_without_consequences():
    A = sparse.csr_array(chain(5))
    system = StateSpace(A, np.ones(5), np.ones(5), E=sparse.eye_array(5))
    A.data[:] = 7.0
    handed = system.sparse.A
    with pytest.raises(ValueError, match="read-only"):
        handed.data[0] = 3.0
    handed.data = np.zeros(handed.nnz)  # nobody can forbid that, and it is the object that was given out
    assert np.array_equal(system.sparse.A.toarray(), chain(5).toarray())
    assert np.array_equal(system.A, chain(5).toarray())


def test_it_prints_what_it_is():
    plain = large_system()
    assert repr(plain) == (
        f"StateSpace(n_states={LARGE}, n_inputs=1, n_outputs=2, A sparse with {3 * LARGE - 2} non-zeros (symmetric), "
        "E = I)"
    )
    shift = sparse.eye_array(LARGE, k=1)
    assert f"E sparse with {LARGE - 1} non-zeros (not symmetric)" in str(large_system(E=shift))
    assert "sparse with" in plain._repr_html_()


def test_equality_hash_and_copies_need_no_arrays():
    one, other = large_system(), large_system()
    assert one == other
    assert hash(one) == hash(other)
    assert one != large_system(E=sparse.eye_array(LARGE))
    assert large_system(E=chain(LARGE)) == large_system(E=chain(LARGE))
    assert one != StateSpace(2.0 * chain(LARGE), np.ones((LARGE, 1)), np.ones((2, LARGE)))
    again = copy.deepcopy(large_system(E=chain(LARGE), dt=0.1))  # by the way that pickle goes
    assert again == large_system(E=chain(LARGE), dt=0.1)
    assert again.with_names(inputs=["heat"]).input_names == ("heat",)


@pytest.mark.parametrize(
    "call",
    [
        lambda system: system.A,
        lambda system: system.poles(),
        lambda system: system.zeros(),
        lambda system: system.to_discrete(0.1),
    ],
)
def test_what_needs_arrays_says_which_call_to_make(call):
    with pytest.raises(
        InvalidSystemError, match=rf"{LARGE}×{LARGE} with \d+ non-zeros; .*ltinet\.reduce\(system, tol.*"
    ):
        call(large_system())


def test_a_small_sparse_system_does_all_that_a_dense_one_does():
    A, B, C = chain(12), np.eye(12)[:, :2], np.eye(12)[-1:]
    E = sparse.diags_array(np.arange(1.0, 13.0))
    system, dense = StateSpace(A, B, C, E=E), StateSpace(A.toarray(), B, C, E=E.toarray())
    assert system == dense
    assert np.array_equal(system.B, dense.B)
    assert np.array_equal(system.descriptor.E, E.toarray())
    assert np.array_equal(system.poles(), dense.poles())
    assert construct(system) == construct(dense)
    assert as_state_space((A, B, C, None, E)) == dense


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (sparse.eye_array(3, 4), r"A is 3×4; it must be square"),
        (1j * sparse.eye_array(3), r"A is complex.*pass A\.real"),
        (sparse.coo_array(([1.0, np.nan], ([0, 2], [0, 1])), shape=(3, 3)), r"1 in all, the first A\[2, 1\] = nan"),
        (sparse.coo_array(([1e308, 1e308], ([1, 1], [0, 0])), shape=(3, 3)), r"the first A\[1, 0\] = inf"),
    ],
)
def test_what_is_no_state_matrix_is_refused_by_name(A, message):
    with pytest.raises(InvalidSystemError, match=message):
        StateSpace(A, np.ones((A.shape[0], 1)), np.ones((1, A.shape[0])))


def test_indices_that_lead_outside_are_refused_before_they_are_followed():
    outside = sparse.csr_array(np.eye(3))
    outside.indices[1] = 7
    with pytest.raises(InvalidSystemError, match=r"A is damaged.*build it again"):
        StateSpace(outside, np.ones(3), np.ones(3))
    places = sparse.coo_array(np.eye(3))
    places.row[1] = 2**20
    with pytest.raises(InvalidSystemError, match=r"A is damaged|A is 3×3 and has an entry outside"):
        StateSpace(places, np.ones(3), np.ones(3))


def test_a_sparse_E_may_be_singular_until_its_inverse_is_needed():
    E = sparse.diags_array([1.0, 0.0, 1.0])
    system = StateSpace(chain(3), np.ones(3), np.ones(3), E=E)
    assert system.sparse.E.nnz == 2
    with pytest.raises(InvalidSystemError, match=r"E is singular: its row 1 is zero"):
        system.poles()
    with pytest.raises(InvalidSystemError, match=r"E is 2×2 but A is 3×3"):
        StateSpace(chain(3), np.ones(3), np.ones(3), E=sparse.eye_array(2))
