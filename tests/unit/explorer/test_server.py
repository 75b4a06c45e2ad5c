"""Hypothesis: the server answers its own page and nobody else, and no file, request or death of a process ends it."""

import io
import json
import os
import signal
import socket
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ltinet
from explored_page import ServedPage
from fuzz.formats import FORMATS
from ltinet.explorer.server import CONTENT_SECURITY_POLICY


def still_works(page: ServedPage) -> None:
    assert page.view()["facts"]["n_states"] == 10


def test_it_listens_on_this_machine_alone(page: ServedPage) -> None:
    assert page.server.server_address[0] == "127.0.0.1"
    assert page.server.address.startswith("http://127.0.0.1:")
    assert len(page.server.token) >= 20


def test_the_page_and_its_files_come_with_the_policy(page: ServedPage) -> None:
    with page.connection() as line:
        line.sendall(f"GET /{page.server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
        head = line.recv(65536).decode()
    assert head.startswith("HTTP/1.1 200")
    assert f"Content-Security-Policy: {CONTENT_SECURITY_POLICY}" in head
    assert "Server: ltinet" in head
    assert b"startExplorer" in page.get("main.js")[1]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.test"},
        {"Host": "evil.test:80"},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Key": "x", "Sec_WebSocket_Version": "13"},
    ],
)
def test_foreign_requests_are_refused(page: ServedPage, headers: dict[str, str]) -> None:
    for path in ("", "view?system=example:triangular", "main.js"):
        status, content = page.get(path, **headers)
        assert status in (400, 403)
        assert b"facts" not in content


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.test"}, {"Sec_Fetch_Site": "cross-site"}])
def test_a_form_of_another_site_uploads_nothing(page: ServedPage, headers: dict[str, str]) -> None:
    before = page.server.session.uploads.listed()
    status, _ = page.raw("POST", f"/{page.server.token}/upload?name=a.npz", b"content", **headers)
    assert status == 403
    assert page.raw("POST", f"/{page.server.token}/cancel", b"", **headers)[0] == 403
    assert page.server.session.uploads.listed() == before


@pytest.mark.parametrize("token", ["", "wrong", "x" * 24])
def test_without_the_token_nothing_is_answered(page: ServedPage, token: str) -> None:
    for path in ("", "view", "main.js", "upload"):
        assert page.raw("GET", f"/{token}/{path}")[0] == 403
        assert page.raw("POST", f"/{token}/{path}", b"")[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd", "..%2f..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/etc/passwd", "static/../server.py",
        "....//....//etc/passwd", "/etc/passwd", "main.js/../../server.py", "main.js%00.html", "C:\\Windows\\win.ini",
    ],
)  # fmt: skip
def test_no_path_leads_out(page: ServedPage, path: str) -> None:
    status, content = page.get(path)
    assert status == 404
    assert b"root:" not in content


def test_a_link_in_place_of_a_file_leads_nowhere(page: ServedPage, tmp_path: Path) -> None:
    link = tmp_path / "system.npz"
    link.symlink_to("/etc/passwd")
    for name in (str(link), f"file:{link}", "/etc/passwd"):
        status, content = page.get(f"view?system={name}")
        assert status == 400
        assert b"root:" not in content
    status, told = page.upload(str(link), b"not what the link leads to")
    assert status == 400  # the name says what kind it is; what lies under it here is never opened
    assert "root:" not in told["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"])
def test_other_methods_are_refused(page: ServedPage, method: str) -> None:
    assert page.raw(method, f"/{page.server.token}/")[0] == 501


def test_ten_gigabytes_are_refused_before_they_are_sent(page: ServedPage) -> None:
    status, content = page.raw("POST", f"/{page.server.token}/upload?name=a.mat", b"", Content_Length=str(10 * 2**30))
    assert status == 413
    assert "too large" in json.loads(content)["error"]
    assert page.raw("POST", f"/{page.server.token}/upload?name=a.mat", None)[0] == 411
    chunked = page.raw("POST", f"/{page.server.token}/upload?name=a.mat", b"", Transfer_Encoding="chunked")
    assert chunked[0] == 411
    still_works(page)


def zip_bomb() -> bytes:
    """An .npz of 300 kB that becomes 300 MB."""
    stream, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (6_200, 6_200)})
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("A.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(31):
            member.write(bytes(10**7))
    return stream.getvalue()


def hdf5_bomb(folder: Path) -> bytes:
    """A file of MATLAB 7.3 that becomes gigabytes."""
    h5py = pytest.importorskip("h5py", reason="h5py writes the bomb")
    path = folder / "bomb.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name in "ABC":
            file.create_dataset(name, shape=(40_000, 40_000), dtype="f8", chunks=(1000, 1000), compression="gzip")
    return b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(384) + path.read_bytes()[512:]


def test_bombs_are_refused_in_a_sentence(page: ServedPage, tmp_path: Path) -> None:
    for name, content in (("bomb.npz", zip_bomb()), ("bomb.mat", hdf5_bomb(tmp_path))):
        status, told = page.upload(name, content)
        assert status == 400
        assert name in told["error"]
        still_works(page)


@pytest.mark.parametrize("name", ["npz", "mat5", "mat73", "network"])
def test_damaged_files_end_in_a_sentence(page: ServedPage, name: str, tmp_path: Path) -> None:
    own, rng = FORMATS[name], np.random.default_rng(19)
    seeds = own.seeds(tmp_path)
    for index in range(12):
        content = own.change(seeds[index % len(seeds)], rng)
        status, told = page.upload(own.file_name, content)
        assert status in (200, 400)
        assert ("hash" in told) == (status == 200)
    still_works(page)


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>.npz", "../../../tmp/evil.npz", "a\r\nX-Evil: 1.npz", "\0.npz"]
)
def test_names_are_names_and_nothing_else(page: ServedPage, name: str, tmp_path: Path) -> None:
    ltinet.save_system(ltinet.named_system("triangular"), tmp_path / "s.npz")
    status, told = page.upload(name, (tmp_path / "s.npz").read_bytes())
    if "\0" in name:
        assert status == 400
        return
    assert status == 200
    assert "\n" not in told["name"]
    view = page.view(f"system=file:{told['hash']}")
    assert view["title"] in told["name"]
    assert not Path("/tmp/evil.npz").exists()  # noqa: S108 - where the name would lead


def test_few_files_are_kept(page: ServedPage) -> None:
    for count in range(12):
        status, _ = page.upload("table.csv", f"t,u,y\n0,0,0\n1,1,{count}\n2,0,1\n".encode())
        assert status == 200
    assert len(page.server.session.uploads.listed()) <= 8
    still_works(page)


def test_slow_requests_and_a_thousand_connections_do_not_shut_others_out(page: ServedPage) -> None:
    lines: list[socket.socket] = []
    try:
        for _ in range(1000):
            line = page.connection()
            line.sendall(b"GET / HTTP/1.1\r\nHost: 127")  # and never goes on
            lines.append(line)
        still_works(page)
        assert threading.active_count() < 200  # those who never go on were let go when others came
    finally:
        for line in lines:
            line.close()
    still_works(page)


def test_a_worker_that_is_killed_is_replaced(page: ServedPage) -> None:
    still_works(page)
    first = page.server.session.backend.process
    assert first is not None
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 20.0
    while page.server.session.backend.process == first and time.monotonic() < deadline:
        time.sleep(0.01)
    still_works(page)
    assert page.server.session.backend.process not in (None, first)


def test_a_long_computation_is_ended_and_the_page_goes_on(page: ServedPage) -> None:
    found: list[tuple[int, bytes]] = []
    asking = threading.Thread(target=lambda: found.append(page.get("view?system=example:plate&tab=mine")))
    asking.start()
    time.sleep(0.5)
    assert page.raw("POST", f"/{page.server.token}/cancel?tab=mine", b"")[0] == 200
    asking.join(20.0)
    assert found[0][0] == 409
    assert "stopped" in json.loads(found[0][1])["error"]
    still_works(page)


def test_a_job_that_is_cancelled_leaves_the_worker(page: ServedPage) -> None:
    still_works(page)
    worker, found = page.server.session.backend.process, []
    query = "system=example:masses&u=chirp&tab=mine"
    asking = threading.Thread(target=lambda: found.append(page.get(f"engines?{query}")))
    asking.start()
    time.sleep(0.5)
    page.raw("POST", f"/{page.server.token}/cancel?tab=mine", b"")
    asking.join(20.0)
    assert found[0][0] == 400
    assert page.server.session.backend.process == worker
