"""Validation of frequency responses: invalid data are rejected, and the message says what to do."""

import numpy as np
import pytest

from ltinet.errors import InvalidSignalError
from ltinet.identification.frequency_data import validate_frequency_data
from ltinet.identification.frequency_fit import fit_response

OMEGA = np.geomspace(0.1, 10.0, 20)
H = 1.0 / (1j * OMEGA + 1.0)


def refused(omega, response, *, match, **options):
    with pytest.raises(InvalidSignalError, match=match):
        fit_response(omega, response, **options)


def with_entry(values, at, entry):
    changed = np.array(values, dtype=complex if isinstance(entry, complex) else values.dtype)
    changed[at] = entry
    return changed


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_numbers_that_are_none(entry):
    refused(with_entry(OMEGA, 3, entry), H, match=r"omega\[3\] is (nan|inf)")
    refused(OMEGA, with_entry(H, 4, complex(entry, 0.0)), match=r"H\[4, 0, 0\].*leave out")


def test_negative_frequencies():
    refused(-OMEGA[::-1], H, match="conjugate")


def test_complex_frequencies():
    refused(1j * OMEGA, H, match="rad/s")


def test_one_frequency_with_two_responses():
    refused(with_entry(OMEGA, 1, OMEGA[0]), H, match="average")


def test_repeated_frequency_counts_once():
    twice = validate_frequency_data(np.append(OMEGA, OMEGA[5]), np.append(H, H[5]), None)
    np.testing.assert_array_equal(twice.omega, OMEGA)
    np.testing.assert_array_equal(twice.H[:, 0, 0], H)


def test_frequencies_are_sorted():
    np.testing.assert_array_equal(validate_frequency_data(OMEGA[::-1], H[::-1], None).H[:, 0, 0], H)


def test_too_few():
    refused(OMEGA[:5], H[:5], match="at least 6")


def test_frequencies_last():
    refused(OMEGA, np.ones((2, 3, 20)), match="moveaxis")


def test_two_axes():
    refused(OMEGA, np.ones((20, 2)), match=r"H\[:, :, None\]")


def test_complex_gain_at_rest():
    refused(np.append(0.0, OMEGA), np.append(1.0 + 0.1j, H), match="omega = 0")


@pytest.mark.parametrize("order", [-1, 2.0, True, "3", range(0), range(-1, 3)])
def test_orders_that_are_none(order):
    refused(OMEGA, H, order=order, match="an integer of at least 0")


def test_order_too_large():
    refused(OMEGA, H, order=19, match="give at most 6")


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(20), np.zeros(20), np.full(20, np.nan), 1j * np.ones(20)])
def test_weights_that_are_none(weights):
    refused(OMEGA, H, weights=weights, match="weights")


def test_stable_is_one_of_three():
    refused(OMEGA, H, stable="yes", match="auto")
