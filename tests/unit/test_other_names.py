"""Hypothesis: a name of MATLAB, SciPy or python-control works, or its error names a call that exists."""

import copy
import inspect
import pickle
import re

import control
import numpy as np
import pytest

import ltinet
from ltinet._util.other_names import DESIGN_FUNCTIONS, EQUIVALENT_CALLS, EQUIVALENT_KEYWORDS
from ltinet.errors import InvalidSystemError

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


@pytest.mark.parametrize(
    ("call", "keyword"),
    [
        (lambda: ltinet.tf([1], [1, 1], InputDelay=2), "input_delay"),
        (lambda: ltinet.tf(numerator=[1], den=[1, 1]), "num"),
        (lambda: ltinet.ss(-1, 1, 1, Ts=0.1), "dt"),
        (lambda: ltinet.zpk(z=[], p=[-1], k=1), "zeros"),
        (lambda: ltinet.pid(Kp=1, Ki=2), "kp"),
        (lambda: ltinet.pid(1, Kd=2, Tf=0.1), "kd"),
        (lambda: ltinet.StateSpace(-1, 1, 1, OutputDelay=0.1), "output_delay"),
    ],
)
def test_keywords_of_other_libraries_are_answered(call, keyword):
    with pytest.raises(TypeError, match=rf"\(\) has no keyword '\w+'; use {keyword}$"):
        call()


def test_every_equivalent_keyword_exists():
    functions = (ltinet.ss, ltinet.tf, ltinet.zpk, ltinet.pid)
    accepted = set().union(*(inspect.signature(function).parameters for function in functions))
    assert set(EQUIVALENT_KEYWORDS.values()) <= accepted
    assert not accepted & EQUIVALENT_KEYWORDS.keys()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        ltinet.tf([1], [1, 1], nonsense=1)


def test_pade_of_a_time_and_exponentials_are_answered():
    with pytest.raises(InvalidSystemError, match=r"got the time 4; pass a system, such as pade\(ltinet.tf\(") as answer:
        ltinet.pade(4, 4)
    num, den = control.pade(4, 4)
    s = np.array([0.3j, 1.0 + 2.0j])
    recommended = eval("ltinet." + str(answer.value).split("such as ")[1])  # noqa: S307
    np.testing.assert_allclose(recommended(s)[:, 0, 0], control.tf(num, den)(s), rtol=1e-13)
    for system in (-4 * ltinet.tf("s"), SYSTEM):
        with pytest.raises(
            TypeError, match=r"dead time is an option, as in ltinet.tf\(\[1\], \[1, 1\], input_delay=4\)"
        ):
            np.exp(system)


def test_other_missing_names_are_plain_errors():
    with pytest.raises(AttributeError, match=r"^'StateSpace' object has no attribute 'nonsense'$"):
        getattr(SYSTEM, "nonsense")  # noqa: B009
    assert copy.deepcopy(SYSTEM) == pickle.loads(pickle.dumps(SYSTEM)) == SYSTEM  # noqa: S301


def test_networks_and_results_say_how_to_get_the_system():
    with pytest.raises(AttributeError, match=r"use system.to_discrete\(dt\) with system = net.to_state_space\(\)"):
        ltinet.construct(SYSTEM).to_discrete(0.1)
    rng = np.random.default_rng(0)
    u = rng.standard_normal(200)
    result = ltinet.identify(u, SYSTEM.simulate(u, 0.1 * np.arange(200), hold="zero").y, dt=0.1, order=2)
    with pytest.raises(AttributeError, match=r"use result\.system\.margin"):
        result.margin()
    with pytest.raises(AttributeError, match=r"with system = result\.system"):
        result.c2d(0.1)
    assert pickle.loads(pickle.dumps(result)).order == 2  # noqa: S301 - our own bytes


def test_one_signal_may_be_named_by_text():
    system = ltinet.tf([1], [1, 1], inputs="Force (N)", outputs="Position (m)")
    assert system.input_names == ("Force (N)",)
    assert system.output_names == ("Position (m)",)
    with pytest.raises(InvalidSystemError, match="1 name, but the system has 2 inputs"):
        ltinet.StateSpace([[-1.0]], [[1.0, 1.0]], [[1.0]], inputs="uv")
