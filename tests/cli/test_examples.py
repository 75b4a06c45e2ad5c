"""Hypothesis: built-in systems take their parameters on the command line, and shells complete them."""

import json

import pytest
from processes import Run

from ltinet.cli.sources import bash_completions, complete_source
from ltinet.systems.named_systems import NAMED_SYSTEMS


def test_parameters(run_here: Run) -> None:
    facts = json.loads(run_here("info", "example:heat_rod,n_states=7,diffusivity=0.5", "--json").out)
    assert facts["n_states"] == 7
    slow = json.loads(run_here("info", "example:heat_rod,n_states=7,diffusivity=0.25", "--json").out)
    assert facts["poles"][0][0] == pytest.approx(2.0 * slow["poles"][0][0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("heat_rod,n=3", "heat_rod has no parameter n; it has n_states, diffusivity"),
        ("heat_rod,n_states", "'n_states' is not a parameter with its value, given once, as in example:heat_rod,n_s"),
        ("heat_rod,n_states=2,n_states=3", "given once"),
        ("heat_rod,n_states=many", "n_states is 'many'; it must be a number"),
        ("heat_rod,n_states=2.5", "n_states must be an integer ≥ 1, got 2.5"),
        ("cold_rod,n_states=2", "unknown system 'cold_rod'"),
        ("heat_rod,", "'' is not a parameter"),
    ],
)
def test_what_is_wrong_is_said(run_here: Run, text: str, said: str) -> None:
    code, out, err = run_here("info", f"example:{text}")
    assert (code, out) == (2, b"")
    assert said in err.decode()


def test_completion() -> None:
    assert complete_source("ex") == [f"example:{name}" for name in NAMED_SYSTEMS]
    assert complete_source("example:he") == ["example:heat_plate", "example:heat_rod"]
    assert complete_source("example:heat_rod,") == ["example:heat_rod,n_states=", "example:heat_rod,diffusivity="]
    assert complete_source("example:heat_rod,n_states=3,") == ["example:heat_rod,n_states=3,diffusivity="]
    assert complete_source("model.mat") == []


@pytest.mark.parametrize(
    ("words", "place", "answers"),
    [
        ("ltinet info example :", 3, list(NAMED_SYSTEMS)),
        ("ltinet info example : heat_r", 4, ["heat_rod"]),
        ("ltinet info example : heat_rod,n_states = 3,di", 6, ["3,diffusivity="]),
        ("ltinet info model.mat --j", 3, None),
        ("ltinet construct example : heat_rod --la", 5, None),
    ],
)
def test_bash_cuts_words_at_colons(monkeypatch: pytest.MonkeyPatch, words: str, place: int, answers: object) -> None:
    for name, value in (("_LTINET_COMPLETE", "complete_bash"), ("COMP_WORDS", words), ("COMP_CWORD", str(place))):
        monkeypatch.setenv(name, value)
    assert bash_completions() == answers


def test_completion_in_bash_itself(run_here: Run) -> None:
    def completed(words: str, place: int) -> list[str]:
        shell = {"_LTINET_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        return run_here(environment=shell).out.decode().split()

    assert completed("ltinet info example : heat_rod,n", 4) == ["heat_rod,n_states="]
    assert completed("ltinet construct example : heat_rod --la", 5) == ["--layers"]
    assert completed("ltinet response mass", 2) == []
    assert completed("ltinet reproduce 3", 2) == ["3.1", "3.2", "3.3"]


def test_a_large_sparse_model_is_told_without_its_poles(run_here: Run) -> None:
    facts = json.loads(run_here("info", "example:heat_plate,n=3600", "--json").out)
    assert (facts["n_states"], facts["is_sparse"], facts["nonzeros_of_A"]) == (3600, True, 5 * 3600 - 4 * 60)
    assert facts["real_parts"] is None
    assert (
        "A sparse with 17760 non-zeros (symmetric), E = I" in run_here("info", "example:heat_plate,n=3600").out.decode()
    )
