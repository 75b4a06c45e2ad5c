"""A headless Chromium, driven through its DevTools protocol over two pipes: what a page asks for, says and shows."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0  # seconds: a browser starts slowly on a busy machine


def find_browser() -> str | None:
    if not hasattr(os, "fork"):
        return None  # two pipes cannot be handed to it
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@dataclass
class Page:
    """A tab: `requests` and `complaints` grow as the page loads."""

    commands: int
    answers: int
    session: str = ""
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _sent: int = 0
    _buffer: bytes = b""

    def call(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._sent:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, url: str, *, width: int, height: int = 900) -> None:
        """Load a page in a window of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _read(self) -> dict[str, Any]:
        deadline = monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select([self.answers], [], [], max(deadline - monotonic(), 0.0))
            chunk = os.read(self.answers, 1 << 16) if ready else b""
            assert chunk, "the browser does not answer"
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])


@contextmanager
def browser_page(program: str) -> Iterator[Page]:
    """A new tab of a browser that ends with the block."""
    # The browser reads commands from its file 3 and answers on 4: the ends must not lie there before they are moved.
    (theirs_in, ours_out), (ours_in, theirs_out) = (tuple(map(_moved_up, os.pipe())) for _ in range(2))

    def move_into_place() -> None:
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        process = subprocess.Popen(  # noqa: S603
            [program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(3, 4), preexec_fn=move_into_place,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield _attached(Page(ours_out, ours_in))
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(ours_out)
            os.close(ours_in)


def _moved_up(descriptor: int) -> int:
    import fcntl  # here, so that tests on Windows can import this module and skip

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _attached(page: Page) -> Page:
    target = page.call("Target.createTarget", url="about:blank")["targetId"]
    page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Network", "Runtime", "Log"):
        page.call(f"{domain}.enable")
    return page


def file_url(path: Path) -> str:
    return path.resolve().as_uri()
