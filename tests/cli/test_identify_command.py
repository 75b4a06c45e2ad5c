"""Hypothesis: `ltinet identify` finds in a table the system that wrote it, as the library does, or says why not."""

import base64
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from processes import Run, contents

import ltinet

DT = 0.1
HEADER = "Time (s),Force (N),Torque,angle,speed"
CHANNELS = ("--inputs", "Force (N),Torque", "--outputs", "angle,speed")


def drawn_system(rng: np.random.Generator) -> ltinet.StateSpace:
    """Two to five states, modes that move within a second and settle within twenty, two inputs and two outputs."""
    n_pairs, n_real = int(rng.integers(0, 2)), int(rng.integers(2, 4))
    blocks = [np.array([[-rng.uniform(0.3, 1.0)]]) * (1 + place) for place in range(n_real)]
    for _ in range(n_pairs):
        decay, swing = rng.uniform(0.2, 1.0), rng.uniform(2.0, 8.0)
        blocks.append(np.array([[-decay, swing], [-swing, -decay]]))
    n = sum(map(len, blocks))
    A = np.zeros((n, n))
    place = 0
    for block in blocks:
        A[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    return ltinet.StateSpace(A, rng.uniform(0.5, 1.5, (n, 2)) * rng.choice([-1.0, 1.0], (n, 2)), _seeing(rng, n))


def _seeing(rng: np.random.Generator, n: int) -> np.ndarray:
    """Outputs that see every state."""
    return rng.uniform(0.5, 1.5, (2, n)) * rng.choice([-1.0, 1.0], (2, n))


def record(system: ltinet.StateSpace, rng: np.random.Generator, n_samples: int = 600) -> tuple[np.ndarray, np.ndarray]:
    u = rng.standard_normal((n_samples, system.n_inputs))
    y = ltinet.construct(system).simulate(u, DT * np.arange(n_samples), hold="zero").y
    return u, y


def table(t: np.ndarray, u: np.ndarray, y: np.ndarray, header: str = HEADER) -> str:
    rows = np.column_stack([t, u, y]).tolist()
    return "\n".join([header, *(",".join(map(repr, row)) for row in rows), ""])


def same_poles(found: np.ndarray, true: np.ndarray) -> None:
    # Records are exact to 1e-16 and errors of the estimate were below 1e-9: three digits more for other processors.
    assert found.shape == true.shape
    distances = np.abs(found[:, None] - true[None, :])
    assert distances.min(axis=0).max() < 1e-6
    assert distances.min(axis=1).max() < 1e-6


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("seed", range(8))
def test_order_and_poles_of_the_system_that_wrote_the_table(seed: int, run_here: Run, folder: Path) -> None:
    rng = np.random.default_rng([15, seed])
    system = drawn_system(rng)
    u, y = record(system, rng)
    (folder / "rig.csv").write_text(table(DT * np.arange(len(u)), u, y))
    code, out, err = run_here("identify", "rig.csv", *CHANNELS, "--trend", "none", "-o", "rig.safetensors")
    assert (code, err) == (0, b"")
    assert out.decode().startswith(f"identified system of order {system.n_states}\n")
    net = ltinet.load(folder / "rig.safetensors")
    same_poles(net.poles(), system.poles())
    assert (net.input_names, net.output_names) == (("Force (N)", "Torque"), ("angle", "speed"))
    again = net.simulate(u, DT * np.arange(len(u)), hold="zero").y
    np.testing.assert_allclose(again, y, atol=1e-6 * np.abs(y).max())


def test_it_prints_and_writes_what_the_library_finds(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(8)
    u, y = record(drawn_system(rng), rng)
    y += 0.01 * rng.standard_normal(y.shape)
    (folder / "rig.csv").write_text(table(DT * np.arange(len(u)), u, y))
    options = ("--order", "2-3", "--method", "moesp", "--trend", "linear", "--delay", "0,1", "--hold", "linear")
    code, out, err = run("identify", "rig.csv", *CHANNELS, *options, "--no-refine", "-o", "rig.safetensors")
    assert (code, err) == (0, b"")
    inputs = ltinet.read_table(folder / "rig.csv", columns=["Force (N)", "Torque"])
    outputs = ltinet.read_table(folder / "rig.csv", columns=["angle", "speed"])
    found = ltinet.identify(
        inputs, outputs, t=inputs.t, order=[2, 3], method="moesp", trend="linear", delay=[0, 1], hold="linear",
        refine=False,
    )  # fmt: skip
    assert out.decode() == f"{found}\n"
    written = ltinet.load(folder / "rig.safetensors")
    np.testing.assert_allclose(written.poles(), found.net.poles(), rtol=1e-9)


@pytest.mark.slow
def test_without_a_target_it_only_prints_and_through_pipes_the_network_alone_goes_to_standard_output(
    run_here: Run, folder: Path
) -> None:
    rng = np.random.default_rng(3)
    u, y = record(drawn_system(rng), rng, 300)
    text = table(DT * np.arange(len(u)), u, y).encode()
    before = contents(folder)
    code, out, err = run_here("identify", "-", *CHANNELS, "--order", "2", stdin=text)
    assert (code, err) == (0, b"")
    assert out.startswith(b"identified system of order 2\n")
    piped = run_here("identify", "-", *CHANNELS, "--order", "2", "-o", "-", stdin=text)
    assert (piped.code, piped.err) == (0, out)
    assert contents(folder) == before
    (folder / "piped.safetensors").write_bytes(piped.out)
    assert ltinet.load(folder / "piped.safetensors").input_names == ("Force (N)", "Torque")


def test_rows_without_times_and_columns_by_number(run_here: Run, folder: Path) -> None:
    rng = np.random.default_rng(4)
    system = drawn_system(rng)
    u, y = record(system, rng)
    rows = np.column_stack([u, y]).tolist()
    (folder / "rig.csv").write_text("\n".join(",".join(map(repr, row)) for row in rows))
    command = ("identify", "rig.csv", "--no-header", "--dt", repr(DT), "--inputs", "1,2", "--outputs", "3,4",
               "--trend", "none")  # fmt: skip
    code, _, err = run_here(*command, "-o", "rig.safetensors")
    assert (code, err) == (0, b"")
    same_poles(ltinet.load(folder / "rig.safetensors").poles(), system.poles())


RNG = np.random.default_rng(2)
WHITE, EVEN = RNG.standard_normal((200, 4)), DT * np.arange(200)
UNEVEN = np.where(np.arange(200) == 100, EVEN + 0.03, EVEN)
STILL = np.column_stack([np.ones(200), WHITE[:, 1:]])
REFUSED = {
    "no inputs": (("--outputs", "angle"), "Missing option '--inputs'"),
    "no outputs": (("--inputs", "Torque"), "Missing option '--outputs'"),
    "no such column": (("--inputs", "Tork", "--outputs", "angle"), "Tork"),
    "a column twice": (
        ("--inputs", "Torque,angle", "--outputs", "angle"),
        "--inputs and --outputs must not contain the time column or a column twice",
    ),
    "order of words": ((*CHANNELS, "--order", "many"), "'many' is not a number of states"),
    "order zero": ((*CHANNELS, "--order", "0"), "'0' is not a number of states"),
    "orders that descend": ((*CHANNELS, "--order", "8-2"), "'8-2' is not a number of states"),
    "orders without end": ((*CHANNELS, "--order", "1-999999999"), "is not a number of states"),
    "delay of words": ((*CHANNELS, "--delay", "late"), "'late' is not a delay"),
    "delays of other inputs": ((*CHANNELS, "--delay", "1,2,3"), "rig.csv: delay is [1, 2, 3]"),
    "negative delay": ((*CHANNELS, "--delay", "-1"), "'-1' is not a delay"),
    "unknown method": ((*CHANNELS, "--method", "magic"), "'magic' is not one of"),
    "unknown trend": ((*CHANNELS, "--trend", "square"), "'square' is not one of"),
    "block rows": ((*CHANNELS, "--block-rows", "1"), "rig.csv: --block-rows is 1"),
    "too many block rows": ((*CHANNELS, "--block-rows", "60"), "fewer --block-rows"),
    "another suffix": ((*CHANNELS, "-o", "rig.mat"), "must end in .safetensors"),
    "report of another kind": (
        (*CHANNELS, "--report", "rig.pdf"),
        "rig.pdf is not the name of a report; it must end in .html",
    ),
    "no folder of a report": ((*CHANNELS, "--report", "no/rig.html"), "there is no folder no"),
    "no folder": ((*CHANNELS, "-o", "no/rig.safetensors"), "there is no folder no"),
    "step and times": ((*CHANNELS, "--dt", "0.1", "--time", "1"), "both dt and time are given"),
}


@pytest.mark.parametrize(("options", "expected"), REFUSED.values(), ids=REFUSED)
def test_wrong_options(options: tuple[str, ...], expected: str, run_here: Run, folder: Path) -> None:
    refused(run_here, folder, table(EVEN, WHITE[:, :2], WHITE[:, 2:]), options, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (table(UNEVEN, WHITE[:, :2], WHITE[:, 2:]), "rig.csv: the times are not evenly spaced; resample the table"),
        (table(EVEN, STILL[:, :2], WHITE[:, 2:]), "rig.csv: u[:, 0] is 1 at every sample"),
        (table(EVEN[:20], WHITE[:20, :2], WHITE[:20, 2:]), "Record for longer"),
        (table(EVEN[:1], WHITE[:1, :2], WHITE[:1, 2:]), "rig.csv: "),
        (table(EVEN, WHITE[:, :2], WHITE[:, 2:], "a,Force (N),Torque,angle,speed"), "time"),
        (f"{table(EVEN, WHITE[:, :2], WHITE[:, 2:])}20.0,1,,2,3\n", "'Torque'"),
    ],
    ids=["uneven", "still", "short", "one row", "no times", "gap"],
)
def test_tables_that_cannot_be_used(text: str, expected: str, run_here: Run, folder: Path) -> None:
    refused(run_here, folder, text, (*CHANNELS, "-o", "rig.safetensors"), expected)


def refused(run_here: Run, folder: Path, text: str, options: tuple[str, ...], expected: str) -> None:
    """Exit code 2, one line with the reason, and nothing changed."""
    (folder / "rig.csv").write_text(text)
    before = contents(folder)
    code, out, err = run_here("identify", "rig.csv", *options)
    assert (code, out) == (2, b"")
    assert err.startswith(b"ltinet: ")
    assert err.count(b"\n") == 1
    assert expected in err.decode()
    assert contents(folder) == before


def test_the_table_is_never_written_over(run_here: Run, folder: Path) -> None:
    (folder / "rig.csv").write_text(table(EVEN, WHITE[:, :2], WHITE[:, 2:]))
    (folder / "rig.safetensors").hardlink_to(folder / "rig.csv")
    before = contents(folder)
    code, _, err = run_here("identify", "rig.csv", *CHANNELS, "-o", "rig.safetensors")
    assert code == 2
    assert b"the file that the table comes from" in err
    assert contents(folder) == before


def test_arrays_are_no_table(run_here: Run, folder: Path) -> None:
    np.savez(folder / "rig.npz", t=EVEN, u=WHITE[:, :2])
    code, _, err = run_here("identify", "rig.npz", "--inputs", "1", "--outputs", "2")
    assert code == 2
    assert b"rig.npz holds arrays; give a table" in err


class CellsAndPictures(HTMLParser):
    """The texts of the cells of a page, and the sources of its pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.pictures: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "td":
            self.cells.append("")
        elif tag == "img":
            self.pictures.append(dict(attrs)["src"] or "")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self.cells.append("")  # what follows belongs to no cell


@pytest.mark.slow
def test_a_report_is_one_page_with_all_numbers_and_pictures(run_here: Run, folder: Path) -> None:
    rng = np.random.default_rng(8)
    u, y = record(drawn_system(rng), rng)
    y += 0.01 * rng.standard_normal(y.shape)
    header = HEADER.replace("angle", "<b>angle & more</b>")
    (folder / "rig.csv").write_text(table(DT * np.arange(len(u)), u, y, header))
    command = ("identify", "rig.csv", "--inputs", "2,3", "--outputs", "4,5", "--order", "3")
    code, out, err = run_here(*command, "--report", "rig.html")
    assert (code, err) == (0, b"")
    page = (folder / "rig.html").read_text(encoding="utf-8")
    reader = CellsAndPictures()
    reader.feed(page)
    cells, pictures = reader.cells, reader.pictures
    assert "<b>angle & more</b>" in cells  # as text, never as markup
    for line in out.decode().splitlines():
        if line.startswith("  fit "):
            assert f"{line.split()[1]} %" in cells
    assert len(pictures) == 5
    for source in pictures:
        assert base64.b64decode(source.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded from elsewhere
