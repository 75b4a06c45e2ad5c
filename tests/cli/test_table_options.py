"""Hypothesis: the command line reads tables with the options that Python has, and names them as they are typed."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from processes import INPUTS, TIMES, Run, csv_text

import ltinet
from ltinet.cli.simulate import simulate
from ltinet.tables.options import TableOptions


def test_every_option_of_python_is_one_of_the_command_line() -> None:
    assert {field.name for field in fields(TableOptions)} <= set(simulate.__annotations__)


def test_a_german_spreadsheet(run_here: Run, folder: Path, net: ltinet.DynamicNetwork) -> None:
    rows = np.column_stack([1000.0 * TIMES, INPUTS, np.zeros(len(TIMES))])
    text = "\r\n".join(";".join(repr(float(value)).replace(".", ",") for value in row) for row in rows)
    (folder / "u.csv").write_bytes(f"Zeit [ms];Kraft (N);Weg (mm);Rest\r\n{text}\r\n".encode("cp1252"))
    command = ("simulate", "net.safetensors", "-i", "u.csv")
    expected = csv_text(1000.0 * TIMES / 1000.0, net.simulate(INPUTS, 1000.0 * TIMES / 1000.0).y, "y")
    for columns in ("2,3", "Kraft (N),Weg (mm)"):
        assert run_here(*command, "--columns", columns).out.decode() == expected
    code, out, err = run_here(*command)
    assert (code, out) == (2, b"")
    assert b"u.csv has 3 input columns besides the time, but the model has 2 inputs" in err
    assert b"--columns" in err


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"t;a;b\n0;1,234;2,345\n", "--decimal ,", '--decimal ","'),
        (b"x,a,b\n0,1,2\n", "--time x", '--time "1"'),
        (b"a,b\n1,2\n", "--dt 0.5", '--dt "0.01"'),
        (b"0,1,2\n1,2,3\n", "--no-header --time 1", '--no-header and --time "1"'),
        (b"time (beats),a,b\n0,1,2\n", "--time-unit s", '--time-unit "s"'),
        (b"t,a,b\n0,1,2\n1,,3\n", "--gaps hold", '--gaps "hold"'),
        (b"t,\xe4,b\n0,1,2\n", "--encoding cp1252", '--encoding "cp1252"'),
        (b"t;a;b\n0;1.234,5;2\n", "--thousands .", '--thousands "."'),
    ],
)
def test_the_option_that_a_complaint_names_helps(
    run_here: Run, folder: Path, content: bytes, options: str, expected: str
) -> None:
    (folder / "u.csv").write_bytes(content)
    code, out, err = run_here("simulate", "net.safetensors", "-i", "u.csv")
    assert (code, out) == (2, b"")
    assert expected in err.decode()
    assert run_here("simulate", "net.safetensors", "-i", "u.csv", *options.split()).code == 0
