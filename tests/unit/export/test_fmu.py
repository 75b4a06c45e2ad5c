"""Hypothesis: an exported FMU is valid, computes what simulate does at any communication points, and can be saved."""

import sys
import zipfile
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from multiprocessing import get_context

import numpy as np
import pytest

import ltinet
from exported_fmus import RunningFmu, run_fmu
from exported_runs import any_compiler, data_set_runs, hostile_runs, share_of_peak

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed")
validation = pytest.importorskip("fmpy.validation")

X0 = np.arange(10.0)
DT = 0.125


@pytest.fixture(scope="module", params=["3.0", "2.0"])
def version(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def fmu(version, tmp_path_factory, mixed_net):
    any_compiler()
    path = tmp_path_factory.mktemp("fmu") / "rig.fmu"
    mixed_net.export_fmu(path, DT, version=version, x0=X0)
    return path


def inputs(count: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((count, 2))


def odd_times(count: int) -> np.ndarray:
    """Steps shorter and longer than dt, whole multiples among them, and lengths that come back."""
    rng = np.random.default_rng(5)
    steps = rng.choice([DT, 3 * DT, 0.3 * DT, 0.3 * DT, 2.7 * DT, *rng.uniform(0.01, 1.0, 5)], count - 1)
    return np.concatenate([[0.0], np.cumsum(steps)])


def test_nothing_is_wrong_with_it(fmu):
    assert validation.validate_fmu(str(fmu)) == []
    description = fmpy.read_model_description(str(fmu))
    assert [variable.name for variable in description.modelVariables] == [
        "Force (N)", "int", "a b", "名前", "*/ x", "time",
    ]  # fmt: skip
    assert description.modelVariables[0].unit == "N"
    assert [own.name for own in description.outputs[0].dependencies] == ["Force (N)", "int"]


def test_sources_and_licence_are_in_it(fmu, version):
    with zipfile.ZipFile(fmu) as archive:
        names = archive.namelist()
        assert {entry.date_time[0] for entry in archive.infolist()} == {1980}
        assert b"2-Clause BSD" in archive.read("documentation/licenses/fmi-headers.txt")
    assert {"sources/model.c", f"sources/fmi{version[0]}.c", "extra/ltinet/manifest.json"} <= set(names)


@pytest.mark.parametrize("times", ["multiples", "odd"])
def test_communication_points_of_any_kind(fmu, mixed_net, times):
    t = DT * np.arange(2000) if times == "multiples" else odd_times(2000)
    u = inputs(2000)
    y = RunningFmu(fmu).run(u, t)
    assert share_of_peak(y, mixed_net.simulate(u, t, hold="zero", x0=X0).y) < 1e-12


def test_inputs_in_straight_lines(fmu, version, mixed_net):
    if version == "3.0":
        pytest.skip("FMI 3.0 has no derivatives of inputs")
    t, u = odd_times(1000), inputs(1000)
    y = RunningFmu(fmu).run(u, t, derivatives=True)
    assert share_of_peak(y, mixed_net.simulate(u, t, hold="linear", x0=X0).y) < 1e-12


def test_instances_reset_and_states(fmu):
    t, u = odd_times(300), inputs(300)
    one, other = RunningFmu(fmu), RunningFmu(fmu)
    expected = one.run(u, t)
    np.testing.assert_array_equal(other.run(u, t), expected)
    one.fmu.reset()
    one.initialise()
    half = one.run(u[:150], t[:150])
    np.testing.assert_array_equal(half, expected[:150])
    save, load = (
        (one.fmu.getFMUState, one.fmu.setFMUState) if one.is_fmi3 else (one.fmu.getFMUstate, one.fmu.setFMUstate)
    )
    saved = save()
    one.run(10.0 * u, t)
    load(saved)
    rest = one.run(u[149:], t[149:])
    np.testing.assert_array_equal(rest, expected[149:])


def test_a_serialised_state_goes_on_in_another_instance(fmu):
    t, u = odd_times(200), inputs(200)
    expected = RunningFmu(fmu).run(u, t)
    one, other = RunningFmu(fmu), RunningFmu(fmu)
    one.run(u[:100], t[:100])
    if one.is_fmi3:
        content = one.fmu.serializeFMUState(one.fmu.getFMUState())
        other.fmu.setFMUState(other.fmu.deserializeFMUState(content))
    else:
        content = one.fmu.serializeFMUstate(one.fmu.getFMUstate())
        other.fmu.setFMUstate(other.fmu.deSerializeFMUstate(content))
    np.testing.assert_array_equal(other.run(u[99:], t[99:]), expected[99:])


def test_simulated_by_fmpy_itself(fmu, mixed_net):
    running = RunningFmu(fmu)
    running.fmu.reset()
    t, u = DT * np.arange(401), inputs(401)
    signals = np.zeros(401, dtype=[("time", float), ("Force (N)", float), ("int", float)])
    signals["time"], signals["Force (N)"], signals["int"] = t, u[:, 0], u[:, 1]
    looks = tuple(map(int, metadata.version("fmpy").split(".")[:3])) >= (0, 3, 23)
    if not looks and fmpy.platform not in fmpy.supported_platforms(fmu):
        pytest.skip(f"FMPy {metadata.version('fmpy')} does not look for binaries of this processor")
    result = fmpy.simulate_fmu(
        running.folder, model_description=running.description, fmu_instance=running.fmu, input=signals,
        stop_time=t[-1], output_interval=DT, step_size=DT, output=["a b", "名前"],
    )  # fmt: skip
    # FMPy reads an output after its step, with the inputs of its beginning.
    expected = mixed_net.simulate(u, t, hold="zero", x0=X0).y[1:, :2]
    found = np.stack([result["a b"], result["名前"]], axis=-1)[1:]
    D = mixed_net.system.D[:2]
    assert share_of_peak(found, expected + (u[:-1] - u[1:]) @ D.T) < 1e-12


def test_processes_share_it(fmu, mixed_net):
    t, u = odd_times(100), inputs(100)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(run_fmu, [fmu, fmu], [u, 2.0 * u], [t, t]))
    for own, scale in zip(found, (1.0, 2.0), strict=True):
        assert share_of_peak(own, mixed_net.simulate(scale * u, t, hold="zero", x0=X0).y) < 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the network is unstable")
def test_hostile_systems_and_data_sets(tmp_path, data_dir):
    any_compiler()
    runs = hostile_runs(range(0, 12, 2), n_steps=500)
    runs |= data_set_runs(data_dir, ["building", "drum_boiler", "mr_demo"], n_steps=500)
    for number, (name, run) in enumerate(runs.items()):
        if name.endswith(("linear_rest", "linear_x0", "zero_rest")):
            continue
        path = tmp_path / f"m{number}.fmu"
        run.net.export_fmu(path, run.dt, version="2.0", x0=run.x0)
        y = RunningFmu(path).run(run.u, run.dt * np.arange(len(run.u)), derivatives=run.hold == "linear")
        expected = run.simulated()
        assert share_of_peak(y, expected) <= max(1e-12, 10.0 * share_of_peak(run.stepped(), expected)), name


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("n", "m"), [(0, 2), (2, 0), (1, 1)], ids=["static gain", "no input", "one state"])
def test_odd_sizes(n, m, version, tmp_path):
    any_compiler()
    net = ltinet.construct(ltinet.StateSpace(-np.eye(n), np.ones((n, m)), np.ones((1, n)), np.ones((1, m))))
    net.export_fmu(tmp_path / "rig.fmu", 0.1, version=version, x0=np.ones(n) if n else None)
    assert validation.validate_fmu(str(tmp_path / "rig.fmu")) == []
    t, u = 0.07 * np.arange(30), np.ones((30, m))
    stepper = net.stepper(0.07, hold="zero", x0=np.ones(n) if n else None)
    expected = np.array([stepper.step(sample) for sample in u])
    assert share_of_peak(RunningFmu(tmp_path / "rig.fmu").run(u, t), expected) < 1e-12


def test_equal_networks_give_equal_sources(version, tmp_path):
    any_compiler()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=2))
        net.export_fmu(tmp_path / folder / "rig.fmu", 0.1, version=version)
    assert (tmp_path / "one" / "rig.fmu").read_bytes() == (tmp_path / "two" / "rig.fmu").read_bytes()


def test_refusals(tmp_path, mixed_net, monkeypatch):
    with pytest.raises(ltinet.FileFormatError, match=r'version is \'4.0\'; give "3.0" or "2.0"'):
        mixed_net.export_fmu(tmp_path / "rig.fmu", 0.1, version="4.0")
    with pytest.raises(ltinet.FileFormatError, match=r"does not end in \.fmu"):
        mixed_net.export_fmu(tmp_path / "rig.zip", 0.1)
    with pytest.raises(ltinet.MissingDependencyError, match="the compiler 'no-such-compiler' was not found"):
        mixed_net.export_fmu(tmp_path / "rig.fmu", 0.1, compiler="no-such-compiler")
    with pytest.raises(ltinet.FileFormatError, match="platform 'amiga' is unknown"):
        mixed_net.export_fmu(tmp_path / "rig.fmu", 0.1, platforms=["amiga"])
    with pytest.raises(ltinet.FileFormatError, match="cannot compile the FMU"):
        mixed_net.export_fmu(
            tmp_path / "rig.fmu", 0.1, compiler=[sys.executable, "-c", "import sys; sys.exit('error: no')"]
        )
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("ltinet.export.fmu.compiler.find_spec", lambda _: None)
    with pytest.raises(ltinet.MissingDependencyError, match="no C compiler was found; install gcc, clang or ziglang"):
        mixed_net.export_fmu(tmp_path / "rig.fmu", 0.1)
    assert list(tmp_path.iterdir()) == []
