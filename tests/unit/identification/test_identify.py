"""Identification on drawn systems: recovery, warnings, and rejected input."""

import numpy as np
import pytest

import ltinet
from drawn_records import drawn_system, record, run


def first_order(n_samples=600, seed=0):
    rng = np.random.default_rng(seed)
    one = record(rng, (np.array([[0.8]]), np.ones((1, 1)), np.ones((1, 1))), n_samples, noise=0.01)
    return one.u, one.y


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("seed", range(8))
def test_drawn_systems_are_found(seed):
    rng = np.random.default_rng([1, seed])
    order, n_inputs, n_outputs = int(rng.integers(2, 6)), *rng.integers(1, 3, 2).tolist()
    system = drawn_system(rng, order, n_inputs, n_outputs)
    one = record(rng, system, 2000, noise=0.01)
    found = ltinet.identify(one.u, one.y, dt=0.5, order=order, trend="none")
    u = rng.standard_normal((500, n_inputs))
    # 1 % of noise on 2,000 samples leaves errors of about √(parameters/samples) of it in the outputs.
    assert found.fit(u, run(*system, u)).min() > 99.5
    assert found.order == order
    assert found.net.n_outputs == n_outputs
    assert ltinet.construct(found).n_inputs == n_inputs
    assert np.abs(found.simulate(u) - run(*system, u)).max() < 0.02 * np.abs(run(*system, u)).max()


def test_the_way_back_to_samples_is_exact():
    u, y = first_order()
    found = ltinet.identify(u, y, dt=0.1, order=1)
    again = found.system.to_discrete(0.1, method="zoh")
    assert pytest.approx(found.discrete.A, rel=1e-12) == again.A
    assert pytest.approx(found.discrete.B, rel=1e-12) == again.B
    assert found.discrete.dt == 0.1


@pytest.mark.slow
def test_several_experiments():
    rng = np.random.default_rng(7)
    system = drawn_system(rng, 3, 1, 1)
    records = [record(rng, system, n, noise=0.3) for n in (300, 500, 400)]
    u = rng.standard_normal((2000, 1))
    truth = run(*system, u)

    def fit(own):
        found = ltinet.identify([one.u for one in own], [one.y for one in own], dt=1.0, order=3, delay=0)
        return found.fit(u, truth)[0]

    assert fit(records) > max(fit([one]) for one in records)


def test_offsets_and_slopes_are_found():
    u, y = first_order(1500)
    found = ltinet.identify(u + 3.0, y + 7.0, dt=0.1, order=1)
    assert found.input_offsets == pytest.approx(3.0 + u.mean())
    assert found.fit(u + 3.0, y + 7.0)[0] > 99.0
    assert found.simulate(u + 3.0)[200:] == pytest.approx(y[200:] + 7.0, abs=0.2)
    drifting = y + np.linspace(0.0, 5.0, 1500)[:, None]
    assert ltinet.identify(u, drifting, dt=0.1, order=1, trend="linear").poles() == pytest.approx(
        found.poles(), rel=0.01
    )


def test_units_change_nothing_but_units():
    u, y = first_order()
    plain, huge = (ltinet.identify(s * u, y / s, dt=0.1, order=1) for s in (1.0, 2.0**400))
    assert huge.poles() == pytest.approx(plain.poles(), rel=1e-9)
    assert huge.fits == pytest.approx(plain.fits, rel=1e-9)


def test_order_choice():
    u, y = first_order(2000)
    assert ltinet.identify(u, y, dt=0.1).order <= 2
    assert ltinet.identify(u, y, dt=0.1, order=range(2, 4)).order in (2, 3)


def test_missing_samples_split_a_record():
    u, y = first_order()
    u[100:103] = np.nan
    found = ltinet.identify(u, y, dt=0.1, order=1)
    assert "2 experiments" in found.notes[0]
    assert found.fits[0] > 99.0


def test_runs_between_gaps_may_be_shorter_than_the_state():
    u, y = first_order()
    u[[300, 311]] = np.nan  # a run of ten samples
    found = ltinet.identify(u, y, dt=0.1, order=12, refine=False)
    assert "3 experiments" in found.notes[0]
    assert found.fits[0] > 99.0


def test_unstable_plant_in_loop():
    rng = np.random.default_rng(0)
    x, u, y = 0.0, np.empty((800, 1)), np.empty((800, 1))
    for k in range(800):
        y[k] = x + 0.01 * rng.standard_normal()
        u[k] = -0.5 * y[k] + rng.standard_normal()
        x = 1.1 * x + u[k, 0]
    found = ltinet.identify(u[:120], y[:120], dt=1.0, order=1)
    assert np.abs(found.discrete.A[0, 0] - 1.1) < 0.01
    assert "unstable" in found.warnings[0]


def test_it_prints_what_a_person_judges_by():
    u, y = first_order()
    told = str(ltinet.identify(u, y, dt=0.1, order=1))
    assert "order 1" in told
    assert "fit" in told
    assert "pole" in told


def bad_records():
    u, y = first_order(200)
    gap = u * np.nan
    uneven = 0.1 * np.arange(200.0)
    uneven[5] += 0.03
    return {
        "still": ((np.ones_like(u), y), {"dt": 0.1}, "never changes"),
        "nothing": ((0.0 * u, y), {"dt": 0.1}, "never changes"),
        "gaps": ((gap, y), {"dt": 0.1}, "gap"),
        "one sample": ((u[:1], y[:1]), {"dt": 0.1}, "longer record"),
        "channels": ((np.ones((5, 9)), np.ones((5, 1))), {"dt": 0.1}, "u.T"),
        "copies": ((u, np.hstack([y, 2.0 * y])), {"dt": 0.1}, "2 times y"),
        "copied inputs": ((np.hstack([u, 3.0 * u]), y), {"dt": 0.1}, "3 times u"),
        "long delay": ((u, y), {"dt": 0.1, "delay": 900}, "shortest experiment"),
        "stable": ((u, y), {"dt": 0.1, "stable": "maybe"}, "stable is"),
        "lengths": ((u[:-1], y), {"dt": 0.1}, "199 samples"),
        "complex": ((u + 1j, y), {"dt": 0.1}, "complex"),
        "no step": ((u, y), {}, "dt"),
        "step": ((u, y), {"dt": 0.0}, "positive"),
        "uneven": ((u, y), {"t": uneven}, "resample="),
        "order": ((u, y), {"dt": 0.1, "order": 0}, "order is 0"),
        "half": ((u, y), {"dt": 0.1, "order": 1.5}, "order is 1.5"),
        "too many": ((u, y), {"dt": 0.1, "order": 300}, "need about"),
        "method": ((u, y), {"dt": 0.1, "method": "pem"}, "moesp"),
        "block rows": ((u, y), {"dt": 0.1, "block_rows": 90}, "fewer block_rows"),
        "delay": ((u, y), {"dt": 0.1, "delay": -1}, "whole samples"),
        "hold": ((u, y), {"dt": 0.1, "hold": "cubic"}, "zero"),
        "trend": ((u, y), {"dt": 0.1, "trend": "mean"}, "constant"),
        "lists": (([u, u], [y]), {"dt": 0.1}, "2 experiments"),
    }


@pytest.mark.parametrize("name", bad_records())
def test_bad_records_are_refused(name):
    records, options, expected = bad_records()[name]
    with pytest.raises(ltinet.InvalidSignalError, match=expected):
        ltinet.identify(*records, **options)


def test_an_outlier_is_told():
    u, y = first_order()
    y[300] = 1e6
    assert "outlier" in ltinet.identify(u, y, dt=0.1, order=1).warnings[0]


def test_noise_alone_is_told():
    rng = np.random.default_rng(0)
    found = ltinet.identify(rng.standard_normal(400), rng.standard_normal(400), dt=1.0)
    assert any("explained by" in warning for warning in found.warnings)


@pytest.mark.slow
def test_report(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="a report has pictures")
    rng = np.random.default_rng(41)
    own = record(rng, drawn_system(rng, 2, 1, 1), 300, noise=0.05)
    found = ltinet.identify(own.u, own.y, dt=0.1, order=2)
    before = pyplot.get_fignums()
    found.report(tmp_path / "rig.html", title="<rig>")
    page = (tmp_path / "rig.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 5
    assert "&lt;rig&gt;" in page
    assert "<rig>" not in page
    assert f"{found.fits[0]:.2f} %" in page
    assert pyplot.get_fignums() == before
    with pytest.raises(ltinet.FileFormatError, match=r"does not end in \.html"):
        found.report(tmp_path / "rig.pdf")


def test_callback_is_called_for_every_step():
    rng = np.random.default_rng(42)
    own = record(rng, drawn_system(rng, 2, 1, 1), 400, noise=0.05)
    steps = []
    found = ltinet.identify(own.u, own.y, dt=0.1, order=range(1, 4), callback=steps.append)
    assert steps[0] == "models of 3 orders"
    assert steps[-1] == f"order {found.order} from all samples"
    with pytest.raises(ltinet.InvalidSignalError, match="callback is 3"):
        ltinet.identify(own.u, own.y, dt=0.1, callback=3)


def test_default_data_are_those_of_identification():
    rng = np.random.default_rng(43)
    own = record(rng, drawn_system(rng, 2, 2, 2), 500, noise=0.05)
    y = np.vstack([np.zeros((3, 2)), own.y[:-3]]) + np.array([5.0, -70.0])
    found = ltinet.identify(1000.0 * own.u + 3.0, y, dt=0.1, order=2, delay=[3, 3])
    np.testing.assert_allclose(found.fit(), found.fit(1000.0 * own.u + 3.0, y), rtol=1e-9)
    np.testing.assert_allclose(
        found.residuals().residuals[0], found.residuals(1000.0 * own.u + 3.0, y).residuals[0], atol=1e-9
    )
    assert found.plot.compare().axes[0].get_lines()[0].get_ydata().mean() == pytest.approx(y[3:, 0].mean())


@pytest.mark.slow
def test_stable_model_where_unstable_ones_diverge():
    """Clean records with inputs and outputs exchanged: all models of the inverse grow beyond all numbers."""
    rng = np.random.default_rng(1)
    own = record(rng, drawn_system(rng, 3, 1, 2), 600)
    found = ltinet.identify(own.y, own.u, dt=1.0)
    assert np.all(np.abs(np.linalg.eigvals(found.discrete.A)) <= 1.0)
    assert found.warnings


def test_specified_model_that_diverges():
    """The inverse of a system grows faster than a record of 600 samples can show."""
    rng = np.random.default_rng(1)
    own = record(rng, drawn_system(rng, 3, 1, 2), 600)
    with pytest.raises(ltinet.InvalidSignalError, match="every model diverges"):
        ltinet.identify(own.y, own.u, dt=1.0, order=3, block_rows=8, method="n4sid", stable=False, refine=False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": "a"}, "order is 'a'"),
        ({"order": [[1, 2], [3]]}, "order is"),
        ({"order": {}}, "order is {}"),
        ({"order": True}, "order is True"),
        ({"block_rows": True}, "block_rows is True"),
        ({"block_rows": [5]}, r"block_rows is \[5\]"),
        ({"trend": []}, r'trend is \[\]; it must be "none", "constant" or "linear"'),
        ({"stable": np.array([1, 2])}, 'it must be True, False or "auto"'),
        ({"stable": 1}, "stable is 1"),
        ({"delay": [[1], [2, 3]]}, "delay is"),
        ({"feedthrough": "no"}, "feedthrough is 'no'; it must be True or False"),
        ({"refine": "no"}, "refine is 'no'; it must be True or False"),
    ],
    ids=str,
)
def test_invalid_options_of_identify(options, told):
    rng = np.random.default_rng(44)
    own = record(rng, drawn_system(rng, 2, 1, 1), 300, noise=0.05)
    with pytest.raises(ltinet.InvalidSignalError, match=told):
        ltinet.identify(own.u, own.y, dt=1.0, **{"order": 2, **options})


def test_times_match_samples():
    rng = np.random.default_rng(45)
    own = record(rng, drawn_system(rng, 2, 1, 1), 300, noise=0.05)
    with pytest.raises(ltinet.InvalidSignalError, match="t has 3 times and u has 300 samples"):
        ltinet.identify(own.u, own.y, t=np.arange(3.0), order=2)
    rows = np.int64(6)
    found = ltinet.identify(own.u, own.y, t=0.5 * np.arange(300), order=np.int64(2), block_rows=rows, refine=False)
    assert (found.dt, found.block_rows) == (0.5, 6)
    with pytest.raises(ltinet.LtinetError, match="omega is text"):
        found.frequency_band("x")
    with pytest.raises(ltinet.FileFormatError, match="no folder"):
        found.report("/no/such/folder/rig.html")
    with pytest.raises(ltinet.FileFormatError, match="path is 3"):
        found.report(3)
