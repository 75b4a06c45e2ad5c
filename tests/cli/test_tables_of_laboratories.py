"""Hypothesis: tables as laboratories write them reach a model from the command line, without Python on the way."""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from processes import Run

import ltinet

DT, N = 0.1, 1200
RIG = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]], y0=292.8)
IDENTIFY = ("--order", "2", "--delay", "0")


def record(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t, u = DT * np.arange(N), rng.choice([-1.0, 1.0], N)
    return t, u, RIG.simulate(u, t, hold="zero").y[:, 0]


def found_poles(folder: Path) -> np.ndarray:
    return np.sort_complex(ltinet.load(folder / "rig.safetensors").poles())


@pytest.mark.parametrize(
    ("form", "delimiter", "decimal", "flag", "option"),
    [
        ("%d.%m.%Y %H:%M:%S,%f", ";", ",", "--day-first", "--day-first"),
        ("%m/%d/%Y %I:%M:%S.%f %p", ",", ".", "--month-first", "--month-first"),
    ],
)
def test_dates_of_two_countries(
    run_here: Run, folder: Path, form: str, delimiter: str, decimal: str, flag: str, option: str
) -> None:
    t, u, y = record(1)
    stamps = [(datetime(2026, 3, 1, 8) + timedelta(seconds=float(s))).strftime(form) for s in t]
    rows = [[s, *(repr(float(v)).replace(".", decimal) for v in row)] for s, *row in zip(stamps, u, y, strict=True)]
    header = delimiter.join(["Zeit", "Ventil (%)", "Temperatur (K)"])
    (folder / "rig.csv").write_text("\n".join([header, *map(delimiter.join, rows), ""]))
    command = (
        "identify",
        "rig.csv",
        "--inputs",
        "Ventil",
        "--outputs",
        "temperatur",
        *IDENTIFY,
        "-o",
        "rig.safetensors",
    )
    code, out, err = run_here(*command)
    assert (code, out) == (2, b"")
    assert option in err.decode()
    assert "day_first" not in err.decode()
    code, out, err = run_here(*command, flag)
    assert (code, err) == (0, b"")
    np.testing.assert_allclose(found_poles(folder), np.sort_complex(RIG.poles()), rtol=1e-6)
    net = ltinet.load(folder / "rig.safetensors")
    assert (net.input_names, net.output_names) == (("Ventil (%)",), ("Temperatur (K)",))


def test_unused_columns_may_hold_anything(run_here: Run, folder: Path) -> None:
    t, u, y = record(2)
    rows = [
        f"{a!r},{b!r},{c!r},,{'NaN' if k % 3 else 1}" for k, (a, b, c) in enumerate(np.column_stack([t, u, y]).tolist())
    ]
    rows[5] = rows[5].replace(",,", ",pump off,")
    (folder / "rig.csv").write_text("\n".join(["time (s),valve (%),T (K),note,flow", *rows, ""]))
    code, _, err = run_here(
        "identify", "rig.csv", "--inputs", "valve", "--outputs", "T", *IDENTIFY, "-o", "rig.safetensors"
    )
    assert (code, err) == (0, b"")
    code, out, err = run_here("simulate", "rig.safetensors", "-i", "rig.csv")
    assert (code, err) == (0, b"")
    simulated = np.loadtxt(out.decode().splitlines(), delimiter=",", skiprows=1)[:, 1]
    expected = ltinet.load(folder / "rig.safetensors").simulate(u, t).y[:, 0]
    np.testing.assert_allclose(simulated, expected, rtol=1e-12)
    code, out, err = run_here("compare", "rig.safetensors", "rig.csv")
    assert (code, err) == (0, b"")


def test_a_misspelt_column_gets_a_suggestion(run_here: Run, folder: Path) -> None:
    (folder / "rig.csv").write_text("t,valve position (%),T (K)\n0,1,2\n1,2,3\n")
    code, _, err = run_here("identify", "rig.csv", "--inputs", "valve", "--outputs", "T")
    assert code == 2
    assert "did you mean 'valve position (%)'?" in err.decode()


def test_gaps_in_used_columns_name_the_options_of_the_command(run_here: Run, folder: Path) -> None:
    (folder / "rig.csv").write_text("t,u,y\n0,1,2\n1,,3\n")
    code, _, err = run_here("identify", "rig.csv", "--inputs", "u", "--outputs", "y")
    assert code == 2
    assert '--gaps "split"' in err.decode()
    assert "--columns" not in err.decode()


def uneven_record(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write a record at times with a spread of a tenth of the step; its input is piecewise linear between them."""
    rng = np.random.default_rng(3)
    t = DT * np.arange(N) + rng.uniform(-0.01, 0.01, N)
    u = np.convolve(rng.standard_normal(N), np.ones(8) / 8, "same")
    y = RIG.simulate(u, t, hold="linear").y[:, 0]
    rows = np.column_stack([t, u, y])
    np.savetxt(folder / "rig.csv", rows, delimiter=",", header="time (s),valve,T (K)", comments="", fmt="%.17g")
    return t, u


def test_uneven_times_are_resampled_on_request(run_here: Run, folder: Path) -> None:
    uneven_record(folder)
    command = ("identify", "rig.csv", "--inputs", "valve", "--outputs", "T", *IDENTIFY, "--hold", "linear")
    code, out, err = run_here(*command)
    assert (code, out) == (2, b"")
    assert "--resample 0.1" in err.decode()
    assert "np.interp" not in err.decode()
    code, out, err = run_here(*command, "--resample", "0.1", "-o", "rig.safetensors")
    assert (code, err) == (0, b"")
    assert "resampled" in out.decode()
    # Straight lines through a record whose modes turn by 0.2 rad in a step are wrong by 0.2²/8 = 0.5 % of it at most.
    np.testing.assert_allclose(found_poles(folder), np.sort_complex(RIG.poles()), rtol=0.02)


@pytest.mark.parametrize("stdin", [False, True])
def test_outputs_at_even_times_of_uneven_inputs_are_exact(run_here: Run, folder: Path, stdin: bool) -> None:
    t, u = uneven_record(folder)
    ltinet.construct(RIG).save(folder / "true.safetensors")
    source = {"stdin": (folder / "rig.csv").read_bytes()} if stdin else {}
    table = "-" if stdin else "rig.csv"
    command = ("simulate", "true.safetensors", "-i", table, "--columns", "valve", "--resample", "0.25")
    code, out, err = run_here(*command, **source)
    assert (code, err) == (0, b"")
    rows = np.loadtxt(out.decode().splitlines(), delimiter=",", skiprows=1)
    n_rows = int((t[-1] - t[0]) / 0.25) + 1
    np.testing.assert_allclose(rows[:, 0], t[0] + 0.25 * np.arange(n_rows), rtol=1e-15)
    expected = RIG.simulate(ltinet.SampledSignal(t, u), rows[:, 0]).y[:, 0]
    np.testing.assert_allclose(rows[:, 1], expected, rtol=1e-12)


@pytest.mark.parametrize("step", ["0", "-1", "nan", "1e-12"])
@pytest.mark.parametrize("command", ["identify", "simulate"])
def test_impossible_steps_of_resampling_are_refused(run_here: Run, folder: Path, command: str, step: str) -> None:
    uneven_record(folder)
    ltinet.construct(RIG).save(folder / "true.safetensors")
    more = {
        "identify": ("identify", "rig.csv", "--inputs", "valve", "--outputs", "T"),
        "simulate": ("simulate", "true.safetensors", "-i", "rig.csv", "--columns", "valve"),
    }[command]
    code, out, err = run_here(*more, "--resample", step)
    assert (code, out) == (2, b"")
    assert "--resample" in err.decode()


def test_several_files_are_several_experiments(run_here: Run, folder: Path) -> None:
    for number in (1, 2):
        t, u, y = record(number)
        rows = np.column_stack([t, u, y])[: 500 * number]
        np.savetxt(folder / f"rig{number}.csv", rows, delimiter=",", header="t,u (V),y", comments="", fmt="%.17g")
    command = (
        "identify",
        "rig1.csv",
        "rig2.csv",
        "--inputs",
        "u",
        "--outputs",
        "y",
        *IDENTIFY,
        "-o",
        "rig.safetensors",
    )
    code, out, err = run_here(*command)
    assert (code, err) == (0, b"")
    np.testing.assert_allclose(found_poles(folder), np.sort_complex(RIG.poles()), rtol=1e-6)
    assert ltinet.load(folder / "rig.safetensors").input_names == ("u (V)",)
    (folder / "rig2.csv").write_text((folder / "rig2.csv").read_text().replace("\n", "\n#", 1).replace("\n", ",1\n"))
    code, out, err = run_here(*command)
    assert (code, out) == (2, b"")
    assert "rig2.csv" in err.decode()


def test_tables_that_cannot_be_explored_are_named(run_here: Run) -> None:
    code, out, err = run_here("explore", "missing.csv", "--no-browser")
    assert (code, out) == (2, b"")
    assert "missing.csv cannot be read" in err.decode()
    code, out, err = run_here("explore", "u.csv", "-o", "page.html")
    assert (code, out) == (2, b"")
    assert "u.csv is a table, and a standalone page needs a model" in err.decode()
