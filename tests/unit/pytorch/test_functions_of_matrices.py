"""φ-functions of scalars and matrices against ball arithmetic."""

import flint
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from learnt_systems import KINDS
from ltinet._util.floating_point import EPS
from ltinet.torch.exponentials import matrix_exponential, matrix_phi, pair_phi


@pytest.fixture(autouse=True)
def _many_digits() -> None:
    flint.ctx.prec = 2500  # of 1 + 1e-300, whose tail is asked for


def exact_phi(z: complex) -> tuple[complex, complex]:
    number = flint.acb(z.real, z.imag)
    if z == 0:
        return 1.0, 0.5
    first = (number.exp() - 1) / number
    return complex(first), complex((first - 1) / number)


@pytest.mark.slow
def test_tracing_leaves_no_tensors_behind() -> None:
    """Tensors without values, as `torch.export` uses them, must not enter a cache of the process."""
    x = torch.rand(3, dtype=torch.float64)
    with FakeTensorMode() as mode:
        traced = pair_phi(mode.from_tensor(x), mode.from_tensor(x))
    assert isinstance(traced[0].re, FakeTensor)
    assert type(pair_phi(x, x)[0].re) is torch.Tensor


SIZES = [0.0, 1e-300, 1e-9, 1e-3, 0.3, 0.999, 1.001, 3.0, 30.0]


@pytest.mark.parametrize("size", SIZES)
def test_phi_of_pairs(size: float) -> None:
    angles = np.linspace(0.5 * np.pi, np.pi, 23)  # the left half plane
    z = size * np.exp(1j * angles)
    first, second = pair_phi(torch.from_numpy(z.real.copy()), torch.from_numpy(z.imag.copy()))
    for place, number in enumerate(z):
        for got, expected in zip((first, second), exact_phi(complex(number)), strict=True):
            error = complex(float(got.re[place]), float(got.im[place])) - expected
            assert abs(error) <= 8.0 * EPS * abs(expected)


@pytest.mark.parametrize("size", SIZES)
def test_phi_of_reals(size: float) -> None:
    for number in (size, -size):
        x = torch.tensor([number], dtype=torch.float64)
        for value, expected in zip(pair_phi(x, torch.zeros_like(x)), exact_phi(complex(number)), strict=True):
            assert abs(float(value.re) - expected.real) <= 8.0 * EPS * abs(expected)
            assert float(value.im) == 0.0


def exact_exponential(M: np.ndarray) -> np.ndarray:
    entries = flint.arb_mat([[float(entry) for entry in row] for row in M]).exp()
    return np.array([[float(entries[i, j]) for j in range(len(M))] for i in range(len(M))])


@pytest.mark.parametrize("size", [1e-6, 0.1, 0.4, 0.8, 1.7, 12.0])  # at 0.4 to 0.8 PyTorch's own is off by 1e-11
@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_matrices(kind: str, size: float) -> None:
    M = size * KINDS[kind]
    n = len(M)
    augmented = np.zeros((3 * n, 3 * n))  # exp([[M, I, 0], [0, 0, I], [0, 0, 0]]) has e^M, φ₁ and φ₂ in its first rows
    augmented[:n, :n], augmented[:n, n : 2 * n], augmented[n : 2 * n, 2 * n :] = M, np.eye(n), np.eye(n)
    exact = exact_exponential(augmented)[:n]
    functions = matrix_phi(torch.from_numpy(M))
    allowed = 8.0 * EPS * n * max(1.0, float(np.abs(M).sum(0).max()))
    for place, got in enumerate(functions):
        expected = exact[:, place * n : (place + 1) * n]
        assert np.abs(got.numpy() - expected).max() <= allowed * np.abs(expected).max()
    assert torch.equal(functions[0], matrix_exponential(torch.from_numpy(M)))


@pytest.mark.parametrize("fast", [30.0, 1e3, 1e6])
def test_slow_states_beside_fast_ones_keep_their_digits(fast: float) -> None:
    slow = np.array([[-0.02, 0.3], [-0.1, 0.01]])
    M = np.zeros((4, 4))
    M[:2, :2], M[2:, 2:] = slow, fast * np.array([[-0.1, 1.0], [-1.0, -0.1]])
    got = matrix_phi(torch.from_numpy(M))
    alone = matrix_phi(torch.from_numpy(slow))  # its norm is below one: the series alone, which is held to balls above
    for whole, part in zip(got, alone, strict=True):
        # A few roundings of the entries in each doubling, but no growth from one to the next.
        allowed = 4.0 * EPS * np.log2(np.abs(M).sum(0).max())
        assert np.abs(whole.numpy()[:2, :2] - part.numpy()).max() <= allowed


@pytest.mark.parametrize("seed", range(8))
def test_units_that_are_decades_apart_cost_no_digit(seed: int) -> None:
    rng = np.random.default_rng([13, seed])
    n = int(rng.integers(2, 8))
    plain = rng.uniform(0.5, 6.0) * (rng.standard_normal((n, n)) - 2.0 * np.eye(n)) / np.sqrt(n)
    units = 2.0 ** rng.integers(-40, 41, n)
    allowed = 8.0 * EPS * n * float(np.abs(plain).sum(0).max())
    exact = exact_exponential(plain)
    for M in (plain * units / units[:, None], np.stack([plain, 0.5 * plain]) * units / units[:, None]):
        got = (matrix_phi(torch.from_numpy(M))[0].numpy() * (units[:, None] / units)).reshape(-1, n, n)[0]
        assert np.abs(got - exact).max() <= allowed * np.abs(exact).max()
