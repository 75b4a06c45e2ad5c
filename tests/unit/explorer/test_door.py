"""Hypothesis: the page opens from Python and from the command line, says its address once, and ends when asked to."""

import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

import ltinet


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the server runs where processes fork")
def test_the_command_prints_its_address_once_and_ends_with_control_c() -> None:
    command = [sys.executable, "-m", "ltinet", "explore", "example:triangular,n_states=6", "--no-browser"]
    process = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # it may be ignored here
    )
    try:
        assert process.stdout is not None
        address = re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", process.stdout.readline())
        assert len(address) == 1
        with urllib.request.urlopen(address[0], timeout=60) as answer:  # noqa: S310 - that address
            assert b"ltinet" in answer.read()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "http" not in rest
    assert errors == ""


def test_a_port_that_is_taken_is_told(page) -> None:
    with pytest.raises(ltinet.LtinetError, match="port"):
        ltinet.explore(port=page.port, browser=False)


def test_what_is_no_system_is_refused() -> None:
    with pytest.raises(ltinet.LtinetError):
        ltinet.explore("no system", browser=False)
