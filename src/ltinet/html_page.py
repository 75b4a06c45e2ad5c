"""Self-contained HTML pages: the style sheet is in the page, and neither scripts nor a network are needed."""

from html import escape
from importlib import resources


def html_page(title: str, body: str) -> str:
    """Return a whole page with the common style sheet; `body` is HTML, `title` plain text."""
    style = resources.files("ltinet").joinpath("html_page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'  # otherwise browsers request an icon from the server
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
