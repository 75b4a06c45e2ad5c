"""Exports of models with delays, operating points and holds compute what simulate does; 60 models in all tiers."""

import json
import shutil
import subprocess
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import ltinet
from exported_fmus import RunningFmu
from exported_runs import any_compiler, library_of
from ltinet.errors import InvalidNetworkError, InvalidSystemError
from support.moved_models import SHARES, MovedRun, moved_run

FAST, ALL = range(4), range(4, 60)
KINDS = {"double": np.float64, "float": np.float32}
BATCHES = [pytest.param(FAST, id="few"), pytest.param(ALL, id="all", marks=pytest.mark.slow)]


def run_for(seed: int, dtype: str = "double", *, whole: bool = False) -> MovedRun:
    run = moved_run(seed, whole=whole)
    return run.in_float() if dtype == "float" else run


def assert_within(y, run, allowed, name):
    off = np.abs(y - run.simulated().y).max(axis=0)
    assert np.all(off <= allowed), f"{name}: {off} beyond {allowed}"


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("seeds", BATCHES)
def test_c_agrees_with_simulate(seeds, dtype, tmp_path):
    runs = {f"m{seed}": run_for(seed, dtype) for seed in seeds}
    for name, run in runs.items():
        run.net.export_c(tmp_path / name, dtype=dtype, prefix=name, **run.options)
    library = library_of([tmp_path / name for name in runs], tmp_path)
    for name, run in runs.items():
        y = library.run(name, run.u, run.net.n_outputs, dtype=dtype)
        assert_within(y, run, run.allowed(dtype), name)


@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("seeds", BATCHES)
def test_onnx_agrees_with_simulate_in_pieces(seeds, dtype, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for seed in seeds:
        run = run_for(seed, dtype)
        written = run.net.export_onnx(tmp_path / "net.onnx", dtype=dtype, **run.options)
        session = onnxruntime.InferenceSession(tmp_path / "net.onnx", options, providers=["CPUExecutionProvider"])
        u = run.u[None].astype(KINDS[dtype])
        start = np.array(written.manifest["initial state"], dtype=KINDS[dtype])[None]
        state, pieces = start, []
        for piece in np.split(u, [0, 1, 1, 5, 90], axis=1):
            y, state = session.run(None, {"u": piece, "state": state})
            pieces.append(y[0])
        whole = session.run(None, {"u": u, "state": start})[0][0]
        allowed = run.allowed(dtype, samples_at_once=written.manifest["samples in a chunk"])
        assert_within(whole, run, allowed, seed)
        assert_within(np.concatenate(pieces), run, allowed, seed)


@pytest.mark.parametrize("seeds", BATCHES)
def test_fmus_agree_with_simulate_at_any_communication_points(seeds, tmp_path):
    pytest.importorskip("fmpy")
    any_compiler()
    for seed in list(seeds)[: 1 if seeds is FAST else None]:
        run = run_for(seed)
        # Inputs that are not delayed go in straight lines only where an importer tells their derivatives.
        version = "2.0" if run.hold == "linear" or seed % 2 else "3.0"
        path = tmp_path / f"m{seed}.fmu"
        run.net.export_fmu(path, run.dt, version=version, x0=run.x0)
        # No jump of a delayed input may fall on an output time: where D is not zero, rounding would decide.
        steps = np.random.default_rng(seed).uniform(0.05, 2.0, len(run.u) - 1)
        for t in (run.t, run.dt * np.concatenate([[0.0], np.cumsum(steps)])):
            sol = run.net.simulate(run.u, t, hold=run.hold, x0=run.x0, coordinates="blocks")
            y = RunningFmu(path).run(run.u, t, derivatives=run.hold == "linear")
            allowed = SHARES["double"] * np.ptp(sol.y, axis=0) + sol.error_bound() + run.allowed("double")
            assert np.all(np.abs(y - sol.y).max(axis=0) <= allowed), seed


@pytest.mark.parametrize("seeds", BATCHES)
def test_torch_agrees_with_simulate_in_pieces(seeds):
    torch = pytest.importorskip("torch")
    for seed in seeds:
        run = run_for(seed, whole=True)
        model = run.net.to_torch(run.dt)
        u, x0 = torch.from_numpy(run.u), None if run.x0 is None else torch.from_numpy(run.x0)
        sol = run.simulated()
        allowed = SHARES["double"] * np.ptp(sol.y, axis=0) + sol.error_bound()
        with torch.no_grad():
            y = model(u, x0=x0)
            first, state = model(u[:7], x0=x0, return_state=True)
            one, state = model.step(u[7], state)
            rest = model(u[8:], state=state)
            both = model(torch.stack([u, u]), x0=x0)
            single = model(u.float(), x0=x0).double().numpy()
        pieces = torch.cat([first, one[None], rest])
        for own in (y, pieces, both[1]):
            assert np.all(np.abs(own.numpy() - sol.y).max(axis=0) <= allowed), seed
        # Single precision holds y itself, offset included, to 2⁻²⁴ of it; inputs of the core lose that too.
        gain = np.abs(sol.y).max(axis=0) + np.ptp(sol.y, axis=0) + 10.0
        assert np.all(np.abs(single - sol.y).max(axis=0) <= 1e-6 * gain), seed
        assert model.to_network().signal_settings == run.net.signal_settings


def furnace(**changes):
    options = {"input_delay": 0.33, "output_delay": 0.17, "u0": 2.0, "y0": 292.8, "hold": "zero", "sample_time": 0.1}
    return ltinet.construct(ltinet.StateSpace([[-0.5]], [[1.0]], [[1.0]], [[0.1]], **{**options, **changes}))


def test_what_identify_finds_is_exported_with_its_fit(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    pytest.importorskip("fmpy")
    rng = np.random.default_rng(0)
    rig = ltinet.construct(([[0, 1], [-4, -0.8]], [[0], [4]], [[1, 0]]))
    dt, count = 0.1, 1500
    u = rng.choice([-1.0, 1.0], count)
    t = dt * np.arange(count)
    y = rig.simulate(np.r_[np.zeros(6), u[:-6]], t, hold="zero").y[:, 0] + 0.01 * rng.standard_normal(count) + 292.8
    found = ltinet.identify(u[:1000], y[:1000], dt=dt, order=2)
    net = found.net
    expected = net.simulate(u, t).y

    def fit(own):
        part = y[1000:]
        return 100.0 * (1.0 - np.linalg.norm(own[1000:, 0] - part) / np.linalg.norm(part - part.mean()))

    assert net.input_delay.tolist() == [pytest.approx(0.6)]
    assert fit(expected) > 95.0
    net.export_c(tmp_path / "m0", dt, prefix="m0")
    net.export_onnx(tmp_path / "net.onnx", dt)
    net.export_fmu(tmp_path / "net.fmu", dt)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    state = np.zeros((1, session.get_inputs()[1].shape[1]))
    ways = {
        "c": library_of([tmp_path / "m0"], tmp_path).run("m0", u[:, None], 1),
        "onnx": session.run(None, {"u": u[None, :, None], "state": state})[0][0],
        "fmu": RunningFmu(tmp_path / "net.fmu").run(u[:, None], t),
    }
    for name, own in ways.items():
        assert fit(own) == pytest.approx(fit(expected), abs=1e-9), name
        assert np.abs(own - found.simulate(u)).max() < 1e-9 * np.ptp(expected), name


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_the_self_test_of_c_passes_and_the_readme_tells_sizes(seed, tmp_path):
    if not shutil.which("make"):
        pytest.skip("make is not here")
    run, folder = moved_run(seed), tmp_path / "rig"
    run.net.export_c(folder, prefix="rig", user_states=True, dtype="float", **run.options)
    command = [any_compiler()[0], "-I.", "-x", "c", "-", "-o", "size"]
    program = '#include <stdio.h>\n#include "rig.h"\nint main(void) { printf("%d", (int)sizeof(rig_state)); return 0; }'
    subprocess.run(command, input=program, text=True, cwd=folder, check=True)  # noqa: S603
    size = subprocess.run([folder / "size"], capture_output=True, text=True, check=True)  # noqa: S603
    done = subprocess.run(  # noqa: S603
        ["make", "test", f"CC={' '.join(any_compiler())}", "CFLAGS=-O1 -Werror"],  # noqa: S607
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "passed" in done.stdout, done.stderr
    text = (folder / "README.md").read_text()
    assert f"A state takes {size.stdout} bytes" in text
    assert "## Delays and operating point" in text


def test_manifests_and_descriptions_tell_delays_and_hold(tmp_path):
    any_compiler()
    net = furnace(hold="linear")
    settings = {"input_delay": [0.33], "output_delay": [0.17], "u0": [2.0], "y0": [292.8]}
    written = net.export_c(tmp_path / "c", 0.1)
    assert written.manifest["delays and operating point"] == settings
    assert written.manifest["hold"] == json.loads((tmp_path / "c" / "manifest.json").read_text())["hold"] == "linear"
    net.export_fmu(tmp_path / "net.fmu", 0.1)
    with zipfile.ZipFile(tmp_path / "net.fmu") as archive:
        page = archive.read("documentation/index.html").decode()
        description = archive.read("modelDescription.xml").decode()
    for text in (page, description):
        assert "Delayed inputs are linear between communication points" in text
        assert "Inputs are delayed by 0.33." in text
    assert 'start="2.0"' in description
    assert 'dependencies=""' in description


def test_an_fmu_without_derivatives_holds_delayed_inputs_as_the_model_does(tmp_path):
    pytest.importorskip("fmpy")
    any_compiler()
    net = furnace(hold="linear")
    net.export_fmu(tmp_path / "net.fmu", 0.1)
    rng = np.random.default_rng(0)
    t = 5.0 + np.concatenate([[0.0], np.cumsum(rng.choice([0.1, 0.033, 0.3], 200))])  # no step beyond the delay
    u = 2.0 + rng.standard_normal((201, 1))
    expected = net.simulate(u, t).y
    assert np.abs(RunningFmu(tmp_path / "net.fmu", start=5.0).run(u, t) - expected).max() < 1e-10
    one, other = (RunningFmu(tmp_path / "net.fmu", start=5.0) for _ in range(2))
    one.run(u[:100], t[:100])
    saved = one.fmu.serializeFMUState(one.fmu.getFMUState())
    other.fmu.setFMUState(other.fmu.deserializeFMUState(saved))
    assert np.abs(other.run(u[99:], t[99:]) - expected[99:]).max() < 1e-10


def test_an_fmu_refuses_steps_for_which_its_delays_have_no_room(tmp_path):
    fmi = pytest.importorskip("fmpy.fmi1")
    any_compiler()
    furnace().export_fmu(tmp_path / "net.fmu", 0.5)
    running = RunningFmu(tmp_path / "net.fmu")
    with pytest.raises(fmi.FMICallException):
        running.run(np.ones((300, 1)), 1e-5 * np.arange(300))


@pytest.mark.parametrize(("n", "m", "p"), [(0, 1, 1), (2, 0, 1), (2, 1, 0)])
def test_models_without_states_inputs_or_outputs(n, m, p, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    pytest.importorskip("fmpy")
    system = ltinet.StateSpace(
        -np.eye(n), np.ones((n, m)), np.ones((p, n)), np.ones((p, m)), hold="zero",
        input_delay=0.25 if m else None, output_delay=0.13 if p else None, y0=3.0 if p else None,
    )  # fmt: skip
    net, x0 = ltinet.construct(system), np.ones(n) if n else None
    u, t = np.ones((30, m)), 0.1 * np.arange(30)
    expected = net.simulate(u, t, x0=x0).y
    net.export_c(tmp_path / "m0", 0.1, prefix="m0", x0=x0)
    written = net.export_onnx(tmp_path / "net.onnx", 0.1, x0=x0)
    net.export_fmu(tmp_path / "net.fmu", 0.1, x0=x0)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    state = np.array(written.manifest["initial state"])[None]
    ways = [library_of([tmp_path / "m0"], tmp_path).run("m0", u, p), RunningFmu(tmp_path / "net.fmu").run(u, t)]
    ways.append(session.run(None, {"u": u[None], "state": state})[0][0])
    for own in ways:
        assert np.allclose(own, expected, rtol=0.0, atol=1e-12)


def test_exports_take_the_hold_of_the_model(tmp_path):
    net = furnace(input_delay=0, output_delay=0, u0=0, y0=0, hold="linear")
    assert net.export_c(tmp_path / "c", 0.1).manifest["hold"] == "linear"
    assert net.export_c(tmp_path / "c", 0.1, hold="zero").manifest["hold"] == "zero"


def test_modules_keep_settings_in_files_and_on_the_way_back(tmp_path):
    torch = pytest.importorskip("torch")
    from ltinet import nn

    net = furnace(input_delay=0.3, output_delay=0.1)
    u = torch.randn(40, 1, dtype=torch.float64)
    for own in (net, net.with_signal_settings(input_delay=0, output_delay=0, u0=0, y0=0)):
        model = own.to_torch(0.1)
        nn.save(model, tmp_path / "model.safetensors")
        again = nn.load(tmp_path / "model.safetensors")
        assert torch.equal(again(u), model(u))
        assert again.to_network().signal_settings == own.signal_settings
    model = net.to_torch(0.1)
    assert isinstance(model, nn.DelayedNetwork)
    assert {"u0", "y0"} <= set(model.state_dict())
    assert not {"u0", "y0"} & {name for name, _ in model.named_parameters()}
    assert model.at(0.05).input_steps == [6]
    model(u).square().mean().backward()


def test_stacks_and_their_graphs_honour_delays(tmp_path):
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from ltinet import nn

    first, last = furnace(input_delay=0.3, output_delay=0.1), furnace(u0=292.8, y0=0.0, input_delay=0.2, output_delay=0)
    stack = nn.wiener_hammerstein(first.to_torch(0.1), nn.Polynomial(1, 3), last.to_torch(0.1, hold="linear"))
    u = 2.0 + torch.randn(50, 1, dtype=torch.float64)
    t = 0.1 * np.arange(50)
    between = first.simulate(u.numpy(), t).y
    expected = last.simulate(between, t, hold="linear").y
    with torch.no_grad():
        y = stack(u)
        begun, state = stack(u[:20], return_state=True)
        pieces = torch.cat([begun, stack(u[20:], state=state)])
    assert np.allclose(y.numpy(), expected, rtol=0.0, atol=1e-9)
    assert np.allclose(pieces.numpy(), expected, rtol=0.0, atol=1e-9)
    written = nn.export_onnx(stack, tmp_path / "stack.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "stack.onnx", providers=["CPUExecutionProvider"])
    begin = np.array(written.manifest["initial state"])[None]
    own = session.run(None, {"u": u[None].numpy(), "state": begin})[0][0]
    assert np.allclose(own, expected, rtol=0.0, atol=1e-9)


def test_what_torch_cannot_do_is_refused():
    torch = pytest.importorskip("torch")
    from ltinet import nn

    with pytest.raises(InvalidSystemError, match=r"input_delay is \[0.33\], but a PyTorch module .* choose a dt"):
        furnace().to_torch(0.1)
    net = furnace(input_delay=0.3, output_delay=0.1)
    with pytest.raises(InvalidSystemError, match=r"nn.Triangular does not support"):
        nn.Triangular(net, nn.Polynomial(1, 3), dt=0.1)
    with pytest.raises(InvalidNetworkError, match="Feedback does not support delays"):
        nn.Feedback(net.to_torch(0.1), nn.Polynomial(1, 3))
    with pytest.raises(ltinet.InvalidSignalError, match="times cannot be given to a model with delays"):
        net.to_torch(0.1)(torch.ones(3, 1), times=torch.tensor([0.0, 0.1, 0.3]))


def test_an_operating_point_alone_keeps_uneven_times():
    torch = pytest.importorskip("torch")
    net = furnace(input_delay=0, output_delay=0)
    t = np.cumsum(np.random.default_rng(0).uniform(0.05, 0.3, 40))
    u = 2.0 + np.random.default_rng(1).standard_normal((40, 1))
    y = net.to_torch(0.1)(torch.from_numpy(u), times=torch.from_numpy(t)).detach().numpy()
    assert np.allclose(y, net.simulate(u, t).y, rtol=0.0, atol=1e-10)


def test_a_long_delay_and_a_slow_mode_in_single_precision_stay_below_the_bound(tmp_path):
    system = ltinet.StateSpace(
        np.diag([-1e-5, -2.0]), np.ones((2, 1)), np.ones((1, 2)), input_delay=40.03, output_delay=0.77, u0=1.0, y0=5.0,
        hold="linear",
    )  # fmt: skip
    run = MovedRun(ltinet.construct(system), 0.1, "linear", np.random.default_rng(0).standard_normal((3000, 1)), None)
    run = replace(run, u=run.u.astype(np.float32).astype(float))
    run.net.export_c(tmp_path / "m0", dtype="float", prefix="m0", **run.options)
    y = library_of([tmp_path / "m0"], tmp_path).run("m0", run.u, 1, dtype="float")
    span = SHARES["float"] * np.ptp(run.simulated().y, axis=0)
    assert_within(y, run, run.allowed("float") - span, "bound alone")
