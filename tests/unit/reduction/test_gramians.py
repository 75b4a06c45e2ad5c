"""Hypothesis: Gramians in closed form are those of Lyapunov's equation, values those of SLICOT's authors."""

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg
from scipy.io import loadmat

import ltinet
from ltinet.reduction.balanced_truncation import prepare_reducer
from ltinet.reduction.modal_form import modes_from_blocks


def test_factors_solve_lyapunovs_equations() -> None:
    rng = np.random.default_rng(4)
    rates = np.array([-1.0 + 3j, -1.0 - 3j, -0.2, -5.0, -0.01 + 1j, -0.01 - 1j], dtype=np.complex128)
    modes = modes_from_blocks(rates, rng.standard_normal((6, 2)), rng.standard_normal((3, 6)))
    L, R = modes.factors()
    for F, factor, right in ((modes.F, L, modes.G), (modes.F.T, R, modes.H.T)):
        expected = linalg.solve_continuous_lyapunov(F, -right @ right.T)
        assert np.abs(factor @ factor.T - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["building", "cdplayer", "heat", "pde", "iss", "beam"])
def test_hankel_values_of_the_data_sets(name: str, data_dir: Path) -> None:
    path = data_dir / f"{name}.mat"
    reference = np.sort(np.ravel(loadmat(path)["hsv"]))[::-1]
    found = prepare_reducer(ltinet.load_system(path).matrices).balanced.hankel_values
    count = min(len(reference), len(found))
    assert np.abs(found[:count] - reference[:count]).max() <= 1e-9 * reference[0]
    if name in ("building", "cdplayer", "iss", "beam"):
        first = slice(0, min(40, count))
        assert (np.abs(found[first] - reference[first]) <= 1e-8 * reference[first]).all()
