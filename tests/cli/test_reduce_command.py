"""Hypothesis: `ltinet reduce` prints the bound, writes the network of what it found, and says what it needs."""

from pathlib import Path

from processes import Run

import ltinet


def test_reduce_prints_and_writes(run: Run, folder: Path) -> None:
    target = folder / "small.safetensors"
    code, out, err = run("reduce", "example:heat_plate,n=400", "--tolerance", "1e-3", "-o", str(target))
    assert (code, err) == (0, b"")
    assert "at all frequencies" in out.decode()
    net = ltinet.load(target)
    assert net.n_states < 20
    assert net.reduction_error is not None


def test_one_of_order_and_tolerance(run_here: Run) -> None:
    code, _, err = run_here("reduce", "example:heat_rod")
    assert code == 2
    assert b"--tolerance" in err
