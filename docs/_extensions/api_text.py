"""Conversion of docstrings to reStructuredText, and short names of types in signatures.

Docstrings are plain text with formulas and numpydoc sections. Characters that would be markup by accident, as in |Re λ|,
are escaped outside of backticks and doctest blocks; sections become field lists (sphinx.ext.napoleon); aliases of types
replace what they stand for.
"""

import re
from typing import Any

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring, NumpyDocstring
from sphinx.util.typing import stringify_annotation

from ltinet.systems.matrices import MatrixLike

_LITERAL = re.compile(r"(`[^`]+`)")
_MARKUP = re.compile(r"([\\*|]|_(?!\w))")
_ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[tuple\[[^]]*\], ~?(?:numpy\.)?dtype\[~?(?:numpy\.)?(\w+)\]\]")
_NAPOLEON = Config(napoleon_preprocess_types=True)
_NAMES = tuple(
    (stringify_annotation(alias, "smart"), name)
    for alias, name in ((MatrixLike, "MatrixLike"), (ArrayLike, "ArrayLike"))
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the conversions to the events of autodoc."""
    app.connect("autodoc-process-docstring", _as_rst)
    app.connect("autodoc-process-signature", _with_short_types)
    app.connect("object-description-transform", _with_short_attribute_type)
    return {"parallel_read_safe": True}


def _as_rst(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = _escaped_lines(lines)
    if what not in ("attribute", "property"):  # in these a colon does not begin a section
        for style in (NumpyDocstring, GoogleDocstring):
            lines[:] = style(lines, _NAPOLEON, app, what, name, obj, options).lines()


def _escaped_lines(lines: list[str]) -> list[str]:
    """Escape accidental markup, except in doctest blocks: from a line with >>> to the next empty line."""
    result, in_doctest = [], False
    for line in lines:
        in_doctest = bool(line.strip()) and (in_doctest or line.lstrip().startswith(">>>"))
        result.append(line if in_doctest else "".join(map(_escaped, _LITERAL.split(line))))
    return result


def _escaped(part: str) -> str:
    return part if part.startswith("`") else _MARKUP.sub(r"\\\1", part)


def _with_short_types(
    _app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    return signature and _short(signature), returns and _short(returns)


def _with_short_attribute_type(_app: Sphinx, _domain: str, _kind: str, content: addnodes.desc_content) -> None:
    for annotation in content.parent.findall(addnodes.desc_annotation):
        if _ARRAY.search(annotation.astext()):
            annotation[:] = [nodes.Text(_short(annotation.astext()))]


def _short(text: str) -> str:
    for written, name in _NAMES:
        text = text.replace(written, name)
    return _ARRAY.sub(r"NDArray[\1]", text)
