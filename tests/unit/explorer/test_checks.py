"""Hypothesis: only the page itself, from this machine, with its token, is answered."""

import pytest

from ltinet.explorer.server import CONTENT_SECURITY_POLICY, check_request

OWN = {"host": "127.0.0.1:4711"}
PATH = "/secret/view?system=example:triangular"


def refused(method: str = "GET", path: str = PATH, **headers: str) -> int | None:
    given = OWN | {name.replace("_", "-"): value for name, value in headers.items()}
    found = check_request(method, path, given, port=4711, token="secret")  # noqa: S106
    return None if found is None else found.status


def test_the_page_itself_is_answered() -> None:
    assert refused() is None
    assert refused(origin="http://127.0.0.1:4711", sec_fetch_site="same-origin") is None
    assert refused(host="localhost:4711", origin="http://localhost:4711") is None
    assert refused(sec_fetch_site="none") is None  # an address that was typed
    assert refused("POST", "/secret/upload", origin="http://127.0.0.1:4711", sec_fetch_site="same-origin") is None


@pytest.mark.parametrize("host", ["evil.test", "evil.test:4711", "127.0.0.1", "127.0.0.1:80", "0.0.0.0:4711", ""])
def test_a_foreign_host_is_refused(host: str) -> None:
    assert refused(host=host) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.test", "null", "https://127.0.0.1:4711", "http://127.0.0.1:4712", "http://localhost:4711"]
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert refused(origin=origin) == 403
    assert refused("POST", "/secret/upload", origin=origin) == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_other_sites_are_refused(site: str) -> None:
    assert refused(sec_fetch_site=site) == 403
    assert refused("POST", "/secret/upload", sec_fetch_site=site) == 403


def test_a_form_that_somebody_typed_is_refused() -> None:
    assert refused("POST", "/secret/upload", sec_fetch_site="none") == 403


@pytest.mark.parametrize(
    "path", ["/", "/view", "/wrong/view", "/secre/view", "/secret1/view", "secret/view", "//secret/"]
)
def test_without_its_token_nothing_is_answered(path: str) -> None:
    assert refused(path=path) == 403


def test_a_websocket_is_refused() -> None:
    assert refused(upgrade="websocket", connection="Upgrade") == 400


def test_the_policy_allows_no_other_host_and_nothing_inline() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    assert "*" not in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
