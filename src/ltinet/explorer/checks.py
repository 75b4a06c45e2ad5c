"""Who may ask: this page, from this address, with its token. Everyone on the machine can reach 127.0.0.1."""

import hmac
from collections.abc import Mapping
from typing import NamedTuple

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    sentence: str


def refusal(method: str, path: str, headers: Mapping[str, str], *, port: int, token: str) -> Refusal | None:
    """Why a request is refused; None where it may be answered.

    Names of `headers` are small letters. The token is the first part of the path: no other page knows it, and no
    browser adds it by itself as it would a cookie.
    """
    hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
    host = headers.get("host", "")
    if host not in hosts:
        return Refusal(403, "this page answers to 127.0.0.1 only")
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return Refusal(403, "this page answers to itself only")
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin") and not (site == "none" and method == "GET"):
        return Refusal(403, "this page answers to itself only")
    if "upgrade" in headers:
        return Refusal(400, "there is nothing to upgrade to")
    given = path.split("/", 2)[1] if path.startswith("/") else ""
    if not hmac.compare_digest(given.encode(), token.encode()):
        return Refusal(403, "the address lacks its token; open the one that was printed when the page was started")
    return None
