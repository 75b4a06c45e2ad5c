"""`ltinet margin` prints the margins of the library, of one loop or of a square one, and says what it cannot give."""

import json
from pathlib import Path

import numpy as np
from processes import Run

import ltinet


def loop() -> ltinet.StateSpace:
    return ltinet.StateSpace(-0.5, 0.5, 5.0, output_delay=0.5)


def test_margins_are_those_of_the_library(run_here: Run, folder: Path) -> None:
    ltinet.save_system(loop(), folder / "loop.npz")
    code, out, err = run_here("margin", "loop.npz")
    assert (code, err) == (0, b"")
    assert str(loop().margin()) in out.decode()
    assert "disk margin: " in out.decode()


def test_json_has_all_crossings_in_full_precision(run_here: Run, folder: Path) -> None:
    ltinet.construct(loop()).save(folder / "loop.safetensors")
    facts = json.loads(run_here("margin", "loop.safetensors", "--json").out)
    expected = ltinet.load(folder / "loop.safetensors").to_state_space().margin()
    assert facts["gain_margins"] == expected.gain_margins.tolist()
    assert facts["delay_margin"] == expected.delay_margin
    assert facts["is_stable"] is True
    assert facts["disk_margin"] == loop().disk_margin().margin


def test_one_loop_of_several(run_here: Run, folder: Path) -> None:
    system = ltinet.load_system(folder / "system.npz")
    facts = json.loads(run_here("margin", "system.npz", "--input", "2", "--output", "y3", "--json").out)
    single = ltinet.StateSpace(system.A, system.B[:, 1], system.C[2], system.D[2, 1])
    np.testing.assert_array_equal(facts["phase_margins"], single.margin().phase_margins)


def test_loops_that_are_not_square_are_refused(run_here: Run) -> None:
    code, _, err = run_here("margin", "system.npz")
    assert code == 2
    assert b"choose one loop with --input and --output" in err


def test_a_square_loop_has_a_disk_margin(run_here: Run, folder: Path) -> None:
    square = ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2))
    ltinet.save_system(square, folder / "square.npz")
    out = run_here("margin", "square.npz").out.decode()
    assert out.startswith(f"disk margin: {square.disk_margin().margin:.5g}")
