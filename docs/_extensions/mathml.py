"""Formulas as MathML, which browsers draw themselves: no script, no fonts and no network at reading time."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_COMMAND = re.compile(r"\\[A-Za-z]+")
_BAR = re.compile(r"<mo([^>]*)>([|‖])</mo>")  # of absolute values and norms; browsers space it like a sign between two
# A tall letter under a dot: browsers place the dot by the height of the letter, which fonts give too low for ξ.
_DOTTED_XI = re.compile(r'(<mover accent="true">\s*)<mi>ξ</mi>')
_SAME_AS = {r"\dots": r"\ldots", r"\big": r"\bigl", r"\Big": r"\Bigl"}  # what docutils knows by other names only


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; `html_math_renderer = "mathml"` chooses it."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True}


def as_mathml(formula: str, *, as_block: bool = False) -> str:
    """A formula in LaTeX as MathML; docutils raises MathError at a command that it does not know."""
    known = _COMMAND.sub(lambda found: _SAME_AS.get(found[0], found[0]), formula)
    formula = _BAR.sub(r'<mo\1 lspace="0" rspace="0">\2</mo>', tex2mathml(known, as_block=as_block))
    return _DOTTED_XI.sub(r'\1<mpadded height="0.92em"><mi>ξ</mi></mpadded>', formula)


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(as_mathml(node.astext()))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{as_mathml(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode
