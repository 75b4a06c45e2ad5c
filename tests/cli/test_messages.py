"""Hypothesis: whatever names come from files or from the command line, a complaint is one short line of plain text."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import Run

ESCAPES = ["\x1b[31mred", "\x1b]0;title\x07", "a\rb", "a\x08b", "x\x9b2J", "\u202eevil", "line\u2028break", "\x7f"]
NASTY = "".join(ESCAPES)
LONGEST = 1020  # bytes of a complaint, nearly: its text is cut at a thousand characters


def complaint(result) -> str:
    code, out, err = result
    text = err.decode()
    assert (code, out) == (2, b"")
    assert text.startswith("ltinet: ")
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    assert len(text) <= LONGEST
    return text


def archive(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize("nasty", [*ESCAPES, "n" * 200_000, NASTY * 1000])
def test_names_in_tables(nasty: str, run_here: Run, folder: Path) -> None:
    simulate = ("simulate", "net.safetensors", "-i")
    column = nasty.replace("\r", "").replace("\u2028", "")
    for table in (
        f"{column},b,c\n0,1,2\n",
        f"t,{column},c\n0,x,2\n",
        f"t,{column},c\n0,,2\n",
        f"t,{column},c\n0,nan,2\n",
        f"t,b,c\n0,{column},2\n",
        f"t,b,time ({column})\n0,1,2\n",
    ):
        (folder / "u.csv").write_text(table, encoding="utf-8")
        complaint(run_here(*simulate, "u.csv"))


def test_many_columns_of_one_name(run_here: Run, folder: Path) -> None:
    (folder / "u.csv").write_text("t," + ",".join(["t"] * 20_000) + "\n")
    complaint(run_here("simulate", "net.safetensors", "-i", "u.csv"))


def test_many_arrays_of_odd_names(run_here: Run, folder: Path) -> None:
    names = {f"{index}{NASTY}": np.zeros(1) for index in range(3000)}
    (folder / "u.npz").write_bytes(archive(**names))
    text = complaint(run_here("simulate", "net.safetensors", "-i", "u.npz"))
    assert "u.npz has no t (it holds " in text
    assert "2990 more" in text
    text = complaint(run_here("simulate", "net.safetensors", "-i", "u.csv", "--x0", "u.npz"))
    assert "has no x0" in text


COMMANDS = [
    ["{}"],
    ["info", "{}"],
    ["info", "{}.npz"],
    ["info", "example:{}"],
    ["info", "example:heat_rod,{}"],
    ["response", "system.npz", "--input", "{}"],
    ["response", "system.npz", "-o", "{}"],
    ["construct", "{}", "-o", "new.safetensors"],
    ["construct", "system.npz", "-o", "{}"],
    ["construct", "system.npz", "-o", "{}/new.safetensors"],
    ["construct", "system.npz", "-o", "new.safetensors", "--layers", "{}"],
    ["identify", "{}", "--inputs", "1", "--outputs", "2"],
    ["identify", "{}.csv", "--inputs", "1", "--outputs", "2"],
    ["identify", "u.csv", "--inputs", "{}", "--outputs", "u2"],
    ["identify", "u.csv", "--inputs", "u1", "--outputs", "{}"],
    ["identify", "u.csv", "--inputs", "u1", "--outputs", "u2", "-o", "{}"],
    ["identify", "u.csv", "--inputs", "u1", "--outputs", "u2", "--order", "{}"],
    ["identify", "u.csv", "--inputs", "u1", "--outputs", "u2", "--delay", "{}"],
    ["simulate", "{}", "-i", "u.csv"],
    ["simulate", "{}.safetensors", "-i", "u.csv"],
    ["simulate", "net.safetensors", "-i", "{}"],
    ["simulate", "net.safetensors", "-i", "{}.csv"],
    ["simulate", "net.safetensors", "-i", "u.csv", "-o", "{}"],
    ["simulate", "net.safetensors", "-i", "u.csv", "-o", "{}/y.csv"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--format", "{}"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--x0", "{}"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--x0", "{}.mat"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--hold", "{}"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--engine", "per_neuron", "--method", "{}"],
    ["simulate", "net.safetensors", "-i", "u.csv", "--plot", "{}"],
    ["plot", "net.safetensors", "-o", "{}"],
    ["plot", "net.safetensors", "-o", "-", "--format", "{}"],
    ["reproduce", "{}"],
]


@pytest.mark.default_cases(20)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    "nasty", ["\x1b[31mred", NASTY, "not text \udcff", "n" * 5000, "n/" * 3000, NASTY * 100], ids=range(6)
)
def test_names_on_the_command_line(command: list[str], nasty: str, run_here: Run) -> None:
    complaint(run_here(*(part.format(nasty) for part in command)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(COMMANDS), st.text(st.characters(exclude_characters="\x00"), min_size=1, max_size=40))
def test_any_text_on_the_command_line(run_here: Run, command: list[str], text: str) -> None:
    if text.startswith("-") or text.strip() in ("", ".", "..", "/"):
        return  # options and folders that are there, which other tests are about
    complaint(run_here(*(part.format(f"q{text}") for part in command)))


def test_files_with_odd_names_are_found_and_named_plainly(run_here: Run, folder: Path) -> None:
    odd = folder / "\x1b[31mu.csv"
    odd.write_text("t,a,b\n0,1,x\n")
    text = complaint(run_here("simulate", "net.safetensors", "-i", odd.name))
    assert r"\x1b[31mu.csv, line 2, column 'b': 'x' is not a real number" in text
    odd.write_text("t,a,b\n1,1,1\n0,1,1\n")
    text = complaint(run_here("simulate", "net.safetensors", "-i", odd.name))
    assert r"\x1b[31mu.csv, line 3: t must not descend" in text
