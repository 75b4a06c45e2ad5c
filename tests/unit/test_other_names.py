"""Hypothesis: a name of MATLAB, SciPy or python-control works, or its error names a call that exists."""

import copy
import pickle
import re

import control
import pytest

import ltinet
from ltinet._util.other_names import DESIGN_FUNCTIONS, EQUIVALENT_CALLS

SYSTEM = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.4]], [0.0, 1.0], [1.0, 0.0])
# Tried by newcomers as functions of the module and as methods.
TRIED = ("tf", "ss", "zpk", "step", "bode", "margin", "feedback", "series", "parallel", "lqr", "kalman", "damp", "c2d",
         "pzmap", "nyquist", "isstable", "norm", "minreal", "freqresp", "lsim", "pole", "zero", "place")  # fmt: skip


@pytest.mark.parametrize("name", EQUIVALENT_CALLS)
def test_calls_that_are_recommended_exist(name):
    calls = re.findall(r"\b(ltinet|system)\.(\w+)(?:\.(\w+))?", EQUIVALENT_CALLS[name])
    for owner, *names in calls:
        value = {"ltinet": ltinet, "system": SYSTEM}[owner]
        for attribute in filter(None, names):
            value = getattr(value, attribute)
    if not calls:
        assert EQUIVALENT_CALLS[name].startswith(("numpy.linalg.svd", "control.lqe"))


@pytest.mark.parametrize("name", sorted(DESIGN_FUNCTIONS))
def test_functions_of_python_control_exist_there(name):
    assert callable(getattr(control, name))
    with pytest.raises(AttributeError, match=f"use control.{name} of python-control"):
        getattr(ltinet, name)


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("owner", [ltinet, SYSTEM, ltinet.construct(SYSTEM)], ids=["module", "system", "network"])
def test_names_that_newcomers_try_work_or_are_answered(name, owner):
    if not hasattr(owner, name) and not hasattr(ltinet, name):
        with pytest.raises(AttributeError, match="; use "):
            getattr(owner, name)


def test_other_missing_names_are_plain_errors():
    with pytest.raises(AttributeError, match=r"^'StateSpace' object has no attribute 'nonsense'$"):
        getattr(SYSTEM, "nonsense")  # noqa: B009
    assert copy.deepcopy(SYSTEM) == pickle.loads(pickle.dumps(SYSTEM)) == SYSTEM  # noqa: S301
