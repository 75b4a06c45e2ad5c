"""Hypothesis: tables go in and come out by the names of the network, through files and through pipes."""

import io
from pathlib import Path

import numpy as np
import pytest
from processes import Run

import ltinet

T = 0.1 * np.arange(20)
U = np.random.default_rng(4).standard_normal((20, 2))
INPUTS = ("Force (N)", "Wind, gusts (N)")
OUTPUTS = ("Position (m)", 'the "other"', "Wärme (K)")


@pytest.fixture
def named_net(folder: Path, system: ltinet.StateSpace) -> ltinet.DynamicNetwork:
    named = ltinet.StateSpace(system.A, system.B, system.C, system.D, inputs=INPUTS, outputs=OUTPUTS)
    net = ltinet.construct(named)
    net.save(folder / "named.safetensors")
    return net


def text_of(names: tuple[str, ...], u: np.ndarray) -> str:
    header = ",".join(f'"{name}"' for name in names)
    rows = [",".join(map(repr, row)) for row in np.column_stack([T, u]).tolist()]
    return "\n".join([f"t,{header}", *rows, ""])


@pytest.mark.parametrize("source", ["file", "pipe"])
@pytest.mark.parametrize("names", [INPUTS, INPUTS[::-1], ("a", "b")], ids=["in order", "by name", "other names"])
def test_columns_are_taken_by_name(source: str, names: tuple, named_net, folder: Path, run_here: Run) -> None:
    text = text_of(names, U)
    (folder / "v.csv").write_text(text)
    table = "v.csv" if source == "file" else "-"
    done = run_here("simulate", "named.safetensors", "-i", table, stdin=text.encode())
    assert (done.code, done.err) == (0, b"")
    written = ltinet.read_table(io.BytesIO(done.out))
    assert written.names == OUTPUTS
    u = U[:, ::-1] if names == INPUTS[::-1] else U
    expected = named_net.simulate(u, T)
    # Each of the two is within its bound of the exact outputs; that of a stream adds up over its pieces.
    assert np.all(np.abs(written.values - expected.y) <= 6.0 * expected.error_bound())


@pytest.mark.usefixtures("named_net")
@pytest.mark.parametrize("source", ["file", "pipe"])
def test_a_column_in_the_place_of_another_input_is_refused(source: str, folder: Path, run_here: Run) -> None:
    text = text_of(("gust", "Force (N)"), U)
    (folder / "v.csv").write_text(text)
    table = "v.csv" if source == "file" else "-"
    done = run_here("simulate", "named.safetensors", "-i", table, stdin=text.encode())
    assert (done.code, done.out) == (2, b"")
    assert b"column 2 is named like input 1, 'Force (N)'" in done.err.replace(b"\n", b" ")


def test_construct_names_signals(folder: Path, run_here: Run) -> None:
    """Names with commas of their own are quoted as in CSV; the network file keeps them, tables have them."""
    ltinet.save_system(ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2)), folder / "plain.mat")
    options = ("--inputs", 'Force (N),"Wind, gusts (N)"', "--outputs", "Position (m), Wärme (K)")
    done = run_here("construct", "plain.mat", *options, "-o", "called.safetensors")
    assert (done.code, done.err) == (0, b"")
    system = ltinet.load(folder / "called.safetensors").system
    assert system.input_names == INPUTS
    assert system.output_names == ("Position (m)", "Wärme (K)")
    done = run_here("construct", "plain.mat", "--inputs", "one", "-o", "x.safetensors")
    assert done.code == 2
    assert "inputs has 1 name, but the system has 2 inputs" in done.err.decode()
    assert not (folder / "x.safetensors").exists()
