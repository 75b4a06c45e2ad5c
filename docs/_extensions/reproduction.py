"""Directives of the reproduction page: its tables from `results.json`, and the figures of the same run."""

from typing import Any

from docutils import nodes
from results_text import MISSING, RESULTS, numbers_text, read_results, summary_text
from sphinx.application import Sphinx
from sphinx.directives.patches import Figure
from sphinx.util.docutils import SphinxDirective


class Reproduction(SphinxDirective):
    """The numbers of one example, or with the argument `summary` those about all."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Put the text of the results in place of the directive."""
        results, name = read_results(), self.arguments[0]
        self.env.note_dependency(str(RESULTS))
        if results is None:
            text = MISSING if name == "summary" else ""
        else:
            text = summary_text(results) if name == "summary" else numbers_text(results["examples"][name])
        return self.parse_text_to_nodes(text)


class ReproducedFigure(Figure):
    """A figure of the run by its name, left out where the run was not kept."""

    def run(self) -> list[nodes.Node]:
        """Draw it like any other figure."""
        picture = RESULTS.parent / f"{self.arguments[0]}.png"
        self.arguments[0] = f"/{picture.parent.name}/{picture.name}"  # from the folder of the documentation
        return super().run() if picture.exists() else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both."""
    app.add_directive("reproduction", Reproduction)
    app.add_directive("reproduced-figure", ReproducedFigure)
    return {"parallel_read_safe": True}
