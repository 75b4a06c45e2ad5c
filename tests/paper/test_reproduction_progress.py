"""Progress of a reproduction on a terminal; nothing on pipes."""

import os
import sys
from select import select

from ltinet._util.progress import progress_bar


def test_terminal_shows_current_step(monkeypatch):
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress_bar(2) as tell:
            tell("diffusion: network")
        shown = b""
        while b"diffusion: network" not in shown and select([ours], [], [], 5.0)[0]:
            shown += os.read(ours, 1 << 16)
    os.close(ours)
    assert b"diffusion: network" in shown


def test_a_pipe_shows_nothing(capfd):
    with progress_bar(2) as tell:
        tell("diffusion: network")
    assert capfd.readouterr() == ("", "")
