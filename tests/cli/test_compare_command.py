"""`ltinet compare`: the fit of the library, to a table; and what was identified from one table predicts another."""

from pathlib import Path

import numpy as np
import pytest
from processes import Run, contents

import ltinet

DT, COUNT, SEEN = 0.1, 1500, 1000
HEADER = "time (s),valve (V),T (K)\n"
IDENTIFY = ("identify", "rig1.csv", "--inputs", "valve (V)", "--outputs", "T (K)", "--order", "2")


@pytest.fixture(scope="module")
def record() -> tuple[np.ndarray, np.ndarray]:
    """An oscillator whose input comes late by six samples and whose output stands around 292.8."""
    rng = np.random.default_rng(0)
    plant = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]])
    u = rng.choice([-1.0, 1.0], COUNT)
    late = np.concatenate([np.zeros(6), u[:-6]])
    y = plant.simulate(late, DT * np.arange(COUNT), hold="zero").y[:, 0]
    return u, y + 0.01 * rng.standard_normal(COUNT) + 292.8


@pytest.fixture(scope="module")
def network(record: tuple[np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> ltinet.DynamicNetwork:
    u, y = record
    table = tmp_path_factory.mktemp("rig") / "rig1.csv"
    table.write_text(text(u[:SEEN], y[:SEEN]))
    inputs, outputs = (ltinet.read_table(table, columns=own) for own in ("valve (V)", "T (K)"))
    return ltinet.identify(inputs, outputs, t=inputs.t, order=2).net


def text(u: np.ndarray, y: np.ndarray) -> str:
    rows = zip((DT * np.arange(len(u))).tolist(), u.tolist(), y.tolist(), strict=True)
    return HEADER + "".join(f"{t!r},{a!r},{b!r}\n" for t, a, b in rows)


def fits_of(out: bytes) -> list[float]:
    return [float(line.split()[0]) for line in out.decode().splitlines()[1:]]


def test_from_one_table_to_the_prediction_of_another(run_here: Run, folder: Path, record) -> None:
    u, y = record
    (folder / "rig1.csv").write_text(text(u[:SEEN], y[:SEEN]))
    (folder / "rig2.csv").write_text(text(u[SEEN:], y[SEEN:]))
    code, out, err = run_here(*IDENTIFY, "-o", "rig.safetensors")
    assert (code, err) == (0, b"")
    assert b"6 samples" in out
    code, out, err = run_here("compare", "rig.safetensors", "rig2.csv", "--plot", "rig2.svg")
    assert (code, err) == (0, b"")
    assert fits_of(out) == [pytest.approx(ltinet.load(folder / "rig.safetensors").fit(u[SEEN:], y[SEEN:])[0], abs=5e-3)]
    assert fits_of(out)[0] > 97.0
    assert b"model, fit" in (folder / "rig2.svg").read_bytes()
    code, out, err = run_here("simulate", "rig.safetensors", "-i", "rig2.csv")  # which has the measured output, too
    assert (code, err) == (0, b"")
    assert out.startswith(b"t,T (K)\n0.0,292.8")
    code, out, _ = run_here("info", "rig.safetensors")
    for shown in (b"input delay  0.6", b"y0           292.8", b"hold         zero", b"sample time  0.1", b"valve (V)"):
        assert shown in out


def test_simulate_writes_what_was_found_in_full_precision(run_here: Run, folder: Path, record) -> None:
    u, y = record
    found = ltinet.identify(u[:SEEN], y[:SEEN], dt=DT)
    found.net.save(folder / "rig.safetensors")
    rows = zip((DT * np.arange(COUNT)).tolist(), u.tolist(), strict=True)
    table = "t,u\n" + "".join(f"{t!r},{own!r}\n" for t, own in rows)
    (folder / "u.csv").write_text(table)
    expected = found.simulate(u)[:, 0]
    for source, stdin in (("u.csv", b""), ("-", table.encode())):
        code, out, err = run_here("simulate", "rig.safetensors", "-i", source, stdin=stdin)
        assert (code, err) == (0, b"")
        written = np.array([float(line.split(",")[1]) for line in out.decode().splitlines()[1:]])
        assert np.abs(written - expected).max() <= 1e-9 * np.ptp(expected)


def test_columns_by_name_in_any_order_and_by_number(run_here: Run, folder: Path, system: ltinet.StateSpace) -> None:
    named = system.with_names(inputs=["a", "b"], outputs=["p", "q", "r"])
    ltinet.construct(named).save(folder / "named.safetensors")
    ltinet.save_system(named, folder / "named.npz")
    t, u = DT * np.arange(200), np.random.default_rng(3).standard_normal((200, 2))
    y = named.simulate(u, t).y
    rows = np.column_stack([t, y[:, ::-1], u[:, ::-1]]).tolist()
    (folder / "rig.csv").write_text("t,r,q,p,b,a\n" + "".join(",".join(map(repr, own)) + "\n" for own in rows))
    for model in ("named.safetensors", "named.npz"):
        for options in ((), ("--inputs", "b,a"), ("--inputs", "6,5", "--outputs", "4,3,2"), ("--from-rest",)):
            code, out, err = run_here("compare", model, "rig.csv", *options)
            assert (code, err) == (0, b"")
            assert fits_of(out) == [100.0, 100.0, 100.0]


def test_gaps_split_a_record(run_here: Run, folder: Path, network: ltinet.DynamicNetwork, record) -> None:
    u, y = record
    lines = text(u, y).splitlines(keepends=True)
    for row in (300, 301, 700):
        lines[row + 1] = lines[row + 1].rsplit(",", 1)[0] + ",\n"
    (folder / "rig1.csv").write_text("".join(lines))
    network.save(folder / "rig.safetensors")
    holes = y.copy()
    holes[[300, 301, 700]] = np.nan
    code, out, err = run_here("compare", "rig.safetensors", "rig1.csv", "--gaps", "split", "--plot", "rig.png")
    assert (code, err) == (0, b"")
    assert fits_of(out) == [pytest.approx(network.fit(u, holes)[0], abs=5e-3)]
    code, out, err = run_here(*IDENTIFY, "--gaps", "split")
    assert (code, err) == (0, b"")
    assert b"3 samples with NaN: 3 experiments between" in out
    code, _, err = run_here("compare", "rig.safetensors", "rig1.csv")
    assert code == 2
    assert b"split" in err
    missing = np.isnan(ltinet.read_table(folder / "rig1.csv", gaps="split").values[:, 1])
    assert np.flatnonzero(missing).tolist() == [300, 301, 700]


REFUSED = {
    "no names": (("net.safetensors", "rig1.csv"), "the model has no input names; name the input columns with --inputs"),
    "counts": (("net.safetensors", "rig1.csv", "--inputs", "2"), "--inputs has 1 column, but the model has 2 inputs"),
    "column": (("rig.safetensors", "rig1.csv", "--inputs", "valv"), "no column 'valv'"),
    "arrays": (("rig.safetensors", "system.npz"), "holds arrays"),
    "both": (("-", "-"), "only one of them can come from standard input"),
    "picture": (("rig.safetensors", "rig1.csv", "--plot", "rig.csv"), "rig.csv has an unknown suffix"),
    "still": (("rig.safetensors", "rig1.csv", "--outputs", "2", "--inputs", "3"), "never changes"),
}


@pytest.mark.parametrize(("arguments", "expected"), REFUSED.values(), ids=REFUSED)
def test_refusals(
    arguments: tuple[str, ...], expected: str, run_here: Run, folder: Path, network: ltinet.DynamicNetwork
) -> None:
    network.save(folder / "rig.safetensors")
    (folder / "rig1.csv").write_text(text(np.ones(50), np.random.default_rng(0).standard_normal(50)))
    np.savez(folder / "system.npz", t=np.arange(3.0), u=np.zeros(3))
    before = contents(folder)
    code, out, err = run_here("compare", *arguments)
    assert (code, out) == (2, b"")
    assert expected in err.decode()
    assert err.count(b"\n") == 1
    assert contents(folder) == before
