"""Hypothesis: the program does what the Python calls do, bit for bit, with every format and through pipes."""

import inspect
import io
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from processes import INPUTS, PIPE_SIZE, TIMES, Run, csv_text, installed_program, launch, run_in_process
from scipy import sparse
from scipy.io import loadmat, savemat

import ltinet
from ltinet.cli.reproduce import SECTIONS
from ltinet.paper.reproduce import EXAMPLES


@pytest.mark.slow
def test_version(run_here: Run) -> None:
    assert run_here("--version") == (0, f"ltinet {ltinet.__version__}\n".encode(), b"")
    assert run_here("-V") == (0, f"ltinet {ltinet.__version__}\n".encode(), b"")


def test_without_arguments_the_module_prints_its_help() -> None:
    out, err = launch([sys.executable, "-m", "ltinet"]).communicate()
    for command in ("info", "response", "identify", "reduce", "construct", "simulate", "plot", "reproduce"):
        assert f"\n  {command} " in out.decode()
    assert err == b""


def test_completion_of_commands_and_choices(run_here: Run) -> None:
    def completed(words: str) -> list[str]:
        shell = {"_LTINET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return run_here(environment=shell).out.decode().split()

    assert completed("ltinet con") == ["connect", "construct"]
    assert completed("ltinet simulate --hold ") == ["linear", "zero", "foh", "zoh"]
    assert b"_ltinet_completion()" in run_here(environment={"_LTINET_COMPLETE": "source_bash"}).out


def test_info_of_a_network_is_its_summary(run: Run, net: ltinet.DynamicNetwork) -> None:
    code, out, err = run("info", "net.safetensors")
    assert (code, err) == (0, b"")
    assert out.decode().startswith(f"{net}\n  poles ")


def test_info_as_json(run_here: Run, net: ltinet.DynamicNetwork, system: ltinet.StateSpace) -> None:
    facts = json.loads(run_here("info", "net.safetensors", "--json").out)
    assert net.form is not None
    assert facts["kind"] == "network"
    assert (facts["n_neurons"], facts["n_layers"]) == (net.n_neurons, net.n_layers)
    assert (facts["weight_norm"], facts["condition"]) == (net.weight_norm, net.form.condition)
    assert sum(layer["n_second_order"] for layer in facts["layers"]) == net.n_second_order
    facts = json.loads(run_here("info", "system.npz", "--json").out)
    assert (facts["kind"], facts["n_states"], facts["n_inputs"], facts["n_outputs"]) == ("system", 6, 2, 3)
    assert (facts["n_real_eigenvalues"], facts["n_complex_pairs"]) == (net.n_first_order, net.n_second_order)
    assert facts["has_feedthrough"]
    assert facts["nonzeros_of_A"] == np.count_nonzero(system.A)


def test_info_of_a_built_in_system_is_plain_in_a_pipe(run_here: Run) -> None:
    code, out, err = run_here("info", "example:mass_spring_damper")
    assert out.decode().splitlines()[:2] == [
        "linear time-invariant system, 1 input → 1 output",
        "  states       20",
    ]
    assert (code, b"\x1b" in out, err) == (0, False, b"")


def test_construct_writes_what_the_library_constructs_and_is_quiet(
    run: Run, folder: Path, net: ltinet.DynamicNetwork
) -> None:
    assert run("construct", "system.npz", "-o", "again.safetensors") == (0, b"", b"")
    written = ltinet.load(folder / "again.safetensors")
    assert written == net
    assert written.form is not None
    assert net.form is not None
    np.testing.assert_array_equal(written.form.T, net.form.T)


def test_construct_with_layers_or_a_budget_from_a_folder(
    run_here: Run, folder: Path, system: ltinet.StateSpace
) -> None:
    ltinet.save_system(system, folder / "market")
    assert run_here("construct", "market", "--layers", "2", "-o", "two.safetensors").code == 0
    assert ltinet.load(folder / "two.safetensors") == ltinet.construct(system, n_layers=2)
    assert run_here("construct", "market", "--max-condition", "1.5", "-o", "budget.safetensors").code == 0
    assert ltinet.load(folder / "budget.safetensors") == ltinet.construct(system, max_condition=1.5)


@pytest.mark.parametrize(("hold", "way"), [("linear", "run"), ("linear", "run_here"), ("zero", "run_here")])
def test_simulate_gives_the_numbers_of_the_library(
    request: pytest.FixtureRequest, net: ltinet.DynamicNetwork, hold: str, way: str
) -> None:
    run = request.getfixturevalue(way)
    expected = csv_text(TIMES, net.simulate(INPUTS, TIMES, hold=hold).y, "y")
    assert run("simulate", "net.safetensors", "--input", "u.csv", "--hold", hold) == (0, expected.encode(), b"")


def test_simulate_takes_files_of_systems(run_here: Run, system: ltinet.StateSpace, folder: Path) -> None:
    moved = ltinet.StateSpace(system.A, system.B, system.C, system.D, input_delay=0.3, u0=[1.0, -1.0], hold="zero")
    ltinet.save_system(moved, folder / "moved.npz")
    ltinet.save_system(system, folder / "market")
    for name, model in (("system.npz", system), ("moved.npz", moved), ("market", system)):
        expected = csv_text(TIMES, model.simulate(INPUTS, TIMES).y, "y")
        assert run_here("simulate", name, "-i", "u.csv") == (0, expected.encode(), b"")
    discrete = system.to_discrete(0.05, "tustin")
    ltinet.save_system(discrete, folder / "discrete.npz")
    t = 0.05 * np.arange(40)
    (folder / "even.csv").write_text(csv_text(t, INPUTS[np.arange(40) % len(INPUTS)]))
    expected = csv_text(t, discrete.simulate(INPUTS[np.arange(40) % len(INPUTS)], t).y, "y")
    assert run_here("simulate", "discrete.npz", "-i", "even.csv").out == expected.encode()
    # A sparse system is not decomposed but integrated.
    n = 200
    rod = sparse.diags_array([np.ones(n - 1), np.full(n, -2.0), np.ones(n - 1)], offsets=[-1, 0, 1])
    plate = ltinet.StateSpace(rod.tocsr(), np.ones((n, 2)), np.ones((1, n)))
    ltinet.save_system(plate, folder / "plate.mat")
    plate = ltinet.load_system(folder / "plate.mat")
    expected = csv_text(TIMES, plate.simulate(INPUTS, TIMES).y, "y")
    assert run_here("simulate", "plate.mat", "-i", "u.csv").out == expected.encode()
    code, out, err = run_here("simulate", "system.npz", "-i", "u.csv", "--engine", "per_neuron")
    assert (code, out) == (2, b"")
    assert "the engine per_neuron needs a network; write one with ltinet construct" in err.decode()


def test_simulate_with_solvers_and_an_initial_state(run_here: Run, folder: Path) -> None:
    net = ltinet.load(folder / "net.safetensors")  # T as a product: in factors the last bit of T⁻¹x₀ may differ
    x0 = np.array([-1.0, 0.0, 0.5, 0.0, 2.0, 1e-3])
    solver = ("--engine", "per_interval", "--method", "RK45", "--rtol", "1e-6", "--atol", "1e-7")
    command = ("simulate", "net.safetensors", "-i", "u.csv", "--x0")
    assert run_here(*command, "-1,0,0.5,0,2,1e-3", *solver, "-o", "y.csv") == (0, b"", b"")
    expected = net.simulate(INPUTS, TIMES, x0=x0, engine="per_interval", method="RK45", rtol=1e-6, atol=1e-7).y
    assert (folder / "y.csv").read_text() == csv_text(TIMES, expected, "y")
    np.savez(folder / "state.npz", x0=x0)
    assert run_here(*command, "state.npz").out.decode() == csv_text(TIMES, net.simulate(INPUTS, TIMES, x0=x0).y, "y")


def test_simulate_a_batch_from_and_to_npz_but_not_to_csv(
    run_here: Run, net: ltinet.DynamicNetwork, folder: Path
) -> None:
    batch = np.stack([INPUTS, -INPUTS, INPUTS[::-1]])
    np.savez(folder / "u.npz", t=TIMES, u=batch)
    assert run_here("simulate", "net.safetensors", "-i", "u.npz", "-o", "y.npz") == (0, b"", b"")
    with np.load(folder / "y.npz") as written:
        np.testing.assert_array_equal(written["t"], TIMES)
        np.testing.assert_array_equal(written["y"], net.simulate(batch, TIMES).y)
    code, _, err = run_here("simulate", "net.safetensors", "-i", "u.npz", "-o", "y.csv")
    assert code == 2
    assert b"batch" in err
    assert not (folder / "y.csv").exists()


def test_simulate_from_and_to_mat(run_here: Run, net: ltinet.DynamicNetwork, folder: Path) -> None:
    savemat(folder / "u.mat", {"t": TIMES[None, :], "u": INPUTS})  # MATLAB's 0:0.1:1 is a row
    assert run_here("simulate", "net.safetensors", "-i", "u.mat", "-o", "y.mat") == (0, b"", b"")
    written = loadmat(folder / "y.mat")
    np.testing.assert_array_equal(written["t"], TIMES[:, None])
    np.testing.assert_array_equal(written["y"], net.simulate(INPUTS, TIMES).y)


def test_a_row_from_matlab_is_a_single_input(run_here: Run, folder: Path) -> None:
    single = ltinet.construct(([[-1.0]], [[2.0]], [[1.0]]))
    single.save(folder / "single.safetensors")
    savemat(folder / "u.mat", {"t": TIMES, "u": INPUTS[:, 0]})  # stored as two rows
    expected = csv_text(TIMES, single.simulate(INPUTS[:, 0], TIMES).y, "y")
    assert run_here("simulate", "single.safetensors", "-i", "u.mat").out.decode() == expected


@pytest.mark.parametrize("t", [[0.0, 1.0, 1.0, 2.0], [3.0]], ids=["jump", "single time"])
def test_inputs_from_standard_input(run_here: Run, net: ltinet.DynamicNetwork, t: list[float]) -> None:
    times, u = np.array(t), INPUTS[: len(t)]
    result = run_here("simulate", "net.safetensors", "-i", "-", stdin=csv_text(times, u).encode())
    assert result == (0, csv_text(times, net.simulate(u, times).y, "y").encode(), b"")


def test_networks_pass_through_pipes(run_here: Run, net: ltinet.DynamicNetwork, folder: Path) -> None:
    network = run_here("construct", "-", "-o", "-", stdin=(folder / "system.npz").read_bytes()).out
    assert run_here("info", "-", stdin=network).out.startswith(f"{net}\n".encode())
    archive = run_here("simulate", "-", "-i", "u.csv", "-o", "-", "--format", "npz", stdin=network).out
    with np.load(io.BytesIO(archive)) as written:
        np.testing.assert_array_equal(written["y"], net.simulate(INPUTS, TIMES).y)


@pytest.mark.slow
def test_other_processes_stand_in_for_files(net: ltinet.DynamicNetwork, folder: Path) -> None:
    bash = shutil.which("bash")
    if bash is None or not Path("/dev/fd").is_dir():
        pytest.skip("there is no bash here")
    command = " ".join(installed_program())
    script = f"{command} simulate net.safetensors -i <(cat u.csv) -o >(cat > y.txt); wait $!; cat y.txt"
    out, err = launch([bash, "-c", script], cwd=folder).communicate()
    assert (out.decode(), err) == (csv_text(TIMES, net.simulate(INPUTS, TIMES).y, "y"), b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "unbuffered", [pytest.param("", id="buffered"), pytest.param("1", id="unbuffered", marks=pytest.mark.slow)]
)
def test_a_reader_that_stops_early_is_no_error(folder: Path, unbuffered: str) -> None:
    t = np.arange(10000.0)
    assert 10 * len(t) > PIPE_SIZE  # more output than a pipe holds
    np.savez(folder / "long.npz", t=t, u=np.zeros((len(t), 2)))
    command = [*installed_program(), "simulate", "net.safetensors", "-i", "long.npz"]
    with launch(command, cwd=folder, environment={"PYTHONUNBUFFERED": unbuffered}) as process:
        assert process.stdout.readline() == b"t,y1,y2,y3\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plot(run_here: Run, folder: Path, suffix: str, begin: bytes) -> None:
    pytest.importorskip("matplotlib")
    kind = {"png": "architecture", "svg": "spectrum", "pdf": "sparsity"}[suffix]
    assert run_here("plot", "net.safetensors", "--kind", kind, "-o", f"figure.{suffix}") == (0, b"", b"")
    assert (folder / f"figure.{suffix}").read_bytes().startswith(begin)


def test_plot_into_a_pipe(run: Run) -> None:
    pytest.importorskip("matplotlib")
    assert run("plot", "net.safetensors", "-o", "-").out.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("construct system.npz -o new.safetensors", b"4 neurons in 4 layers written to new.safetensors"),
        ("info net.safetensors", b"connections"),
        ("plot net.safetensors -o -", b"ltinet: binary output cannot be shown on a terminal"),
    ],
)
def test_terminal_output(folder: Path, command: str, expected: bytes) -> None:
    shown = shown_at_a_terminal(partial(run_in_process, *command.split(), cwd=folder))
    assert expected in shown
    assert (b"\x1b[" in shown) == command.startswith("info")  # colours; no flash of quick work


def shown_at_a_terminal(start: Callable[..., object]) -> bytes:
    """Run the program with a pseudo-terminal as its three streams; give what that shows."""
    controller, terminal = pytest.importorskip("pty", reason="no pseudo-terminals here").openpty()
    with open(controller, "rb", buffering=0) as screen:
        with open(terminal, "r+b", buffering=0) as file:
            start(stdin=file, stdout=file, stderr=file, environment={"TERM": "xterm"})
        shown = b""
        with suppress(OSError):  # how Linux tells that the other side was closed
            while part := screen.read(4096):
                shown += part
        return shown


def test_every_example_of_the_paper_can_be_asked_for() -> None:
    assert [*SECTIONS] == [*EXAMPLES]
    for name, number in SECTIONS.items():
        source = inspect.getsource(EXAMPLES[name].module.report_section)
        assert f'label="{number}"' in source


def test_matrices_under_other_names(run_here: Run, folder: Path) -> None:
    np.savez(folder / "x.npz", Amat=-np.eye(2), B=np.ones((2, 1)), C=np.ones((1, 2)))
    assert run_here("construct", "x.npz", "-o", "new.safetensors", "--matrix", "A=Amat").code == 0
    assert ltinet.load(folder / "new.safetensors").n_states == 2
    assert run_here("info", "x.npz", "--matrix", "A=Amat").code == 0
    assert b"--matrix A=Amat" in run_here("info", "x.npz").err
    assert b"give each matrix once" in run_here("info", "x.npz", "--matrix", "Amat").err
