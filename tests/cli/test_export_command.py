"""Hypothesis: the program exports what Python does, and says in one line why it cannot."""

from pathlib import Path

import pytest
from processes import installed_program, launch, run_in_process

import ltinet
from exported_runs import any_compiler


@pytest.fixture
def network(tmp_path: Path) -> Path:
    net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))
    net.save(tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


def call(folder: Path, *arguments: str) -> tuple[int, str]:
    code, _, err = run_in_process("export", *arguments, cwd=folder)
    return code, err.decode()


def call_installed(folder: Path, *arguments: str) -> tuple[int, str]:
    process = launch([*installed_program(), "export", *arguments], cwd=folder)
    _, err = process.communicate(timeout=100)
    return process.returncode, err.decode()


@pytest.mark.parametrize("call", [call, call_installed])
def test_c_is_what_python_writes(call, network, tmp_path):
    options = ["--hold", "linear", "--dtype", "float", "--x0", "1,0,0,0", "--prefix", "rig", "--user-states"]
    code, err = call(tmp_path, "net.safetensors", "--to", "c", "--dt", "0.1", "-o", "rig", *options)
    assert (code, err) == (0, "")
    net = ltinet.load(network)
    net.export_c(
        tmp_path / "same", 0.1, hold="linear", dtype="float", x0=[1.0, 0.0, 0.0, 0.0], prefix="rig", user_states=True
    )
    for path in (tmp_path / "same").iterdir():
        assert path.read_bytes() == (tmp_path / "rig" / path.name).read_bytes()


def test_onnx_is_what_python_writes(network, tmp_path):
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    code, err = call(tmp_path, "net.safetensors", "--to", "onnx", "--dt", "0.1", "-o", "rig.onnx", "--hold", "linear")
    assert (code, err) == (0, "")
    ltinet.load(network).export_onnx(tmp_path / "same.onnx", 0.1, hold="linear")
    assert (tmp_path / "rig.onnx").read_bytes() == (tmp_path / "same.onnx").read_bytes()


def test_an_fmu_is_what_python_writes(network, tmp_path):
    any_compiler()
    (tmp_path / "same").mkdir()
    options = ["--fmi", "2.0", "--x0", "1,0,0,0"]
    code, err = call(tmp_path, "net.safetensors", "--to", "fmu", "--dt", "0.1", "-o", "rig.fmu", *options)
    assert (code, err) == (0, "")
    ltinet.load(network).export_fmu(tmp_path / "same" / "rig.fmu", 0.1, version="2.0", x0=[1.0, 0.0, 0.0, 0.0])
    assert (tmp_path / "rig.fmu").read_bytes() == (tmp_path / "same" / "rig.fmu").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "c", "--dt", "-1", "-o", "x"], "dt is -1.0; give a positive time step"),
        (["--to", "rust", "--dt", "1", "-o", "x"], "--to"),
        (["--to", "c", "--dt", "1", "-o", "net.safetensors"], "writing would destroy it"),
        (["--to", "c", "--dt", "1", "-o", "x", "--prefix", "a b"], "prefix"),
        (["--to", "onnx", "--dt", "1", "-o", "x.onnx", "--prefix", "a"], "--prefix is not for onnx but for c"),
        (["--to", "c", "--dt", "1", "-o", "x", "--x0", "1"], "--x0 has 1 number"),
        (["--to", "fmu", "--dt", "1", "-o", "x.fmu", "--compiler", "no-such"], "the compiler 'no-such' was not found"),
        (["--to", "fmu", "--dt", "1", "-o", "x.fmu", "--dtype", "float"], "--dtype is not for fmu"),
    ],
)
@pytest.mark.usefixtures("network")
def test_refusals_are_one_line(options, message, tmp_path):
    code, err = call(tmp_path, "net.safetensors", *options)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()
