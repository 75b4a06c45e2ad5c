"""Public function `ltinet.explore`: the page of a system or network in the browser, a notebook, or a file."""

import sys
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from ltinet.conversion import as_state_space
from ltinet.dynamic_network import DynamicNetwork, register_explorer
from ltinet.errors import LtinetError

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
    """Open a page in the browser on which the budget is slid and the network seen; it ends with Ctrl-C.

    In a notebook the page is a widget in the cell, which needs the extra `jupyter`. Elsewhere the address is printed
    once; it answers to this machine alone and works without a network.

    Args:
        system: a network, or anything that `as_state_space` takes; without one the page begins with an example.
        page: write the page to this file instead, every budget computed beforehand: it needs no server and can be
            sent to somebody.
        title: how to call it on the page.
        port: where to listen, any free one if left out.
        browser: whether to open a browser.
        callback: called with the address.

    Raises:
        InvalidSystemError: `system` is none.
        MissingDependencyError: this is a notebook, and anywidget is not installed.
        FileFormatError: the page cannot be written there.
        LtinetError: the port is taken, or this is a system without processes that fork (Windows).
    """
    file = None if system is None else _upload_of(system, title)
    if page is not None:
        from ltinet.explorer.page import write_shared_page

        return write_shared_page(page, file)
    if _in_notebook():
        from ltinet.explorer.widget import (
            create_widget,  # here: whoever imports ltinet needs neither widgets nor servers
        )

        return create_widget(file)
    if sys.platform == "win32":
        raise LtinetError("explore needs processes that fork, which Windows has not; use it in WSL")
    from ltinet.explorer.server import run_page

    return run_page(file, port=port, browser=browser, callback=callback)


def _in_notebook() -> bool:
    """Whether this is a kernel behind a notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")


def _upload_of(system: Any, title: str | None) -> "Upload":
    from ltinet.explorer.files import to_upload

    is_network = isinstance(system, DynamicNetwork)
    shown = system if is_network else as_state_space(system)
    return to_upload(shown, title or ("network" if is_network else "system"))


register_explorer(explore)
