"""Fixtures that every test may use, and the limit that no test can escape."""

import faulthandler
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Where a change is judged, the same examples every time; elsewhere new ones. Shared machines make deadlines useless.
settings.register_profile("judged", derandomize=True, deadline=None)
settings.register_profile("exploring", deadline=None)
settings.load_profile("judged" if os.environ.get("CI") else "exploring")

# They speak to a browser through inherited pipes, which Windows does not have.
collect_ignore = [] if hasattr(os, "fork") else ["browser"]

_GRACE = 0.2  # of the limit: for a test that was told to stop, and for its fixtures
_TERMINAL = pytest.StashKey[int]()


@pytest.hookimpl(tryfirst=True)  # before pytest-timeout reads its options
def pytest_configure(config: pytest.Config) -> None:
    """Say which tiers run, keep a way to the terminal that pytest does not capture, and keep the time limit.

    Where there is no alarm signal, a thread keeps the limit.
    """
    os.environ["LTINET_TEST_TIER"] = "default" if "not slow" in config.option.markexpr else "all"
    from support.tiers import n_examples  # here, because the tier is known only now

    settings.register_profile("tier", settings(), max_examples=n_examples(100))
    settings.load_profile("tier")
    if not hasattr(signal, "SIGALRM"):
        config.option.timeout_method = "thread"
    config.stash[_TERMINAL] = os.dup(2)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep `count` evenly spaced cases of `default_cases(count, rest="slow")` in the default tier; mark the others."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("default_cases"):
            cases[item.nodeid.split("[")[0]].append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("default_cases")
        count, rest = min(len(group), marker.args[0]), marker.kwargs.get("rest", "slow")
        chosen = {(2 * k + 1) * len(group) // (2 * count) for k in range(count)}
        for position, item in enumerate(group):
            if position not in chosen:
                item.add_marker(getattr(pytest.mark, rest))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process where the signal of pytest-timeout is not heard: code in C that never returns to the interpreter.

    Under pytest-xdist that is one worker, which is replaced, and the test is reported as the one that crashed it.
    """
    own = item.get_closest_marker("timeout")
    limit = float(own.args[0] if own is not None else item.config.getini("timeout") or 0.0)
    if limit > 0.0:
        faulthandler.dump_traceback_later((1.0 + _GRACE) * limit, exit=True, file=item.config.stash[_TERMINAL])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of real systems beside the repository, or skip where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data/lti with real systems is not here")
    return folder
