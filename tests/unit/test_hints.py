"""Hypothesis: what newcomers try first, and cannot be done, is answered with what can."""

from pathlib import Path

import numpy as np
import pytest

import ltinet
from ltinet._util.text import install_hint
from ltinet.errors import FileFormatError, InvalidSignalError, InvalidSystemError

SYSTEM = ltinet.named_system("mass_spring_damper", n_masses=2)
NET = ltinet.construct(SYSTEM)
TIMES = np.linspace(0.0, 1.0, 11)


@pytest.mark.parametrize(("shape", "count"), [((10, 1), "10 samples"), ((10,), "10 samples"), ((3, 1, 1), "1 sample")])
def test_fewer_samples_than_times_are_counted(shape: tuple[int, ...], count: str) -> None:
    with pytest.raises(
        InvalidSignalError, match=rf"u has {count} .* but there are 11 times; give one sample"
    ) as caught:
        NET.simulate(np.zeros(shape), TIMES)
    assert ".T" not in str(caught.value)


@pytest.mark.parametrize(("shape", "turned"), [((1, 11), r"pass u\.T"), ((5, 1, 11), r"pass np\.swapaxes")])
def test_samples_that_lie_are_to_be_turned(shape: tuple[int, ...], turned: str) -> None:
    with pytest.raises(InvalidSignalError, match=turned):
        NET.simulate(np.zeros(shape), TIMES)


def test_one_input_is_one_input() -> None:
    with pytest.raises(InvalidSignalError, match=r"u has 2 channels .* the network has 1 input;"):
        NET.simulate(np.zeros((11, 2)), TIMES)
    assert "samples of 1 input," in repr(ltinet.SampledSignal(TIMES, TIMES))


@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_load_of_a_system_names_load_system(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    ltinet.save_system(SYSTEM, path)
    with pytest.raises(FileFormatError, match=r"looks like a system; read it with ltinet\.load_system\(path\)"):
        ltinet.load(path)


def test_load_system_of_a_network_names_load(tmp_path: Path) -> None:
    NET.save(tmp_path / "net.safetensors")
    with pytest.raises(FileFormatError, match=r"is a network, not a system; read it with ltinet\.load\(path\)"):
        ltinet.load_system(tmp_path / "net.safetensors")


@pytest.mark.parametrize("path", ["model.mat", Path("model.mat")])
def test_construct_of_a_path_names_load_system(path: object) -> None:
    with pytest.raises(InvalidSystemError, match=r"'model\.mat' .* construct\(load_system\(path\)\)"):
        ltinet.construct(path)


def test_construct_of_loose_matrices_asks_for_a_tuple() -> None:
    with pytest.raises(InvalidSystemError, match=r"got 3 positional arguments; .* construct\(\(A, B, C\)\)"):
        ltinet.construct(SYSTEM.A, SYSTEM.B, SYSTEM.C)
    with pytest.raises(InvalidSystemError, match=r"construct\(\(A, B, C, D\)\)"):
        ltinet.construct(SYSTEM.A, SYSTEM.B, SYSTEM.C, SYSTEM.D)


@pytest.mark.parametrize(("alias", "hold"), [("zoh", "zero"), ("foh", "linear")])
def test_holds_have_the_names_of_other_libraries(alias: str, hold: str) -> None:
    u = np.sin(5.0 * TIMES)
    np.testing.assert_array_equal(NET.simulate(u, TIMES, hold=alias).y, NET.simulate(u, TIMES, hold=hold).y)
    steps = [NET.stepper(0.1, hold=name) for name in (alias, hold)]
    np.testing.assert_array_equal(*([stepper.step([value]) for value in u] for stepper in steps))
    assert steps[0].hold == ltinet.SampledSignal(TIMES, u, hold=alias).hold == hold
    for bad in ("cubic", ["zoh"]):
        with pytest.raises(InvalidSignalError, match='"zero" or "zoh"'):
            NET.simulate(u, TIMES, hold=bad)


def test_the_residual_is_no_commutator() -> None:
    assert "(‖A T − T A_bd‖ / ‖A‖‖T‖)" in str(NET.form)


def test_completion_offers_what_users_may_use() -> None:
    assert {name for name in dir(ltinet) if not name.startswith("_")} <= set(ltinet.__all__)
    solution = NET.simulate(np.zeros(11), TIMES)
    assert not {"judge", "trajectory"} & set(dir(solution))
    assert "trusted" not in dir(NET.layers[0])


def test_named_systems_are_listed() -> None:
    known = ltinet.named_system()
    assert known["heat_rod"] == "n_states=200, diffusivity=0.01"
    assert all(ltinet.named_system(name).n_states for name in known if name not in ("heat_plate", "blobs"))
    with pytest.raises(AttributeError, match=r"use ltinet\.named_system\(\)"):
        ltinet.NAMED_SYSTEMS  # noqa: B018 - asked for its error


@pytest.mark.parametrize("name", ["net.npz", "net.mat", "net.pt"])
def test_networks_are_saved_under_their_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileFormatError, match=rf"{name} must end in \.safetensors"):
        NET.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_names_may_be_given_by_position() -> None:
    assert SYSTEM.with_names(["force"], ["position"]).output_names == ("position",)


@pytest.mark.parametrize("extra", ["plot", "tables", "torch"])
def test_installation_works_in_a_clone_and_from_an_index(extra: str) -> None:
    hint = install_hint(extra)
    assert f'pip install "ltinet[{extra}]"' in hint
    assert f'in a clone with pip install ".[{extra}]"' in hint


def test_a_missing_value_of_the_input_is_located() -> None:
    u = np.zeros((11, 1))
    u[7] = np.nan
    with pytest.raises(
        InvalidSignalError, match=r"u has entries that are not finite, the first nan at sample 7 of channel 0;"
    ):
        NET.simulate(u, TIMES)
