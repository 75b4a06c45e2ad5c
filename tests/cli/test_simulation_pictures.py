"""Hypothesis: `ltinet simulate --plot` draws what it would write, with or without the table."""

from pathlib import Path

import pytest
from processes import INPUTS, TIMES, Run, csv_text

import ltinet

pytest.importorskip("matplotlib")
SIMULATE = ("simulate", "net.safetensors", "-i", "u.csv")


@pytest.mark.slow
def test_a_picture_alone(run_here: Run, folder: Path) -> None:
    for suffix, begin in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert run_here(*SIMULATE, "--plot", f"y.{suffix}") == (0, b"", b"")
        assert (folder / f"y.{suffix}").read_bytes().startswith(begin)


def test_it_names_the_columns_of_the_table(run_here: Run, folder: Path) -> None:
    # letters stay letters in this SVG, as matplotlib's comments beside the shapes of a text
    (folder / "u.csv").write_text("t,Force (N),Torque\n0,1,2\n1,2,3\n2,0,1\n")
    assert run_here(*SIMULATE, "--plot", "y.svg").code == 0
    drawn = (folder / "y.svg").read_text()
    for name in ("y1", "y3", "Force (N)", "Torque"):
        assert f"<!-- {name} -->" in drawn or f">{name}<" in drawn


def test_the_time_axis_is_in_seconds_where_the_unit_is_known(run_here: Run, folder: Path) -> None:
    (folder / "u.csv").write_text("t,a,b\n0,1,2\n1000,2,3\n2000,0,1\n")
    for options, label in (((), "time"), (("--time-unit", "ms"), "time (s)")):
        assert run_here(*SIMULATE, *options, "--plot", "y.svg").code == 0
        drawn = (folder / "y.svg").read_text()
        assert f"<!-- {label} -->" in drawn or f">{label}<" in drawn


@pytest.mark.slow
def test_a_picture_and_a_table(run_here: Run, folder: Path, net: ltinet.DynamicNetwork) -> None:
    assert run_here(*SIMULATE, "--plot", "y.png", "-o", "y.csv") == (0, b"", b"")
    assert (folder / "y.csv").read_text() == csv_text(TIMES, net.simulate(INPUTS, TIMES).y, "y")
    result = run_here(*SIMULATE, "--plot", "y.png", "-o", "-")
    assert result.out.decode() == (folder / "y.csv").read_text()
    piped = run_here("simulate", "net.safetensors", "-i", "-", "--plot", "z.png", stdin=(folder / "u.csv").read_bytes())
    assert piped == (0, b"", b"")
    assert (folder / "z.png").read_bytes() == (folder / "y.png").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--plot y.doc", "known formats are png, svg, pdf"),
        ("--plot none/y.png", "there is no folder none"),
        ("--plot - -o -", "need different files"),
        ("--plot y.png -o y.png", "unknown suffix"),
    ],
)
def test_what_cannot_be_drawn(run_here: Run, folder: Path, arguments: str, said: str) -> None:
    code, out, err = run_here(*SIMULATE, *arguments.split())
    assert (code, out) == (2, b"")
    assert said in err.decode()
    assert not list(folder.glob("y.*"))
