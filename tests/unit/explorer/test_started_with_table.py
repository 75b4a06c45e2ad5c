"""Hypothesis: a page that starts with a table delivers it to the browser unchanged."""

import json
import threading
from pathlib import Path

import pytest

import ltinet
from explored_page import ServedPage
from ltinet.errors import FileFormatError
from ltinet.explorer.files import MAX_UPLOAD_BYTES, table_upload

TABLE = b"t;Ventil;T (K)\n0;1;2,5\n1;2;3,5\n"


def test_the_table_is_served_under_its_name(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="the server runs where processes fork")
    from ltinet.explorer.server import running_server

    (tmp_path / "rig.csv").write_bytes(TABLE)
    with running_server(table_upload(tmp_path / "rig.csv")) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = ServedPage(server)
        start = page.get("")[1].decode().partition('id="start">')[2].partition("</script>")[0]
        assert json.loads(start)["table"] == "rig.csv"
        assert page.get("table") == (200, TABLE)
        assert page.raw("GET", "/wrong/table")[0] == 403
        server.shutdown()
        thread.join()


def test_tables_that_the_page_cannot_take_are_named(tmp_path: Path) -> None:
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(MAX_UPLOAD_BYTES + 1)
    with pytest.raises(FileFormatError, match=r"large\.csv is too large for the page; the limit is 64 MB"):
        ltinet.explore(tmp_path / "large.csv")
    with pytest.raises(FileFormatError, match=r"rig\.mat is not a table .*ltinet\.load_system"):
        ltinet.explore(tmp_path / "rig.mat")
