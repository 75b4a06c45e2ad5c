"""Hypothesis: units in the header of a table reach the axes of pictures of simulations and identified models."""

import io

import numpy as np
import pytest

import ltinet

RIG = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]])


def table_of(header: str, **options: object) -> ltinet.Table:
    t = 0.1 * np.arange(400)
    u = np.random.default_rng(0).choice([-1.0, 1.0], 400)
    y = RIG.simulate(u, t, hold="zero").y[:, 0]
    rows = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in zip(t.tolist(), u.tolist(), y.tolist(), strict=True))
    return ltinet.read_table(io.BytesIO(f"{header},valve (%),temperature (°C)\n{rows}".encode()), **options)


def labels(figure: object) -> list[str]:
    return [axes.get_xlabel() or axes.get_ylabel() for axes in figure.axes]


@pytest.mark.parametrize(
    ("header", "label"), [("t [s]", "time (s)"), ("time (min)", "time (s)"), ("seconds", "time (s)"), ("t", "time")]
)
def test_the_time_axis_of_a_simulation_has_the_unit_of_the_table(header: str, label: str) -> None:
    u = table_of(header, columns="valve")
    model = RIG.with_names(["valve (%)"], ["temperature (°C)"])
    for solution in (model.simulate(u), model.simulate(u, u.t), ltinet.construct(model).simulate(u)):
        panels = solution.plot().axes
        assert panels[-1].get_xlabel() == label
        assert [axes.get_ylabel() for axes in panels] == ["temperature (°C)", "valve (%)"]
    assert solution.plot(time_unit="d").axes[-1].get_xlabel() == "time (d)"
    assert model.simulate(u, 2.0 * u.t).plot().axes[-1].get_xlabel() == "time"  # of an unknown unit


@pytest.mark.parametrize(("header", "label"), [("t [s]", "time (s)"), ("t", "time")])
def test_the_time_axis_of_an_identified_model_has_the_unit_of_the_table(header: str, label: str) -> None:
    u, y = (table_of(header, columns=name) for name in ("valve", "temperature"))
    found = ltinet.identify(u, y, t=u.t, order=2)
    (axes,) = found.plot.compare().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (label, "temperature (°C)")
    assert found.plot.bode().axes[-1].get_xlabel() == (
        "frequency (rad/time)" if label == "time" else "frequency (rad/s)"
    )
    assert ltinet.identify([u, u], [y, y], t=[u.t, u.t], order=2).plot.compare().axes[-1].get_xlabel() == label
    assert ltinet.identify(u, y, dt=0.1, order=2).plot.compare().axes[-1].get_xlabel() == "time"


def test_frames_have_the_units_of_their_indices() -> None:
    pd = pytest.importorskip("pandas")
    values = {"u": np.arange(3.0)}
    dates = pd.date_range("2026-03-01", periods=3, freq="s")
    units = {
        "s": pd.DataFrame(values, index=dates),
        "ms": pd.DataFrame(values, index=pd.Index([0, 1, 2], name="t [ms]")),
        "": pd.DataFrame(values, index=pd.Index([0.0, 1.0, 2.0], name="t")),
    }
    assert [ltinet.read_table(frame).time_unit for frame in units.values()] == ["s", "s", None]
    assert ltinet.read_table(units["s"], dt=0.1).time_unit is None
