"""Hypothesis: `ltinet info` tells poles, damping and gain at rest as the library knows them, in strict JSON."""

import json
from pathlib import Path

import numpy as np
from processes import Run

import ltinet


def strict(text: bytes) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_full_precision_in_json(run_here: Run, folder: Path) -> None:
    for file, thing in (
        ("system.npz", ltinet.load_system(folder / "system.npz")),
        ("net.safetensors", ltinet.load(folder / "net.safetensors")),
    ):
        facts, damping = strict(run_here("info", file, "--json").out), thing.damping()
        np.testing.assert_array_equal([complex(*pole) for pole in facts["poles"]], damping.poles)
        np.testing.assert_array_equal(facts["natural_frequencies"], damping.natural_frequency)
        np.testing.assert_array_equal(facts["damping_ratios"], damping.damping_ratio)
        np.testing.assert_array_equal(facts["time_constants"], damping.time_constant)
        np.testing.assert_array_equal(facts["dc_gain"], thing.dcgain())
        assert facts["dt"] is None


def test_what_json_has_no_number_for(run_here: Run, folder: Path) -> None:
    ltinet.save_system(ltinet.StateSpace([[0.0]], [[-1.0, 1.0]], [[1.0]]), folder / "integrator.npz")
    facts = strict(run_here("info", "integrator.npz", "--json").out)
    assert facts["dc_gain"] == [["-inf", "inf"]]
    assert (facts["damping_ratios"], facts["time_constants"]) == ([None], ["inf"])
    assert [float(gain) for gain in facts["dc_gain"][0]] == [-np.inf, np.inf]


def test_lines_for_people(run_here: Run, folder: Path) -> None:
    lines = run_here("info", "example:mass_spring_damper,n_masses=1").out.decode().splitlines()
    # x'' + c x' + k x = u: |λ| = √k, ζ = c/(2√k), gain 1/k
    system = ltinet.named_system("mass_spring_damper", n_masses=1)
    k, c = -system.A[1]
    assert f"  damping      ratio {c / 2 / np.sqrt(k):.4g}, natural frequency {np.sqrt(k):.4g} rad/time" in lines
    assert f"  poles        {-c / 2:.5g} ± {np.sqrt(k - c * c / 4):.5g}i" in lines
    assert f"  DC gain      {1 / k:.5g}" in lines
    ltinet.save_system(system.to_discrete(0.25), folder / "sampled.mat")
    assert "  time step    0.25, discrete in time" in run_here("info", "sampled.mat").out.decode().splitlines()
    assert strict(run_here("info", "sampled.mat", "--json").out)["dt"] == 0.25
    np.savez(folder / "gain.npz", A=np.zeros((0, 0)), B=np.zeros((0, 1)), C=np.zeros((1, 0)), D=[[2.5]])
    assert run_here("info", "gain.npz").out.decode().splitlines()[-1] == "  DC gain      2.5"
