"""Runs of other seeds that were wrong or above their bound once, each for a reason of its own."""

import pytest

from .draw import draw
from .judge import judge

ONCE_WRONG = {
    "11/defective/37": "powers of a step in the user's own coordinates",
    "11/defective/114": "a held input to an integrator: roundings in one direction",
    "11/defective/132": "powers of a step in the user's own coordinates",
    "11/hurwitz/26": "rounded times at an offset, taken as even",
    "11/jordan/158": "likewise",
    "11/non_normal/98": "a certificate whose run overflows",
    "12/defective/17": "products of matrices over uneven steps",
    "12/defective/98": "powers of a step in the user's own coordinates",
    "12/defective/115": "likewise, within single steps",
    "12/non_normal/137": "a certificate whose run overflows",
    "12/similarity/113": "products of matrices over uneven steps",
    "12/similarity/162": "powers of a step in the user's own coordinates",
    "21/defective/154": "a warning in the construction of a form",
    "21/integrating/88": "an exponential of a nilpotent block that was off",
    "22/similarity/99": "short steps through an ill-conditioned T",
    "32/defective/96": "a residual that feeds back through the error that it makes",
    "32/defective/117": "likewise",
    "32/repeated/9": "states coupled by rounding only, turned into each other",
    "32/repeated/49": "likewise",
    "42/nearly_real/7": "two of the user's own states, turned into each other as if they were a pair",
    "53/repeated/70": "states coupled by rounding only, turned into each other",
    "61/nearly_real/154": "steps far shorter than the longest, whose exponentials were not measured",
    "32/integrating/36": "a chain of integrators among other states, whose zeros a block rounds away",
    "2613/defective/27": "two runs that are nothing but error, each judged by its own size",
    "2613/integrating/38": "zeros of an exponential that pivots had rounded",
    "2615/jordan/61": "a state far smaller than the others that T makes it of",
    "61/jordan/145": "an output a million times smaller than the states of the block that it sees",
    "2618/descriptor/132": "squares of errors that underflow",
    "2619/nearly_real/69": "an output that sees one of two states with nearly one eigenvalue",
    "2618/defective/116": "states whose own exponential is known far less well than blocks",
    "2622/scales/93": "steps that had changed between a bound and a question after it",
    "2622/stiff/4": "a long step of a length that few steps have, whose exponential is farther off than others",
    "2627/nearly_real/52": "a small entry of an exponential whose rows changed places",
    "2629/repeated/123": "a pair of states that are coupled by so little that T leaves few digits of it",
    "2630/repeated/146": "likewise, through the stepper",
    "2632/stiff/106": "even steps of 67,000 time constants, whose inputs add what was taken to be rounded only",
    "2631/stiff/63": "10,000 short steps of states that nearly are one, and a few steps that are not short",
    "2640/scales/25": "powers of a step that were taken for nothing, beside a bound that fades as well",
    "2650/non_normal/76": "terms that stand still, rounded alike at every uneven step",
    "2654/integrating/40": "chains of integrators by blocks, whose bound is the tighter one, and the error larger",
    "2642/integrating/12": "a plain integral among states that blocks know better than the user's own matrix does",
    "2645/nearly_real/94": "a state that another reaches only by a coupling that is left out as rounding",
    "2648/jordan/124": "a state that T gives the digits of a small difference, where outputs see others",
    "2634/stiff/117": "states in the user's own coordinates after steps of 280,000 time constants",
    "2669/defective/158": "nine eigenvalues that rounding moves by more than they are, through 1e100",
    "2673/growing/14": "rounded times at an offset: all that is seen of a growing state are its first inputs",
    "2667/similarity/3": "a state at the start that was not tried, since inputs had told the two ways apart",
    "2624/integrating/160": "a warning where the bases of two blocks are all but parallel",
    "4101/non_normal/91": "uneven steps in blocks of balanced units, whose T has a condition of 5e17 as given",
    "4110/nearly_real/139": "likewise",
    "4110/large/3": "likewise, even steps of 132 states",
    "4104/large/13": "45 equal pairs: a scale of a Sylvester equation that underflows",
    "4205/large/14": "ratios of units that overflow in the bound, entries of A up to 2e273",
    "4203/descriptor/153": "an output that underflows to zero beside a bound of zero",
}

ONCE_INFINITE = {
    "2625/stiff/54": "errors that feed themselves for longer than they were followed",
    "61/stiff/107": "likewise, and within a cell of time",
}
"""Results that the last digit of the data decides: that there is a bound is all that is asked of them."""


LOST = {
    "2613/defective/27": "nine nearly equal eigenvalues in a run of 1e27: rounding of one exponential moves all",
    "2618/defective/116": "sixteen nearly equal eigenvalues: the exponential of all states loses what blocks lose",
    "2654/integrating/40": "chains of integrators whose powers are 5e3 in norm at 16 steps",
    "2669/defective/158": "grows beyond all numbers by rounding alone, as it does in steps by SciPy's exponential",
    "32/defective/117": "nearly equal eigenvalues behind a residual that feeds back",
}
"""Not right with steps of the given matrix, here or with another BLAS kernel: nor with SciPy's, within ten times."""


def _cases() -> list[object]:
    lost = {name: pytest.mark.xfail(strict=False, reason=reason) for name, reason in LOST.items()}
    return [pytest.param(name, marks=lost.get(name, ())) for name in ONCE_WRONG]


@pytest.mark.default_cases(4, rest="stress")
@pytest.mark.parametrize("name", _cases())
def test_what_was_wrong_once_is_right(name):
    outcome = judge(draw(name))
    assert not outcome.fails, (outcome.raised, outcome.wrong, outcome.above, outcome.unbounded)


@pytest.mark.stress
@pytest.mark.xfail(
    strict=False, reason="errors feed themselves in original coordinates; blocks have finite bounds, and no digit"
)
@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("name", ONCE_INFINITE)
def test_bounds_that_were_infinite_are_not(name):
    outcome = judge(draw(name))
    assert not outcome.raised
    assert not outcome.above
    assert not outcome.unbounded
