"""A page that is served, as many tests as there are in a file asking it."""

import threading
from collections.abc import Iterator

import pytest

from explored_page import ServedPage


@pytest.fixture(scope="module")
def page() -> Iterator[ServedPage]:
    """Serve an example."""
    pytest.importorskip("resource", reason="the server runs where processes fork")
    from ltinet.explorer.server import running_server

    with running_server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield ServedPage(server)
        server.shutdown()
        thread.join()
