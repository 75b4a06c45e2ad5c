"""The numbers in README and docs are those of the last benchmark run, digit by digit."""

from pathlib import Path

import pytest
from benchmarks.support.quotes import ROOT, n_quotes, quoting_files, with_quotes
from benchmarks.support.report import report
from benchmarks.support.summary import summary
from benchmarks.support.table import Table, read_all

RESULTS = ROOT / "benchmarks" / "results"
QUOTING = [path for path in quoting_files() if n_quotes(path.read_text(encoding="utf-8"))]
PAGE = """
<!-- results:speeds | case, ratio -->

| case | ratio |
|---|---|
| iss | 504 (480 … 530) |

<!-- /results -->
It is <!-- value:speeds | iss | ratio -->504<!-- /value --> times as fast.
"""
SPEEDS = Table(
    "speeds",
    "Speeds",
    "",
    {"case": "case", "n": "n", "ratio": "ratio"},
    [{"case": "iss", "n": 270, "ratio": {"median": 504.2, "min": 480.1, "max": 530.4}}],
)


@pytest.fixture(scope="module")
def results():
    found = read_all(RESULTS)
    assert found, "benchmarks/results is empty; run `make bench`"
    return found


@pytest.mark.parametrize("path", QUOTING, ids=lambda path: str(path.relative_to(ROOT)))
def test_quotes_are_what_was_measured(path, results):
    tables = {name: table for name, (table, _) in results.items()}
    tables["summary"] = summary(tables)
    text = path.read_text(encoding="utf-8")
    assert with_quotes(text, tables) == text, "run `python -m benchmarks --quote`"


def test_the_readme_quotes_results():
    assert ROOT / "README.md" in QUOTING


def test_the_page_of_results_is_what_was_measured(results):
    page = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert report(results, figures=Path("results")) == page, "run `python -m benchmarks --report`"


def test_no_quick_run_is_quoted(results):
    assert {environment["mode"] for _, environment in results.values()} == {"full"}


def test_a_page_that_quotes_rightly_stays_as_it_is():
    assert with_quotes(PAGE, {"speeds": SPEEDS}) == PAGE


@pytest.mark.parametrize("wrong", ["| iss | 505 (480 … 530) |", "-->505<!--"])
def test_a_number_that_was_not_measured_is_found(wrong):
    altered = PAGE.replace(wrong.replace("505", "504"), wrong)
    assert altered != PAGE
    assert with_quotes(altered, {"speeds": SPEEDS}) == PAGE


def test_empty_marks_are_filled_one_by_one():
    empty = "<!-- results:speeds | case, ratio -->\n<!-- /results -->\n<!-- results:speeds -->\n<!-- /results -->\n"
    filled = with_quotes(empty, {"speeds": SPEEDS})
    assert n_quotes(filled) == 2
    assert filled.count("| iss |") == 2
    assert with_quotes(filled, {"speeds": SPEEDS}) == filled


def test_a_mark_without_a_table_is_an_error():
    with pytest.raises(KeyError):
        with_quotes(PAGE, {})
