"""What the reproduction page shows is what a full run of `ltinet reproduce` wrote."""

import re
from typing import Any

import pytest
from page_code import DOCS
from results_text import RESULTS, numbers_text, read_results, summary_text

PAGE = (DOCS / "reproduction.md").read_text()
FIGURES = re.findall(r"^```\{reproduced-figure\} (\S+)$", PAGE, flags=re.MULTILINE)


@pytest.fixture
def results() -> dict[str, Any]:
    """Give the results that the page is made from, or skip where no run was kept."""
    kept = read_results()
    if kept is None:
        pytest.skip("no run of `ltinet reproduce` is kept in docs/reproduction")
    return kept


def test_results_are_those_of_a_full_run(results: dict[str, Any]) -> None:
    assert not results["run"]["quick"]
    assert f"`{results['run']['command']}`" in summary_text(results)
    assert results["run"]["kernel"] in summary_text(results)


def test_only_numbers_that_the_paper_prints_count_as_reproduced(results: dict[str, Any]) -> None:
    for example in results["examples"].values():
        for number in example["numbers"].values():
            if number["verdict"] in ("reproduced", "better", "not reproduced"):
                assert re.search(r"\d", str(number["paper"]))


def test_counts_of_adaptive_solvers_are_shown_with_their_band(results: dict[str, Any]) -> None:
    numbers = results["examples"]["diffusion"]["numbers"]
    for key in ("evaluations_full", "evaluations_most"):
        assert numbers[key]["band"] is not None


def test_every_example_has_its_table(results: dict[str, Any]) -> None:
    assert re.findall(r"^```\{reproduction\} (?!summary)(\S+)$", PAGE, flags=re.MULTILINE) == list(results["examples"])


def test_rows_agree_with_the_results(results: dict[str, Any]) -> None:
    for example in results["examples"].values():
        rows = [row.strip("| ").split(" | ") for row in numbers_text(example).splitlines()[2:]]
        assert len(rows) == len(example["numbers"])
        for (meaning, paper, here, expected, verdict), number in zip(rows, example["numbers"].values(), strict=True):
            assert meaning.startswith(number["meaning"])
            assert expected.strip() == number["expected"]
            assert "∞" not in expected  # a bound that is infinite is none
            assert verdict.replace("\N{NO-BREAK SPACE}", " ").endswith(number["verdict"])
            assert agree(paper, number["paper"])
            value, _, band = here.partition(" (")
            assert agree(value, number["here"])
            if number["band"] is None:
                assert band == ""
            else:
                low, high = number["band"]
                assert low <= number["here"] <= high
                assert all(map(agree, band.rstrip(")").split(" to "), (low, high)))


def test_figures_come_from_the_run(results: dict[str, Any]) -> None:
    drawn = {path.removeprefix("figures/") for own in results["examples"].values() for path in own["figures"].values()}
    assert FIGURES
    assert set(FIGURES) <= drawn
    assert {path.stem for path in RESULTS.parent.glob("*.png")} == set(FIGURES)


def agree(shown: str, value: str | float) -> bool:
    """Return whether a cell is the text, or the number to at least three digits."""
    return shown == value if isinstance(value, str) else abs(as_number(shown) - value) <= 5e-3 * abs(value)


def as_number(shown: str) -> float:
    """A number as tables write it: −25.6, 3.51·10⁻¹⁵, 10⁻¹²."""
    power = re.fullmatch(r"(?:(?P<mantissa>\S+)·)?10(?P<power>[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", shown)
    written = f"{power['mantissa'] or 1}e{power['power']}" if power else shown
    return float(written.translate(str.maketrans("−⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")))
