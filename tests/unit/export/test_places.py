"""Hypothesis: what cannot be exported is refused in one line, names inject nothing, equal networks give equal bytes."""

import os
import re
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ltinet
from exported_runs import STRICT, any_compiler, compiled
from ltinet.export.identifiers import as_comment, identifiers

HOSTILE = [
    "int",
    "a b",
    "名前",
    '"; system("rm -rf /"); //',
    "*/ #error",
    "a_b",
    "A B",
    "$(shell id)",
    "]]>",
    "x" * 200,
]


@pytest.fixture
def net() -> ltinet.DynamicNetwork:
    return ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_identifiers_are_valid_and_differ():
    found = identifiers(HOSTILE)
    assert len(set(found)) == len(HOSTILE)
    assert all(re.fullmatch(r"[A-Z0-9_]{1,50}", name) for name in found)


def test_comments_end_where_they_should():
    for name in [*HOSTILE, "/*/ */*", "??/", "a\\", "line\nbreak"]:
        text = as_comment(name)
        assert not re.search(r"\*/|/\*|\?\?|\\|\n", text)


@pytest.fixture
def named_net() -> ltinet.DynamicNetwork:
    """A network whose signals have every name of the list, inputs and outputs alike."""
    n = len(HOSTILE)
    system = ltinet.StateSpace(-np.eye(2), np.ones((2, n)), np.ones((n, 2)), np.eye(n), inputs=HOSTILE, outputs=HOSTILE)
    return ltinet.construct(system)


def test_names_inject_nothing_into_c(tmp_path, named_net):
    folder = tmp_path / "model"
    named_net.export_c(folder, 0.1)
    compiled(any_compiler(), [*STRICT, "-o", tmp_path / "test", folder / "model.c", folder / "model_test.c"])
    subprocess.run([tmp_path / "test"], check=True, capture_output=True)  # noqa: S603 - built above
    assert "shell" not in (folder / "Makefile").read_text()
    assert "system(" not in re.sub(r"/\*.*?\*/", "", (folder / "model.h").read_text(), flags=re.DOTALL)


def test_names_inject_nothing_into_an_fmu(tmp_path, named_net):
    any_compiler()
    validation = pytest.importorskip("fmpy.validation", reason="fmpy is not installed")
    named_net.export_fmu(tmp_path / "rig.fmu", 0.1)
    assert validation.validate_fmu(str(tmp_path / "rig.fmu")) == []
    with zipfile.ZipFile(tmp_path / "rig.fmu") as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))  # noqa: S314 - written by this test
    found = [variable.get("name") for variable in root.iter("Float64")]
    assert found == [*HOSTILE, *(f"{name} output" for name in HOSTILE), "time"]


def test_equal_networks_give_equal_bytes(tmp_path, net):
    again = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))
    for name, own in (("one", net), ("two", again)):
        own.export_c(tmp_path / name, 0.1)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_the_manifest_knows_the_network_and_has_no_date(tmp_path, net):
    written = net.export_c(tmp_path / "c", 0.1, hold="linear")
    net.save(tmp_path / "net.safetensors")
    assert written.manifest["network"]["sha256"].encode() in (tmp_path / "net.safetensors").read_bytes()
    assert written.manifest["dt"] == 0.1
    assert written.manifest["hold"] == "linear"
    assert 0.0 < written.error_bound[0] < 1e-9
    assert set(written.files) == set(contents(tmp_path / "c"))
    assert "time" not in (tmp_path / "c" / "manifest.json").read_text().replace("network", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt is 0.0; give a positive time step"),
        ({"dt": -1.0}, "dt is -1.0; give a positive time step"),
        ({"dt": np.nan}, "dt is nan; give a positive time step"),
        ({"hold": "cubic"}, "hold"),
        ({"dtype": "half"}, 'dtype is \'half\'; give "double" or "float"'),
        ({"prefix": "a b"}, "prefix is 'a b'"),
        ({"prefix": "_x"}, "prefix"),
        ({"prefix": "x; rm -rf /"}, "prefix"),
        ({"x0": [1.0]}, "x0"),
    ],
)
def test_wrong_options_are_refused_and_leave_nothing(options, message, tmp_path, net):
    with pytest.raises(ltinet.LtinetError, match=re.escape(message)) as caught:
        net.export_c(tmp_path / "c", **{"dt": 0.1, **options})
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path, net):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    (tmp_path / "file").write_text("kept")
    for name in ("mine", "file"):
        with pytest.raises(ltinet.FileFormatError, match="exists and is no earlier export"):
            net.export_c(tmp_path / name, 0.1)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"
    assert (tmp_path / "file").read_text() == "kept"


def test_an_earlier_export_is_replaced_unless_something_was_added(tmp_path, net):
    folder = tmp_path / "c"
    folder.mkdir()
    net.export_c(folder, 0.1)
    (folder / "model_test").write_text("built")
    net.export_c(folder, 0.2)
    assert "model_test" not in contents(folder)
    (folder / "main.c").write_text("mine")
    before = contents(folder)
    with pytest.raises(ltinet.FileFormatError, match="no earlier export"):
        net.export_c(folder, 0.3)
    assert contents(folder) == before


def test_a_folder_without_permission(tmp_path, net):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        net.export_c(tmp_path / "c", 0.1)
    tmp_path.chmod(0o700)


def test_a_missing_parent_folder(tmp_path, net):
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        net.export_c(tmp_path / "missing" / "c", 0.1)


def test_an_unstable_network_is_exported_with_a_warning(tmp_path):
    net = ltinet.construct(ltinet.StateSpace([[0.5]], [[1.0]], [[1.0]]))
    with pytest.warns(UserWarning, match="unstable: a mode grows as exp\\(0.5 t\\)") as caught:
        written = net.export_c(tmp_path / "c", 0.1)
    assert caught[0].filename == __file__
    assert len(written.remarks) == 1


def test_numbers_beyond_single_precision_are_refused(tmp_path):
    net = ltinet.construct(ltinet.StateSpace([[-1.0]], [[1.0]], [[1e60]]))
    with pytest.raises(ltinet.FileFormatError, match=re.escape('too large for float; choose dtype="double"')):
        net.export_c(tmp_path / "c", 0.1, dtype="float")


@pytest.mark.parametrize("target", ["c", "x.fmu", "x.onnx"])
def test_an_interrupted_export_leaves_nothing(target, tmp_path, net, monkeypatch):
    if target == "x.fmu":
        any_compiler()
    if target == "x.onnx":
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
    export = {"c": net.export_c, "x.fmu": net.export_fmu, "x.onnx": net.export_onnx}[target]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                export(tmp_path / target, 0.1)
        assert list(tmp_path.iterdir()) == []
