"""Hypothesis: `ltinet response` gives the numbers of the library, of all pairs or one, and says what it cannot give."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from processes import Run
from scipy.io import loadmat

import ltinet


def table_of(text: bytes) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text.decode()))
    return header, np.array(rows, dtype=float)


@pytest.mark.parametrize("kind", ["step", "impulse"])
@pytest.mark.parametrize("file", ["system.npz", "net.safetensors"])
def test_times_as_a_table(run_here: Run, folder: Path, kind: str, file: str) -> None:
    code, out, err = run_here("response", file, "--kind", kind, "-o", "-")
    assert (code, err) == (0, b"")
    header, table = table_of(out)
    # Every bit is that of the library, from the same file: neither is a better oracle than the other.
    thing = ltinet.load(folder / file) if file.startswith("net") else ltinet.load_system(folder / file)
    expected = getattr(thing, f"{kind}_response")()
    assert header == ["t", *(f"y{i} from u{j}" for j in (1, 2) for i in (1, 2, 3))]
    np.testing.assert_array_equal(table[:, 0], expected.t)
    np.testing.assert_array_equal(table[:, 1:], np.concatenate(list(expected.y), axis=1))


def test_one_pair_by_number_or_name(run: Run, run_here: Run, folder: Path) -> None:
    expected = ltinet.load_system(folder / "system.npz").step_response(input=1, output=2)
    for way, chosen in ((run, ("2", "3")), (run_here, ("2", "3")), (run_here, ("u2", "y3"))):
        header, table = table_of(
            way("response", "system.npz", "--input", chosen[0], "--output", chosen[1], "-o", "-").out
        )
        assert header == ["t", "y3"]
        np.testing.assert_array_equal(table, np.column_stack([expected.t, expected.y]))


def test_step_response_against_a_closed_form(run_here: Run) -> None:
    # one mass: x'' + 0.1 x' + 4 x = u, whose step response is known; 1e-12 is far above the rounding of this formula
    _, table = table_of(run_here("response", "example:mass_spring_damper,n_masses=1", "-o", "-").out)
    system = ltinet.named_system("mass_spring_damper", n_masses=1)
    (k, c), t = -system.A[1], table[:, 0]
    decay, frequency = c / 2.0, np.sqrt(k - c * c / 4.0)
    swing = np.exp(-decay * t) * (np.cos(frequency * t) + decay / frequency * np.sin(frequency * t))
    np.testing.assert_allclose(table[:, 1], (1.0 - swing) / k, atol=1e-12)


def test_frequencies_as_tables(run_here: Run, folder: Path, system: ltinet.StateSpace) -> None:
    _, bode = table_of(run_here("response", "system.npz", "--kind", "bode", "-o", "-").out)
    header, plane = table_of(run_here("response", "system.npz", "--kind", "nyquist", "--input", "1", "-o", "-").out)
    assert header[:3] == ["omega", "real y1", "imaginary y1"]
    omega = bode[:, 0]
    dense = np.stack([system.C @ np.linalg.solve(1j * w * np.eye(6) - system.A, system.B) + system.D for w in omega])
    # column by column: input 1 to all outputs, then input 2; two solutions of well-conditioned equations
    pairs = dense.transpose(0, 2, 1).reshape(len(omega), -1)
    turned = bode[:, 1::2] * np.exp(1j * np.deg2rad(bode[:, 2::2]))
    np.testing.assert_allclose(turned, pairs, atol=1e-12)
    np.testing.assert_allclose(plane[:, 1::2] + 1j * plane[:, 2::2], dense[:, :, 0], atol=1e-12)
    assert run_here("response", "system.npz", "--kind", "bode", "-o", "b.npz").code == 0
    assert run_here("response", "system.npz", "--kind", "nyquist", "-o", "b.mat").code == 0
    with np.load(folder / "b.npz") as written:
        np.testing.assert_allclose(written["H"], dense, atol=1e-12)
        np.testing.assert_array_equal(loadmat(folder / "b.mat")["H"], written["H"])


def test_arrays_of_times(run_here: Run, folder: Path) -> None:
    expected = ltinet.load_system(folder / "system.npz").step_response()
    assert run_here("response", "system.npz", "-o", "y.npz") == (0, b"", b"")
    assert run_here("response", "system.npz", "-o", "y.mat") == (0, b"", b"")
    with np.load(folder / "y.npz") as written:
        np.testing.assert_array_equal(written["y"], expected.y)
    np.testing.assert_array_equal(loadmat(folder / "y.mat")["y"], expected.y)


# Each kind and each suffix once.
SAMPLE = {("step", "png"), ("impulse", "svg"), ("bode", "pdf"), ("nyquist", "png")}
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
PICTURES = [
    pytest.param(kind, suffix, begin, marks=[] if (kind, suffix) in SAMPLE else pytest.mark.slow)
    for kind in ("step", "impulse", "bode", "nyquist")
    for suffix, begin in BEGINNINGS.items()
]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("kind", "suffix", "begin"), PICTURES)
def test_pictures(run_here: Run, folder: Path, kind: str, suffix: str, begin: bytes) -> None:
    pytest.importorskip("matplotlib")
    assert run_here("response", "system.npz", "--kind", kind, "-o", f"a.{suffix}") == (0, b"", b"")
    assert run_here("response", "net.safetensors", "--kind", kind, "--input", "2", "-o", f"b.{suffix}").code == 0
    for name in "ab":
        assert (folder / f"{name}.{suffix}").read_bytes().startswith(begin)
    assert (folder / f"a.{suffix}").read_bytes() != (folder / f"b.{suffix}").read_bytes()


def test_in_figures(run_here: Run, system: ltinet.StateSpace) -> None:
    lines = run_here("response", "system.npz").out.decode().splitlines()
    info = system.step_info()
    assert len(lines) == 7
    assert lines[0].split() == (
        [
            "final",
            "value",
            "rise",
            "time",
            "settling",
            "time",
            "overshoot",
            "%",
            "undershoot",
            "%",
            "peak",
            "peak",
            "time",
        ]
    )
    assert lines[2].split()[:4] == ["u1", "→", "y2", f"{info.final_value[1, 0]:.5g}"]
    assert lines[6].split()[5] == f"{info.settling_time[2, 1]:.5g}"
    lines = run_here("response", "system.npz", "--kind", "bode", "--output", "y2").out.decode().splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        [f"u{j + 1}", "→", "y2", f"{system.dcgain()[1, j]:.5g}"] for j in range(2)
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--kind nyquist", "as in -o nyquist.png or -o nyquist.csv"),
        ("--kind impulse", "as in -o impulse.png"),
        ("--input 3", "'3' is not an input of this system; give a number from 1 to 2, or one of u1, u2"),
        ("--input 0", "'0' is not an input"),
        ("--output step.png", "-o names the file"),
        ("--kind cosine", "cosine"),
        ("-o x.doc", "known formats are csv, npz, mat, png, svg, pdf"),
        ("-o x.csv --format png", "do not agree"),
        ("-o - --format doc", "--format is 'doc'"),
        ("-o none/x.csv", "there is no folder none"),
    ],
)
def test_what_cannot_be_given(run_here: Run, arguments: str, said: str) -> None:
    code, out, err = run_here("response", "system.npz", *arguments.split())
    assert (code, out) == (2, b"")
    assert said in err.decode()


def test_discrete_models_are_answered_at_their_samples(run_here: Run, folder: Path, system: ltinet.StateSpace) -> None:
    ltinet.save_system(system.to_discrete(0.1), folder / "sampled.mat")
    discrete = ltinet.load_system(folder / "sampled.mat")
    _, table = table_of(run_here("response", "sampled.mat", "-o", "-").out)
    assert np.allclose(table[:, 0], 0.1 * np.arange(len(table)))
    assert run_here("construct", "sampled.mat", "-o", "new.safetensors")[0] == 0
    assert ltinet.load(folder / "new.safetensors").dt == discrete.dt == 0.1
    assert "discrete in time" in run_here("info", "new.safetensors").out.decode()
    assert run_here("export", "new.safetensors", "--to", "c", "-o", "code")[0] == 0
    assert run_here("reduce", "sampled.mat", "--order", "1", "-o", "small.safetensors")[0] == 0
    assert ltinet.load(folder / "small.safetensors").dt == 0.1
    _, table = table_of(run_here("response", "sampled.mat", "--kind", "bode", "-o", "-").out)
    assert table[-1, 0] <= np.pi / 0.1


def test_matrices_under_other_names(run_here: Run, folder: Path) -> None:
    np.savez(folder / "x.npz", Amat=-np.eye(2), B=np.ones((2, 1)), C=np.ones((1, 2)))
    assert run_here("response", "x.npz", "--matrix", "A=Amat").code == 0
