"""Sphinx: MyST pages, furo, and small extensions of our own; a warning is an error (`make docs`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import ltinet

project = "ltinet"
author = "The ltinet developers"
project_copyright = author
version = release = ltinet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "api_text",
    "mathml",
    "page_pictures",
    "shared_pages",
    "reproduction",
]
exclude_patterns = ["_build", "_generated", "reproduction"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "ltinet"
html_static_path = ["_static"]
html_css_files = ["ltinet.css"]
html_math_renderer = "mathml"
html_show_sphinx = False

add_module_names = False
default_role = "code"  # docstrings put single backticks around code
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
