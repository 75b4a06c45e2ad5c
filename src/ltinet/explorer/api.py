"""Public function `ltinet.explore`: the page of a system or network in the browser, a notebook, or a file."""

import sys
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltinet._util.text import format_path
from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork, register_explorer
from ltinet.errors import FileFormatError
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.network import NonlinearNetwork

if TYPE_CHECKING:
    from ltinet.explorer.files import Upload


def explore(
    system: Any = None,
    *,
    page: str | PathLike[str] | None = None,
    title: str | None = None,
    port: int = 0,
    browser: bool = True,
    callback: Callable[[str], None] = print,
) -> Any:
    """Open a page in the browser with a slider for the limit on cond(T); Ctrl-C stops it.

    In a notebook the page is a widget in the cell, which needs the extra `jupyter`. Elsewhere the address is printed;
    the page is served to this machine only and works without a network connection.

    Parameters
    ----------
    system
        A network, any argument of `as_state_space`, or the path of a table, of which the page identifies a system;
        an example by default. Of a model with products the page shows the linear layers, with its product neurons in a list.
    page
        Write a standalone page to this file instead, with the views of all limits; it needs no server.
    title
        Title of the page.
    port
        Port to listen on, by default any free one.
    browser
        Open a browser.
    callback
        Called with the address.

    Returns
    -------
    object
        The widget in a notebook, the path of a standalone page, else None.

    Raises
    ------
    InvalidSystemError
        `system` is not a system.
    MissingDependencyError
        anywidget is not installed in a notebook.
    FileFormatError
        The page cannot be written, or the table cannot be read or is not one.
    LtinetError
        The port is in use.
    """
    file = None if system is None else _upload_of(system, title)
    if page is not None:
        from ltinet.explorer.page import write_shared_page

        return write_shared_page(page, file)
    if _in_notebook():
        from ltinet.explorer.widget import create_widget  # here: `import ltinet` needs neither widgets nor servers

        return create_widget(file)
    from ltinet.explorer.server import run_page

    return run_page(file, port=port, browser=browser, callback=callback)


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")


def _upload_of(system: Any, title: str | None) -> "Upload":
    from ltinet.explorer.files import TABLE_SUFFIXES, table_upload, to_upload

    if isinstance(system, str | PathLike):
        path = Path(system)
        if path.suffix.lower() not in TABLE_SUFFIXES:
            raise FileFormatError(
                f"{format_path(path)} is not a table ({', '.join(TABLE_SUFFIXES)}); read a model first, as in "
                "ltinet.explore(ltinet.load_system(path))"
            )
        return table_upload(path)
    is_network = isinstance(system, DynamicNetwork | NonlinearNetwork)
    model = system if is_network or isinstance(system, NonlinearModel) else as_state_space(system)
    return to_upload(model, title or ("network" if is_network else "system"))


register_explorer(explore)
