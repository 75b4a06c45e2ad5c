"""Hypothesis: what cannot be exported is refused in one line, names inject nothing, equal networks give equal bytes."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ltinet
from exported_runs import STRICT, any_compiler, compiled
from ltinet.export.c.templates import c_comment, c_identifiers

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
    "class",
    "model_step",
    "MODEL_INPUTS",
    "model.c",
    "/*",
    "??/",
    "a\\",
    "%s%n",
    "`id`",
    "'",
    "time",
    "🙂",
]


@pytest.fixture
def net() -> ltinet.DynamicNetwork:
    return ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_identifiers_are_valid_and_differ():
    found = c_identifiers(HOSTILE)
    assert len(set(found)) == len(HOSTILE)
    assert all(re.fullmatch(r"[A-Z0-9_]{1,50}", name) for name in found)


def test_comments_end_where_they_should():
    for name in [*HOSTILE, "/*/ */*", "??/", "a\\", "line\nbreak"]:
        text = c_comment(name)
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
    assert found == [*HOSTILE, *(f"{name} output" for name in HOSTILE), "time independent"]


def test_names_in_comments_stay_as_they_are(tmp_path):
    system = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["model_speed model.c"])
    ltinet.construct(system).export_c(tmp_path / "c", 0.1, prefix="rig")
    assert "RIG_IN_MODEL_SPEED_MODEL_C = 0 /* model_speed model.c */" in (tmp_path / "c" / "rig.h").read_text()


@pytest.mark.parametrize("stem", ["名前 $(id)", "a\x01b", "\udcff"])
def test_any_name_of_a_file_gives_a_valid_fmu(stem, tmp_path, net):
    any_compiler()
    validation = pytest.importorskip("fmpy.validation", reason="fmpy is not installed")
    net.export_fmu(tmp_path / f"{stem}.fmu", 0.1)
    assert validation.validate_fmu(str(tmp_path / f"{stem}.fmu")) == []


@pytest.mark.parametrize(("n", "m", "p"), [(2, 1, 0), (0, 0, 0), (2, 0, 0)])
def test_networks_without_outputs(n, m, p, tmp_path):
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    net = ltinet.construct(ltinet.StateSpace(-np.eye(n), np.ones((n, m)), np.ones((p, n)), np.ones((p, m))))
    net.export_c(tmp_path / "c", 0.1, dtype="float", hold="linear")
    compiled(any_compiler(), [*STRICT, "-c", "-o", tmp_path / "model.o", tmp_path / "c" / "model.c"])
    net.export_onnx(tmp_path / "net.onnx", 0.1)
    onnx.checker.check_model(onnx.load(tmp_path / "net.onnx"), full_check=True)


def test_a_network_of_operators_and_a_reduced_one(tmp_path):
    plate = ltinet.named_system("heat_plate", n=3600)
    net = ltinet.construct(plate)
    written = net.export_c(tmp_path / "c", 0.01)
    assert written.manifest["network"]["states"] == 3600
    with pytest.raises(ltinet.FileFormatError, match="omit user_states"):
        net.export_c(tmp_path / "d", 0.01, user_states=True)
    reduced = ltinet.reduce(plate, order=4).net
    assert reduced.export_c(tmp_path / "r", 0.01).manifest["reduced by"] == reduced.reduction_error


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
        with pytest.raises(ltinet.FileFormatError, match="exists and is not an earlier export"):
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
    with pytest.raises(ltinet.FileFormatError, match="not an earlier export"):
        net.export_c(folder, 0.3)
    assert contents(folder) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="permissions as POSIX has them")
@pytest.mark.parametrize("target", ["c", "x.onnx"])
def test_a_folder_without_permission(target, tmp_path, net):
    """Root may write everywhere, so that somebody else tries it there."""
    if target == "x.onnx":
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
    tmp_path.chmod(0o500)
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            (net.export_c if target == "c" else net.export_onnx)(tmp_path / target, 0.1)
        except ltinet.FileFormatError as error:
            os._exit(0 if "cannot be written (Permission denied)" in str(error) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    tmp_path.chmod(0o700)
    assert os.waitstatus_to_exitcode(status) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_missing_parent_folder(tmp_path, net):
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        net.export_c(tmp_path / "missing" / "c", 0.1)


def test_an_unstable_network_is_exported_with_a_warning(tmp_path):
    net = ltinet.construct(ltinet.StateSpace([[0.5]], [[1.0]], [[1.0]]))
    with pytest.warns(UserWarning, match="unstable: a mode grows as exp\\(0.5 t\\)") as caught:
        written = net.export_c(tmp_path / "c", 0.1)
    assert caught[0].filename == __file__
    assert len(written.notes) == 1


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
def test_a_signal_in_the_middle_leaves_nothing(tmp_path):
    """A real one, while the files of a large network are computed or written, at whatever moment it comes."""
    script = (
        "import sys, ltinet\n"
        "net = ltinet.construct(ltinet.named_system('mass_spring_damper', n_masses=30))\n"
        "net.export_c(sys.argv[1], 0.1)\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    net.export_c(sys.argv[1], 0.1, user_states=True)\n"
    )
    (tmp_path / "here").mkdir()
    command = [sys.executable, "-c", script, str(tmp_path / "here" / "c")]
    with subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored here
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) != 0
        finally:
            process.kill()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["c"]
    facts = json.loads((tmp_path / "here" / "c" / "manifest.json").read_text())
    assert set(facts["files"]) == set(contents(tmp_path / "here" / "c"))


def test_the_error_of_a_reduction_is_named_beside_the_bound_on_rounding(tmp_path):
    net = ltinet.reduce(ltinet.named_system("mass_spring_damper", n_masses=8), tolerance=1e-2).net
    export = net.export_c(tmp_path, dt=0.1)
    size = f"{net.reduction_error:.2g}"
    assert f"error ≤ {size} ‖u‖ in L2, in addition" in str(export)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert f"at most {size} times the L2 norm of the inputs" in readme
