"""Of 500 hostile runs with delays and operating points all are right, and none is above its bound."""

import pytest

from .delayed import N_RUNS, delayed_run, judged


@pytest.mark.default_cases(10, rest="stress")
@pytest.mark.parametrize("number", range(N_RUNS))
def test_every_delayed_run_is_right_and_below_its_bound(number):
    verdict = judged(delayed_run(number))
    assert not verdict.wrong + verdict.above, verdict.name
