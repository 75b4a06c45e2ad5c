"""One browser and one served page for all tests here."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from browser_page import Explored, driven_browser
from explored_page import ServedPage
from ltinet.explorer.server import running_server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with driven_browser() as found:
        yield found


@pytest.fixture(scope="module")
def served(browser: Any) -> Iterator[ServedPage]:  # noqa: ARG001 - where there is no browser nothing is served
    with running_server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield ServedPage(server)
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Any, served: ServedPage) -> Iterator[Explored]:
    """A tab; it must not complain, and must ask nobody but its server."""
    own = Explored(browser, served.server.address)
    yield own
    assert [url for url in own.asked if not url.startswith((served.server.address, "blob:", "data:"))] == []
    assert [words for words in own.complaints if "the server responded with a status of 4" not in words] == []
    own.close()
