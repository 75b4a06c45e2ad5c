"""What a block-diagonal form must satisfy, measured without any help of the package that made it."""

import math

import numpy as np
from scipy.linalg import lapack

EPS = float(np.finfo(float).eps)

# LAPACK's own test programs call a factorisation correct when its scaled residual stays below this.
LAPACK_THRESHOLD = 30.0


def similarity_ratio(A, form):
    """‖A T − T A_bd‖₁ / (n·eps·‖A‖₁‖T‖₁), with A scaled to order one so that 1e±150 neither over- nor underflows."""
    if not np.any(A):
        return 0.0 if not np.any(form.A) else math.inf
    unit = power_of_two_near(np.max(np.abs(A)))
    A, A_bd = A / unit, form.A / unit
    residual = np.linalg.norm(A @ form.T - form.T @ A_bd, 1)
    return float(residual / (len(A) * EPS * np.linalg.norm(A, 1) * np.linalg.norm(form.T, 1)))


def inverse_ratio(form):
    """‖T T⁻¹ − I‖₁ / (n·eps·cond₁(T))."""
    n = len(form.T)
    if n == 0:
        return 0.0
    condition = np.linalg.norm(form.T, 1) * np.linalg.norm(form.T_inv, 1)
    return float(np.linalg.norm(form.T @ form.T_inv - np.eye(n), 1) / (n * EPS * condition))


def balancing_scale(A):
    """LAPACK's powers of two for the states (`gebal`, scaling only)."""
    if len(A) == 0:
        return np.ones(0)
    unit = power_of_two_near(np.max(np.abs(A)))
    return lapack.dgebal(np.array(A) / unit, scale=1, permute=0)[3]


def balanced_condition(A, form):
    """cond₂(T) by singular values, in the units of the form: those that LAPACK's balancing gives, or as given."""
    assert np.all(form.scaling == 1.0) or np.array_equal(form.scaling, balancing_scale(A))
    return float(np.linalg.cond(form.T / form.scaling[:, None])) if len(A) else 1.0


def assert_lapack_standard(A, form):
    """The two ratios of LAPACK's test programs."""
    assert similarity_ratio(A, form) < LAPACK_THRESHOLD
    assert inverse_ratio(form) < LAPACK_THRESHOLD


def assert_within_budget(A, form, max_condition):
    """Singular values are exact to n·eps·σ_max, so that a condition number κ is known to n·eps·κ², no better."""
    slack = 1.0 + 10.0 * max(len(A), 1) * EPS * max_condition
    assert balanced_condition(A, form) <= max_condition * slack


def assert_pattern(form):
    """Definition 4 of the paper: G_r, G_c or G, and nothing outside the blocks."""
    outside = np.array(form.A)
    start = 0
    assert sum(form.block_sizes) == len(form.A)
    for index, size in enumerate(form.block_sizes):
        block = form.block(index)
        outside[start : start + size, start : start + size] = 0.0
        assert_block_pattern(block, form.eigenvalues[index])
        start += size
    assert not np.any(outside)


def assert_block_pattern(block, eigenvalues):
    """Real eigenvalues first, on 1×1 blocks; then 2×2 blocks of complex pairs; zeros below."""
    size, n_real = len(block), int(np.sum(eigenvalues.imag == 0))
    noise = 10.0 * size * EPS * np.max(np.abs(block), initial=0.0)  # what orthogonal swaps inside the block may move
    assert len(eigenvalues) == size
    assert np.all(eigenvalues[:n_real].imag == 0)
    assert (size - n_real) % 2 == 0
    below = np.tril(np.array(block), -1)
    for i in range(n_real, size, 2):
        (a, b), (c, d) = block[i : i + 2, i : i + 2]
        below[i + 1, i] = 0.0
        assert a == d
        assert b > 0 > c  # complex, and the maps of Theorem 1 can divide by b
        assert eigenvalues[i].imag > 0
        assert eigenvalues[i + 1] == eigenvalues[i].conj()
        omega = math.sqrt(b) * math.sqrt(-c)
        assert abs(eigenvalues[i].imag - omega) * max(omega, noise) <= noise * max(b, -c, noise)
    assert not np.any(below)
    assert np.all(np.abs(eigenvalues.real - np.diag(block)) <= noise)


def assert_blocks_ordered(form):
    """Blocks stand by their largest real part, descending."""
    largest = [float(np.max(values.real)) for values in form.eigenvalues]
    assert largest == sorted(largest, reverse=True)


def assert_reasons(form):
    """Each block of several neurons has a note that gives a reason."""
    for index, count in enumerate(form.neurons_per_block):
        if count > 1:
            assert any(note.startswith(f"block {index}:") and len(note) > 20 for note in form.notes)


def assert_eigenvalues_of(A, form):
    """Each eigenvalue belongs to a matrix within 10·n·eps·‖A‖ of A in the units of the form: backward stability.

    The distance to the nearest matrix with eigenvalue λ is σ_min(A − λI); the trace fixes what single λ cannot.
    """
    if len(A) == 0:
        return
    unit, scale = power_of_two_near(np.max(np.abs(A))), form.scaling
    balanced = A / unit * scale / scale[:, None]
    noise = 10.0 * len(A) * EPS * np.linalg.norm(balanced, 2)
    values = np.concatenate(form.eigenvalues) / unit
    assert len(values) == len(A)
    for value in representatives(values, 12 if len(A) <= 100 else 2):
        assert np.linalg.svd(balanced - value * np.eye(len(A)), compute_uv=False)[-1] <= noise
    assert abs(np.sum(values) - np.trace(balanced)) <= len(A) * noise


def representatives(values, limit):
    """All of a few values, some of many: one singular value decomposition each is dear."""
    upper = values[values.imag >= 0]
    return upper[np.unique(np.linspace(0, len(upper) - 1, limit).astype(int))]


def power_of_two_near(magnitude):
    """A power of two within a factor of two of a positive number; 1 for zero."""
    return 2.0 ** math.floor(math.log2(magnitude)) if magnitude > 0 else 1.0
