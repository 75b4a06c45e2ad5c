"""Sphinx reads all pages without a warning, and what its extensions make of them is there.

Runs where the extra `docs` is installed; `make docs` needs the same.
"""

import shutil
from pathlib import Path

import pytest
from page_code import DOCS
from results_text import read_results

import ltinet
import ltinet.plotting

for library in ("myst_parser", "furo"):
    pytest.importorskip(library)
application = pytest.importorskip("sphinx.application")
nodes = pytest.importorskip("docutils.nodes")
mathml = pytest.importorskip("mathml")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")  # of Sphinx for others
def test_pages_are_read_without_a_warning_and_have_their_entries_and_tables(tmp_path: Path) -> None:
    source = tmp_path / "docs"  # a copy: pictures of pages are made in the folder of the documentation
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build", "_generated"))
    app = application.Sphinx(
        srcdir=source,
        confdir=source,
        outdir=tmp_path / "out",
        doctreedir=tmp_path / "doctrees",
        buildername="dummy",
        status=None,
        warningiserror=True,
        confoverrides={"autodoc_preserve_defaults": False},  # True would change signatures of functions in this process
    )
    app.build(force_all=True)
    assert app.statuscode == 0

    expected = {f"ltinet.{name}" for name in ltinet.__all__}
    expected |= {f"ltinet.plotting.{name}" for name in ltinet.plotting.__all__}
    assert expected - set(app.env.get_domain("py").objects) == set()

    for page in app.env.found_docs:
        for formula in app.env.get_doctree(page).findall(lambda node: isinstance(node, nodes.math | nodes.math_block)):
            assert mathml.as_mathml(formula.astext()).startswith("<math"), page

    results = read_results()
    tables = [len(list(table.findall(nodes.row))) for table in app.env.get_doctree("reproduction").findall(nodes.table)]
    examples = results["examples"].values() if results else ()
    assert tables[1:] == [1 + len(example["numbers"]) for example in examples]  # after the summary; one row is the head
