"""Delays, operating point, hold and sample time in files: kept to the bit, or refused where there is no place."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import ltinet

SYSTEM = ltinet.StateSpace(
    [[0.0, 1.0], [-4.0, -0.8]], [[0.0, 1.0], [4.0, 0.0]], [[1.0, 0.0]],
    input_delay=[0.1 + 0.2, 0.0], output_delay=1.0 / 3.0, u0=[1.0, -2.0], y0=292.8, hold="zero", sample_time=0.1,
)  # fmt: skip


def test_network_files_keep_every_bit(tmp_path):
    net = ltinet.construct(SYSTEM)
    net.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    assert loaded == net
    assert loaded.signal_settings == SYSTEM.signal_settings
    assert loaded.system == SYSTEM
    assert loaded.signal_settings.notes == ()


def test_networks_without_a_system_keep_them_too(tmp_path):
    settings = ltinet.SignalSettings(output_delay=[0.25], notes=("slopes left out",))
    net = ltinet.DynamicNetwork.from_parameters(ltinet.construct(SYSTEM).parameters, signal_settings=settings)
    net.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    assert loaded == net
    assert loaded.signal_settings.notes == ("slopes left out",)


def test_networks_without_settings_come_back_without(tmp_path):
    plain = ltinet.construct(ltinet.StateSpace(SYSTEM.A, SYSTEM.B, SYSTEM.C))
    plain.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    assert loaded == plain
    assert str(loaded) == str(plain)


OLD = Path(__file__).parents[1] / "network"
WRITTEN_BEFORE = sorted(path for version in ("0_1_0", "1dd3bcb") for path in (OLD / f"written_by_{version}").iterdir())


@pytest.mark.parametrize("old", WRITTEN_BEFORE, ids=lambda path: f"{path.parent.name[11:]}-{path.stem}")
def test_files_of_versions_without_settings_say_so(old, tmp_path):
    net = ltinet.load(old)
    assert net.signal_settings.is_default
    assert "the file carries no delay, operating point or hold" in str(net)
    net.save(tmp_path / "again.safetensors")
    assert ltinet.load(tmp_path / "again.safetensors") == net


def test_the_network_in_a_file_of_before_predicts_without_the_delay():
    """The file was identified with a delay of six samples around 292.9, which the format had no place for."""
    net = ltinet.load(OLD / "written_by_1dd3bcb" / "identified.safetensors")
    assert (net.input_names, net.output_names) == (("valve (V)",), ("T (K)",))
    y = net.simulate(np.ones(100), 0.1 * np.arange(100)).y[:, 0]
    assert y[0] == pytest.approx(0.0, abs=1e-6)
    assert y[1] > 0.01
    assert net.simulate(np.ones(100), 0.1 * np.arange(100)).stats["hold"] == "linear"


@pytest.mark.parametrize("name", ["system.mat", "system.npz"])
def test_system_files_keep_every_bit(tmp_path, name):
    ltinet.save_system(SYSTEM, tmp_path / name)
    assert ltinet.load_system(tmp_path / name) == SYSTEM


def test_delays_in_discrete_time_are_written_in_samples(tmp_path):
    system = ltinet.StateSpace(0.5, 1.0, 1.0, dt=0.1, input_delay=0.30000000000000004)
    ltinet.save_system(system, tmp_path / "system.npz")
    with np.load(tmp_path / "system.npz") as file:
        assert file["InputDelay"].ravel().tolist() == [3.0]
    assert ltinet.load_system(tmp_path / "system.npz") == system


def test_a_folder_has_no_place_for_them(tmp_path):
    with pytest.raises(ltinet.FileFormatError, match="does not support delays"):
        ltinet.save_system(SYSTEM, tmp_path / "folder")


def test_fields_of_a_struct_are_read(tmp_path):
    fields = {"A": -1.0, "B": 1.0, "C": 1.0, "D": 0.0, "InputDelay": 0.25, "OutputDelay": 0.0, "InternalDelay": 0.0}
    savemat(tmp_path / "model.mat", {"sys": fields})
    assert ltinet.load_system(tmp_path / "model.mat").input_delay.tolist() == [0.25]


def test_delays_inside_a_model_are_refused(tmp_path):
    savemat(tmp_path / "model.mat", {"A": -1.0, "B": 1.0, "C": 1.0, "D": 0.0, "ioDelay": 0.5})
    with pytest.raises(ltinet.InvalidSystemError, match="has ioDelay"):
        ltinet.load_system(tmp_path / "model.mat")
